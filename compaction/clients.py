"""The producer and the readers of the actor compositions. They do not crash, and ask again what is not answered.

The producer sends one entry at a time and the next when the receipt is there. A reader asks for the next messages and
takes down what it gets. It goes on from its own position when it comes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import attrs

from compaction.compactor import Position
from compaction.messages import ReadRequest, ReadResponse, Send, SendReceipt
from compaction.records import TopicEntry, TopicMessage
from harness.model import Actor, Kind, Message, Op, Turn, fresh

PRODUCER = "producer"
BROKER = "broker"
SEND_TIMEOUT = "SendTimeout"
READ_TIMEOUT = "ReadTimeout"


@attrs.frozen
class PulsarProducerState:
    """The local state of the producer: what it sent, how far that is in the topic, and the batch that it fills."""

    sent: tuple[TopicEntry, ...] = ()
    stored: int = 0
    """The id of the last entry that has a receipt."""
    batch: tuple[TopicMessage, ...] = ()

    @property
    def last(self) -> int:
        """The id of the last entry sent."""
        return self.sent[-1].id if self.sent else 0


class PulsarProducer(Actor[PulsarProducerState]):
    """Sends messages of any key and value, in batches of up to `most` messages."""

    name = PRODUCER
    initial = PulsarProducerState()

    def __init__(self, messages: int, keys: tuple[int, ...], values: tuple[int, ...], most: int = 1) -> None:
        self.messages = messages
        self.keys = keys
        self.values = values
        self.most = most

    def step(self, local: PulsarProducerState) -> Iterable[Turn[PulsarProducerState]]:
        if local.stored < local.last:
            return
        made = local.last + len(local.batch)
        if made < self.messages and len(local.batch) < self.most:
            for key, value in product(self.keys, self.values):
                batch = (*local.batch, TopicMessage(made + 1, key, value))
                detail = f"key={key} value={value}"
                if self.most == 1:
                    yield self.send(local, batch, detail)
                else:
                    yield Turn("AddToBatch", (self.name,), attrs.evolve(local, batch=batch), detail=detail)
        if local.batch:
            yield self.send(local, local.batch)

    def send(
        self, local: PulsarProducerState, batch: tuple[TopicMessage, ...], detail: str = ""
    ) -> Turn[PulsarProducerState]:
        """Send a batch as one entry."""
        entry = TopicEntry(batch[-1].id, batch)
        op = Op(self.name, "send", "invoke", tuple((m.id, m.key, m.value) for m in batch))
        after = PulsarProducerState((*local.sent, entry), local.stored)
        return Turn("Send", (self.name,), after, (self.request(entry),), detail=detail, op=op)

    def request(self, entry: TopicEntry) -> Send:
        """Return the message that carries an entry."""
        return Send(entry, source=self.name, dest=BROKER)

    def on_message(self, local: PulsarProducerState, message: Message) -> Iterable[Turn[PulsarProducerState]]:
        if isinstance(message, SendReceipt) and message.entry_id == local.last > local.stored:
            op = Op(self.name, "send", "ok", message.entry_id)
            yield Turn("ReceiveSendReceipt", (self.name,), attrs.evolve(local, stored=local.last), op=op)
        else:
            yield Turn("IgnoreSendReceipt", (self.name,), local)

    def timers(self, local: PulsarProducerState) -> tuple[str, ...]:
        return (SEND_TIMEOUT,) if local.stored < local.last else ()

    def timer_fired(self, local: PulsarProducerState, timer: str) -> Iterable[Turn[PulsarProducerState]]:
        yield Turn(SEND_TIMEOUT, (self.name,), local, (self.request(local.sent[-1]),))


@attrs.frozen
class Seen:
    """A message as a reader got it, and the compacted ledger that it came from, 0 for the topic."""

    id: int
    key: int
    value: int
    ledger: int


@attrs.frozen
class CompactedReaderState:
    """The local state of a reader: where it is, the request that it waits for, and all that it got."""

    position: Position = Position()
    connected: bool = False
    session: int | None = attrs.field(default=None, metadata=fresh("incarnation"))
    """The incarnation of the broker that it talks to, as soon as it knows."""
    asked: int | None = attrs.field(default=None, metadata=fresh("correlation", "self"))
    requests: int = attrs.field(default=0, metadata=fresh("correlation", "self"))
    disconnects: int = 0
    seen: tuple[Seen, ...] = ()


class CompactedReader(Actor[CompactedReaderState]):
    """A reader with read-compacted, from the earliest position; it stops when it is behind the last message."""

    initial = CompactedReaderState()

    def __init__(self, name: str, messages: int, disconnects: int) -> None:
        self.name = name
        self.messages = messages
        self.disconnects = disconnects

    def step(self, local: CompactedReaderState) -> Iterable[Turn[CompactedReaderState]]:
        if not local.connected and local.position.last < self.messages:
            anew = attrs.evolve(
                local, connected=True, session=None, position=attrs.evolve(local.position, in_ledger=False)
            )
            yield self.asking("Connect", anew)
        if local.connected and local.disconnects < self.disconnects:
            away = attrs.evolve(self.without_connection(local), disconnects=local.disconnects + 1)
            yield Turn("Disconnect", (self.name,), away, kind=Kind.PERTURBATION)

    def asking(self, action: str, local: CompactedReaderState, op: Op | None = None) -> Turn[CompactedReaderState]:
        """Ask for what comes next, unless nothing will."""
        if local.position.last >= self.messages:
            return Turn(action, (self.name,), attrs.evolve(local, connected=False, asked=None), op=op)
        n = local.requests + 1
        request = ReadRequest(n, local.position, local.session, source=self.name, dest=BROKER)
        return Turn(action, (self.name,), attrs.evolve(local, asked=n, requests=n), (request,), op=op)

    def on_message(self, local: CompactedReaderState, message: Message) -> Iterable[Turn[CompactedReaderState]]:
        if not isinstance(message, ReadResponse) or message.correlation != local.asked:
            yield Turn("IgnoreReadResponse", (self.name,), local)
        elif message.position is None:
            yield Turn("ConnectionLost", (self.name,), self.without_connection(local))
        else:
            got = tuple(
                Seen(m.id, m.key, m.value, message.ledger) for entry in message.entries for m in entry.messages
            )
            after = attrs.evolve(
                local, position=message.position, session=message.session, seen=(*local.seen, *got)
            )
            origins = tuple((m.id, m.key, m.value, f"ledger {m.ledger}" if m.ledger else "topic") for m in got)
            yield self.asking("ReceiveReadResponse", after, Op(self.name, "read", "ok", origins))

    def without_connection(self, local: CompactedReaderState) -> CompactedReaderState:
        """Return the reader disconnected, and not waiting for anything."""
        return attrs.evolve(local, connected=False, session=None, asked=None)

    def timers(self, local: CompactedReaderState) -> tuple[str, ...]:
        return (READ_TIMEOUT,) if local.asked is not None else ()

    def timer_fired(self, local: CompactedReaderState, timer: str) -> Iterable[Turn[CompactedReaderState]]:
        yield Turn(READ_TIMEOUT, (self.name,), self.without_connection(local))


TYPES: tuple[type, ...] = (PulsarProducerState, Seen, CompactedReaderState, Position)
