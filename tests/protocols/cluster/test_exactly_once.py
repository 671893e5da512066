"""Whole transactions as actors: silent where they should be, flawed where they must be, and what a consumer gets."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from support.commands.command_line import call
from support.runs.made_runs import first_bad, scenario_runs, states_of

from harness.model import Faults, Refusal, Scenario, View, find_model, find_scenario, model_of
from harness.model.faults import FAULT_KINDS
from harness.simulate.runs.plan import everything
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from kafka_proto.broker.logs.replicated import REPLICA
from kafka_proto.broker.parts import LEADER
from kafka_proto.clients.consumer import ReaderState
from kafka_proto.cluster.logs import log_of_replica
from kafka_proto.cluster.scenarios import FAILING, MOVING, SCENARIOS, TWINS

OLDER = ("0.11", "2.3", "3.5", "3.6", "3.7", "3.8", "3.9")
AT_LEVEL_1 = {"transaction-version": "1", "client": "java39"}
STRATEGIES = ("random", "pct")
COMMITS = next(row for row in SCENARIOS if row.name == "exactly-once-commits")
SILENT = [row for row in SCENARIOS if row.expected is None]
PLAIN = [row for row in SILENT if row not in TWINS]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scenario", SILENT, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("runs", [0, pytest.param(500, marks=pytest.mark.large)], ids=("few", "many"))
def test_scenario_is_silent(scenario: Scenario, strategy: str, runs: int) -> None:
    """Whatever a scenario lets happen, what it claims holds in every run, the fair ending included."""
    for run in scenario_runs(scenario, strategy, runs or (3 if scenario in MOVING else 8)):
        assert run.verdict.ok, (scenario.name, strategy, run.trail.seed, run.verdict)


@pytest.mark.parametrize("scenario", PLAIN, ids=lambda scenario: scenario.name)
def test_witnesses_of_a_scenario_are_reached(scenario: Scenario) -> None:
    """What is worth reaching is reached in few runs."""
    missing = set(scenario.witnesses)
    for run in scenario_runs(scenario, "random", 40):
        missing -= run.witnessed
        if not missing:
            return
    pytest.fail(f"{scenario.name} did not reach {', '.join(sorted(missing))}")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scenario", FAILING, ids=lambda scenario: scenario.name)
def test_published_bug_is_found_by_each_strategy(scenario: Scenario, strategy: str) -> None:
    """From nothing but the version, the sizes and one late message."""
    found = [run for run in scenario_runs(scenario, strategy, 150) if not run.verdict.ok]
    assert found
    assert {run.verdict.violated for run in found} <= set(scenario.claims)


@pytest.mark.parametrize(("release", "settings", "sizes"), [
    *((release, {"client": client}, {}) for release in ("2.3", "3.5", "3.9", "4.0")
      for client in find_model(f"kafka/{release}").settings["client"].values),
    *((release, {}, {"offsets": 1}) for release in OLDER),
    *((release, at, {"offsets": 1}) for release in ("4.0", "4.1", "4.2", "4.3", "4.4") for at in ({}, AT_LEVEL_1)),
])
def test_each_client_gets_through_with_each_release_of_brokers(
    release: str, settings: dict[str, str], sizes: dict[str, int]
) -> None:
    """Where nothing goes wrong every claim holds, whoever speaks to whom, and of the runs some commit and some abort.

    So it is with every release and level, and offsets in the transactions.
    """
    plain = attrs.evolve(COMMITS, model=f"kafka/{release}", settings=settings, sizes={**COMMITS.sizes, **sizes})
    ends = set[str]()
    for run in scenario_runs(plain, "random", 8):
        assert run.verdict.ok, (plain.model, settings, run.trail.seed, run.verdict)
        ends |= run.witnessed
    assert {"TransactionCommitted", "TransactionAborted"} <= ends


@pytest.mark.parametrize(("release", "sizes", "settings", "said"), [
    ("4.4", {}, {"transaction-version": "1"}, "client=tv2 speaks to transaction-version=2; ask for java39, "),
    ("4.0", {"elections": 1}, {"disk": "lost"},
     "disk, elections: only replicated logs have that; set log=replicated too"),
    ("4.0", {"producers": 0}, {}, "nobody writes"),
    ("4.0", {"deletions": 1, "consumers": 1}, {}, "do not look up a log's start"),
    ("4.0", {"deletions": 1}, {"log": "replicated"}, "deletions: replicated logs do not have that"),
])
def test_what_makes_no_sense_is_refused(
    release: str, sizes: dict[str, int], settings: dict[str, str], said: str
) -> None:
    """In a sentence."""
    with pytest.raises(Refusal, match=said):
        find_model(f"kafka/{release}").make(sizes, settings)


@pytest.mark.parametrize(("release", "violated"), [("3.6", "NoHangingTransaction"), ("3.7", "MarkerAttribution")])
def test_late_offsets_open_a_transaction_that_nobody_ends_in_3_6(release: str, violated: str, tmp_path: Path) -> None:
    """3.6 verifies no offsets: they come late, after the end. Where 3.7 verifies them, TX-01 is what is left."""
    sizes = [f"--size={name}=1" for name in ("brokers", "partitions", "records", "offsets")]
    done = call("check", f"kafka/{release}", *sizes, "--timers", "1", "--json", "--out", tmp_path)
    assert [found["property"] for found in done.json["violated"]] == [violated]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_consumer_gets_what_its_isolation_level_lets_it_see(isolation: str) -> None:
    """Of an aborted transaction nothing, or all of it."""
    scenario = attrs.evolve(COMMITS, settings={"isolation": isolation})
    seen, skipped = 0, False
    for run in scenario_runs(scenario, "random", 12):
        skipped |= "AbortedRecordSkipped" in run.witnessed
        *_, last = states_of(model_of(scenario), run)
        reader: ReaderState = last["r1"]
        seen += sum(len(texts) for texts in reader.seen.values())
    assert seen
    assert skipped is (isolation == "read_committed")


def test_epochs_run_out_on_replicated_logs() -> None:
    """What used them up is committed at the start, and read by whoever is elected: 4.4 goes on with another id."""
    sizes = {**COMMITS.sizes, "partitions": 1, "records": 1, "epochs": 1, "elections": 1}
    scenario = attrs.evolve(COMMITS, model="kafka/4.4", sizes=sizes, settings={"log": "replicated"}, steps=200)
    runs = list(scenario_runs(scenario, "random", 6))
    assert all(run.verdict.ok for run in runs) and any("EpochsRanOut" in run.witnessed for run in runs)


def test_a_replica_that_lost_its_tail_does_not_speak_for_its_log() -> None:
    """Elected and crashed, it leads no more before it has registered, and then another does: nothing is lost."""
    (scenario,) = (row for row in MOVING if row.name == "leaders-lose-their-tail")
    assert first_bad(scenario_runs(scenario, "random", 1, 69)) is None


def test_what_was_acknowledged_is_lost_where_a_lost_disk_may_lead() -> None:
    """Without eligible leader replicas (KIP-966) brokers that come back with empty disks are elected."""
    (scenario,) = (row for row in MOVING if row.name == "leaders-lose-their-disk")
    crashes = Faults(crash=3, targets=("b1", "b2", "b3"))
    flawed = attrs.evolve(scenario, settings={**scenario.settings, "election": "clean"}, faults=crashes)
    assert any(run.verdict.violated == "AcknowledgedOnce" for run in scenario_runs(flawed, "random", 30))


def test_a_leader_knows_of_its_log_what_its_records_say() -> None:
    """Producers, open transactions and high watermark are those that the replica's log makes, whoever led before."""
    scenario, later = MOVING[0], 0
    model = model_of(scenario)
    for run in scenario_runs(scenario, "random", 2):
        for view in map(View, states_of(model, run)):
            for b in ("b1", "b2"):
                for p in ("T-0", "T-1"):
                    mine, replica = LEADER[p].of(view, b), REPLICA[p].of(view, b)
                    if mine.serves:
                        assert mine.log == log_of_replica(replica)
                        later += replica.leader_epoch > 0 and any(entry.epoch == 0 for entry in replica.log)
    assert later


def test_scenarios_are_registered() -> None:
    """By the system that the command line knows."""
    for row in SCENARIOS:
        assert find_scenario(row.name) is row


@pytest.mark.parametrize("seed", [15, 18])
def test_a_producer_that_failed_for_good_takes_the_answers_that_are_still_under_way(seed: int) -> None:
    """Its epochs ran out, a batch was refused for its producer id, and its offsets are answered after that."""
    sizes = {"producers": 2, "consumers": 0, "offsets": 1, "epochs": 2}
    settings = {"log": "later", "timeouts": "request,delivery,transaction"}
    faults = Faults(**{**dict.fromkeys(FAULT_KINDS, 1), "crash": 2}, targets=("b1", "b2", "c1"))
    model = find_model("kafka/4.0").make(sizes, settings, network="connections", faults=faults)
    plan = attrs.evolve(everything(model), steps=300)
    run = run_plain(Tables(model), plan, RandomStrategy(seed))
    assert run.verdict.ok, run.verdict
    assert any("TxnOffsetCommitRequest" in label for label in map(str, run.trail.choices))
