"""P7, answer by answer: for each reason of the table a history without it, and the repaired twin that has it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from functools import cache
from typing import Any

import attrs
import pytest
from support.brokers.leader import replicated
from support.paths import ROOT
from support.runs.made_runs import first_bad, scenario_runs
from support.searches.spec_states import state

from harness.model import CONNECTIONS, FrozenMap, Model, Value, View, find_model, find_scenario
from kafka_proto.broker.coordinator.coordinator import Coordinator
from kafka_proto.broker.coordinator.transaction import (
    CachedTransaction,
    TransactionMetadata,
    TransactionRecord,
    TxnState,
)
from kafka_proto.broker.group.coordinator import GroupCoordinator
from kafka_proto.broker.group.rebalance import Group
from kafka_proto.broker.messages import FindCoordinatorRequest, LeaderResponse, MetadataRequest, Request, Response
from kafka_proto.broker.parts import (
    NOBODY,
    Asked,
    Connections,
    CoordinatorState,
    GroupCoordinatorState,
    LeaderState,
    Records,
)
from kafka_proto.clients.client_connections import ClientConnections, Sent
from kafka_proto.clients.consumer import Consumer, Fetching, ReaderState
from kafka_proto.clients.producer import Producer, ProducerStatus
from kafka_proto.clients.producer_client import ClientState
from kafka_proto.cluster.reasons import FIND_COORDINATOR, MARKERS, OFFSETS, PRODUCE, REASONS, ROWS, RefusalReason
from kafka_proto.log import RecordBatch
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ConsumerFetchRequest,
    ConsumerFetchResponse,
    EndTxnRequest,
    EndTxnResponse,
    Error,
    InitProducerIdRequest,
    InitProducerIdResponse,
    IsolationLevel,
    ProduceRequest,
    ProduceResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Changes = dict[str, Value]
TXN = "__transaction_state-0"
END = EndTxnRequest(3, "tid1", 0, 0, True)
ADD = AddPartitionsToTxnRequest(3, "tid1", 0, 0, ("T-0",))
COMMIT = TxnOffsetCommitRequest(3, "tid1", "G", 0, 0, "T-0", 1, 1, "m1")
NEXT = attrs.evolve(ADD, producer_epoch=1)
INIT = InitProducerIdRequest(4, "tid1", 60_000)


@cache
def model(log: str = "at-once") -> Model:
    """One producer, a consumer, two brokers (b1 is coordinator, b2 leads T-0)."""
    return find_model("kafka/3.5").make({"consumers": 1}, {"log": log})


def batch(text: str, sequence: int, epoch: int = 0) -> RecordBatch:
    return RecordBatch((text,), 0, epoch, sequence, is_transactional=True)


def produce(sequence: int = 0) -> ProduceRequest:
    return ProduceRequest(9, "tid1", -1, "T-0", batch(f"c1.1#{sequence + 1}", sequence))


def told(request: Value, error: Error, source: str = "b1", **connections: Any) -> Changes:
    """Return the changes that put an answer with a code on its way to the producer that asked."""
    response: Value = {
        ProduceRequest: lambda: ProduceResponse(error), EndTxnRequest: lambda: EndTxnResponse(error),
        InitProducerIdRequest: lambda: InitProducerIdResponse(error),
        TxnOffsetCommitRequest: lambda: TxnOffsetCommitResponse(error),
        AddPartitionsToTxnRequest: lambda: AddPartitionsToTxnResponse(FrozenMap({"T-0": error})),
    }[type(request)]()
    asked = ClientConnections(asked=FrozenMap({1: Sent(source, request)}), correlation=1, **connections)
    producer = Producer("tid1", ProducerStatus.IN_TRANSACTION, 0, 0)
    sent = Response(response, 1, 0, source=source, dest="c1")
    return {"c1": ClientState(producer, asked), "inbox[c1]": CONNECTIONS.put(CONNECTIONS.empty, sent)}


def logged(*states: TxnState, producer_id: int = 0, epoch: int = 0, then: Changes | None = None) -> Changes:
    """Return the change that gives the coordinator's log entries of the transactional id, before those of another."""
    entries = (TransactionMetadata(producer_id, each, epoch, partitions=("T-0",)) for each in states)
    after: Any = (then or {f"b1[log][{TXN}]": Records()})[f"b1[log][{TXN}]"]
    return {f"b1[log][{TXN}]": Records((*(TransactionRecord("tid1", each) for each in entries), *after.committed))}


def pending(state_: TxnState | None) -> Changes:
    """Return the change that gives the coordinator's cache an open transaction, and what it waits for."""
    cached = CachedTransaction(TransactionMetadata(0, TxnState.ONGOING, 0), state_)
    return {f"b1[coordinator][{TXN}]": CoordinatorState(Coordinator(FrozenMap({"tid1": cached})))}


def written(*batches: RecordBatch) -> Changes:
    return {"b2[leader][T-0]": LeaderState(replicated(*batches), serves=True)}


def led(p: str, **changes: int) -> Changes:
    """Return the change to what the controller keeps of a partition."""
    slot = f"controller[partition][{p}]"
    known: Any = model("replicated").initial_states()[0][slot]
    return {slot: attrs.evolve(known, quorum=attrs.evolve(known.quorum, **changes))}


def crashed(b: str) -> Changes:
    known: Any = model().initial_states()[0][f"{b}[metadata]"]
    return {f"{b}[metadata]": attrs.evolve(known, known=FrozenMap(dict.fromkeys(known.known, NOBODY)))}


def marked(error: Error, epoch: int = 0, transaction_version: int = 0) -> Changes:
    """Return the changes that put the answer of T-0's leader to a marker on its way to the coordinator."""
    request = WriteTxnMarkersRequest(1, 0, epoch, 1, True, ("T-0",), transaction_version)
    asked = Asked(Request(request, 1, source="b1", dest="b2"), "coordinator", "tid1")
    sent = Response(WriteTxnMarkersResponse(FrozenMap({"T-0": error})), 1, 0, source="b2", dest="b1")
    return {"b1[connections]": Connections(asked=FrozenMap({1: asked})),
            "inbox[b1]": CONNECTIONS.put(CONNECTIONS.empty, sent)}


def read(error: Error, offset: int = 0, request: Value = None, connection: int = 1) -> Changes:
    """Return the changes that put the answer to a fetch of T-0, or to a look-up, on its way to the consumer."""
    asked = request or ConsumerFetchRequest(12, "T-0", offset, IsolationLevel.READ_COMMITTED)
    response: Value = ConsumerFetchResponse(error) if request is None else LeaderResponse("T-0", "")
    fetches = FrozenMap({"T-0": Fetching(asked, "b2", 1)})
    sent = Response(response, 0, connection, source="b2", dest="r1")
    return {"r1": ReaderState(Consumer(IsolationLevel.READ_COMMITTED), fetches),
            "inbox[r1]": CONNECTIONS.put(CONNECTIONS.empty, sent)}


def looked_up() -> Changes:
    """Return the changes that put the answer that there is no coordinator on its way to the producer."""
    asked = ClientConnections(asked=FrozenMap({1: Sent("b1", FindCoordinatorRequest("tid1"))}), correlation=1)
    sent = Response(LeaderResponse("tid1", ""), 1, 0, source="b1", dest="c1")
    return {"c1": ClientState(Producer("tid1"), asked), "inbox[c1]": CONNECTIONS.put(CONNECTIONS.empty, sent)}


def deleted(start: int) -> Changes:
    shorter = attrs.evolve(replicated(batch("c1.1#1", 0), batch("c1.1#2", 1)), log_start_offset=start)
    return {"b2[leader][T-0]": LeaderState(shorter, serves=True)}


def grouped(generation: int, *members: str) -> Changes:
    group = Group(generation, FrozenMap(dict.fromkeys(members)))
    return {"b1[groups]": GroupCoordinatorState(GroupCoordinator(FrozenMap({"G": group})))}


OPEN, ENDED = logged(TxnState.ONGOING), logged(TxnState.ONGOING, TxnState.PREPARE_ABORT, TxnState.COMPLETE_ABORT)
OUT_OF_ORDER = told(produce(1), Error.OUT_OF_ORDER_SEQUENCE_NUMBER, "b2")
CASES: Mapping[RefusalReason, tuple[Changes, Changes, Changes]] = {
    RefusalReason.FENCED: (told(produce(), Error.INVALID_PRODUCER_EPOCH, "b2"), OPEN, logged(TxnState.EMPTY, epoch=1)),
    RefusalReason.REPLACED: (told(END, Error.INVALID_PRODUCER_ID_MAPPING), logged(TxnState.EMPTY, epoch=1),
                         logged(TxnState.EMPTY, producer_id=1)),
    RefusalReason.ENDED: (told(produce(), Error.TRANSACTION_ABORTABLE, "b2"), OPEN, ENDED),
    RefusalReason.UNDER_WAY: (told(ADD, Error.CONCURRENT_TRANSACTIONS), OPEN, ENDED),
    RefusalReason.MOVED: (told(END, Error.NOT_COORDINATOR), OPEN, {**OPEN, **crashed("b2")}),
    RefusalReason.GAP: (OUT_OF_ORDER, written(batch("c1.1#1", 0)), written(batch("c1.1#1", 0, epoch=1))),
    RefusalReason.LATER: (marked(Error.INVALID_PRODUCER_EPOCH), written(batch("c1.1#1", 0)),
                          written(batch("c1.1#1", 0, epoch=1))),
    RefusalReason.SUCCEEDED: (marked(Error.TRANSACTION_COORDINATOR_FENCED), crashed("b2"),
                              {f"b1[log][{TXN}]": Records(leader_epoch=2)}),
    RefusalReason.REBALANCED: (told(COMMIT, Error.UNKNOWN_MEMBER_ID), grouped(1, "m1"), grouped(1, "m2")),
}
"""By reason: an answer, a history in which nothing happened that it is for, and one in which that happened."""
MORE: list[tuple[Changes, Changes, Changes]] = [
    (told(INIT, Error.CONCURRENT_TRANSACTIONS), {**OPEN, **pending(None)}, {**OPEN, **pending(TxnState.PREPARE_ABORT)}),
    (told(INIT, Error.COORDINATOR_LOAD_IN_PROGRESS), {},
     {f"b1[log][{TXN}]": Records(leader_epoch=2)}),
    (told(ADD, Error.CONCURRENT_TRANSACTIONS),
     logged(TxnState.PREPARE_ABORT, TxnState.COMPLETE_ABORT, producer_id=1, then=logged(TxnState.EMPTY)), ENDED),
    (told(NEXT, Error.CONCURRENT_TRANSACTIONS), ENDED, logged(TxnState.PREPARE_ABORT, epoch=1)),
    (told(INIT, Error.CONCURRENT_TRANSACTIONS), OPEN, ENDED),
    (marked(Error.INVALID_PRODUCER_EPOCH, epoch=1, transaction_version=2), written(batch("c1.1#1", 0)),
     written(batch("c1.1#1", 0, epoch=1))),
    (told(COMMIT, Error.ILLEGAL_GENERATION), grouped(1, "m1"), grouped(2, "m1")),
    (told(COMMIT, Error.UNKNOWN_MEMBER_ID), {}, {f"b1[log][{OFFSETS_PARTITION}]": Records(leader_epoch=2)}),
    (marked(Error.NOT_LEADER_OR_FOLLOWER), OPEN, crashed("b2")),
    (marked(Error.UNKNOWN_TOPIC_OR_PARTITION), OPEN, crashed("b2")),
    (read(Error.NOT_LEADER_OR_FOLLOWER), {}, crashed("b2")),
    (read(Error.UNKNOWN_TOPIC_OR_PARTITION), {}, crashed("b2")),
    (read(Error.OFFSET_OUT_OF_RANGE), deleted(0), deleted(1)),
    (read(Error.OFFSET_OUT_OF_RANGE, 1), deleted(1), deleted(2)),
    (read(Error.OFFSET_OUT_OF_RANGE), deleted(0), crashed("b2")),
    (read(Error.NONE, request=MetadataRequest("T-0")), {}, crashed("b1")),
    (looked_up(), {}, crashed("b1")),
    (OUT_OF_ORDER, written(batch("c1.1#1", 0)),
     {**written(batch("c1.1#1", 0)),
      **told(produce(1), Error.OUT_OF_ORDER_SEQUENCE_NUMBER, "b2", opened=FrozenMap({"b1": 1}))}),
]
REPLICATED: Mapping[RefusalReason, tuple[Changes, Changes, Changes]] = {
    RefusalReason.TOO_FEW: (told(produce(), Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "b2"), led("T-0"),
                        led("T-0", partition_epoch=2)),
    RefusalReason.UNREACHED: (told(produce(), Error.NETWORK_EXCEPTION, "b2"), {},
                          {"b2[connections]": Connections(FrozenMap({"b1": 1}))}),
    RefusalReason.MOVED: (told(produce(), Error.NOT_LEADER_OR_FOLLOWER, "b2"), led("T-0", partition_epoch=2),
                      led("T-0", leader_epoch=1)),
    RefusalReason.LATER: (marked(Error.INVALID_PRODUCER_EPOCH), led("T-0", partition_epoch=2),
                          led("T-0", leader_epoch=1)),
    RefusalReason.SUCCEEDED: (marked(Error.TRANSACTION_COORDINATOR_FENCED), led("T-0", leader_epoch=2),
                              led(TXN, leader_epoch=2)),
}


FEW: list[tuple[Changes, Changes, Changes]] = [
    (marked(error), led("T-0"), led("T-0", partition_epoch=2))
    for error in (Error.NOT_ENOUGH_REPLICAS, Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
]


def why(changes: Changes, log: str = "at-once") -> str | None:
    made = model(log)
    return made.property("RefusedForAReason").reason(View(state(made, changes)))


@pytest.mark.parametrize(("log", "answer", "bad", "repaired"), [
    *(("at-once", *case) for case in (*CASES.values(), *MORE)),
    *(("replicated", *case) for case in (*REPLICATED.values(), *FEW))])
def test_answer_without_its_reason_is_told_from_one_that_has_it(
    log: str, answer: Changes, bad: Changes, repaired: Changes
) -> None:
    assert "for which the history has no reason" in (why({**bad, **answer}, log) or "")
    assert why({**answer, **repaired}, log) is None


def test_deletion_is_a_reason_for_a_producer_that_is_unknown() -> None:
    """Up to 2.3 what a log had of a producer was deleted with its records."""
    answer = told(produce(1), Error.UNKNOWN_PRODUCER_ID, "b2")
    there = replicated(batch("c1.1#1", 0))
    deleted = LeaderState(attrs.evolve(there, log_start_offset=1), serves=True)
    assert "a deletion" in (why({**answer, **written(batch("c1.1#1", 0))}) or "")
    assert why({**answer, "b2[leader][T-0]": deleted}) is None


def test_batch_of_a_producer_without_transactions_is_fenced_by_its_own_next_epoch() -> None:
    """The partition has that already; for one with transactions it takes the coordinator's word, in the partition too.
    """
    refused = ProduceRequest(9, None, -1, "T-0", RecordBatch(("i1#2",), 0, 0, 1))
    asked = ClientConnections(asked=FrozenMap({1: Sent("b2", refused)}), correlation=1)
    sent = Response(ProduceResponse(Error.INVALID_PRODUCER_EPOCH), 1, 0, source="b2", dest="i1")
    changes = {"i1": ClientState(Producer(producer_id=0, producer_epoch=1), asked),
               "inbox[i1]": CONNECTIONS.put(CONNECTIONS.empty, sent)}
    made = find_model("kafka/3.5").make({"idempotent-producers": 1})
    reason = made.property("RefusedForAReason").reason
    here, later = (written(RecordBatch(("i1#1",), 0, epoch, 0)) for epoch in (0, 1))
    assert reason(View(state(made, {**changes, **here}))) == (
        "i1's ProduceRequest is answered by INVALID_PRODUCER_EPOCH, for which the history has no reason (a fence, a "
        "later epoch)")
    assert reason(View(state(made, {**changes, **later}))) is None
    assert "no reason" in (why({**told(produce(), Error.INVALID_PRODUCER_EPOCH, "b2"), **later}) or "")


def test_every_reason_has_its_bad_history() -> None:
    """None is left out."""
    assert {*CASES, *REPLICATED, RefusalReason.DELETED} == {*RefusalReason}


def test_code_of_no_row_has_no_reason() -> None:
    """It names who was told what, by which request; a fatal one is judged by `FatalForAReason`, on the producer."""
    assert why({**ENDED, **told(ADD, Error.OPERATION_NOT_ATTEMPTED)}) == (
        "c1's AddPartitionsToTxnRequest is answered by OPERATION_NOT_ATTEMPTED, for which the history has no reason "
        "(nothing)")
    assert why({**ENDED, **told(END, Error.INVALID_TXN_STATE)}) is None


def test_code_that_a_client_does_not_take_for_fatal_is_judged_by_its_answer() -> None:
    """librdkafka asks again where Java's client gives its producer up, which `FatalForAReason` judges."""
    answer = told(INIT, Error.UNKNOWN_SERVER_ERROR)
    assert why(answer) is None
    made = find_model("kafka/3.5").make({}, {"client": "rdkafka"})
    assert made.property("RefusedForAReason").reason(View(state(made, answer))) == (
        "c1's InitProducerIdRequest is answered by UNKNOWN_SERVER_ERROR, for which the history has no reason (nothing)")


def test_answer_that_nobody_waits_for_is_not_judged() -> None:
    """It came on a connection that was given up."""
    late = told(END, Error.NOT_COORDINATOR, opened=FrozenMap({"b1": 1}))
    assert why({**OPEN, **late}) is None
    assert why(read(Error.UNKNOWN_TOPIC_OR_PARTITION, connection=0)) is None


def test_each_pair_of_request_and_code_is_in_one_row() -> None:
    assert len(REASONS) == sum(len(row.requests) for row in ROWS)
    assert len(set(REASONS)) == len(REASONS) and all(REASONS.values())


TOLD_TO = {OFFSETS: "TxnOffsetCommit", FIND_COORDINATOR: "FindCoordinator", MARKERS: "WriteTxnMarkers",
           PRODUCE: "Produce"}
"""The requests that a page names where other requests have other reasons for the same code."""


def listed() -> str:
    """Return the table as the page on transactions has it: reasons with codes, and a request whose are others."""
    found: dict[tuple[RefusalReason, ...], list[str]] = {}
    for row in ROWS:
        has_others = sum(each.error is row.error for each in ROWS) > 1
        to = f" ({TOLD_TO[row.requests]})" if has_others and row.requests in TOLD_TO else ""
        found.setdefault(row.happenings, []).append(f"`{row.error.value}`{to}")
    return "\n".join(wrapped(f"- {', '.join(map(briefly, happenings))}: {', '.join(codes)}")
                     for happenings, codes in found.items())


def briefly(reason: RefusalReason) -> str:
    """Return a reason without its article."""
    return reason.removeprefix("an ").removeprefix("a ")


def wrapped(text: str) -> str:
    return textwrap.fill(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def test_page_has_the_table() -> None:
    page = (ROOT / "docs" / "models" / "transactions.md").read_text(encoding="utf-8")
    assert f"\n\n{listed()}\n\n" in page


@pytest.mark.parametrize(("name", "said"), [
    ("answered-before-replicated", "c1's EndTxnRequest is answered by INVALID_PRODUCER_ID_MAPPING"),
    ("answered-before-replicated-repaired", ""),
])
def test_coordinator_that_has_forgotten_a_producer_is_found_in_runs(name: str, said: str) -> None:
    """It answered before its entry was replicated: its successor knows no other producer id, only none at all."""
    row = find_scenario(name)
    assert row is not None
    run = first_bad(scenario_runs(attrs.evolve(row, claims=("RefusedForAReason",)), "random", 6, first=28))
    assert (run is None) is (not said)
    assert run is None or said in (run.violations[0].reason or "")
