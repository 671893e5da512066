"""Runs of each version's actors held against its spec: flawed runs, too, as the specs have the flaws."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest
from support.commands.command_line import call
from support.paths import TRAILS
from support.runs.refinement_runs import freezing, lacking, remade

from harness.explore.packed.search import Search
from harness.model import Faults, FrozenMap, Model, Scenario, View, find_model, model_of
from harness.model.spec import reasons
from harness.simulate.runs.plan import Plan, plan_of
from harness.verify.refinement import Refiner
from harness.verify.simulated_runs import refine_runs
from kafka_proto.replication import truncation
from kafka_proto.replication.extensions import ACTIONS
from kafka_proto.replication.quorum import initial
from kafka_proto.replication.records import Record, ReplicaEntry
from kafka_proto.replication.refinement import ReplicationGhost, checked
from kafka_proto.replication.replica_state import ReplicaState
from kafka_proto.replication.scenarios import EXHIBITS
from kafka_proto.replication.specs import async_isr, kip_320_first_try
from kafka_proto.replication.specs.by_version import SPECS

EVERYBODY = ("r1", "r2", "r3")
VERSIONS = ("truncate-to-high-watermark", "kip-101", "kip-279", "kip-320-first-try")
STALE = ("StaleIncHighWatermark", "LateExpandIsr")
"""Extensions by which versions without a fence go wrong: with these on, what is held below a high watermark is not."""
SIZES = {"replicas": 3, "producers": 2, "consumers": 0, "records": 3, "elections": 2, "fencings": 1}
CRASHES = Faults(crash=2, delay=2, drop=2, duplicate=2, targets=EVERYBODY)
LATE = Faults(crash=2, delay=2, targets=EVERYBODY)
EVERYTHING = Faults(1, 1, 1, 1, 1, 1, 1, 1, 1, targets=EVERYBODY)
TIMED = Plan((), 120, mode="timed")
CAMPAIGNS: Mapping[str, tuple[int, Faults, set[str]]] = {
    **dict.fromkeys(VERSIONS, (12, CRASHES, {"EmptyFetch", "ForgetHighWatermark"})),
    "kip-320": (60, LATE, {"EmptyFetch", "FollowEmptyLog", "ForgetHighWatermark"}),
}
"""Runs, faults, and extensions that are used."""
SHOWN = ("rp-01-truncate-to-high-watermark", "rp-05-unfenced-fetch", "rp-10-unseen-member")
"""Exhibits that random runs find soon."""
LED_BY_ONE = {**SIZES, "producers": 1, "records": 2, "elections": 0}
"""Nobody is elected but where nobody leads: the first leader has time."""


def actors(version: str, sizes: Mapping[str, int] = SIZES, network: str = "bag", faults: Faults = CRASHES) -> Model:
    """The actors of a version."""
    return find_model(f"replication/{version}/actors").make(sizes, {}, network, faults)


@pytest.mark.parametrize("version", CAMPAIGNS)
def test_runs_of_a_version_follow_its_spec(version: str) -> None:
    """In timed mode no step of any run is missing in the spec, and each of its actions is taken.

    Behaviour of running replicas that the spec abstracts from happens, and is counted apart.
    """
    runs, faults, extensions = CAMPAIGNS[version]
    totals = refine_runs(actors(version, faults=faults), TIMED, range(runs))
    assert (totals.runs, totals.failed) == (runs, 0), totals.explanation
    actions = {action.name for action in SPECS[version].next_state}
    taken = {name for name, n in totals.actions.items() if n}
    assert actions - {"FollowerTruncate"} <= taken <= actions
    assert extensions <= {name for name, n in totals.extensions.items() if n}
    assert {action.name for action in ACTIONS[version]} == set(totals.extensions)


@pytest.mark.parametrize(("version", "runs"), [
    *((version, 6) for version in (*VERSIONS, "async-isr")), ("kip-320", 40),
])
def test_free_runs_of_a_version_with_every_fault_follow_its_spec(version: str, runs: int) -> None:
    """Messages lost, doubled, late and reordered, links cut, replicas paused and crashed: the spec allows all of it."""
    totals = refine_runs(actors(version, network="fifo", faults=EVERYTHING), Plan((), 90), range(runs))
    assert totals.failed == 0, totals.explanation


@pytest.mark.parametrize(("row", "runs", "strategy"), [
    *((row, 25 if row.name in SHOWN else 12, "random") for row in EXHIBITS if model_of(row).refinement is not None),
    *((row, 25, "pct") for row in EXHIBITS if row.name == "rp-06-first-try"),
], ids=lambda value: value.name if isinstance(value, Scenario) else str(value))
def test_exhibits_follow_their_spec(row: Scenario, runs: int, strategy: str) -> None:
    """What an exhibit and its twin do is what their specs allow: runs that lose committed records, too.

    So is it where a follower of the first try cannot fetch and truncates.
    """
    totals = refine_runs(model_of(row), plan_of(row), range(runs), strategy)
    assert totals.failed == 0, totals.explanation
    assert row.name not in SHOWN or set(totals.violated) == {"StrongIsr"}
    assert strategy == "random" or totals.actions["FollowerTruncate"]


def test_async_isr_follows_its_spec_while_the_first_leader_leads() -> None:
    """No step is missing in the module while followers come and go; its actions are taken, and each extension."""
    coming_and_going = actors("async-isr", LED_BY_ONE, faults=Faults(crash=3, targets=("r2",)))
    campaigns = (
        refine_runs(coming_and_going, Plan((), 160), range(50)),
        refine_runs(actors("async-isr", {**SIZES, "elections": 0}), TIMED, range(25)),
    )
    for totals in campaigns:
        assert totals.failed == 0, totals.explanation
    taken, used = (campaigns[0].actions + campaigns[1].actions, campaigns[0].extensions + campaigns[1].extensions)
    assert {action.name for action in async_isr.NEXT} == {name for name, count in taken.items() if count}
    assert {name for name, count in used.items() if count} == set(reasons(ACTIONS["async-isr"]))


def test_proposal_that_lapsed_stays_so_when_its_version_passes() -> None:
    """The controller refuses a proposal and goes on to another version before the leader hears of the refusal."""
    done = call("verify", TRAILS / "refined" / "lapsed-proposal.trail.jsonl")
    assert done.code == 0 and "extensions: ForgetPendingIsr 1, LapseRequests 1" in done.out


@pytest.mark.parametrize(("version", "frozen"), [
    *(("truncate-to-high-watermark", name) for name in ("hw", "isr", "records")),
    *(("kip-320", name) for name in ("hw", "leaderEpoch", "leader", "isr", "records", "nextLeaderEpoch")),
    *(("async-isr", name) for name in ("isr", "version", "pendingIsr", "pendingVersion", "requests", "updates")),
])
def test_mapping_that_freezes_a_variable_fails(version: str, frozen: str) -> None:
    """A mapping under which some variable never changes is found out."""
    runs, sizes, faults = {
        "kip-320": (8, SIZES, LATE), "async-isr": (6, LED_BY_ONE, CRASHES)
    }.get(version, (4, SIZES, CRASHES))
    model = remade(actors(version, sizes, faults=faults), freezing(frozen))
    assert refine_runs(model, TIMED, range(runs)).failed > 0


def test_mapping_that_freezes_offsets_shows_in_what_is_never_taken() -> None:
    """At offset 0 everybody may enter the ISR: only that nothing is ever written gives such a mapping away."""
    model = actors("async-isr", LED_BY_ONE)
    assert "LeaderWrite" in refine_runs(remade(model, freezing("offsets")), TIMED, range(6)).untaken
    assert "LeaderWrite" not in refine_runs(model, TIMED, range(6)).untaken


@pytest.mark.parametrize(("version", "name"), [
    ("truncate-to-high-watermark", "EmptyFetch"), ("kip-101", "FollowShorterLog"), ("kip-279", "ForgetHighWatermark"),
    *(("kip-320", name) for name in ("EmptyFetch", "FollowEmptyLog", "ForgetHighWatermark")),
    ("async-isr", "LapseRequests"),
])
def test_extension_of_a_version_is_missed_where_it_is_off(version: str, name: str) -> None:
    """Without an extension that was used the same runs leave the spec."""
    runs, plan, sizes, faults = {
        "kip-320": (10, TIMED, SIZES, LATE),
        "async-isr": (60, Plan((), 160), LED_BY_ONE, Faults(crash=3, targets=("r2",))),
    }.get(version, (12, TIMED, SIZES, CRASHES))
    refiner = Refiner(remade(actors(version, sizes, faults=faults), lacking(name)))
    totals = (refine_runs(refiner.model, plan, (seed,), refiner=refiner) for seed in range(runs))
    assert any(run.failed for run in totals)


ONE_EPOCH = {"max-leader-epoch": 1}
THREE = {"replicas": 3, "log-size": 1, "max-records": 1, "max-leader-epoch": 2}


@pytest.mark.parametrize(("version", "sizes", "symmetry", "off", "on"), [
    ("kip-101", ONE_EPOCH, False, 1_431, 1_611), ("kip-279", ONE_EPOCH, False, 1_431, 1_611),
    ("kip-320-first-try", ONE_EPOCH, False, 1_419, 1_579),
    ("kip-320", {"replicas": 2}, False, 8_277, 9_811), ("kip-320", THREE, True, 22_229, 28_437),
    ("async-isr", {"replicas": 2}, True, 42, 48), ("async-isr", {"replicas": 3}, True, 733, 3_158),
])
def test_what_a_version_keeps_is_proved_with_its_extensions(
    version: str, sizes: Mapping[str, int], symmetry: bool, off: int, on: int
) -> None:
    """The invariants still hold in every state with the extensions on, and there are more states than without.

    Of the versions before KIP-320 at a size at which they keep them, with extensions that are not about stale news.
    """
    is_async, counts = version == "async-isr", []
    actions = ACTIONS[version]
    kept = async_isr.CHECKED if is_async else ("MCTypeOk", "WeakIsr", "StrongIsr", "LeaderInIsrOrNone")
    for extend in ("", ",".join(name for name in reasons(actions) if version not in VERSIONS or name not in STALE)):
        settings = {"extend": extend} | ({} if is_async else {"repair": "S8,S10"})
        found = Search(find_model(f"replication/{version}").make(sizes, settings), kept, symmetry=symmetry).run()
        assert found.violations == ()
        counts.append(found.distinct)
    assert counts == [off, on]


@pytest.mark.parametrize(
    ("version", "states"),
    [("truncate-to-high-watermark", 2_127), ("kip-101", 1_985), ("kip-279", 1_913), ("kip-320-first-try", 1_981)],
)
def test_types_are_kept_with_every_extension(version: str, states: int) -> None:
    """With all extensions on, also those by which the flaws show, every state is of its type."""
    settings = {"extend": ",".join(reasons(ACTIONS[version])), "repair": "S8,S10"}
    model = find_model(f"replication/{version}").make({"max-leader-epoch": 1}, settings)
    found = Search(model, ("MCTypeOk", "LeaderInIsrOrNone", "IsrNonEmpty")).run()
    assert (found.violations, found.distinct) == ((), states)


@pytest.mark.parametrize(("mark", "isr", "why"), [
    (0, ("r1", "r2"), "r2 never held as much"),
    (1, ("r1",), "r2 enters the ISR, and never reached r1's high watermark 1"),
])
def test_what_was_never_held_is_told(mark: int, isr: tuple[str, ...], why: str) -> None:
    """A leader may count what a follower held once, and let in who was caught up once; not who never was."""
    q = attrs.evolve(initial(("r1", "r2")), leader="r1", leader_epoch=0)
    leader = ReplicaState(
        log=(ReplicaEntry(0, "a"),), high_watermark=1, leader="r1", leader_epoch=0, isr=q.isr, active=True
    )
    replicas = {"r1": leader, "r2": ReplicaState(leader="r1", leader_epoch=0)}
    before = ReplicationGhost(high_watermarks=FrozenMap({"r1": mark, "r2": 0}), isr=frozenset(isr))
    after = ReplicationGhost((), FrozenMap({"r1": 1, "r2": 0}), FrozenMap({"r1": 1, "r2": 1}), q.isr)
    checked(q, replicas, before, after)
    with pytest.raises(ValueError, match=why):
        checked(q, replicas, before, attrs.evolve(after, longest=FrozenMap({"r1": 1, "r2": 0})))


def test_truncate_once_cuts_as_the_actors_do() -> None:
    """Where one answer is not enough, the follower of the first try keeps more than the spec's would."""
    leads, follows = (0, 1, 1), (0, 0, 2)
    state = find_model("replication/kip-320-first-try").make({"log-size": 3}).initial_states()[0]
    logs = {"r1": leads, "r2": follows}
    ids = {"r1": (1, 5, 6), "r2": (1, 2, 3)}
    changed = dict(state)
    for name, epochs in logs.items():
        changed[f"replicaLog[{name}][records]"] = tuple(map(Record, ids[name], epochs))
        changed[f"replicaLog[{name}][endOffset]"] = len(epochs)
        changed[f"replicaState[{name}][leader]"] = "r1"
        changed[f"replicaState[{name}][leaderEpoch]"] = 3
    view = View(changed)
    once = next(action for action in ACTIONS["kip-320-first-try"] if action.name == "TruncateOnce")
    ends = [
        [dict(change.writes)["replicaLog[r2][endOffset]"] for change in action.changes(None, view, "r2", "r1")]
        for action in (once, kip_320_first_try.follower_truncate)
    ]
    assert ends == [[2], [1]]
    assert truncation.narrowed(view["replicaLog[r2][records]"], truncation.EpochEnd(1, 3)) == (2, False)


@pytest.mark.parametrize(("change", "size", "violates", "steps"), [
    ("unfenced-look-up", (), "WeakIsr", 14),
    ("stale-high-watermark", ("--size=log-size=1", "--size=max-records=1"), "StrongIsr", 11),
])
def test_change_of_kip_320_is_found_in_its_spec(change: str, size: tuple[str, ...], violates: str, steps: int) -> None:
    """RP-07 and RP-08: a search of the spec in which the decision is replaced violates what the published one keeps."""
    done = call("check", "replication/kip-320", "--size=replicas=3", *size, "--symmetry", f"--set=change={change}")
    assert done.code == 1 and f"{violates} is violated after {steps} steps" in " ".join(done.out.split())
