"""How messages travel: network semantics as values over the inbox of one destination.

An inbox is a frozen value that only its semantics understands. `put` adds a sent message, `deliverable` lists what may
arrive next in canonical order, `contents` all there is, `each` the same in no order, `take` removes one copy of a
message. Nothing is ever ordered between destinations. Which links travel by which semantics is said in `links`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from harness.model.frozen_map import FrozenMap
from harness.model.message import Message
from harness.model.values import Value, canonical_sort


class Network(Protocol):
    """What a network semantics offers; the inbox type is its own business."""

    name: str
    empty: Value = FrozenMap()
    is_reliable: bool = False
    """Whether no fault takes, doubles, delays or reorders a message: if cut off, it waits until the link heals."""

    def put(self, inbox: Value, message: Message) -> Value: ...
    def take(self, inbox: Value, message: Message) -> Value: ...
    def deliverable(self, inbox: Value) -> tuple[Message, ...]: ...
    def contents(self, inbox: Value) -> tuple[Message, ...]: ...

    def each(self, inbox: Value) -> Iterable[Message]:
        return self.contents(inbox)

    def in_order(self, inbox: Value) -> Value:
        """Return an inbox whose messages were renamed as it is kept: what goes by their order or numbers follows."""
        return inbox


class UnorderedSet(Network):
    """The specs' network: a set of messages in flight, which arrive in any order; a message sent twice is one."""

    name = "unordered-set"
    empty: Value = frozenset()

    def put(self, inbox: Value, message: Message) -> Value:
        return inbox | {message}

    def take(self, inbox: Value, message: Message) -> Value:
        return inbox - {message}

    def deliverable(self, inbox: Value) -> tuple[Message, ...]:
        return tuple(canonical_sort(inbox))

    def contents(self, inbox: Value) -> tuple[Message, ...]:
        return self.deliverable(inbox)

    def each(self, inbox: Value) -> Iterable[Message]:
        messages: frozenset[Message] = inbox
        return messages


class Bag(Network):
    """A multiset of messages in flight, any of which may arrive next; copies count."""

    name = "bag"

    def put(self, inbox: Value, message: Message) -> Value:
        return inbox.set(message, inbox.get(message, 0) + 1)

    def take(self, inbox: Value, message: Message) -> Value:
        left = inbox[message] - 1
        return inbox.set(message, left) if left else inbox.without(message)

    def deliverable(self, inbox: Value) -> tuple[Message, ...]:
        return tuple(inbox)

    def contents(self, inbox: Value) -> tuple[Message, ...]:
        return tuple(message for message, copies in inbox.items() for _ in range(copies))

    def each(self, inbox: Value) -> Iterable[Message]:
        return self.deliverable(inbox)


class Fifo(Network):
    """First in, first out per connection; a source that reconnects leaves its old queue behind, which may still arrive.

    Inbox: source -> (abandoned queues in canonical order, current queue). Each queue delivers its head; queues are
    unordered among each other.
    """

    name = "fifo"

    def put(self, inbox: Value, message: Message) -> Value:
        abandoned, current = inbox.get(message.source, ((), ()))
        return inbox.set(message.source, (abandoned, (*current, message)))

    def take(self, inbox: Value, message: Message) -> Value:
        abandoned, current = inbox[message.source]
        if current and current[0] == message:
            return self._with(inbox, message.source, abandoned, current[1:])
        for n, queue in enumerate(abandoned):
            if queue[0] == message:
                rest = [*abandoned[:n], *((queue[1:],) if queue[1:] else ()), *abandoned[n + 1 :]]
                return self._with(inbox, message.source, tuple(canonical_sort(rest)), current)
        return self._without(inbox, message)

    def deliverable(self, inbox: Value) -> tuple[Message, ...]:
        heads = []
        for abandoned, current in inbox.values():
            heads += [queue[0] for queue in (*abandoned, current) if queue]
        return tuple(canonical_sort(set(heads)))

    def contents(self, inbox: Value) -> tuple[Message, ...]:
        return tuple(m for abandoned, current in inbox.values() for queue in (*abandoned, current) for m in queue)

    def reconnect(self, inbox: Value, source: str) -> Value:
        """Return the inbox after `source` opened a new connection: what was under way may still arrive, unordered."""
        abandoned, current = inbox.get(source, ((), ()))
        if not current:
            return inbox
        return self._with(inbox, source, tuple(canonical_sort([*abandoned, current])), ())

    def in_order(self, inbox: Value) -> Value:
        queues: FrozenMap[str, Any] = inbox
        return FrozenMap({who: (tuple(canonical_sort(old)), now) for who, (old, now) in queues.items()})

    def _with(self, inbox: Value, source: str, abandoned: Value, current: Value) -> Value:
        if not abandoned and not current:
            return inbox.without(source)
        return inbox.set(source, (abandoned, current))

    def _without(self, inbox: Value, message: Message) -> Value:
        """Remove a message from the middle of a queue (a drop; delivery takes heads only)."""
        abandoned, current = inbox[message.source]
        queues = [list(queue) for queue in (*abandoned, current)]
        for queue in queues:
            if message in queue:
                queue.remove(message)
                break
        kept = tuple(canonical_sort([tuple(queue) for queue in queues[:-1] if queue]))
        return self._with(inbox, message.source, kept, tuple(queues[-1]))


class _Queues(Network):
    """A queue for each key: first in, first out, and unordered among each other. Inbox: key -> queue."""

    def key(self, message: Message) -> Value:
        """Return which queue a message goes through."""
        raise NotImplementedError

    def put(self, inbox: Value, message: Message) -> Value:
        key = self.key(message)
        return inbox.set(key, (*inbox.get(key, ()), message))

    def take(self, inbox: Value, message: Message) -> Value:
        key = self.key(message)
        queue: list[Message] = list(inbox[key])
        queue.remove(message)
        return inbox.set(key, tuple(queue)) if queue else inbox.without(key)

    def deliverable(self, inbox: Value) -> tuple[Message, ...]:
        return tuple(canonical_sort([queue[0] for queue in inbox.values()]))

    def contents(self, inbox: Value) -> tuple[Message, ...]:
        return tuple(message for queue in inbox.values() for message in queue)


class ConnectionQueues(_Queues):
    """First in, first out on each connection, which a message names as its `connection`; connections are unordered.

    After opening a new connection, an actor sends on it. Messages on its old connections may arrive any time later.
    Each address numbers those that it opens; a message on another's, an answer, names the owner as its `opener`. Inbox:
    (source, connection) -> queue; (source, connection, opener) for connections of others.
    """

    name = "connections"

    def key(self, message: Message) -> tuple[str, int] | tuple[str, int, str]:
        number, opener = getattr(message, "connection", 0), getattr(message, "opener", message.source)
        return (message.source, number) if opener == message.source else (message.source, number, opener)

    def in_order(self, inbox: Value) -> Value:
        return FrozenMap({self.key(queue[0]): queue for queue in inbox.values()})


class Reliable(_Queues):
    """A queue per connection inside a machine, or to a service modelled as atomic: first in, first out, each once.

    Only a receiver that is down loses what is under way to it. Inbox: source -> queue.
    """

    name = "reliable"
    is_reliable = True

    def key(self, message: Message) -> str:
        return message.source


UNORDERED_SET = UnorderedSet()
BAG = Bag()
FIFO = Fifo()
CONNECTIONS = ConnectionQueues()
RELIABLE = Reliable()
NETWORKS: dict[str, Network] = {network.name: network for network in (UNORDERED_SET, BAG, FIFO, CONNECTIONS)}
"""Those that can be chosen for a run: for all links that the model gives no other semantics."""
