"""What a state of whole transactions is in terms of diary 02's coordinators, so that recorded runs can be checked.

The spec is diary 02's coordinators alone, with what Kafka's do besides as extension actions. Clients, network and log
are their environment: the log of each partition that a broker leads, and its leaders, are as the broker has them. Each
broker's coordinator is seen with what its log has and the leaders it believes in; its clients, the network and the
other roles are not seen. What a step took and answered is told to the spec, which has to explain it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs

from harness.model import BAG, Exchange, FrozenMap, Message, Model, Refinement, Value, View, slot
from harness.model.spec import Next, action, each, processes, reasons
from kafka_proto.broker.coordinator.answers import response
from kafka_proto.broker.coordinator.coordinator import AfterMarker, Coordinator, after_marker
from kafka_proto.broker.coordinator.role import BLOCK_SIZE, REQUESTS, ROLE, TRANSACTION_TIMEOUT, block_of
from kafka_proto.broker.messages import Request, Response
from kafka_proto.broker.parts import BLOCKS, CONNECTIONS, COORDINATOR, METADATA, CoordinatorState
from kafka_proto.broker.placement import Placement
from kafka_proto.cluster.logs import Kept, Logs
from kafka_proto.cluster.refinement import decided
from kafka_proto.cluster.refinement.departures import BY_CHANGE, BY_VERSION, EVERY
from kafka_proto.cluster.refinement.drafts import CoordinatorNames, LoggedEntries, depart
from kafka_proto.cluster.refinement.ends import answer_end_txn, end_txn, take_marker_answer, time_out_transaction
from kafka_proto.cluster.refinement.entries import (
    become_follower,
    commit_txn_log_append,
    crash,
    elect_leader,
    load_txn_log,
    refuse_append,
)
from kafka_proto.cluster.refinement.requests import (
    continue_producer,
    give_idempotent_id,
    receive_add_partitions_request,
    receive_init_pid_request,
    rotate_producer_id,
    verify_partitions,
)
from kafka_proto.requests import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdResponse,
)

NAME = "transactions/diary-02/coordinators"
GIVEN = ("tc_log_metadata", "tc_log", "pid_source")
"""The environment's variables: the leaders, what the log has, and the next free producer id."""
OF_THE_SPEC: Next = (
    receive_init_pid_request, receive_add_partitions_request, commit_txn_log_append, (elect_leader, become_follower),
)
BEYOND: Next = (
    continue_producer, rotate_producer_id, give_idempotent_id, verify_partitions, end_txn, answer_end_txn,
    time_out_transaction, refuse_append, take_marker_answer, load_txn_log, crash,
)
"""What Kafka's coordinators do and diary 02's do not."""


def departing(k: CoordinatorNames) -> Next:
    """Return the departures of a version as extension actions."""
    known = (EVERY[name] for name in k.departures)
    return tuple(action(one.name, each("brokers"), reason=one.reason)(partial(depart, one.name)) for one in known)


def extensions(k: CoordinatorNames) -> Mapping[str, str]:
    """Return the names of the extension actions of a version, and why the truth has each."""
    return reasons((*BEYOND, *departing(k)))


def build(k: CoordinatorNames, start: Mapping[str, Value]) -> Model:
    """Return the spec of a version's coordinators, which start in a state where nothing was asked yet."""
    relation = (*OF_THE_SPEC, *BEYOND, *departing(k))
    return Model(NAME, processes(relation, k), ({**start, "event": None, "owes": (), "decided": ()},), BAG)


ANSWERS = (InitProducerIdResponse, AddPartitionsToTxnResponse, AddOffsetsToTxnResponse, EndTxnResponse)
MOST_STEPS = 16
"""An abort of 4.0 that is committed at once is a request, four departures, a commit and one more; a log of several
transactional ids is read with up to four departures of each."""
BY: Mapping[str, tuple[str, ...]] = {
    "ReceiveInitPidRequest": ("ReceiveInitProducerIdRequest",),
    "ReceiveAddPartitionsToTxnRequest": ("ReceiveAddPartitionsToTxnRequest", "ReceiveAddOffsetsToTxnRequest"),
    "ElectLeader": ("ReceiveLeaderAndIsrRequest", "Restart"),
    "BecomeFollower": ("ReceiveLeaderAndIsrRequest", "Restart"),
    "ContinueProducer": ("ReceiveInitProducerIdRequest",),
    "RotateProducerId": ("ReceiveInitProducerIdRequest",),
    "GiveIdempotentId": ("ReceiveInitProducerIdRequest",),
    "VerifyPartitions": ("ReceiveAddPartitionsToTxnRequest",),
    "EndTxn": ("ReceiveEndTxnRequest",),
    "AnswerEndTxn": ("ReceiveEndTxnRequest",),
    "TimeOutTransaction": (TRANSACTION_TIMEOUT,),
    "TakeMarkerAnswer": ("ReceiveWriteTxnMarkersResponse",),
    "LoadTxnLog": ("LoadTxnLog",),
    "Crash": ("Crash",),
}
"""Which actions of brokers may be these steps."""


@attrs.frozen
class SeenTransaction:
    """What diary 02 knows of a transactional id at a coordinator."""

    metadata: decided.KnownTransaction | None = None
    transition: decided.KnownTransaction | None = None
    append: decided.AppendUnderWay | None = None
    failed_fence: bool = False


def seen_of(state: CoordinatorState) -> FrozenMap[str, SeenTransaction]:
    """Return what is seen of each transactional id that a coordinator has."""
    return FrozenMap((tid, seen(state.cache, tid)) for tid in state.cache.transactions)


def seen(cache: Coordinator, tid: str) -> SeenTransaction:
    """Return what is seen of a transactional id. While its markers are written, what it becomes then is pending."""
    cached = cache.transactions[tid]
    metadata = decided.KnownTransaction.of(cached.metadata)
    waiting = cache.waiting.get(tid)
    if waiting is None or waiting.outcome.entry is None:
        pending = cached.pending_state
        transition = attrs.evolve(metadata, state=pending) if pending is not None else None
        return SeenTransaction(metadata, transition, None, cached.has_failed_epoch_fence)
    append = decided.AppendUnderWay(fences=waiting.outcome.fences)
    if waiting.request is not None:
        then = decided.said(response(waiting.request, waiting.outcome.answer))
        append = decided.AppendUnderWay(waiting.token.client, then, waiting.outcome.fences)
    entry = decided.KnownTransaction.of(waiting.outcome.entry)
    return SeenTransaction(metadata, entry, append, cached.has_failed_epoch_fence)


def next_id_of(state: CoordinatorState) -> int | None:
    return state.cache.ids.next_id


def serves_of(state: CoordinatorState) -> bool:
    return not state.cache.loading


def logged(kept: Kept) -> FrozenMap[str, LoggedEntries]:
    """Return the last entries of each transactional id in a log with so many committed records."""
    records, committed = kept
    found: dict[str, LoggedEntries] = {}
    for at, record in enumerate(records):
        tid = record.transactional_id
        if record.entry is None:
            found.pop(tid, None)
            continue
        entry = decided.KnownTransaction.of(record.entry)
        before = found[tid].committed if tid in found else None
        found[tid] = LoggedEntries(entry, entry if at < committed else before)
    return FrozenMap(found)


def refinement(
    version: str, placement: Placement, logs: Logs, start: Mapping[str, Value], block_size: int = BLOCK_SIZE,
    change: str = "none",
) -> Refinement:
    """Return the coordinators of diary 02 with the departures of a version and a change, and the mapping to them.

    `start` are the slots of the brokers at first.
    """
    home = {tid: placement.transaction_partition(tid) for tid in placement.transactional_ids}
    k = CoordinatorNames(
        placement.brokers, placement.transaction_partitions, placement.transactional_ids, home,
        tuple(one.name for one in (*BY_VERSION[version], *BY_CHANGE.get(change, ()))),
    )
    mapping = CoordinatorMapping(k, placement, logs, block_size)
    return Refinement(
        build(k, mapping.slots(View(start))), mapping.abstract, extensions=extensions(k), steps=MOST_STEPS,
        by=BY, given=GIVEN, told=mapping.told,
    )


@attrs.frozen(eq=False)
class CoordinatorMapping:
    """The mapping for one model."""

    k: CoordinatorNames
    placement: Placement
    logs: Logs
    block_size: int

    def abstract(self, view: View, ghost: Value) -> tuple[Mapping[str, Value], Value]:
        """Return the spec's state that a state of the brokers stands for; nothing is remembered."""
        return {**self.slots(view), "event": None, "owes": (), "decided": ()}, ghost

    def slots(self, view: View) -> dict[str, Value]:
        """Return what the spec keeps of each broker."""
        state: dict[str, Value] = {}
        for b in self.k.brokers:
            known = METADATA.of(view, b).known
            for p in self.k.txn_log_partitions:
                mine = COORDINATOR[p]
                leads = known[p].leader == b
                state[slot("tc_log_metadata", b, p)] = known[p]
                state[slot("followed", b, p)] = known[p].leader_epoch
                state[slot("serving", b, p)] = mine.derived(view, b, serves_of)
                state[slot("tc_log", b, p)] = self.logs.kept(view, p, b, logged) if leads else FrozenMap()
                state[slot("pid_source", b, p)] = mine.derived(view, b, next_id_of)
                has = mine.derived(view, b, seen_of)
                for tid in self.k.ids_of(p):
                    one = has.get(tid, SeenTransaction())
                    state[slot("tc_tid_metadata", b, tid)] = one.metadata
                    state[slot("tc_tid_transition", b, tid)] = one.transition
                    state[slot("append", b, tid)] = one.append
                    state[slot("failed_fence", b, tid)] = one.failed_fence
        return state

    def told(self, view: View, step: Exchange) -> Mapping[str, Value]:
        """Return what a step took, and what it answered."""
        b = step.process
        if b not in self.k.brokers:
            return {}
        owes = tuple(sorted(
            (message.dest, decided.said(message.response)) for message in step.sent
            if isinstance(message, Response) and isinstance(message.response, ANSWERS)
        ))
        return {"event": self.taken(view, b, step), "owes": owes}

    def taken(self, view: View, b: str, step: Exchange) -> Value:
        """Return what a coordinator took in a step; None if it took nothing."""
        message: Message | None = step.consumed
        if step.action == TRANSACTION_TIMEOUT:
            return decided.TimeOutTaken(b, FrozenMap((p, self.offered(view, b, p)) for p in self.k.txn_log_partitions))
        if isinstance(message, Request) and isinstance(message.request, REQUESTS):
            tid = message.request.transactional_id
            offered = self.offered(view, b, self.k.home[tid]) if tid is not None else decided.NONE
            return decided.RequestTaken(b, message.source, message.request, offered)
        if not isinstance(message, Response):
            return None
        asked = CONNECTIONS.of(view, b).asked.get(message.correlation)
        if asked is None or asked.role != ROLE:
            return None
        if (asked.message.connection, asked.message.dest) != (message.connection, message.source):
            return None
        then = {p: after_marker(error) for p, error in message.response.errors.items()}
        markers = asked.message.request
        return decided.MarkersTaken(
            b, asked.transactional_id, frozenset(p for p in then if then[p] is AfterMarker.DONE),
            AfterMarker.GIVE_UP in then.values(), markers.producer_epoch, markers.coordinator_epoch,
        )

    def offered(self, view: View, b: str, p: str) -> int:
        """Return the producer id that a coordinator gives next: of its block, or the first of the next one."""
        found = COORDINATOR[p].derived(view, b, next_id_of)
        if found is not None:
            return found
        return block_of(b, self.placement, BLOCKS.of(view, b).count, self.block_size).first
