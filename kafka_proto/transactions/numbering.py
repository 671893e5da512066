"""What mappings to diary 02 remember of clients, faults and numbers, whatever the log is.

Producer ids are numbered as they appear, since brokers take them from blocks; so are a client's requests, since its
look-ups are numbered with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import attrs

from harness.model import BAG, FrozenMap, Message, Network, Value, View, slot
from kafka_proto.transactions import messages, producer, records
from kafka_proto.transactions.correspondence import in_spec
from kafka_proto.transactions.records import ClientRecord, TransactionMetadata
from kafka_proto.transactions.specs.names import Names

T = TypeVar("T")


@attrs.frozen
class Seen:
    """What is remembered of a run."""

    pids: tuple[int, ...] = ()
    """Producer ids in the order of their appearance."""
    requests: FrozenMap[str, tuple[int, ...]] = FrozenMap()
    """The correlation ids of each client's requests other than look-ups, in order."""
    crashes: FrozenMap[str, int] = FrozenMap()
    """How often each broker has crashed."""
    down: frozenset[str] = frozenset()
    coordinators: FrozenMap[str, str] = FrozenMap()
    """Of each client that has a producer id and looks its coordinator up: whom the spec's client would know."""


class Observer:
    """Sees clients, messages and crashes in the states of actors as diary 02 does."""

    def __init__(self, k: Names, network: Network, faulty: bool) -> None:
        self.k, self.network, self.faulty = k, network, faulty
        self.start = Seen((), FrozenMap({c: () for c in k.clients}), FrozenMap({b: 0 for b in k.brokers}))

    def sees(
        self, view: View, before: Seen, metadata: Iterable[TransactionMetadata], coordinator: Callable[[str], str]
    ) -> Seen:
        """Return what is remembered after a state, given what brokers know of ids and who the coordinator of one is."""
        known = dict.fromkeys(found.producer_id for found in metadata)
        new = tuple(pid for pid in known if pid not in before.pids)
        requests, coordinators = before.requests, before.coordinators
        for c in self.k.clients:
            local: producer.Producer = view[c]
            if local.awaits in ("init", "add_partitions") and local.correlation not in requests[c]:
                requests = requests.set(c, (*requests[c], local.correlation))
            record = local.record
            if record.coordinator is not None or record.transactional_id is None or record.producer_id == -1:
                coordinators = coordinators.without(c) if c in coordinators else coordinators
            elif c not in coordinators:
                coordinators = coordinators.set(c, coordinator(record.transactional_id))
        down = frozenset(b for b in self.k.brokers if self.faulty and view.at("gate", b).status == "down")
        fallen = {b: before.crashes[b] + 1 for b in sorted(down - before.down)}
        crashes = before.crashes.update(fallen) if fallen else before.crashes
        return Seen(before.pids + new, requests, crashes, down, coordinators)

    def slots(self, view: View, seen: Seen, naming: Naming, late: Iterable[Message] = ()) -> dict[str, Value]:
        """Return the spec's variables of clients, messages and numbers; `late` are messages that count as sent."""
        state: dict[str, Value] = {"pid_source": len(seen.pids)}
        for c in self.k.clients:
            local: producer.Producer = view[c]
            state[slot("client", c)] = naming.client(local.record, seen.coordinators.get(c))
            state[slot("correlation", c)] = len(seen.requests[c])
        for b, crashes in seen.crashes.items():
            state[slot("aux_crashes", b)] = crashes
        for address in (*self.k.clients, *self.k.brokers):
            state[slot("inbox", address)] = self.inbox(view, address, late, naming)
        return state

    def inbox(self, view: View, address: str, late: Iterable[Message], naming: Naming) -> Value:
        """Return the spec's messages on their way to an address, delayed ones and `late` ones included."""
        bag, held = BAG.empty, view.at("held", address) if self.faulty else ()
        mine = [message for message in late if message.dest == address]
        for message in (*self.network.contents(view.at("inbox", address)), *held, *mine):
            if isinstance(message, messages.Request | messages.Response):
                bag = BAG.put(bag, naming.message(message))
        return bag


class Naming:
    """Producer ids and requests by the numbers that the spec gives them."""

    def __init__(self, seen: Seen) -> None:
        self.pids = {-1: -1, **{pid: n + 1 for n, pid in enumerate(seen.pids)}}
        self.requests = seen.requests

    def metadata(self, metadata: TransactionMetadata | None) -> Value:
        """Return the metadata of an id."""
        return in_spec(metadata, producer_id=self.pids[metadata.producer_id]) if metadata is not None else None

    def memory(
        self, b: str, tids: Iterable[str], metadata: Mapping[str, TransactionMetadata],
        pending: Mapping[str, TransactionMetadata],
    ) -> dict[str, Value]:
        """Return what the spec keeps of some ids at a broker: their metadata, and their pending transitions."""
        found: dict[str, Value] = {}
        for tid in tids:
            found[slot("tc_tid_metadata", b, tid)] = self.metadata(metadata.get(tid))
            found[slot("tc_tid_transition", b, tid)] = self.metadata(pending.get(tid))
        return found

    def entry(self, entry: records.Entry) -> Value:
        """Return an entry of the log, with the answers that its callback would send."""
        response, err = entry.callback.response, entry.callback.err
        callback = in_spec(
            entry.callback,
            response=self.message(response) if response is not None else None,
            err=self.message(err) if err is not None else None,
        )
        return in_spec(entry, transition=self.metadata(entry.transition), callback=callback)

    def message(self, message: messages.Request | messages.Response) -> Value:
        """Return a request or a response."""
        assert isinstance(message, messages.Request | messages.Response) and message.correlation is not None
        client = message.source if isinstance(message, messages.Request) else message.dest
        correlation = self.requests[client].index(message.correlation) + 1
        if isinstance(message, messages.InitProducerIdResponse | messages.AddPartitionsToTxnRequest):
            return in_spec(message, correlation=correlation, producer_id=self.pids[message.producer_id])
        return in_spec(message, correlation=correlation)

    def client(self, record: ClientRecord, found: str | None) -> Value:
        """Return a client's record: in the spec it knows its coordinator when it has a producer id, and not before."""
        tc = None if record.producer_id == -1 else record.coordinator if record.coordinator is not None else found
        return in_spec(record, coordinator=tc, producer_id=self.pids[record.producer_id])
