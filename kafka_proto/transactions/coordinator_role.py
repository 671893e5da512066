"""The coordinator as a role of a broker: what it keeps, and how it takes the requests of clients.

What it decides is said by the version. Its records go to the log partitions of transactional ids; their callbacks
answer clients when they are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from harness.model import FrozenMap, Local, Message, Part, volatile
from kafka_proto.broker.roles import Append, Effect, Outcome, Role
from kafka_proto.broker.state import METADATA, known
from kafka_proto.errors import ErrorCode
from kafka_proto.transactions.controller import CONTROLLER
from kafka_proto.transactions.decisions import outcome, producer_ids
from kafka_proto.transactions.decisions.election import replay
from kafka_proto.transactions.messages import (
    AddPartitionsToTxnRequest,
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    Request,
)
from kafka_proto.transactions.records import Callback, Entry, TransactionMetadata, TxnRecord, entry_of
from kafka_proto.transactions.versions.version import Version


@attrs.frozen
class Coordinator:
    """What a broker keeps in memory as a coordinator: all of it is gone with a crash."""

    loaded: frozenset[str] = volatile(default=frozenset())
    """Partitions that it leads and has loaded."""
    metadata: FrozenMap[str, TransactionMetadata] = volatile(default=FrozenMap())
    transitions: FrozenMap[str, TransactionMetadata] = volatile(default=FrozenMap())


@attrs.frozen
class ProducerIds:
    """A broker's block of producer ids: the last one used and the last one of the block."""

    last_producer_id: int = volatile(default=0)
    last_of_block: int = volatile(default=0)
    allocating: bool = volatile(default=False)


COORDINATOR = Part("coordinator", Coordinator())
PRODUCER_IDS = Part("producer_ids", ProducerIds())


class CoordinatorRole(Role):
    """The transaction coordinator of one broker."""

    parts = (COORDINATOR, PRODUCER_IDS)

    def __init__(
        self, name: str, number: int, partitions: tuple[str, ...], home: Mapping[str, str], version: Version
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.first_block = producer_ids.block(number)
        self.home = home
        """The log partition of each transactional id."""
        self.version = version

    def started(self, local: Local) -> Local:
        leaders = local[METADATA].known.items()
        loaded = frozenset(p for p, metadata in leaders if metadata.leader == self.name)
        return local.put(COORDINATOR, Coordinator(loaded)).put(PRODUCER_IDS, ProducerIds(*self.first_block))

    def receive(self, local: Local, message: Message) -> Outcome | None:
        """Take what a client asks, and what a coordinator is answered by the controller."""
        match message:
            case InitProducerIdRequest():
                return self.receive_init_producer_id_request(local, message)
            case AddPartitionsToTxnRequest():
                decided = self.decided(self.version.add_partitions, local, message)
                return self.outcome("ReceiveAddPartitionsToTxnRequest", message, local, decided)
            case FindCoordinatorRequest():
                return self.receive_find_coordinator_request(local, message)
            case AllocateProducerIdsResponse():
                after = self.allocated(local, message)
                return Outcome(after, action="ReceiveAllocateProducerIdsResponse", who=(self.name,))
        return None

    def step(self, local: Local, may_append: Callable[[str], bool]) -> Iterable[Outcome]:
        """ACTION CompletePartialTxn(b, tid): finish what a predecessor, or this broker before a crash, prepared."""
        decide, memory = self.version.complete_partial_txn, local[COORDINATOR]
        if decide is None:
            return
        for tid, p in self.home.items():
            if may_append(p):
                known, pending = memory.metadata.get(tid), memory.transitions.get(tid)
                entry = decide(tid, leads=p in memory.loaded, metadata=known, pending=pending)
                if entry is not None:
                    yield Outcome(local, (), self.append(entry), action="CompletePartialTxn", who=(self.name, tid))

    def append(self, entry: Entry | None) -> tuple[Append, ...]:
        """Return an entry, if there is one, as what the log appends."""
        if entry is None:
            return ()
        record = TxnRecord(entry.transactional_id, entry.transition)
        return (Append(self.home[record.transactional_id], record, entry.callback),)

    def resend(self, local: Local) -> tuple[Message, ...]:
        return (self.allocate(),) if local[PRODUCER_IDS].allocating else ()

    def allocate(self) -> AllocateProducerIdsRequest:
        """Return what asks the controller for a block of producer ids."""
        return AllocateProducerIdsRequest(source=self.name, dest=CONTROLLER)

    def allocated(self, local: Local, block: AllocateProducerIdsResponse) -> Local:
        """Take a block of producer ids, but not one that was asked for twice, or came twice: blocks only grow."""
        ids = local[PRODUCER_IDS]
        if not ids.allocating or block.producer_id_start <= ids.last_of_block:
            return local
        before = block.producer_id_start - 1
        return local.put(PRODUCER_IDS, ProducerIds(before, before + block.producer_id_len))

    def decided(
        self, decide: Callable[..., outcome.Outcome], local: Local, request: Request, **also: Any
    ) -> outcome.Outcome:
        """Return what is decided about a request, which is refused with a retriable error while its log is loading."""
        memory, tid = local[COORDINATOR], request.transactional_id
        leads, loaded = known(local, self.home[tid]).leader == self.name, self.home[tid] in memory.loaded
        return decide(
            request, leads=leads, loading=leads and not loaded, metadata=memory.metadata.get(tid),
            pending=memory.transitions.get(tid), **also,
        )

    def receive_init_producer_id_request(self, local: Local, request: InitProducerIdRequest) -> Outcome:
        """Refuse with a retriable error while loading, or out of producer ids (`ReceiveInitPidRequest(b, c)`)."""
        action, memory, ids = "ReceiveInitProducerIdRequest", local[COORDINATOR], local[PRODUCER_IDS]
        new_pid = producer_ids.next_pid(ids.last_producer_id, ids.last_of_block)
        decided = self.decided(self.version.init_producer_id, local, request, new_pid=new_pid)
        if decided.needs_producer_ids and not ids.allocating:
            asks = local.put(PRODUCER_IDS, attrs.evolve(ids, allocating=True))
            return Outcome(asks, (*decided.answers, self.allocate()), action=action, who=(self.name, request.source))
        if decided.metadata is not None:
            after = self.version.pid_source_after(ids.last_producer_id, decided.metadata.producer_id)
            metadata = memory.metadata.set(request.transactional_id, decided.metadata)
            local = local.put(COORDINATOR, attrs.evolve(memory, metadata=metadata))
            local = local.put(PRODUCER_IDS, attrs.evolve(ids, last_producer_id=after))
        return self.outcome(action, request, local, decided)

    def outcome(self, action: str, request: Request, local: Local, decided: outcome.Outcome) -> Outcome:
        """Answer now, or append the entry whose commit answers."""
        who = (self.name, request.source)
        return Outcome(local, decided.answers, self.append(decided.entry), action=action, who=who)

    def receive_find_coordinator_request(self, local: Local, request: FindCoordinatorRequest) -> Outcome:
        """Answer from the metadata cache, stale or not; a broker that knows nobody sends the client back to itself."""
        leader = known(local, self.home[request.transactional_id]).leader or self.name
        found = FindCoordinatorResponse(leader, request.correlation, source=self.name, dest=request.source)
        return Outcome(local, (found,), action="ReceiveFindCoordinatorRequest", who=(self.name, request.source))

    def serves(self, local: Local, p: str) -> bool:
        return p in local[COORDINATOR].loaded

    def loaded(self, local: Local, p: str, records: Iterable[Entry | TxnRecord]) -> Local:
        """Return the state in which the ids of a partition are known (S3: and others may be forgotten)."""
        memory, last = local[COORDINATOR], replay(records)
        found = {
            tid: self.version.materialized(home == p, last.get(tid), memory.metadata.get(tid))
            for tid, home in self.home.items()
        }
        metadata = FrozenMap({tid: now for tid, now in found.items() if now is not None})
        return local.put(COORDINATOR, attrs.evolve(memory, loaded=memory.loaded | {p}, metadata=metadata))

    def resigned(self, local: Local, p: str) -> Local:
        """Return the state without the metadata of a partition's ids."""
        memory, mine = local[COORDINATOR], {tid for tid, home in self.home.items() if home == p}
        without = Coordinator(
            memory.loaded - {p},
            FrozenMap({tid: now for tid, now in memory.metadata.items() if tid not in mine}),
            FrozenMap({tid: now for tid, now in memory.transitions.items() if tid not in mine}),
        )
        return local.put(COORDINATOR, without)

    def appended(self, local: Local, p: str, record: TxnRecord) -> Local:
        """Return the state in which the record's transition is pending."""
        memory = local[COORDINATOR]
        transitions = memory.transitions.set(record.transactional_id, record.transition)
        return local.put(COORDINATOR, attrs.evolve(memory, transitions=transitions))

    def committed(self, local: Local, p: str, record: TxnRecord) -> Local:
        """Return the state in which the record's transition is in effect and no longer pending."""
        memory = local[COORDINATOR]
        metadata = memory.metadata.set(record.transactional_id, record.transition)
        transitions = memory.transitions.without(record.transactional_id)
        return local.put(COORDINATOR, attrs.evolve(memory, metadata=metadata, transitions=transitions))

    def completed(self, local: Local, p: str, record: TxnRecord, callback: Callback) -> Effect:
        """Answer the client; a transaction that is prepared now is completed next."""
        decided = self.version.entry_committed(entry_of(record, callback))
        return Effect(local, decided.answers, self.append(decided.entry))

    def failed(self, local: Local, p: str, callback: Callback, error: ErrorCode) -> Effect:
        """Tell the client."""
        return Effect(local, () if callback.err is None else (callback.err,))


TYPES: tuple[type, ...] = (TxnRecord, Coordinator, ProducerIds)
