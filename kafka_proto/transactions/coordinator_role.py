"""The coordinator as a role of a broker: what it keeps in memory, and how it takes the requests of clients.

A broker of either actor composition has this role. The decisions are those of `coordinator`; how an entry gets into a
log, and what happens when it is committed, is the broker's affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

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

    known: FrozenMap[str, LogMetadata] = volatile(default=FrozenMap())
    """Leader and epoch of each partition, as far as this broker knows; also its cache for FindCoordinator."""
    loaded: frozenset[str] = volatile(default=frozenset())
    """Partitions that it leads and has loaded."""
    metadata: FrozenMap[str, TxnMetadata] = volatile(default=FrozenMap())
    transitions: FrozenMap[str, TxnMetadata] = volatile(default=FrozenMap())
    pid_source: int = volatile(default=0)
    pid_limit: int = volatile(default=0)
    """The last producer id used and the last one of the block; equal when a new block is needed."""
    allocating: bool = volatile(default=False)


L = TypeVar("L", bound=Coordinator)


class CoordinatorRole(Actor[L]):
    """A broker that coordinates transactions. Subclasses say how an entry is appended to a log partition."""

    home: Mapping[str, str]
    """The log partition of each transactional id."""
    version: Version

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
        if not local.allocating or block.start <= local.pid_limit:
            return local
        before = block.start - 1
        return attrs.evolve(local, pid_source=before, pid_limit=before + block.length, allocating=False)

    def complete_partial_txn(self, local: L, tid: str) -> Iterable[Turn[L]]:
        """ACTION CompletePartialTxn(b, tid): finish what a predecessor, or this broker before a crash, prepared."""
        if self.version.complete_partial_txn is None:
            return
        entry = self.version.complete_partial_txn(
            tid,
            leads=self.home[tid] in local.loaded,
            metadata=local.metadata.get(tid),
            pending=local.transitions.get(tid),
        )
        if entry is not None:
            yield self.append_entry(local, "CompletePartialTxn", (self.name, tid), entry, waits=False)

    def receive_init_pid_request(self, local: L, request: InitPidRequest) -> Turn[L]:
        """ACTION ReceiveInitPidRequest(b, c), refused with a retriable error while loading or out of producer ids."""
        who = (self.name, request.source)
        leads = local.known[self.home[request.tid]].leader == self.name
        decided = self.version.init_producer_id(
            request,
            leads=leads,
            loading=leads and self.home[request.tid] not in local.loaded,
            metadata=local.metadata.get(request.tid),
            pending=local.transitions.get(request.tid),
            new_pid=producer_ids.next_pid(local.pid_source, local.pid_limit),
        )
        if decided.needs_producer_ids and not local.allocating:
            asks = attrs.evolve(local, allocating=True)
            return Turn("ReceiveInitPidRequest", who, asks, (*decided.answers, self.allocate()))
        if decided.metadata is not None:
            local = attrs.evolve(
                local, metadata=local.metadata.set(request.tid, decided.metadata),
                pid_source=self.version.pid_source_after(local.pid_source, decided.metadata.pid),
            )
        return self.carry_out(local, "ReceiveInitPidRequest", who, decided)

    def receive_add_partitions_request(self, local: L, request: AddPartitionsToTxnRequest) -> Turn[L]:
        """ACTION ReceiveAddPartitionsToTxnRequest(b, c), refused with a retriable error while loading."""
        who = (self.name, request.source)
        leads = local.known[self.home[request.tid]].leader == self.name
        decided = self.version.add_partitions(
            request,
            leads=leads,
            loading=leads and self.home[request.tid] not in local.loaded,
            metadata=local.metadata.get(request.tid),
            pending=local.transitions.get(request.tid),
        )
        return self.carry_out(local, "ReceiveAddPartitionsToTxnRequest", who, decided)

    def carry_out(self, local: L, action: str, who: tuple[str, ...], decided: Outcome) -> Turn[L]:
        """Answer now, or append the entry whose commit answers."""
        if decided.entry is None:
            return Turn(action, who, local, decided.answers)
        return self.append_entry(local, action, who, decided.entry, waits=True)

    def receive_find_coordinator_request(self, local: L, request: FindCoordinatorRequest) -> Turn[L]:
        """Answer from the metadata cache, stale or not; a broker that knows nobody sends the client back to itself."""
        leader = local.known[self.home[request.tid]].leader or self.name
        found = FindCoordinatorResponse(leader, request.correlation, source=self.name, dest=request.source)
        return Turn("ReceiveFindCoordinatorRequest", (self.name, request.source), local, (found,))

    def resigned(self, local: L, p: str) -> L:
        """Return the state without the metadata of a partition's ids: it is not served, or not any more."""
        mine = [tid for tid, home in self.home.items() if home == p]
        return attrs.evolve(
            local, loaded=local.loaded - {p}, metadata=without(local.metadata, mine),
            transitions=without(local.transitions, mine),
        )

    def serving(self, local: L, p: str, log: Iterable[Entry]) -> L:
        """Return the state with a partition's log loaded: its ids are known (S3: and others may be forgotten)."""
        loaded = replay(log)
        metadata = {
            tid: found
            for tid, home in self.home.items()
            if (
                found := self.version.materialized(home == p, loaded.get(tid), local.metadata.get(tid))
            )
            is not None
        }
        return attrs.evolve(local, loaded=local.loaded | {p}, metadata=FrozenMap(metadata))

    def learned(self, local: L, entry: Entry) -> L:
        """Return the state in which a committed transition is in effect and no longer pending."""
        return attrs.evolve(
            local, metadata=local.metadata.set(entry.tid, entry.transition),
            transitions=local.transitions.without(entry.tid),
        )


def without(entries: FrozenMap[str, TxnMetadata], keys: list[str]) -> FrozenMap[str, TxnMetadata]:
    """Return a map without some keys."""
    return FrozenMap({key: value for key, value in entries.items() if key not in keys})
