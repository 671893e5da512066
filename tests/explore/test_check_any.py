"""`kafka-proto check` on any model: other packages' protocols, actors, scenarios, with faults, timers and limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.commands.command_line import call
from support.searches import plain_search
from support.searches.engines import safety
from support.toys import own_protocols

from harness.cli import check_limits
from harness.explore import any_model
from harness.explore.any_model import PlainSearch
from harness.explore.bounded import ALL, bounded
from harness.explore.packed.search import Search
from harness.model import Faults, Model, find_model
from harness.record import Recorder, read_trail
from harness.simulate.runtimes.trio_runtime import replay_on_trio
from harness.simulate.trails.replay import replay_plain

ACTORS = ("check", "replication/kip-320/actors")
GROWS = ("check", "compaction/pulsar/actors")
"""A model in which a reader connects for ever, each time with another number."""
CHECK = ("check", "transactions/gist")
SMALL = ("--size", "elections=0")


@pytest.fixture
def own() -> Iterator[None]:
    """The protocols of other packages are found as if they were installed."""
    with own_protocols.found():
        yield


def searched(*arguments: object, code: int = 0) -> dict[str, Any]:
    """Return what a check tells, which ends with a code."""
    done = call("check", *arguments, "--json")
    assert done.code == code, done.err
    return done.json


def assert_equals_plain(reported: dict[str, Any], model: Model, names: tuple[str, ...] = ()) -> None:
    """Assert that a complete search has the counts of the plain one, and its witnesses."""
    found = plain_search.search(model, names)
    assert found.violated is None
    assert [reported[name] for name in ("verdict", "complete", "limit")] == ["ok", True, None]
    assert reported["engine"] in ("kernel", "python")
    counts = ("initial", "distinct", "generated", "depth")
    assert [reported[name] for name in counts] == [getattr(found, name) for name in counts]
    assert {name for name, entry in reported["witnesses"].items() if entry is not None} == found.witnessed


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("network", ["bag", "fifo"])
@pytest.mark.parametrize(
    "faults", [{}, {"duplicate": 1}, {"drop": 1, "delay": 1}, {"partition": 1, "pause": 1}], ids=str
)
def test_check_of_the_lock_service_equals_the_plain_search(
    faults: dict[str, int], network: str, tmp_path: Path
) -> None:
    """Somebody else's protocol goes through with faults on the command line; the counts are the plain search's."""
    given = ["--faults", ",".join(f"{kind}={number}" for kind, number in faults.items())] if faults else []
    reported = searched("lock-service", "--size", "leases=1", "--network", network, *given, "--out", tmp_path)
    targets = ("server", "c1", "c2") if "pause" in faults else ()
    model = find_model("lock-service").make({"leases": 1}, {}, network, Faults(**faults, targets=targets))  # type: ignore[arg-type]
    assert_equals_plain(reported, model, ("MutualExclusion",))


@pytest.mark.usefixtures("own")
def test_check_of_a_scenario_of_the_lock_service_writes_a_shortest_trail(tmp_path: Path) -> None:
    """A scenario brings its settings and faults; the trail replays on both runtimes, and 13 steps are the fewest."""
    smaller = ("--size", "clients=2", "--faults", "duplicate=1,delay=0")
    reported = searched("double-release", *smaller, "--out", tmp_path, code=1)
    (violated,) = reported["violated"]
    assert (reported["scenario"], reported["expected"], reported["faults"]) == (
        "double-release", "MutualExclusion", {"duplicate": 1}
    )
    assert (violated["property"], violated["length"]) == ("MutualExclusion", 14)
    trail = read_trail(Path(violated["trail"]))
    runs = [replay_plain(trail, Recorder()), replay_on_trio(trail, Recorder())]
    assert [(run.verdict.violated, run.verdict.step) for run in runs] == [("MutualExclusion", 13)] * 2
    assert runs[0].digest == runs[1].digest
    assert call("replay", violated["trail"]).code == 1


@pytest.mark.usefixtures("own")
def test_check_of_a_package_of_two_files(tmp_path: Path) -> None:
    """Two-phase commit is endless with timers, finite with a bound on them, and violated where it is hasty."""
    reported = searched("two-phase", "--timers", "1", "--faults", "drop=1", "--out", tmp_path)
    model = find_model("two-phase").make({}, {}, None, Faults(drop=1))
    assert_equals_plain(reported, bounded(model, {ALL: 1}), ("Atomicity",))
    assert reported["timers"] == {ALL: 1}
    by_name = searched("two-phase", "--timers", "VoteTimeout=1", "--faults", "drop=1", "--out", tmp_path)
    assert (by_name["distinct"], by_name["timers"]) == (reported["distinct"], {"VoteTimeout": 1})
    repaired = searched("first-yes-repaired", "--out", tmp_path)
    assert (repaired["distinct"], repaired["unchecked"]) == (reported["distinct"], ["EveryoneEnds"])
    (violated,) = searched("first-yes", "--out", tmp_path, code=1)["violated"]
    assert (violated["property"], violated["length"]) == ("Atomicity", 6)
    assert replay_plain(read_trail(Path(violated["trail"])), Recorder()).verdict.violated == "Atomicity"


@pytest.mark.usefixtures("own")
def test_check_of_an_endless_model_says_what_keeps_growing(tmp_path: Path) -> None:
    """The field, what it reached, the action, and the timers that could be bounded, as text and as JSON; code 2."""
    command = ("check", "two-phase", "--states", "3000", "--out", tmp_path)
    done = call(*command)
    assert done.refusal.startswith("the search stopped at its limit of 3,000 states, incomplete; give more")
    assert "stopped at the limit of 3,000 states" in done.out
    assert ", by VoteTimeout\n" in done.out.partition("  coordinator.asked: ")[2]
    assert "timers that keep firing: VoteTimeout; --timers limits them" in done.out
    reported = call(*command, "--json").json
    assert [reported[name] for name in ("verdict", "complete")] == ["limited", False]
    assert reported["limit"] == {"name": "states", "value": 3000}
    (part,) = reported["growing"]
    assert part.pop("reached") > 500
    assert part.pop("sort") is None
    assert part == {"slot": "coordinator", "path": "coordinator.asked", "what": "value", "by": ["VoteTimeout"]}
    assert reported["growing_timers"] == ["VoteTimeout"]


@pytest.mark.parametrize(("given", "faults", "timers"), [
    (("--faults", "drop=1", "--timers", "0"), Faults(drop=1), {ALL: 0}),
    (("--timers", "0", "--timers", "RequestTimeout=1"), Faults(), {ALL: 0, "RequestTimeout": 1}),
    (("--timers", "1,r1.RequestTimeout=0"), Faults(), {ALL: 1, "r1.RequestTimeout": 0}),
])
def test_check_of_actors_equals_the_plain_search(
    given: tuple[str, ...], faults: Faults, timers: dict[str, int], tmp_path: Path
) -> None:
    """Actors, with a loss, or with bounds of each kind on timers: the counts are the reference semantics' own."""
    reported = searched(ACTORS[1], *SMALL, *given, "--no-stop", "--out", tmp_path)
    model = find_model(ACTORS[1]).make({"elections": 0}, {}, None, faults)
    assert_equals_plain(reported, bounded(model, timers))


def test_an_actor_with_a_bound_of_its_own_is_like_no_other() -> None:
    """Actors are no longer interchangeable where one of them has its own bound on timers."""
    one, both = (["check", *ACTORS[1:], *SMALL, "--timers", timers, "--json"]
                 for timers in ("1,r1.RequestTimeout=0", "1,RequestTimeout=0"))
    distinct, merged = ([call(*command, *given).json["distinct"] for given in ((), ("--symmetry",))]
                        for command in (one, both))
    assert distinct[0] == distinct[1] > merged[0] > merged[1]


def test_check_of_a_published_bug_finds_its_fewest_steps(tmp_path: Path) -> None:
    """A scenario's name is enough: RP-01 loses a record after 12 steps, which no run does in fewer."""
    reported = searched("rp-01-truncate-to-high-watermark", "--out", tmp_path, code=1)
    (violated,) = reported["violated"]
    assert (violated["property"], violated["length"], reported["expected"]) == ("StrongIsr", 13, "StrongIsr")
    assert replay_plain(read_trail(Path(violated["trail"])), Recorder()).verdict.step == 12


def test_check_of_a_scenario_of_a_spec_takes_the_packed_search(tmp_path: Path) -> None:
    """Where the model of a scenario is a spec composition, nothing changes but the name."""
    done = call("check", "s4-copied-tail", "--out", tmp_path)
    assert done.out.startswith("s4-copied-tail: LogsAgreeUpToHwm is violated after 8 steps, the fewest possible, as")
    reported = searched("s4-copied-tail", "--out", tmp_path, code=1)
    assert reported["engine"] in ("kernel", "python")


def test_check_names_the_bound_that_ends_a_search_of_actors(tmp_path: Path) -> None:
    """What was searched is reported, then the bound, with code 2."""
    command = (*GROWS, "--faults", "drop=1", "--states", "2000", "--out", tmp_path)
    done = call(*command)
    assert done.refusal.startswith("the search stopped at its limit of 2,000 states")
    assert "searched in part, no violation so far in 2,735 distinct" in done.out
    assert "\n  with drop=1, any number of timers\n" in done.out
    shown = "the state space does not become finite: a walk of 1,000 steps shows that these keep growing:"
    assert f"{shown}\n    r1.asked: " in done.out
    reported = call(*command, "--json").json
    assert (reported["limit"]["name"], reported["faults"]) == ("states", {"drop": 1})
    assert reported["growing_timers"] == ["ReadTimeout"]
    for bound in (("--timers", "0"), ("--timers", "2", "--faults", "drop=1")):
        finite = call(*GROWS, *bound, "--states", "100", "--out", tmp_path)
        assert "nothing keeps growing in walks of 1,000 steps: the state space may be finite, but larger" in finite.out


def test_check_of_actors_ends_at_its_limit_of_memory(tmp_path: Path) -> None:
    """What states and tables take is estimated, and the limit named."""
    done = call(*ACTORS, "--memory", "0.001", "--json", "--out", tmp_path)
    assert done.refusal.startswith("the search needs more than 0.001 GB of memory after")
    assert done.json["limit"] == {"name": "memory", "value": 0.001}


@pytest.mark.parametrize("reduce", ["none", "symmetry,order"])
def test_check_of_actors_keeps_what_was_found_when_interrupted(
    reduce: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends the search after the states at hand, with the counts so far and what keeps growing."""
    looked = check_limits.Watch.progress

    def pressed(self: check_limits.Watch, distinct: int, *rest: int) -> None:
        looked(self, distinct, *rest)
        if distinct > 1000:
            self._search.wants_stop = True

    monkeypatch.setattr(check_limits.Watch, "progress", pressed)
    done = call(*GROWS, "--reduce", reduce, "--json", "--out", tmp_path)
    assert (done.code, done.json["verdict"], done.json["complete"]) == (130, "interrupted", False)
    assert 1000 < done.json["distinct"] < 20_000
    assert [part["path"] for part in done.json["growing"]] == ["r1.asked", "r1.requests"]


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize(("name", "sizes"), [
    ("transactions/gist", {}), ("transactions/diary-01", {"clients": 3, "brokers": 1, "transactional-ids": 2}),
    ("replication/async-isr", {}), ("replication/kip-279", {}), ("compaction/pulsar", {"messages": 2, "keys": 1}),
])
def test_plain_engine_equals_the_others(name: str, sizes: dict[str, int], stop: bool) -> None:
    """Counts, actions, violations with their trails, deadlocks and witnesses are those of the packed search."""
    model = find_model(name).make(sizes, history_variables=True)
    names = safety(model)
    given: dict[str, Any] = {"stop": stop, "deadlock": True, "witnesses": True}
    packed = Search(model, names, engine="python", **given).run()
    found = PlainSearch(model, names, **given).run()
    assert attrs.evolve(found, bits=packed.bits, engine=packed.engine) == packed


def test_bound_on_timers_is_no_deadlock(tmp_path: Path) -> None:
    """A state in which nothing but a timer that is used up could go on is no deadlock."""
    small = [f"--size={size}=1" for size in ("brokers", "partitions", "records", "transactions")]
    ends = ("--timers", "0", "--faults", "drop=1", "--deadlock", "--no-stop")
    reported = searched("kafka/4.0", *small, *ends, "--out", tmp_path, code=1)
    (violated,) = reported["violated"]
    last = read_trail(Path(violated["trail"]))
    assert violated["kind"] == "deadlock"
    assert replay_plain(last, Recorder()).verdict.violated == "Deadlock"


def test_check_reduces_numbers_and_names_of_actors(tmp_path: Path) -> None:
    """Numbers that are only compared, and replicas that are interchangeable; where they would help, that is said."""
    at = ("--timers", "0", "--out", tmp_path)
    reported = [searched(ACTORS[1], *at, "--reduce", chosen) for chosen in ("numbers", "numbers,symmetry", "all")]
    assert [each["distinct"] for each in reported] == [7_471, 3_738, 3_738]
    assert [each["reductions"] for each in reported] == [["numbers"], *[["numbers", "symmetry"]] * 2]
    assert {name for name, entry in reported[0]["witnesses"].items() if entry} == {
        "HighWatermarkRises", "LeaderReplaced", "RecordAcknowledged", "RecordTruncated"}
    done = call(*GROWS, "--symmetry", "--states", "2000", "--out", tmp_path)
    assert "reduced by symmetry: each searched state stands for others\n" in done.out
    assert "--reduce numbers counts states that differ only in such numbers as one\n" in done.out


RP_01 = ("rp-01-truncate-to-high-watermark", "--reduce", "all,order")


def test_check_without_orders_says_which_lengths_are_shortest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second search, breadth first, shows that no run is shorter; where it may not go so far, nothing is claimed."""
    found = searched(*RP_01, "--out", tmp_path, code=1)
    (violated,) = found["violated"]
    assert [violated["property"], violated["length"], violated["shortest"]] == ["StrongIsr", 13, True]
    monkeypatch.setattr(any_model, "MANY", 100)
    monkeypatch.setattr(any_model, "TIMES", 0)
    done = call("check", *RP_01, "--out", tmp_path)
    assert "steps, perhaps not the fewest possible, as expected\n" in done.out
    (trail,) = tmp_path.glob("*.trail.jsonl")
    assert replay_plain(read_trail(trail), Recorder()).verdict.violated == "StrongIsr"


@pytest.mark.parametrize(("arguments", "said"), [
    (("check", "replication/kip-320", "--reduce", "numbers"), "replication/kip-320 declares no numbers that are"),
    ((*ACTORS, "--reduce", "number"), "there is no reduction 'number'; did you mean numbers"),
    ((*ACTORS, "--reduce", "none,numbers"), "--reduce none excludes other reductions"),
    ((*ACTORS, "--reduce", "numbers", "--engine", "python"), "--engine python does not support --reduce numbers; give"),
    ((*ACTORS, "--reduce", "numbers", "--property", "FollowersCatchUp"), "cannot be checked with --reduce: it merges"),
    ((*CHECK, "--reduce", "order"), "is not an actor and shares variables with others, so no order of steps"),
    ((*ACTORS, "--reduce", "order", "--view"), "which --reduce order needs, does not support --view"),
    ((*ACTORS, "--reduce", "order", "--checkpoint", "saved"), "which --reduce order needs, does not support --che"),
    ((*ACTORS, "--reduce", "numbers", "--checkpoint", "saved"), "which --reduce numbers needs, does not support --che"),
    ((*ACTORS, "--reduce", "order", "--property", "FollowersCatchUp"), "cannot be checked with --reduce: it merges"),
    ((*ACTORS, "--reduce", "all,order", "--memory", "0.001"), "the search needs more than 0.001 GB of memory"),
    ((*ACTORS, "--reduce", "all,order", "--states", "5"), "the search stopped at its limit of 5 states, incomplete;"),
    ((*ACTORS, "--engine", "spark"), "has actors, which --engine spark does not support yet; use another engine"),
    ((*ACTORS, "--view"), "replication/kip-320/actors has no view; leave --view out"),
    ((*ACTORS, "--engine", "plain", "--fingerprints"), "--engine plain does not support --fingerprints; leave it out"),
    ((*ACTORS, "--engine", "plain", "--checkpoint", "saved"), "--engine plain does not support --checkpoint; leave"),
    ((*ACTORS, "--property", "FollowersCatchUp"), "or use kafka-proto simulate"),
    ((*ACTORS, "--timers", "x"), "--timers takes whole numbers, such as --timers 1 or RequestTimeout=1, not 'x'"),
    ((*ACTORS, "--timers", "=1"), "--timers takes whole numbers"),
    ((*ACTORS, "--timers", "b1.RequestTimeout=0"), "--timers: there is no actor 'b1'; the actors are "),
    ((*ACTORS, "--timers", "-1"), "--timers takes whole numbers"),
    ((*ACTORS, "--states", "0"), "expected a whole number of at least 1, found '0'"),
    ((*ACTORS, "--faults", "drip=1"), "there is no kind of fault 'drip'; did you mean"),
    ((*ACTORS, "--faults", "1"), "there is no kind of fault ''; the kinds are drop"),
    ((*ACTORS, "--faults", "drop"), "--faults takes whole numbers, such as --faults drop=1,crash=1, not 'drop'"),
    ((*ACTORS, "--faults", "skew=1"), "a search takes steps in every order, without clocks; leave it out"),
    ((*ACTORS, "--faults", "reorder=1"), "--faults reorder=1 has no effect: the network bag keeps no order"),
    ((*ACTORS, "--faults", "crash=1", "--target", "b9"), "the faults name 'b9', but replication/kip-320/actors"),
    ((*ACTORS, "--faults", "drop=1", "--target", "b1"), "--faults has none of these; add one"),
    ((*ACTORS, "--network", "wire"), "runs on the network bag or fifo, not 'wire'"),
    ((*CHECK, "--faults", "drop=1"), "model transactions/gist takes no faults; kafka-proto list --json says"),
    ((*CHECK, "--timers", "1", "--engine", "spark"), "has a bound on timers, which --engine spark does not support"),
    ((*CHECK, "--states", "5", "--engine", "spark"), "--engine spark does not support --states; leave it out"),
    ((*CHECK, "--states", "5"), "the search stopped at its limit of 5 states, incomplete; give more"),
    ((*ACTORS, "--states", "5"), "the search stopped at its limit of 5 states, incomplete; give more"),
    (("check", "s4-copied-tale"), "did you mean"),
], ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_what_check_cannot_do_is_one_sentence(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """What is expected and what was found is said, and no trail is written."""
    done = call(*arguments, "--out", tmp_path / "out")
    assert said in done.refusal
    assert not list(tmp_path.rglob("*.jsonl"))
