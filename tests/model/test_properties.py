"""Every property of diary 02 on hand-made states: the sentence with which it fails, and the twin on which it holds.

Then what a message may be in each model, and compaction's invariants against their definitions in the module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import NamedTuple

import attrs
import pytest
from support.searches.spec_states import Slots, state

from harness.model import Message, Model, Step, Value, View, find_model
from kafka_proto.requests import TxnState
from kafka_proto.transactions import records
from kafka_proto.transactions.properties import INVARIANTS, LIVENESS, WITNESSES
from kafka_proto.transactions.specs.diary_01 import WITNESSES as RETRIES


@pytest.fixture(scope="module")
def model() -> Model:
    """Diary 02 with two clients, two brokers, one log partition led by b1, two topic partitions and two ids."""
    return find_model("transactions/diary-02").make({"topic-partitions": 2, "transactional-ids": 2})


def metadata(pid: int, pepoch: int = 0) -> records.TxnMetadata:
    return records.TxnMetadata(pid, pepoch, pepoch - 1, TxnState.EMPTY, frozenset())


def entry(tid: str, pid: int, pepoch: int = 0) -> records.Entry:
    return records.Entry(tid, metadata(pid, pepoch), records.Callback("InitPidRequest"))


def has_pid(pid: int, epoch: int) -> records.ClientRecord:
    return records.ClientRecord(records.ClientPhase.HAS_PID, "b1", "tid1", pid, epoch)


def add_request(pid: int, pepoch: int) -> records.AddPartitionsToTxnRequest:
    return records.AddPartitionsToTxnRequest("tid1", pid, pepoch, frozenset({"tp1"}), source="c1", dest="b1")


def init_response(code: records.SpecError, pid: int = -1, pepoch: int = -1) -> records.InitPidResponse:
    return records.InitPidResponse(code, pid, pepoch, source="b1", dest="c1")


def add_response(code: records.SpecError) -> records.AddPartitionsToTxnResponse:
    return records.AddPartitionsToTxnResponse(code, source="b1", dest="c1")


def sent(*messages: Message) -> Slots:
    """Return the inbox of the one to whom these messages are addressed."""
    (dest,) = {message.dest for message in messages}
    return {f"inbox[{dest}]": frozenset(messages)}


class Case(NamedTuple):
    """A property, slots on which it fails with a sentence, and the twin on which it holds."""

    name: str
    bad: Slots
    sentence: str
    good: Slots


NO_PID = add_request(pid=-1, pepoch=0)
CASES = (
    Case("TypeOK", sent(NO_PID), f"no message of the protocol: {NO_PID.brief()}",
         sent(add_request(pid=1, pepoch=0), records.InitPidRequest("tid1", source="c1", dest="b1"))),
    Case("TypeOK", sent(init_response(records.SpecError.PRODUCER_FENCED)),
         f"no message of the protocol: {init_response(records.SpecError.PRODUCER_FENCED).brief()}",
         sent(init_response(records.SpecError.NOT_COORDINATOR), add_response(records.SpecError.PRODUCER_FENCED))),
    Case("NoBadStateResponse",
         sent(init_response(records.SpecError.OK, 1, 0), init_response(records.SpecError.ILLEGAL_STATE)),
         f"an InitPidResponse carries IllegalState: {init_response(records.SpecError.ILLEGAL_STATE).brief()}",
         sent(init_response(records.SpecError.OK, 1, 0), init_response(records.SpecError.CONCURRENT_TRANSACTIONS))),
    Case("NoBadStateResponse", sent(init_response(records.SpecError.INVALID_TRANSITION)),
         f"an InitPidResponse carries InvalidTransition: {init_response(records.SpecError.INVALID_TRANSITION).brief()}",
         sent(add_response(records.SpecError.INVALID_TRANSITION))),
    Case("ClientsHaveDifferentProducerEpochs", {"client[c1]": has_pid(1, 0), "client[c2]": has_pid(1, 0)},
         "c1 and c2 both hold producer id 1 with epoch 0", {"client[c1]": has_pid(1, 0), "client[c2]": has_pid(1, 1)}),
    Case("TCsHaveDifferentEpochs", {"tc_log_metadata[b2][p1]": records.LogMetadata(1, "b2")},
         "b1 and b2 both believe to lead p1 in epoch 1", {"tc_log_metadata[b2][p1]": records.LogMetadata(2, "b2")}),
    Case("LogsAgreeUpToHwm",
         {
             "tc_log[b1][p1]": (entry("tid1", 1), entry("tid1", 1, 1)), "tc_log_hwm[b1][p1]": 2,
             "tc_log[b2][p1]": (entry("tid1", 1), entry("tid2", 2)), "tc_log_hwm[b2][p1]": 2,
         },
         "b1 and b2 hold different entries of p1 at offset 1, below their high watermarks",
         {
             "tc_log[b1][p1]": (entry("tid1", 1), entry("tid1", 1, 1)), "tc_log_hwm[b1][p1]": 2,
             "tc_log[b2][p1]": (entry("tid1", 1), entry("tid2", 2)), "tc_log_hwm[b2][p1]": 1,
         }),
    Case("LogsAgreeUpToHwm", {"tc_log[b1][p1]": (entry("tid1", 1),), "tc_log_hwm[b1][p1]": 1, "tc_log_hwm[b2][p1]": 1},
         "b1 and b2 hold different entries of p1 at offset 0, below their high watermarks",
         {"tc_log[b1][p1]": (entry("tid1", 1),), "tc_log_hwm[b1][p1]": 1}),
    Case("FollowersHoldNoUncommitted",
         {"tc_log[b2][p1]": (entry("tid1", 1), entry("tid2", 2)), "tc_log_hwm[b2][p1]": 1},
         "b2 follows p1 but holds 1 entry above its high watermark",
         {"tc_log[b1][p1]": (entry("tid1", 1), entry("tid2", 2)), "tc_log_hwm[b1][p1]": 1}),
    Case("EffectiveHwmIsMonotonic", {"tc_log_hwm[b1][p1]": 1, "tc_log_hwm[b2][p1]": 2},
         "b1 leads p1 with high watermark 1, below b2's 2", {"tc_log_hwm[b1][p1]": 2, "tc_log_hwm[b2][p1]": 1}),
    Case("CommittedTidKnown", {"tc_log[b1][p1]": (entry("tid1", 1),), "tc_log_hwm[b1][p1]": 1},
         "b1 leads p1, whose log has tid1 with producer id 1, but has no metadata of tid1",
         {"tc_log[b1][p1]": (entry("tid1", 1),), "tc_log_hwm[b1][p1]": 1, "tc_tid_metadata[b1][tid1]": metadata(1)}),
    Case("CommittedTidKnown",
         {"tc_log[b1][p1]": (entry("tid1", 1),), "tc_log_hwm[b1][p1]": 1, "tc_tid_metadata[b1][tid1]": metadata(2)},
         "b1 leads p1, whose log has tid1 with producer id 1, but knows 2",
         {"tc_log[b1][p1]": (entry("tid1", 1),), "tc_tid_metadata[b1][tid1]": metadata(2)}),
    Case("CommittedTidKnown",
         {"tc_log[b2][p1]": (entry("tid1", 1),), "tc_log_hwm[b2][p1]": 1, "txn_log_leader[p1]": "b2"},
         "b2 leads p1, whose log has tid1 with producer id 1, but has no metadata of tid1",
         {"tc_log[b2][p1]": (entry("tid1", 1),), "tc_log_hwm[b2][p1]": 1}),
    Case("OnePidPerTid", {"tc_log[b2][p1]": (entry("tid1", 1), entry("tid2", 2), entry("tid1", 3))},
         "in b2's log of p1, tid1 has the producer ids 1 and 3",
         {"tc_log[b2][p1]": (entry("tid1", 1), entry("tid2", 2), entry("tid1", 1, 1))}),
    Case("EventuallyAllClientsGetPid", {"client[c1]": has_pid(1, 0)}, "c2 still without a producer id",
         {"client[c1]": has_pid(1, 0), "client[c2]": has_pid(1, 1)}),
    Case("EventuallyAllClientsGetPid", {}, "c1, c2 still without a producer id",
         {"client[c1]": has_pid(1, 0), "client[c2]": has_pid(1, 0)}),
    Case("EventuallyOneClientAddsAllPartitions",
         {"client[c1]": records.ClientRecord(records.ClientPhase.BEGUN_TXN, partitions=frozenset({"tp1"}))},
         "no client has added every topic partition",
         {"client[c2]": records.ClientRecord(records.ClientPhase.BEGUN_TXN, partitions=frozenset({"tp1", "tp2"}))}),
)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_property_fails_on_a_bad_state_with_a_sentence_and_holds_on_its_twin(model: Model, case: Case) -> None:
    """The state that breaks the property gives its reason, word for word; the one next to it, without its fault, none.
    """
    found = [model.why_not(model.property(case.name), View(state(model, slots))) for slots in (case.bad, case.good)]
    assert found == [case.sentence, None]


@pytest.mark.parametrize("name", INVARIANTS)
def test_invariant_holds_initially(model: Model, name: str) -> None:
    """No invariant fails before anything happened."""
    assert model.why_not(model.property(name), View(state(model, {}))) is None


def test_every_property_has_a_case(model: Model) -> None:
    """The eight invariants and both liveness predicates have cases, and the model has no property besides."""
    assert {case.name for case in CASES} == {*INVARIANTS, *LIVENESS}
    assert [prop.name for prop in model.properties] == [*INVARIANTS, *LIVENESS, *WITNESSES]


def witnessed(model: Model, name: str, slots: Slots) -> bool:
    """Say whether a witness is reached by a state, or by a step that is possible in it."""
    prop = model.property(name)
    now = state(model, slots)
    if prop.on == "state":
        return bool(prop.check(View(now)))
    return any(prop.check(View(now), choice.step) for choice in model.choices(now))


RETRYING = records.ClientRecord(
    records.ClientPhase.SENT_INIT_PID_REQUEST, tid="tid1", last_state=records.ClientPhase.READY,
    last_error=records.SpecError.NOT_COORDINATOR,
)
ADDING = attrs.evolve(
    has_pid(1, 0), state=records.ClientPhase.BEGUN_TXN, pending_partitions=frozenset({"tp1"}),
    last_error=records.SpecError.NOT_COORDINATOR,
)
PREPARED = records.TxnMetadata(1, 1, -1, TxnState.PREPARE_ABORT, frozenset({"tp1"}))
REACHED = {
    "fenced": ("ProducerFenced", {"client[c2]": attrs.evolve(ADDING, last_error=records.SpecError.PRODUCER_FENCED)}),
    "completed": ("PartialTxnCompleted", {"tc_tid_metadata[b1][tid1]": PREPARED}),
    "init-retried": (
        "NotCoordinatorRetrySucceeds", {"client[c1]": RETRYING, **sent(init_response(records.SpecError.OK, 1, 0))},
    ),
    "add-retried": ("NotCoordinatorRetrySucceeds", {"client[c1]": ADDING, **sent(add_response(records.SpecError.OK))}),
}
MISSED = {
    "other-error": ("ProducerFenced", {"client[c2]": ADDING}),
    "pending": (
        "PartialTxnCompleted", {"tc_tid_metadata[b1][tid1]": PREPARED, "tc_tid_transition[b1][tid1]": PREPARED},
    ),
    "not-leading": ("PartialTxnCompleted", {"tc_tid_metadata[b2][tid1]": PREPARED}),
    "retry-fails": (
        "NotCoordinatorRetrySucceeds",
        {"client[c1]": RETRYING, **sent(init_response(records.SpecError.CONCURRENT_TRANSACTIONS))},
    ),
    "first-try": (
        "NotCoordinatorRetrySucceeds",
        {"client[c1]": attrs.evolve(RETRYING, last_error=None), **sent(init_response(records.SpecError.OK, 1, 0))},
    ),
}


@pytest.mark.parametrize(
    ("name", "slots", "reached"),
    [pytest.param(*row, reached, id=name) for rows, reached in ((REACHED, True), (MISSED, False))
     for name, row in rows.items()],
)
def test_witness_is_reached_and_not_by_a_look_alike(model: Model, name: str, slots: Slots, reached: bool) -> None:
    """The state, or a step possible in it, is what the witness waits for; the twin that lacks one thing is none."""
    assert witnessed(model, name, slots) is reached


def test_witness_needs_an_operation_that_ends(model: Model) -> None:
    """A successful answer that ends no operation of the client does not count as a successful retry."""
    prop = model.property("NotCoordinatorRetrySucceeds")
    view = View(state(model, {"client[c1]": RETRYING}))
    answered = Step("ReceiveInitPidResponse", ("c1", "b1"), consumed=init_response(records.SpecError.OK, 1, 0))
    assert not prop.check(view, answered)


PID_REQUEST = records.InitPidRequest("tid1", source="c1", dest="b1")
PID_RESPONSE = init_response(records.SpecError.OK, 1, 0)
ADD_REQUEST = add_request(1, 0)
ADD_RESPONSE = attrs.evolve(add_response(records.SpecError.OK), partitions=frozenset({"tp1"}))
NO_REQUEST: tuple[dict[str, Value], ...] = (
    {"tid": "tid9"}, {"source": "b1"}, {"source": "c9"}, {"dest": "c1"}, {"dest": "b9"},
)
NO_RESPONSE: tuple[dict[str, Value], ...] = ({"dest": "b2"}, {"dest": "c9"}, {"source": "c2"}, {"source": "b9"})
NO_PARTITIONS: tuple[dict[str, Value], ...] = (
    {"partitions": frozenset({"tp9"})}, {"partitions": frozenset({"tp1", "tp9"})},
)
ALSO: Mapping[Message, tuple[dict[str, Value], ...]] = {
    PID_REQUEST: ({"tid": "tid2", "source": "c2", "dest": "b2"},),
    PID_RESPONSE: ({"pid": -1}, {"pepoch": -1}, {"dest": "c2", "source": "b2"}),
    ADD_REQUEST: ({"partitions": frozenset()}, {"partitions": frozenset({"tp1", "tp2"})}, {"pid": 0}),
    ADD_RESPONSE: ({"partitions": frozenset()}, {"code": records.SpecError.PRODUCER_FENCED}),
}
"""Well-typed messages, and changes after which they are that, too."""
NOT: Mapping[Message, tuple[dict[str, Value], ...]] = {
    PID_REQUEST: NO_REQUEST,
    PID_RESPONSE: (*NO_RESPONSE, {"pid": -2}, {"pepoch": -2}, {"code": records.SpecError.PRODUCER_FENCED}),
    ADD_REQUEST: (*NO_REQUEST, *NO_PARTITIONS, {"pid": -1}, {"pepoch": -1}),
    ADD_RESPONSE: (*NO_RESPONSE, *NO_PARTITIONS, {"code": records.SpecError.INVALID_TRANSITION}),
}
"""The same messages, and changes after which they are not."""
WITH_PARTITIONS = ("transactions/diary-02", "transactions/gist", "transactions/repaired")
DIARY_01 = "transactions/diary-01"
TYPED = {
    DIARY_01: (PID_REQUEST, PID_RESPONSE), **dict.fromkeys(WITH_PARTITIONS, (*ALSO,)),
}
"""The kinds of messages that each model has."""


def why_ill_typed(name: str, messages: Iterable[Message]) -> list[str | None]:
    """Return what `TypeOK` of a model with two of everything says of each message."""
    spec = find_model(name)
    sizes = {"topic-partitions": 2, "transactional-ids": 2}
    type_ok = spec.make({size: n for size, n in sizes.items() if size in spec.sizes}).property("TypeOK")
    return [type_ok.check(message) for message in messages]


@pytest.mark.parametrize("name", TYPED)
def test_type_ok_allows_what_the_message_type_has(name: str) -> None:
    """Ids, partitions, numbers and ends of messages within the constants, up to their bounds, are well typed."""
    good = [attrs.evolve(message, **more) for message in TYPED[name] for more in ({}, *ALSO[message])]
    assert why_ill_typed(name, good) == [None] * len(good)


@pytest.mark.parametrize("name", TYPED)
def test_type_ok_refuses_what_the_message_type_has_not(name: str) -> None:
    """One field outside its set, and the message is named; a kind of message that a model lacks is such, too."""
    bad = [attrs.evolve(message, **wrong) for message in TYPED[name] for wrong in NOT[message]]
    bad += ALSO.keys() - set(TYPED[name])
    assert why_ill_typed(name, bad) == [f"no message of the protocol: {message.brief()}" for message in bad]


@pytest.mark.parametrize("name", TYPED)
def test_type_ok_knows_the_codes_of_each_model(name: str) -> None:
    """An InitPidResponse may carry these codes, and no others."""
    codes = {records.SpecError.OK, records.SpecError.CONCURRENT_TRANSACTIONS}
    if name == DIARY_01:
        codes |= {records.SpecError.NOT_COORDINATOR_FOR_TRANSACTIONAL_ID, records.SpecError.ILLEGAL_STATE}
    else:
        codes |= {records.SpecError.NOT_COORDINATOR}
    reasons = why_ill_typed(name, (init_response(code) for code in records.SpecError))
    assert {code for code, reason in zip(records.SpecError, reasons, strict=True) if reason is None} == codes


@pytest.mark.parametrize(("name", "error"), RETRIES.items())
def test_diary_01_witness_needs_the_error_before_and_success_now(name: str, error: records.SpecError) -> None:
    """A client whose last answer was the error and that is answered OK now; no other past and no other answer."""
    model = find_model(DIARY_01).make({}, {"init": "choose"})
    ready = model.initial_states()[0]["client[c1]"]
    for last, code in product((None, *records.SpecError), (records.SpecError.OK, error)):
        asking = attrs.evolve(ready, state=records.ClientPhase.SENT_INIT_PID_REQUEST, tid="tid1", last_error=last)
        slots = {"client[c1]": asking, **sent(init_response(code, 1, 0))}
        assert witnessed(model, name, slots) == (last is error and code is records.SpecError.OK)
