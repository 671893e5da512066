"""Reduced searches against unreduced ones: on protocols drawn at random, and on ours; broken reductions are caught."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection

import attrs
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from support.generated_protocols import protocols
from support.searching import assert_violates, assert_witnessed

from harness.explore import plain
from harness.explore.any_model import NUMBERS, SYMMETRY, PlainSearch
from harness.explore.bounded import ALL, bounded
from harness.explore.packed.result import Result
from harness.explore.reduction import quotient
from harness.explore.reduction.quotient import Quotient
from harness.explore.remembered import Remembered
from harness.memo.interning import Ids
from harness.model import Faults, Model, find_model

MOST = 150
"""States of a protocol up to which it is compared."""
TIMERS = {ALL: 1}


def searched(model: Model, *reductions: str) -> tuple[PlainSearch, Result]:
    names = tuple(prop.name for prop in model.properties if prop.is_safety)
    search = PlainSearch(model, names, stop=False, deadlock=True, witnesses=True, states=MOST, reduce=reductions)
    return search, search.run()


def found(result: Result, most: int) -> dict[str, int]:
    """Return what a search found in so many levels, with its length."""
    return {each.name: each.length for each in (*result.violations, *result.witnesses) if each.length <= most}


def compare(model: Model, reductions: Collection[tuple[str, ...]]) -> None:
    """Assert that reduced searches of a model find what the unreduced one does, which does what the plain one does.

    Of a model without end the levels are compared that both have.
    """
    model = bounded(model, TIMERS)
    full, whole = searched(model)
    if whole.complete and whole.distinct <= MOST // 2:
        reference = plain.search(model)
        assert [whole.distinct, whole.generated, whole.depth] == [
            reference.distinct, reference.generated, reference.depth
        ]
        assert {witness.name for witness in whole.witnesses} == reference.witnessed
    for chosen in reductions:
        search, result = searched(model, *chosen)
        assert result.complete or not whole.complete
        depth = min(levels(full, whole), levels(search, result))
        assert found(result, depth) == found(whole, depth), chosen
        assert_runs(model, result)
        classes = Quotient(model, full.known, numbers=NUMBERS in chosen, names=SYMMETRY in chosen)
        states = full.visited[:sum(full.level_sizes[:depth])]
        assert sum(search.level_sizes[:depth]) == len({classes.least(state) for state in states})


def levels(search: PlainSearch, result: Result) -> int:
    """Return how many levels a search has completely: any number where it is complete."""
    return MOST if result.complete else len(search.level_sizes) - 2


def assert_runs(model: Model, result: Result) -> None:
    """Assert that what a search found is shown by runs of the model itself."""
    for violation in result.violations:
        if violation.kind == "invariant":
            assert_violates(model, violation)
    for witness in result.witnesses:
        assert_witnessed(model, witness)


FAULTS = Faults(drop=1, duplicate=1, delay=1, partition=1, crash=1)
OURS: dict[str, dict[str, int]] = {
    "transactions/repaired/actors": {"topic-partitions": 2}, "transactions/diary-02/actors": {"topic-partitions": 2},
    "replication/kip-320/actors": {"replicas": 3, "producers": 2, "consumers": 2, "records": 2, "fencings": 1},
    "replication/async-isr/actors": {"replicas": 3, "fencings": 1}, "cluster": {"topic-partitions": 2},
    "compaction/pulsar/actors": {"readers": 2}, "compaction/pulsar-trimming/actors": {"readers": 2},
}


@pytest.mark.parametrize("name", OURS)
def test_states_of_a_class_take_the_same_steps(name: str) -> None:
    """Along runs of our models, a state, its images under renamings, and the one that stands for them all lead to the
    same classes, by the same actions, and violate the same."""
    base = find_model(name).make(OURS[name])
    model = find_model(name).make(OURS[name], faults=attrs.evolve(FAULTS, targets=tuple(base.actors)))
    known = Remembered(model, [prop for prop in model.properties if prop.on != "step"])
    closed = Quotient(model, known, numbers=True, names=False)
    classes = Quotient(model, known, numbers=True, names=True)
    chance, state = random.Random(1), known.starts[0]
    for _ in range(40):
        assert behaviour(known, closed, closed.least(state)) == behaviour(known, closed, state)
        others = {classes.least(state), chance.choice(classes.images).of(state)}
        assert {classes.least(other) for other in others} == {classes.least(state)}
        for other in sorted(others):
            assert behaviour(known, classes, other) == behaviour(known, classes, state)
        ways = known.ways(state)
        if not ways:
            break
        state = chance.choice(ways).follow(state)


def behaviour(known: Remembered, classes: Quotient, state: Ids) -> tuple[Counter[tuple[str, Ids]], set[str]]:
    """Return what a state can do, up to a renaming, and what it violates."""
    ways = Counter((way.step.action, classes.least(way.follow(state))) for way in known.ways(state))
    return ways, {name for name, _ in known.answers(state)}


EACH = ((NUMBERS,), (SYMMETRY,), (NUMBERS, SYMMETRY))
QUICK = settings(
    max_examples=300, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@given(protocols())
@QUICK
def test_reduced_searches_of_drawn_protocols_find_the_same(model: Model) -> None:
    """Verdicts, deadlocks, witnesses and their lengths are those of the unreduced search; classes are exact."""
    compare(model, EACH[-1:])


@pytest.mark.large
@given(protocols())
@settings(QUICK, max_examples=10_000)
def test_reduced_searches_of_many_drawn_protocols_find_the_same(model: Model) -> None:
    """The same for ten thousand."""
    compare(model, EACH)


def caught(reductions: tuple[str, ...]) -> bool:
    """Say whether comparing drawn protocols shows that a reduction is broken."""
    check: Callable[[], None] = QUICK(given(protocols())(lambda model: compare(model, (reductions,))))
    try:
        check()
    except (AssertionError, StopIteration, ExceptionGroup):
        return True
    return False


def test_a_renaming_that_breaks_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that change places are not what they were."""
    monkeypatch.setattr(quotient, "ranks", lambda numbers: dict(zip(sorted(numbers), range(len(numbers), 0, -1),
                                                                    strict=True)))
    assert caught((NUMBERS,))
