"""A schedule for the world outside: what a found trail asks of clients and the proxy, and what it may not."""

from __future__ import annotations

import pytest
from support.paths import DATA

from harness.record import Recorder, read_trail
from harness.simulate.trails.replay import replay_plain
from kafka_proto.broker.messages import Request
from kafka_proto.reproduce.schedule import (
    Arrives,
    Comes,
    Late,
    RunStep,
    Schedule,
    ScheduledCall,
    Settled,
    Unplayable,
    schedule_of,
)
from kafka_proto.requests import EndTxnRequest, ProduceRequest


def schedule(name: str) -> Schedule:
    """Return the schedule of a committed trail."""
    run = replay_plain(read_trail(DATA / "reproduce" / f"{name}.trail.jsonl"), Recorder(keep=False))
    assert not run.verdict.ok
    return schedule_of([RunStep(choice.label, choice.subject, choice.sent) for choice in run.trail.choices])


def names(found: Schedule) -> list[str]:
    """Return the events of a schedule, a word or two for each."""
    return [str(event) if isinstance(event, ScheduledCall) else
            f"{type(event).__name__} {event.producer if isinstance(event, Settled) else event.late.api}"
            for event in found.events]


def request(transaction: int = 1, correlation: int = 1, source: str = "c1", produces: bool = False) -> Request:
    """Return a request as a producer sends it."""
    end = EndTxnRequest(version=3, transactional_id="tid1", producer_id=0, producer_epoch=0, committed=True)
    produce = ProduceRequest(version=9, transactional_id="tid1", acks=-1, partition="T-0", batch=None)  # type: ignore[arg-type]
    return Request(produce if produces else end, correlation, transaction=f"{source}.{transaction}", source=source,
                   dest="b1")


def test_an_end_that_comes_late_is_the_first_of_its_abort() -> None:
    """Of KAFKA-17754 the proxy knows one thing: the first EndTxn of the first abort comes after the next write."""
    found = schedule("late-end")
    assert found.lates == (Late("c1", "EndTxn", 3, 1),) and found.gives_up == {"RequestTimeout"}
    assert (found.tids, found.partitions) == ((("c1", "tid1"),), ("T-0",))
    assert names(found) == [
        "InitTransactions(c1)", "Settled c1", "BeginTransaction(c1)", "Send(c1, T-0)", "Settled c1",
        "AbortTransaction(c1)", "Comes EndTxn", "Settled c1", "BeginTransaction(c1)", "Send(c1, T-0)", "Settled c1",
        "Arrives EndTxn",
    ]
    calls = [event for event in found.events if isinstance(event, ScheduledCall)]
    assert [call.record for call in calls if call.record] == ["c1.1#1", "c1.2#1"]


def test_a_batch_that_comes_late_is_not_awaited_before_the_abort() -> None:
    """Of KAFKA-14402 it is the batch that comes when its transaction is over; nobody waits for its answer."""
    found = schedule("hanging-transaction")
    assert [late.api for late in found.lates] == ["Produce"] and "DeliveryTimeout" in found.gives_up
    after = names(found)[names(found).index("Send(c1, T-0)"):]
    assert after == ["Send(c1, T-0)", "Comes Produce", "AbortTransaction(c1)", "Settled c1", "Arrives Produce"]


BEGUN = [RunStep("InitTransactions(c1)"), RunStep("BeginTransaction(c1)")]
SENT = [*BEGUN, RunStep("Send(c1,T-0)")]


def test_a_retry_is_the_second_of_its_call_and_a_loss_never_arrives() -> None:
    """The same request sent twice is told apart by its number; one that is dropped is lost where it is sent."""
    first, again, batch = request(correlation=2), request(correlation=3), request(produces=True)
    found = schedule_of([
        *BEGUN, RunStep("Send(c1,T-0)", sent=(batch,)), RunStep("CommitTransaction(c1)", sent=(first,)),
        RunStep("Drop EndTxnRequest", first), RunStep("RequestTimeout(c1,b1)", sent=(again,)),
        RunStep("InitTransactions(c2)"), RunStep("ReceiveEndTxnRequest(b1,c1)", again),
    ])
    assert found.lates == (Late("c1", "EndTxn", 3, 1, is_lost=True), Late("c1", "EndTxn", 3, 2))
    assert [event for event in found.events if isinstance(event, Comes | Arrives)] == [
        Comes(found.lates[0]), Comes(found.lates[1]), Arrives(found.lates[1])]


def test_a_request_that_is_only_slow_is_not_held_back() -> None:
    """The order of one connection is kept by TCP: without a time-out or somebody else's call nothing has to be late."""
    batch, end = request(produces=True), request(correlation=2)
    found = schedule_of([*BEGUN, RunStep("Send(c1,T-0)", sent=(batch,)), RunStep("CommitTransaction(c1)", sent=(end,)),
                         RunStep("ReceiveProduceRequest(b1,c1)", batch), RunStep("ReceiveEndTxnRequest(b1,c1)", end)])
    assert found.lates == () and found.gives_up == frozenset()


@pytest.mark.parametrize(("steps", "reason"), [
    ([*SENT, RunStep("Crash(b1)")], "step 4 is Crash(b1); only calls of producers, and delays and losses"),
    ([*SENT, RunStep("Drop WriteTxnMarkersRequest")], "step 4 is a loss of what brokers send"),
    ([*SENT, RunStep("SendOffsetsToTransaction(c1)")], "step 4 is SendOffsetsToTransaction(c1)"),
    (BEGUN, "it writes nothing"),
], ids=["crash", "broker's message", "offsets", "nothing written"])
def test_what_cannot_be_played_is_refused(steps: list[RunStep], reason: str) -> None:
    """A fault that nobody can inject from outside is refused with its step; so is a run that writes nothing."""
    with pytest.raises(Unplayable, match="^" + reason.replace("(", r"\(").replace(")", r"\)")):
        schedule_of(steps)
