"""What a search finds of each rule for librdkafka: the figures of `docs/models/librdkafka-5423.md`."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from support.commands.command_line import call

ROW, OFFSETS = "late-end-rdkafka-repaired", "late-offsets-rdkafka-repaired"
ONCE, TWICE = "1,b1.RequestTimeout=0", "2,b1.RequestTimeout=0"
"""Clients time out, brokers do not send markers again."""
DELAYS = "none,delay=2"
P1, P2, P3 = "MarkerAttribution", "Atomicity", "AcknowledgedOutcome"


@attrs.frozen
class RuleSearch:
    """A search of a client: the fewest steps to each violation, or all states without one."""

    client: str
    timers: str
    found: dict[str, int] | int
    row: str = ROW
    faults: str = "none"
    is_large: bool = False
    more: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.client, self.timers, self.row, self.faults, *self.more))


RULES = (
    RuleSearch("rdkafka", ONCE, {P1: 22}),
    RuleSearch("rdkafka", "1", {P1: 21}),
    RuleSearch("rdkafka-end", ONCE, 5_154),
    RuleSearch("rdkafka-end", TWICE, {P1: 24}),
    RuleSearch("rdkafka-end", "1", {P1: 21}),
    RuleSearch("rdkafka-end", ONCE, {P1: 27, P2: 27, P3: 27}, OFFSETS, is_large=True),
    RuleSearch("rdkafka-end", ONCE, 98_718, more=("--size=producers=2", "--size=transactions=1")),
    RuleSearch("rdkafka-all", TWICE, 49_747),
    RuleSearch("rdkafka-all", ONCE, 243_327, OFFSETS, is_large=True),
    RuleSearch("rdkafka-all", "1", {P1: 21}),
    RuleSearch("rdkafka-bump", TWICE, 121_784),
    RuleSearch("rdkafka-bump", ONCE, 426_289, OFFSETS, is_large=True),
    RuleSearch("rdkafka-bump", "1", {P1: 21}),
    RuleSearch("rdkafka-each", "2", 289_823, is_large=True),
    RuleSearch("rdkafka-all", TWICE, 550_932, faults=DELAYS, is_large=True),
    RuleSearch("rdkafka-bump", TWICE, 1_382_126, faults=DELAYS, is_large=True),
    RuleSearch("rdkafka-each", "2", 3_436_737, faults=DELAYS, is_large=True),
    RuleSearch("rdkafka-each", "1", 809_597, OFFSETS, is_large=True),
)


@pytest.mark.parametrize("rule", [
    pytest.param(rule, id=str(rule), marks=pytest.mark.large if rule.is_large else ()) for rule in RULES])
def test_rule_closes_what_the_page_says(rule: RuleSearch, tmp_path: Path) -> None:
    """One producer, broker, partition and record, two transactions; complete where nothing is found."""
    done = call("check", rule.row, "--set", f"client={rule.client}", "--timers", rule.timers, "--faults", rule.faults,
                *rule.more, "--states", "5000000", "--memory", "4", "--out", tmp_path, "--json")
    found = done.json
    if isinstance(rule.found, int):
        assert (done.code, found["verdict"], found["complete"], found["distinct"]) == (0, "ok", True, rule.found)
    else:
        assert done.code == 1
        assert {one["property"]: one["length"] - 1 for one in found["violated"]} == rule.found


@pytest.mark.parametrize(("client", "in_doubt", "needlessly"), [("rdkafka-end", 9, 15), ("rdkafka-all", 6, 13)])
def test_one_time_out_costs_a_producer(client: str, in_doubt: int, needlessly: int, tmp_path: Path) -> None:
    """Also where its request has arrived, twice if at all, and nothing is under way."""
    for expression, steps in (("not c1.producer.is_in_doubt", in_doubt),
                              ("messages or not (c1.producer.is_in_doubt and c1.producer.status == 'READY')",
                               needlessly)):
        done = call("check", ROW, "--set", f"client={client}", "--timers", ONCE, "--faults", "none", "--invariant",
                    expression, "--out", tmp_path, "--json")
        (violated,) = done.json["violated"]
        assert violated["length"] - 1 == steps


@pytest.mark.parametrize(("client", "steps"), [("rdkafka-bump", None), ("rdkafka-each", 35)])
def test_a_late_init_producer_id_may_cost_a_producer(client: str, steps: int | None, tmp_path: Path) -> None:
    """After two time-outs: an EndTxn that was carried out is asked again, and is INVALID_TXN_STATE by then."""
    wrong_state = 'c1.producer.last_error == "INVALID_TXN_STATE" and len(c1.acknowledged) == 2'
    done = call("check", ROW, "--set", f"client={client}", "--timers", TWICE, "--faults", "none", "--invariant",
                f"not ({wrong_state})", "--out", tmp_path, "--json")
    assert [one["length"] - 1 for one in done.json["violated"]] == ([] if steps is None else [steps])


@pytest.mark.parametrize("client", ["rdkafka", "rdkafka-bump"])
def test_an_abort_of_librdkafka_after_a_time_out_may_be_refused_for_good(client: str, tmp_path: Path) -> None:
    """Its EndTxn comes before the partitions are added; other clients ask for these again first."""
    options = ("--size=brokers=1", "--size=partitions=1", "--size=records=1", "--timers", ONCE, "--out", tmp_path)
    done = call("check", "kafka/4.4", "--set", f"client={client}", *options, "--json")
    (violated,) = done.json["violated"]
    assert (violated["property"], violated["length"] - 1) == ("FencedForAReason", 9)
    done = call("check", "kafka/4.4", "--set", "client=java35", *options, "--invariant", "MarkerAttribution", "--json")
    assert done.json["violated"][0]["length"] - 1 == 22
