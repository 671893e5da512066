"""The coordinator as a role of a broker: what it keeps in memory, and how it takes the requests of clients.

A broker of either actor composition has this role. The decisions are those of `decisions`; where a broker keeps what
the role remembers, how an entry gets into a log, and what happens when it is committed, is the broker's affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

import attrs

from harness.model import Actor, FrozenMap, Message, Turn, volatile
from kafka_proto.transactions.controller import CONTROLLER
from kafka_proto.transactions.decisions import producer_ids
from kafka_proto.transactions.decisions.election import replay
from kafka_proto.transactions.decisions.outcome import Outcome
from kafka_proto.transactions.messages import (
    AddPartitionsToTxnRequest,
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitPidRequest,
)
from kafka_proto.transactions.records import Entry, LogMetadata, TxnMetadata
from kafka_proto.transactions.versions.version import Version


@attrs.frozen
class Coordinator:
    """What a broker keeps in memory as a coordinator: all of it is gone with a crash."""

    loaded: frozenset[str] = volatile(default=frozenset())
    """Partitions that it leads and has loaded."""
    metadata: FrozenMap[str, TxnMetadata] = volatile(default=FrozenMap())
    transitions: FrozenMap[str, TxnMetadata] = volatile(default=FrozenMap())


class HasProducerIds(Protocol):
    """A block of producer ids: the last one used and the last one of the block, equal when a new block is needed."""

    @property
    def pid_source(self) -> int: ...
    @property
    def pid_limit(self) -> int: ...
    @property
    def allocating(self) -> bool: ...


L = TypeVar("L")


class CoordinatorRole(Actor[L]):
    """A broker that coordinates transactions.

    Subclasses say where they keep what the role remembers, and how an entry is appended to a log partition.
    """

    home: Mapping[str, str]
    """The log partition of each transactional id."""
    version: Version

    def known(self, local: L, p: str) -> LogMetadata:
        """Return leader and epoch of a partition, as far as this broker knows: its cache for FindCoordinator."""
        raise NotImplementedError

    def coordinator(self, local: L) -> Coordinator:
        """Return what the role remembers of transactions."""
        raise NotImplementedError

    def remembering(self, local: L, **changed: Any) -> L:
        """Return the state with other values in fields of that."""
        raise NotImplementedError

    def producer_ids(self, local: L) -> HasProducerIds:
        """Return the block of producer ids."""
        raise NotImplementedError

    def with_producer_ids(self, local: L, **changed: Any) -> L:
        """Return the state with other values in fields of that."""
        raise NotImplementedError

    def append_entry(self, local: L, action: str, who: tuple[str, ...], entry: Entry, waits: bool) -> Turn[L]:
        """Append an entry to its log partition; `waits` says whether somebody is answered when it commits."""
        raise NotImplementedError

    def receive_request(self, local: L, message: Message) -> Iterable[Turn[L]]:
        """Take what a client asks, and what a coordinator is answered by the controller."""
        match message:
            case InitPidRequest():
                yield self.receive_init_pid_request(local, message)
            case AddPartitionsToTxnRequest():
                yield self.receive_add_partitions_request(local, message)
            case FindCoordinatorRequest():
                yield self.receive_find_coordinator_request(local, message)
            case AllocateProducerIdsResponse():
                yield Turn("ReceiveAllocateProducerIdsResponse", (self.name,), self.allocated(local, message))

    def allocate(self) -> AllocateProducerIdsRequest:
        """Return what asks the controller for a block of producer ids."""
        return AllocateProducerIdsRequest(source=self.name, dest=CONTROLLER)

    def allocated(self, local: L, block: AllocateProducerIdsResponse) -> L:
        """Take a block of producer ids, but not one that was asked for twice, or came twice: blocks only grow."""
        ids = self.producer_ids(local)
        if not ids.allocating or block.start <= ids.pid_limit:
            return local
        before = block.start - 1
        return self.with_producer_ids(local, pid_source=before, pid_limit=before + block.length, allocating=False)

    def complete_partial_txn(self, local: L, tid: str) -> Iterable[Turn[L]]:
        """ACTION CompletePartialTxn(b, tid): finish what a predecessor, or this broker before a crash, prepared."""
        if self.version.complete_partial_txn is None:
            return
        memory = self.coordinator(local)
        entry = self.version.complete_partial_txn(
            tid,
            leads=self.home[tid] in memory.loaded,
            metadata=memory.metadata.get(tid),
            pending=memory.transitions.get(tid),
        )
        if entry is not None:
            yield self.append_entry(local, "CompletePartialTxn", (self.name, tid), entry, waits=False)

    def receive_init_pid_request(self, local: L, request: InitPidRequest) -> Turn[L]:
        """ACTION ReceiveInitPidRequest(b, c), refused with a retriable error while loading or out of producer ids."""
        who = (self.name, request.source)
        memory, ids = self.coordinator(local), self.producer_ids(local)
        leads = self.known(local, self.home[request.tid]).leader == self.name
        decided = self.version.init_producer_id(
            request,
            leads=leads,
            loading=leads and self.home[request.tid] not in memory.loaded,
            metadata=memory.metadata.get(request.tid),
            pending=memory.transitions.get(request.tid),
            new_pid=producer_ids.next_pid(ids.pid_source, ids.pid_limit),
        )
        if decided.needs_producer_ids and not ids.allocating:
            asks = self.with_producer_ids(local, allocating=True)
            return Turn("ReceiveInitPidRequest", who, asks, (*decided.answers, self.allocate()))
        if decided.metadata is not None:
            local = self.remembering(local, metadata=memory.metadata.set(request.tid, decided.metadata))
            after = self.version.pid_source_after(ids.pid_source, decided.metadata.pid)
            local = self.with_producer_ids(local, pid_source=after)
        return self.carry_out(local, "ReceiveInitPidRequest", who, decided)

    def receive_add_partitions_request(self, local: L, request: AddPartitionsToTxnRequest) -> Turn[L]:
        """ACTION ReceiveAddPartitionsToTxnRequest(b, c), refused with a retriable error while loading."""
        who = (self.name, request.source)
        memory = self.coordinator(local)
        leads = self.known(local, self.home[request.tid]).leader == self.name
        decided = self.version.add_partitions(
            request,
            leads=leads,
            loading=leads and self.home[request.tid] not in memory.loaded,
            metadata=memory.metadata.get(request.tid),
            pending=memory.transitions.get(request.tid),
        )
        return self.carry_out(local, "ReceiveAddPartitionsToTxnRequest", who, decided)

    def carry_out(self, local: L, action: str, who: tuple[str, ...], decided: Outcome) -> Turn[L]:
        """Answer now, or append the entry whose commit answers."""
        if decided.entry is None:
            return Turn(action, who, local, decided.answers)
        return self.append_entry(local, action, who, decided.entry, waits=True)

    def receive_find_coordinator_request(self, local: L, request: FindCoordinatorRequest) -> Turn[L]:
        """Answer from the metadata cache, stale or not; a broker that knows nobody sends the client back to itself."""
        leader = self.known(local, self.home[request.tid]).leader or self.name
        found = FindCoordinatorResponse(leader, request.correlation, source=self.name, dest=request.source)
        return Turn("ReceiveFindCoordinatorRequest", (self.name, request.source), local, (found,))

    def resigned(self, local: L, p: str) -> L:
        """Return the state without the metadata of a partition's ids: it is not served, or not any more."""
        mine, memory = [tid for tid, home in self.home.items() if home == p], self.coordinator(local)
        return self.remembering(
            local, loaded=memory.loaded - {p}, metadata=without(memory.metadata, mine),
            transitions=without(memory.transitions, mine),
        )

    def serving(self, local: L, p: str, log: Iterable[Entry]) -> L:
        """Return the state with a partition's log loaded: its ids are known (S3: and others may be forgotten)."""
        loaded, memory = replay(log), self.coordinator(local)
        metadata = {
            tid: found
            for tid, home in self.home.items()
            if (
                found := self.version.materialized(home == p, loaded.get(tid), memory.metadata.get(tid))
            )
            is not None
        }
        return self.remembering(local, loaded=memory.loaded | {p}, metadata=FrozenMap(metadata))

    def learned(self, local: L, entry: Entry) -> L:
        """Return the state in which a committed transition is in effect and no longer pending."""
        memory = self.coordinator(local)
        return self.remembering(
            local, metadata=memory.metadata.set(entry.tid, entry.transition),
            transitions=memory.transitions.without(entry.tid),
        )


def without(entries: FrozenMap[str, TxnMetadata], keys: list[str]) -> FrozenMap[str, TxnMetadata]:
    """Return a map without some keys."""
    return FrozenMap({key: value for key, value in entries.items() if key not in keys})
