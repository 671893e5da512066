"""P8 and P5 at rest, transaction by transaction: verdicts say what is awaited, of whom; repaired twins are silent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import attrs
import pytest
from support.brokers.leader import replicated
from support.paths import ROOT
from support.runs.made_runs import first_bad, scenario_runs
from support.searches.spec_states import state

from harness.model import FrozenMap, Model, Value, View, find_model, find_scenario
from harness.record import read_trail
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import try_choices
from harness.simulate.trails.shrink import perturbing_part
from kafka_proto.broker.coordinator.coordinator import Coordinator, Waiting
from kafka_proto.broker.coordinator.transaction import (
    Answer,
    CachedTransaction,
    Outcome,
    TransactionMetadata,
    TransactionRecord,
    TxnState,
)
from kafka_proto.broker.ghosts import Cause, Noted, Span
from kafka_proto.broker.messages import FindCoordinatorRequest, Request
from kafka_proto.broker.parts import Asked, Connections, CoordinatorState, LeaderState, Records
from kafka_proto.clients.client_connections import ClientConnections, Sent
from kafka_proto.clients.producer import Batch, Producer, ProducerStatus, TransactionalCall
from kafka_proto.clients.producer_client import ClientState
from kafka_proto.cluster import guarantees
from kafka_proto.log import Marker, RecordBatch, marker_batch
from kafka_proto.requests import EndTxnRequest, WriteTxnMarkersRequest

Changes = dict[str, Value]
TXN = "__transaction_state-0"
END = EndTxnRequest(3, "tid1", 0, 0, True)
PREPARED = TransactionMetadata(0, TxnState.PREPARE_COMMIT, 0, partitions=("T-0", "T-1"))
COMPLETE = attrs.evolve(PREPARED, state=TxnState.COMPLETE_COMMIT, partitions=())
STAYS = "tid1 stays in PrepareCommit with producer id 0, epoch 0: "


@cache
def model() -> Model:
    """Two producers, the second without transactions, two brokers: b1 is coordinator and leads T-1, b2 leads T-0."""
    return find_model("kafka/3.5").make({"idempotent-producers": 1})


def why(name: str, *changes: Changes) -> str | None:
    slots = {slot: value for change in changes for slot, value in change.items()}
    return model().property(name).reason(View(state(model(), slots)))


def client(operation: str, *asked: Sent, call: TransactionalCall | None = None) -> Changes:
    """Return the change to a producer in its second transaction, and the requests that nobody has answered."""
    producer = Producer("tid1", ProducerStatus.COMMITTING_TRANSACTION, 0, 3, call=call)
    connections = ClientConnections(asked=FrozenMap(dict(enumerate(asked, 1))))
    return {"c1": ClientState(producer, connections, operation=operation, transactions=2)}


PAUSING = Batch(1, "T-0", ("c1.2#1",), backs_off=True)
CLIENTS: Mapping[str, tuple[Changes, str]] = {
    "an answer": (
        client("commit", Sent("b1", END)),
        "c1 waits for commit of c1.2 with producer id 0, epoch 3: b1 has not answered its EndTxnRequest"),
    "a coordinator": (
        client("init", Sent("b2", FindCoordinatorRequest("tid1"))),
        "c1 waits for init of tid1 with producer id 0, epoch 3: b2 has not answered its FindCoordinatorRequest"),
    "a pause": (
        client("abort", call=TransactionalCall(END, backs_off=True)),
        "c1 waits for abort of c1.2 with producer id 0, epoch 3: it pauses before its EndTxnRequest"),
    "a pause of a batch": (
        {"c1": ClientState(
            Producer("tid1", ProducerStatus.COMMITTING_TRANSACTION, 0, 3, batches=(PAUSING,)), operation="commit",
            transactions=2)},
        "c1 waits for commit of c1.2 with producer id 0, epoch 3: it pauses before its next request"),
    "nothing": (
        client("abort"), "c1 waits for abort of c1.2 with producer id 0, epoch 3: no request of it is under way"),
}


@pytest.mark.parametrize("what", CLIENTS)
def test_application_without_an_answer_is_told_with_what_its_producer_waits_for(what: str) -> None:
    changes, said = CLIENTS[what]
    assert why("OperationsEnd", changes) == said
    assert why("OperationsEnd", client("", Sent("b1", END))) is None, "the application is told already"


def written(partition: str, *batches: RecordBatch) -> Changes:
    leader = "b2" if partition == "T-0" else "b1"
    return {f"{leader}[leader][{partition}]": LeaderState(replicated(*batches), serves=True)}


def marker(kind: Marker, cause: str = "c1.2", epoch: int = 0) -> RecordBatch:
    return attrs.evolve(marker_batch(0, epoch, kind, 1), records=(Cause(kind, cause),))


def logged(entry: TransactionMetadata, transaction: str = "c1.2") -> Changes:
    return {f"b1[log][{TXN}]": Records((TransactionRecord("tid1", entry, transaction),))}


def coordinator(*unheard: str, waits: bool = False, again: bool = False) -> Changes:
    """Return the change to the coordinator: of which partitions it has no answer, and what it does about Complete*."""
    cached = CachedTransaction(attrs.evolve(PREPARED, partitions=unheard))
    waiting = {"tid1": Waiting(None, None, Outcome(Answer(), COMPLETE))} if waits else {}
    unfinished = (TransactionRecord("tid1", COMPLETE),) if again else ()
    known = Coordinator(FrozenMap({"tid1": cached}), FrozenMap(waiting))
    return {f"b1[coordinator][{TXN}]": CoordinatorState(known, unfinished)}


def asks(partition: str, dest: str) -> Changes:
    request = WriteTxnMarkersRequest(1, 0, 0, 1, True, (partition,))
    asked = Asked(Request(request, 1, source="b1", dest=dest), "coordinator", "tid1")
    return {"b1[connections]": Connections(asked=FrozenMap({1: asked}))}


BATCH = RecordBatch(("c1.2#1",), 0, 0, 0, is_transactional=True)
MARKED = {**written("T-0", BATCH, marker(Marker.COMMIT)), **written("T-1", BATCH, marker(Marker.COMMIT))}
MARKERS: Mapping[str, tuple[Changes, str]] = {
    "a leader": (
        {**written("T-0", BATCH), **written("T-1", BATCH, marker(Marker.COMMIT)), **coordinator("T-0"),
         **asks("T-0", "b2")}, "T-0 lacks the marker, and b2 has not answered b1's WriteTxnMarkersRequest"),
    "nobody": (
        {**written("T-0", BATCH), **written("T-1", BATCH), **coordinator("T-0", "T-1"), **asks("T-1", "b1")},
        "T-0 lacks the marker, and b1 asks nobody for it, "
        "T-1 lacks the marker, and b1 has not answered b1's WriteTxnMarkersRequest"),
    "an answer": (
        {**MARKED, **coordinator("T-1"), **asks("T-1", "b1")},
        "T-1 has the marker, and b1 has not answered b1's WriteTxnMarkersRequest"),
    "a marker of another kind": (
        {**MARKED, **written("T-0", BATCH, marker(Marker.ABORT)), **coordinator()},
        "T-0 lacks the marker, and b1 asks nobody for it"),
    "a marker of another epoch": (
        {**MARKED, **written("T-0", BATCH, marker(Marker.COMMIT, epoch=1)), **coordinator()},
        "T-0 lacks the marker, and b1 asks nobody for it"),
    "a marker of another transaction": (
        {**MARKED, **written("T-0", BATCH, marker(Marker.COMMIT, "c1.1")), **coordinator()},
        "T-0 lacks the marker, and b1 asks nobody for it"),
    "an entry": (
        {**MARKED, **coordinator()},
        "it has all its markers, and the entry that it is complete is not under way at b1"),
    "a commit": (
        {**MARKED, **coordinator(waits=True)},
        "it has all its markers, and the entry that it is complete waits for b1 to commit it"),
    "another attempt": (
        {**MARKED, **coordinator(again=True)},
        "it has all its markers, and the entry that it is complete is still to be written by b1"),
}


@pytest.mark.parametrize("what", MARKERS)
def test_prepared_end_is_told_with_what_it_lacks(what: str) -> None:
    """Marker by marker, and whom its coordinator waits for; in the twin it is complete."""
    changes, said = MARKERS[what]
    assert why("OperationsEnd", logged(PREPARED), changes) == STAYS + said
    assert why("OperationsEnd", logged(COMPLETE), changes) is None


def test_all_that_is_pending_is_told() -> None:
    """Not only the first: applications, records, then prepared ends."""
    waits = ClientState(Producer(producer_id=10, producer_epoch=0, batches=(Batch(1, "T-0", ("i1#1",)),)))
    said = why("OperationsEnd", client("commit", Sent("b1", END)), {"i1": waits}, logged(PREPARED), coordinator("T-0"))
    assert said is not None
    assert [each.partition(" with ")[0] for each in said.split("; ")] == [
        "c1 waits for commit of c1.2", "i1 waits for the answer to i1#1", "tid1 stays in PrepareCommit"]


def test_coordinator_that_gives_up_is_told_with_what_it_gave_up() -> None:
    """`PreparedIsCompleted` says the same of a state."""
    assert why("PreparedIsCompleted", logged(PREPARED), MARKED, written("T-0", BATCH), coordinator("T-0")) == (
        f"{STAYS}T-0 lacks the marker, and b1 asks nobody for it")
    assert why("PreparedIsCompleted", logged(PREPARED), coordinator("T-0"), asks("T-0", "b2")) is None


def test_coordinator_alone_tells_which_partitions_have_not_answered() -> None:
    """So it is of brokers that run; when all have, only the entry is missing."""
    said = guarantees.prepared_is_completed([("tid1", PREPARED)])
    assert said == f"{STAYS}no marker is acknowledged of T-0, T-1"
    all_marked = guarantees.prepared_is_completed([("tid1", attrs.evolve(PREPARED, partitions=()))])
    assert all_marked == f"{STAYS}the entry that it is complete is missing"
    assert guarantees.prepared_is_completed([("tid1", COMPLETE)]) is None


@pytest.mark.parametrize(("partition", "epoch"), [("T-1", 0), ("T-0", 1)])
def test_transaction_that_is_under_way_excuses_no_other(partition: str, epoch: int) -> None:
    """It is one of another partition, or of another epoch; the twin is that of the record."""
    ongoing = TransactionMetadata(0, TxnState.ONGOING, epoch, partitions=(partition,))
    assert why("NothingStaysOpen", written("T-0", BATCH), logged(ongoing)) == (
        "the last stable offset of T-0 is 0, its high watermark 1: the transaction of c1.2#1, producer id 0, epoch 0, "
        "is open, and not under way")
    mine = attrs.evolve(ongoing, partitions=("T-0",), producer_epoch=0)
    assert why("NothingStaysOpen", written("T-0", BATCH), logged(mine)) is None


@pytest.mark.parametrize(("stable", "said"), [
    (0, "the last stable offset of T-0 is 0, its high watermark 3, and no transaction is open there"), (1, None)])
def test_last_stable_offset_is_where_the_first_open_transaction_begins(stable: int, said: str | None) -> None:
    """A transaction that is under way does not excuse one that is below its first record."""
    span, entry = Span(0, 0, (Noted(1, "c1.2"),)), TransactionMetadata(0, TxnState.ONGOING, 0, partitions=("T-0",))
    assert guarantees.nothing_stays_open("T-0", stable, 3, [span], [entry]) == said


def test_producer_id_that_librdkafka_asks_for_in_vain_is_told() -> None:
    """The last epoch is given once: it asks again and again, and its application waits for ever."""
    name = "4.4-rdkafka-RefusedForAReason-UNKNOWN_SERVER_ERROR.trail.jsonl"
    trail = read_trail(ROOT / "tests" / "data" / "findings" / name)
    waits = attrs.evolve(trail, claims=("OperationsEnd",), fair_from=None, back_to=None)
    run = try_choices(Tables(waits.build()), waits, perturbing_part(trail))
    (said,) = (str(verdict.reason) for verdict in run.violations)
    assert said.startswith("c1 waits for abort of c1.1 with producer id 0, epoch 32765: ")
    assert "InitProducerIdRequest; still not after" in said


def test_run_that_ends_with_a_prepared_transaction_says_which_partition_waits() -> None:
    """KAFKA-19999: a marker is written, its answer lost, and the same marker refused for good."""
    row = find_scenario("repeated-marker-refused")
    assert row is not None
    run = first_bad(scenario_runs(attrs.evolve(row, claims=("OperationsEnd",)), "random", 40))
    assert run is not None
    assert "has the marker, and b1 asks nobody for it" in (run.violations[0].reason or "")
