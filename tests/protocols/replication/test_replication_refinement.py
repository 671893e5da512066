"""Runs of KIP-320's actors held against the spec: every step is one of its steps, or a named extension."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest
from support.runs.refinement_runs import freezing, lacking, remade

from harness.explore.packed.search import Search
from harness.model import Faults, Model, find_model
from harness.model.spec import reasons
from harness.simulate.runs.plan import Plan
from harness.verify.refinement import Refiner
from harness.verify.simulated_runs import Totals, refine_runs
from kafka_proto.replication.extensions import ACTIONS
from kafka_proto.replication.specs.kip_320 import NEXT

EVERYBODY = ("r1", "r2", "r3")
SIZES = {"replicas": 3, "producers": 2, "consumers": 0, "records": 3, "elections": 2, "fencings": 1}
CRASHES = Faults(crash=2, delay=2, targets=EVERYBODY)
TIMED = Plan((), 120, mode="timed")
EVERYTHING = Faults(1, 1, 1, 1, 1, 1, 1, 1, 1, targets=EVERYBODY)


def kip_320(network: str = "bag", faults: Faults = CRASHES, **sizes: int) -> Model:
    """The actors of KIP-320."""
    return find_model("replication/kip-320/actors").make({**SIZES, **sizes}, {}, network, faults)


@cache
def timed_campaign() -> Totals:
    """Runs in timed mode, with crashes and delayed messages."""
    return refine_runs(kip_320(), TIMED, range(60))


def test_runs_of_kip_320_follow_the_spec() -> None:
    """No step of any run is missing in the spec, and each of its actions is taken."""
    totals = timed_campaign()
    assert (totals.runs, totals.failed) == (60, 0), totals.explanation
    assert {action.name for action in NEXT} == {name for name, count in totals.actions.items() if count}


def test_extensions_are_used_and_counted() -> None:
    """Behaviour of running replicas that the spec abstracts from happens, and is counted apart."""
    used = {name for name, count in timed_campaign().extensions.items() if count}
    assert used >= {"EmptyFetch", "FollowEmptyLog", "ForgetHighWatermark"}
    assert {action.name for action in ACTIONS["kip-320"]} == set(timed_campaign().extensions)


def test_free_runs_with_every_fault_follow_the_spec() -> None:
    """Messages lost, doubled, late and reordered, links cut, replicas paused and crashed: the spec allows all of it."""
    totals = refine_runs(kip_320("fifo", EVERYTHING), Plan((), 90), range(40))
    assert totals.failed == 0, totals.explanation


@pytest.mark.parametrize("frozen", ["hw", "leaderEpoch", "leader", "isr", "records", "nextLeaderEpoch"])
def test_mapping_that_freezes_a_variable_fails(frozen: str) -> None:
    """A mapping under which some variable never changes is found out."""
    assert refine_runs(remade(kip_320(), freezing(frozen)), TIMED, range(8)).failed > 0


def test_each_extension_is_missed_where_it_is_off() -> None:
    """Without an extension that was used the same runs leave the spec."""
    for name in ("EmptyFetch", "FollowEmptyLog", "ForgetHighWatermark"):
        refiner = Refiner(remade(kip_320(), lacking(name)))
        assert refine_runs(refiner.model, TIMED, range(10), refiner=refiner).failed > 0, name


@pytest.mark.parametrize(
    ("sizes", "off", "on"),
    [
        ({"replicas": 2}, 8_277, 9_811),
        ({"replicas": 3, "log-size": 1, "max-records": 1, "max-leader-epoch": 2}, 22_229, 28_437),
    ],
    ids=("two replicas", "three replicas"),
)
def test_invariants_are_proved_with_every_extension(sizes: Mapping[str, int], off: int, on: int) -> None:
    """With the extensions on the invariants still hold in every state, and there are more states than without."""
    counts = []
    for extend in ("", ",".join(reasons(ACTIONS["kip-320"]))):
        model = find_model("replication/kip-320").make(sizes, {"extend": extend, "repair": "S8,S10"})
        found = Search(model, ("MCTypeOk", "WeakIsr", "StrongIsr", "LeaderInIsrOrNone"), symmetry=len(sizes) > 1).run()
        assert found.violations == ()
        counts.append(found.distinct)
    assert counts == [off, on]
