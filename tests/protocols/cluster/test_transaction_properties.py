"""Each property of whole transactions fails on a bad state, and holds in its repaired twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from support.brokers.fencing import appended_after_fencing
from support.brokers.leader import replicated
from support.searches.spec_states import state

from harness.model import CONNECTIONS, FrozenMap, Model, State, Value, View, find_model
from kafka_proto.broker.coordinator.coordinator import Coordinator
from kafka_proto.broker.coordinator.transaction import (
    CachedTransaction,
    TransactionMetadata,
    TransactionRecord,
    TxnState,
)
from kafka_proto.broker.ghosts import Cause, offset
from kafka_proto.broker.group.coordinator import GroupCoordinator, OffsetRecord, load, replay
from kafka_proto.broker.messages import Response
from kafka_proto.broker.parts import CoordinatorState, GroupCoordinatorState, LeaderState, Records
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.consumer import Consumer, ReaderState
from kafka_proto.clients.producer import Batch, Producer, ProducerStatus
from kafka_proto.clients.producer_client import ClientState, Written
from kafka_proto.cluster.logs import LocalLogs
from kafka_proto.cluster.properties import INVARIANTS, LIVENESS, NOT_CLAIMED
from kafka_proto.log import AbortedTransaction, Marker, RecordBatch, marker_batch
from kafka_proto.requests import OFFSETS_PARTITION, ConsumerFetchResponse, Error, IsolationLevel

COMMIT, ABORT = Marker.COMMIT, Marker.ABORT
Change = tuple[str, Value]


@pytest.fixture(scope="module")
def model() -> Model:
    """One producer, two brokers, two partitions (b2 leads T-0), one consumer."""
    return find_model("kafka/3.5").make({"consumers": 1})


def data(text: str, epoch: int = 0, sequence: int = 0) -> RecordBatch:
    return RecordBatch((text,), 0, epoch, sequence, is_transactional=True)


def marker(kind: Marker, cause: str, epoch: int = 0, coordinator_epoch: int = 1) -> RecordBatch:
    return attrs.evolve(marker_batch(0, epoch, kind, coordinator_epoch), records=(Cause(kind, cause),))


def log(partition: str, *batches: RecordBatch) -> Change:
    """Return the change that gives a partition's leader a log, all of it replicated."""
    leader = "b2" if partition == "T-0" else "b1"
    return f"{leader}[leader][{partition}]", LeaderState(replicated(*batches), serves=True)


def client(*acknowledged: str, **outcomes: str) -> Change:
    """Return the change to what the application knows: acknowledged records, and outcomes by transaction."""
    written = tuple(Written(*text.split()) for text in acknowledged)
    told = FrozenMap({f"c1.{name.removeprefix('g')}": outcome for name, outcome in outcomes.items()})
    return "c1", ClientState(Producer("tid1", ProducerStatus.READY, 0, 0), acknowledged=written, outcomes=told)


def waits(record: str, acknowledged: str) -> Change:
    """Return the change to what the application knows: one record of T-0 is acknowledged, another one waits."""
    producer = Producer("tid1", ProducerStatus.IN_TRANSACTION, 0, 0, batches=(Batch(1, "T-0", (record,)),))
    return "c1", ClientState(producer, acknowledged=(Written("T-0", acknowledged),))


def failed(error: Error) -> Change:
    return "c1", ClientState(Producer("tid1", ProducerStatus.FATAL_ERROR, 0, 0, last_error=error))


def entry(state: TxnState, *partitions: str, epoch: int = 0, committed: tuple[str, ...] = ()) -> Change:
    """Return the change that gives the coordinator's log an entry, after the decisions to commit some transactions."""
    known = TransactionMetadata(0, state, epoch, partitions=partitions)
    decided = attrs.evolve(known, state=TxnState.PREPARE_COMMIT)
    before = (TransactionRecord("tid1", decided, name) for name in committed)
    return "b1[log][__transaction_state-0]", Records((*before, TransactionRecord("tid1", known)))


def cache(epoch: int) -> Change:
    """Return the change that gives the coordinator's cache an open transaction."""
    cached = CachedTransaction(TransactionMetadata(0, TxnState.ONGOING, epoch))
    return "b1[coordinator][__transaction_state-0]", CoordinatorState(Coordinator(FrozenMap({"tid1": cached})))


def gave_up(*unfinished: TransactionRecord) -> Change:
    """Return the change that gives the coordinator's cache a prepared abort, and what it has still to do."""
    cached = CachedTransaction(TransactionMetadata(0, TxnState.PREPARE_ABORT, 0, partitions=("T-0",)))
    cache_ = Coordinator(FrozenMap({"tid1": cached}))
    return "b1[coordinator][__transaction_state-0]", CoordinatorState(cache_, unfinished)


def saw(*records: str, position: int | None = None) -> Change:
    """Return the change to what a consumer got, and where it is, if it is anywhere."""
    positions = FrozenMap[str, int]() if position is None else FrozenMap({"T-0": position})
    return "r1", ReaderState(Consumer(IsolationLevel.READ_COMMITTED, positions), seen=FrozenMap({"T-0": records}))


def answer(last_stable_offset: int, *aborted: AbortedTransaction) -> Change:
    """Return a fetch of T-0's first batch on its way to the consumer."""
    batch = attrs.evolve(data("c1.1#1"), base_offset=0)
    fetched = ConsumerFetchResponse(Error.NONE, 2, last_stable_offset, 0, aborted, (batch,))
    return "inbox[r1]", CONNECTIONS.put(CONNECTIONS.empty, Response(fetched, 1, 1, source="b2", dest="r1"))


def commit(transaction: str, *, transactional: bool = True) -> RecordBatch:
    """Return the batch of an offset that a transaction commits, or a plain commit."""
    record = OffsetRecord("G", "T-0", offset(transaction, 1))
    return RecordBatch((record,), 0, 0, is_transactional=True) if transactional else RecordBatch((record,))


def offsets(*batches: RecordBatch, by_record: bool = True) -> list[Change]:
    """Return the changes that give the offsets partition a log, and the group coordinator its live view of it."""
    where, leader = log(OFFSETS_PARTITION, *batches)
    assert isinstance(leader, LeaderState)
    live = load(())
    for batch in leader.log.batches:
        live = replay(live, batch, by_record=by_record)
    return [(where, leader), ("b1[groups]", GroupCoordinatorState(GroupCoordinator(offsets=live)))]


IN_ORDER = (commit("c1.1"), commit("c1.2", transactional=False), marker(COMMIT, "c1.1"))
COMMITTED = log("T-0", data("c1.1#1"), marker(COMMIT, "c1.1"))
ABORTED = log("T-0", data("c1.1#1"), marker(ABORT, "c1.1"))
CASES: Mapping[str, tuple[list[Change], list[Change], str]] = {
    "MarkerAttribution": (
        [log("T-0", data("c1.2#1"), marker(COMMIT, "c1.1"))], [log("T-0", data("c1.2#1"), marker(COMMIT, "c1.2"))],
        "the COMMIT of T-0 at offset 1 was caused by c1.1, but ends c1.2#1",
    ),
    "Atomicity": (
        [client("T-0 c1.1#1", "T-1 c1.1#2"), log("T-0", data("c1.1#1"), marker(COMMIT, "c1.1")),
         log("T-1", data("c1.1#2"), marker(ABORT, "c1.1"))],
        [client("T-0 c1.1#1", "T-1 c1.1#2"), log("T-0", data("c1.1#1"), marker(ABORT, "c1.1")),
         log("T-1", data("c1.1#2"), marker(ABORT, "c1.1"))],
        "of c1.1, c1.1#1 of T-0 is committed at offset 1, but c1.1#2 of T-1 is aborted at offset 1",
    ),
    "AcknowledgedOutcome": (
        [client(g1="abort"), log("T-0", data("c1.1#1"), marker(COMMIT, "c1.1"))], [client(g1="abort"), ABORTED],
        "c1 was told that c1.1 is aborted, but c1.1#1 of T-0 is committed",
    ),
    "NoIntermediateRead": (
        [saw("c1.1#1"), entry(TxnState.ONGOING, "T-0")],
        [saw("c1.1#1"), entry(TxnState.PREPARE_COMMIT, "T-0", committed=("c1.1",))],
        "r1 got c1.1#1 of T-0, but no commit of c1.1 was decided",
    ),
    "NoHangingTransaction": (
        [log("T-0", data("c1.1#1")), entry(TxnState.COMPLETE_ABORT)],
        [log("T-0", data("c1.1#1")), entry(TxnState.ONGOING, "T-0")],
        "c1.1#1 of T-0 is in a transaction of producer id 0, epoch 0, that is open there, but no coordinator",
    ),
    "AcknowledgedOnce": (
        [log("T-0", data("c1.1#1"), data("c1.1#1", sequence=1))],
        [log("T-0", data("c1.1#1"), data("c1.1#2", sequence=1)), client("T-0 c1.1#1", "T-0 c1.1#2")],
        "c1.1#1 is in T-0 twice, at the offsets 0 and 1",
    ),
    "AcknowledgedOnce of records that wait": (
        [waits("c1.1#1", "c1.1#2"), log("T-0", data("c1.1#2", sequence=1))],
        [waits("c1.1#1", "c1.1#2"), log("T-0", data("c1.1#1"), data("c1.1#2", sequence=1))],
        "c1.1#2 was acknowledged, but c1.1#1, which was written before it, is not in T-0",
    ),
    "FencedForAReason": (
        [failed(Error.PRODUCER_FENCED), entry(TxnState.EMPTY, epoch=0)],
        [failed(Error.PRODUCER_FENCED), entry(TxnState.EMPTY, epoch=1)],
        "c1 failed by PRODUCER_FENCED with producer id 0, epoch 0, but nobody has fenced it",
    ),
    "FencedForAReason in the coordinator's cache": (
        [failed(Error.PRODUCER_FENCED), entry(TxnState.ONGOING), cache(0)],
        [failed(Error.PRODUCER_FENCED), entry(TxnState.ONGOING), cache(1)], "nobody has fenced it",
    ),
    "FatalForAReason": (
        [failed(Error.INVALID_TXN_STATE), entry(TxnState.EMPTY, epoch=1)],
        [failed(Error.PRODUCER_FENCED), entry(TxnState.EMPTY, epoch=1)],
        "c1 is unusable by INVALID_TXN_STATE with producer id 0, epoch 0, though what happened is a fence: the "
        "coordinator has epoch 1",
    ),
    "ReadBound": (
        [ABORTED, answer(2)], [ABORTED, answer(2, AbortedTransaction(0, 0, 1, 2))],
        "r1 is sent c1.1#1 of T-0 without being told that it is aborted",
    ),
    "OffsetsAsCommitted": (
        offsets(*IN_ORDER, by_record=False), offsets(*IN_ORDER),
        "the offset of G in T-0 is 111, the last committed one is 121",
    ),
    "ProducerStateGrows": (
        [log("T-0", data("c1.1#1", epoch=1), marker(ABORT, "c1.1", epoch=0))],
        [log("T-0", data("c1.1#1", epoch=0), marker(ABORT, "c1.1", epoch=1))],
        "T-0 has epoch 0 of producer id 0 at offset 1, after epoch 1",
    ),
    "CommittedIsRead": (
        [COMMITTED, saw(position=2)], [COMMITTED, saw("c1.1#1", position=2)],
        "r1 is past c1.1#1 of T-0, which is committed at offset 0, and did not get it",
    ),
    "PreparedIsCompleted": (
        [gave_up()], [gave_up(TransactionRecord("tid1", TransactionMetadata(0, TxnState.COMPLETE_ABORT)))],
        "tid1 stays in PrepareAbort",
    ),
    "OperationsEnd": ([entry(TxnState.PREPARE_ABORT)], [entry(TxnState.COMPLETE_ABORT)], "tid1 stays in PrepareAbort"),
    "NothingStaysOpen": (
        [log("T-0", data("c1.1#1"))], [ABORTED], "the last stable offset of T-0 is 0, its high watermark 1",
    ),
}
MORE: list[tuple[str, list[Change], str]] = [
    ("AcknowledgedOnce", [client("T-0 c1.1#1")], "c1.1#1 was acknowledged, but is not in T-0"),
    ("AcknowledgedOnce", [
        client("T-0 c1.1#1", "T-0 c1.1#2"), log("T-0", data("c1.1#2"), data("c1.1#1", sequence=1)),
    ], "c1.1#1 was written before c1.1#2, but is after it in T-0"),
    ("AcknowledgedOutcome", [client("T-0 c1.1#1", g1="commit"), ABORTED], "told that c1.1 is committed"),
    ("FatalForAReason", [failed(Error.UNKNOWN_SERVER_ERROR), entry(TxnState.EMPTY, epoch=0)],
     "though nothing happened that this code is for"),
    ("ReadBound", [answer(0)], "r1 is sent records up to offset 0, the last stable offset is 0"),
    ("OffsetsAsCommitted", offsets(commit("c1.1"), marker(COMMIT, "c1.1"))[:1],
     "an offset of G in T-0 is committed, but nobody knows it"),
    ("OffsetsAsCommitted", offsets(commit("c1.1"))[:1], "a replay of the offsets log gives other offsets than there"),
    ("CommittedIsRead", [COMMITTED, saw("c1.2#1", position=2)], "committed at offset 0, and got c1.2#1 instead"),
    ("CommittedIsRead", [COMMITTED, saw("c1.1#1", "c1.1#1", position=2)], "r1 got c1.1#1 of T-0, which is not"),
    ("Atomicity", [
        client("T-0 c1.1#1", f"{OFFSETS_PARTITION} c1.1#offset1"), log("T-0", data("c1.1#1"), marker(COMMIT, "c1.1")),
        *offsets(commit("c1.1"), marker(ABORT, "c1.1")),
    ], "of c1.1, c1.1#1 of T-0 is committed at offset 1, but c1.1#offset1 of __consumer_offsets-0 is aborted at "),
    ("NoHangingTransaction", offsets(commit("c1.1")), "c1.1#offset1 of __consumer_offsets-0 is in a transaction"),
    ("ProducerStateGrows", [
        log("T-0", marker(ABORT, "c1.1", coordinator_epoch=2), marker(ABORT, "c1.1", coordinator_epoch=1)),
    ], "T-0 has the marker of an older coordinator at offset 1"),
]


def why(model: Model, name: str, changes: list[Change]) -> Any:
    """Return why a property does not hold in the initial state with some slots changed."""
    return model.property(name).reason(View(state(model, dict(changes))))


@pytest.mark.parametrize(("name", "bad", "repaired", "said"), [
    *((name.partition(" ")[0], *case) for name, case in CASES.items()),
    *((name, bad, None, said) for name, bad, said in MORE)])
def test_property_fails_on_a_bad_state_and_holds_in_its_repaired_twin(
    model: Model, name: str, bad: list[Change], repaired: list[Change] | None, said: str
) -> None:
    """For each of its reasons, and says who, what and where. A fence is in force at once in the coordinator's cache."""
    assert said in (why(model, name, bad) or "")
    assert repaired is None or why(model, name, repaired) is None


@pytest.mark.parametrize(("kept", "said"), [
    ((data("c1.1#1"),), None), ((), "c1.1#1 was acknowledged, but is not in T-0"),
])
def test_leader_that_crashed_has_what_is_on_its_disk(
    model: Model, kept: tuple[RecordBatch, ...], said: str | None
) -> None:
    """It has read nothing of it yet."""
    crashed: list[Change] = [("b2[leader][T-0]", LeaderState()), ("b2[log][T-0]", Records(kept))]
    assert why(model, "AcknowledgedOnce", [client("T-0 c1.1#1"), *crashed]) == said


def test_every_property_has_its_bad_state() -> None:
    """None is left out; `test_refusals` has those of `RefusedForAReason`."""
    assert {name.partition(" ")[0] for name in CASES} == {*INVARIANTS, *LIVENESS, *NOT_CLAIMED} - {"RefusedForAReason"}


@pytest.mark.parametrize(("epoch", "said"), [
    (0, "c1.2#1 of producer id 0, epoch 0, whose epoch 1 somebody has, is appended to T-0"), (1, None),
])
def test_history_in_which_a_fenced_producer_still_writes_is_told_from_one_in_which_it_does_not(
    model: Model, epoch: int, said: str | None
) -> None:
    """P7: InitProducerId was answered with the next epoch, and then a batch is appended."""
    first, placement = model.initial_states()[0], Placement.of(model.sizes)

    def with_epoch(epoch: int) -> Change:
        return "c1", ClientState(Producer("tid1", ProducerStatus.READY, 0, epoch))

    states: list[State] = [first]
    for change in (with_epoch(0), log("T-0", data("c1.1#1")), with_epoch(1),
                   log("T-0", data("c1.1#1"), data("c1.2#1", epoch, 1 - epoch))):
        states.append({**states[-1], **dict([change])})
    assert appended_after_fencing(placement, LocalLogs(placement), states) == said
