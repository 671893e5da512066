"""Plans of faults as text: what each part means, and one sentence for what cannot be."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.scripted_client import Scripted
from support.gateway.set_clock import SetClock

from harness.model import Refusal
from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.inputs import Settings, TimedFault
from kafka_proto.gateway.plans import read_plan, scenarios, written
from kafka_proto.gateway.random_plans import draw, read_budget

BROKERS = Settings(ports=(0, 0, 0))


@pytest.mark.parametrize(("text", "plan"), [
    ("delay EndTxn nth=2 for_ms=2500", [TimedFault(0, "delay", "EndTxn", 2, for_ms=2500)]),
    ("drop Produce nth=0; lose EndTxn at_ms=70",
     [TimedFault(0, "drop", "Produce", 0), TimedFault(70, "lose", "EndTxn")]),
    ("crash b2 at_ms=5 for_ms=90\n pause b1 ;",
     [TimedFault(5, "crash", broker=2, for_ms=90), TimedFault(0, "pause", broker=1)]),
    ("partition b3; partition b1 b3",
     [TimedFault(0, "partition", broker=3), TimedFault(0, "partition", broker=1, other=3)]),
    ("elect; elect orders-1", [TimedFault(0, "elect"), TimedFault(0, "elect", partition="orders-1")]),
    ("late-end", [TimedFault(0, "delay", "EndTxn", for_ms=1375)]),
    ("hanging-transaction timeout_ms=30000", [TimedFault(0, "delay", "Produce", for_ms=75_000)]),
    ("record-sent-again", [TimedFault(0, "delay", "Produce", 2, for_ms=2500)]),
])
def test_a_plan_is_the_faults_that_it_says(text: str, plan: list[TimedFault]) -> None:
    """Verbs with their numbers, and scenarios whose times follow the client's; written again, it is the same plan."""
    assert read_plan(text, 1, BROKERS) == plan
    assert read_plan("\n".join(map(written, plan)), 1, BROKERS) == plan


def test_chance_is_a_function_of_the_seed() -> None:
    """By chance alone it is what was drawn ever; parts beside each other are drawn apart; lost answers are answers."""
    alone = draw(read_budget("delay=2,crash=1"), 3, 3)
    assert [timed.kind for timed in alone] == ["delay", "delay", "crash"]
    assert read_plan("delay=2,crash=1", 3, BROKERS) == alone != read_plan("delay=2,crash=1", 4, BROKERS)
    twice = read_plan("delay=2,crash=1;delay=2,crash=1", 3, BROKERS)
    assert twice[:3] == alone != twice[3:]
    assert [timed.kind for timed in read_plan("exactly-once-lost-answers", 3, BROKERS)] == ["drop", "drop", "lose"]
    assert [timed.kind for timed in read_plan("leaders-move", 3, BROKERS)] == ["elect"] * 6


def test_scenarios_are_taken_or_refused_with_the_reason() -> None:
    """Each scenario of transactions is a plan, or says what a real connection does not have; most are plans."""
    reasons = ("has no faults", "which connections over TCP do not have", "is between brokers",
               "cannot be had with real connections", "cannot be had from outside")
    taken = 0
    for scenario in scenarios():
        try:
            taken += bool(read_plan(scenario.name, 1, BROKERS))
        except Refusal as refused:
            assert str(refused).startswith(f"--faults {scenario.name!r}: ") and any(
                reason in str(refused) for reason in reasons), refused
    assert taken > 30


@pytest.mark.parametrize(("text", "said"), [
    ("delay EndTxm", "clients send no request 'EndTxm'; did you mean EndTxn?"),
    *((bad, "is not FAULT=COUNT, such as delay=2") for bad in ("delay", "delay=0", "dealy=1", "crash=x")),
    ("delay EndTxn Produce", "delay takes the name of one request, as delay EndTxn"),
    ("drop EndTxn for_ms=5", "for_ms means nothing for drop; it takes nth, at_ms"),
    ("delay EndTxn for_ms=1s", "for_ms must be a number from 0 to 86400000, not '1s'"),
    ("delay EndTxn for=1", "'for' is not a number of a fault; did you mean for_ms?"),
    ("crash b4", "there is no broker 'b4'; there are b1, b2, b3"),
    ("crash b1 b2", "crash takes one broker, as crash b1"),
    ("partition b1 b1", "partition takes one broker, as partition b1, or two that are to be cut off from each other"),
    ("elect orders", "elect takes one partition, as elect orders-0, or none for all of them"),
    ("late-ned", "'late-ned' is neither a fault nor a scenario; did you mean late-end?"),
    ("late-marker", "WriteTxnMarkersRequest is between brokers, where no single message can be hit"),
    ("happy-path", "this scenario has no faults"),
    (" ; ", "--faults has no fault"),
])
def test_what_cannot_be_is_refused_in_one_sentence(text: str, said: str) -> None:
    """Each with the part that is wrong, and what there is instead."""
    with pytest.raises(Refusal, match=re.escape(said)) as refused:
        read_plan(text, 1, BROKERS)
    assert "\n" not in str(refused.value)


def test_the_fixture_takes_a_scenario_by_its_name(clock: SetClock) -> None:
    """The end that `late-end` delays comes after its client gave up, in a cluster of tests as in the command."""
    with KafkaCluster({"t": 1}, faults="late-end timeout_ms=300; elect at_ms=0") as cluster:
        with Scripted(cluster.bootstrap_servers) as producer:
            assert (producer.init(), producer.write(0, b"a")) == (0, 0)
            producer.end_and_give_up(True)
            clock.pass_ms(300)
            assert (producer.state(), producer.read(0)) == ("Ongoing", [])
            clock.pass_ms(300)
            producer.until("CompleteCommit")
            assert producer.read(0) == [b"a"]
        with pytest.raises(ValueError, match="clients send no request 'EndTxm'; did you mean EndTxn"):
            cluster.delay("EndTxm")
    assert cluster.verdict() is None
