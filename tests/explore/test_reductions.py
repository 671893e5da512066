"""Reduced searches against unreduced ones: on protocols drawn at random, and on ours; broken reductions are caught."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from itertools import product

import attrs
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from support.searches import plain_search
from support.searches.engines import assert_violates, assert_witnessed, safety
from support.toys.generated_protocols import CLIENTS, SERVER, STATES, protocols

from harness.explore.any_model import NUMBERS, ORDER, SYMMETRY, PlainSearch
from harness.explore.bounded import ALL, bounded
from harness.explore.model_memo import Remembered
from harness.explore.packed.result import Result
from harness.explore.reduction import quotient
from harness.explore.reduction.futures import Futures
from harness.explore.reduction.order import Order
from harness.explore.reduction.quotient import Quotient
from harness.memo.interning import Ids
from harness.model import Faults, Model, View, find_model, sometimes

MOST = 150
"""States of a protocol up to which it is compared."""
TIMERS = {ALL: 1}


def searched(model: Model, *reductions: str, after: PlainSearch | None = None) -> tuple[PlainSearch, Result]:
    search = PlainSearch(model, safety(model), stop=False, deadlock=True, witnesses=True, states=MOST,
                         reduce=reductions, after=after)
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
        reference = plain_search.search(model)
        assert [whole.distinct, whole.generated, whole.depth] == [
            reference.distinct, reference.generated, reference.depth
        ]
        assert {witness.name for witness in whole.witnesses} == reference.witnessed
    classes = {
        renamed: [full.classes(*renamed).least(state) for state in full.visited]
        for renamed in sorted({_renamed(chosen) for chosen in reductions})
    }
    for chosen in reductions:
        search, result = searched(model, *chosen, after=full)
        stands_for = classes[_renamed(chosen)]
        assert result.complete or not whole.complete
        if ORDER in chosen:
            assert_runs(model, result)
            if whole.complete:
                assert_found_as_well(found(result, MOST), found(whole, MOST), result)
                assert result.distinct <= len({*stands_for})
            continue
        depth = min(levels(full, whole), levels(search, result))
        assert found(result, depth) == found(whole, depth), chosen
        assert_runs(model, result)
        assert sum(search.level_sizes[:depth]) == len({*stands_for[:sum(full.level_sizes[:depth])]})


def _renamed(reductions: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in reductions if name != ORDER)


def assert_found_as_well(reduced: dict[str, int], whole: dict[str, int], result: Result) -> None:
    """Assert that the same is found, by runs that are as short where nothing else is said."""
    assert set(reduced) == set(whole)
    assert all(reduced[name] >= length for name, length in whole.items())
    assert {name for name, length in whole.items() if reduced[name] > length} <= result.longer


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
OURS: tuple[tuple[str, dict[str, int], dict[str, str]], ...] = (
    ("kafka/4.0", {"producers": 2}, {}),
    ("kafka/4.0", {"producers": 2, "elections": 1}, {"log": "replicated"}),
    ("replication/kip-320/actors", {"replicas": 3, "producers": 2, "consumers": 2, "records": 2, "fencings": 1}, {}),
    ("replication/async-isr/actors", {"replicas": 3, "fencings": 1}, {}),
    ("compaction/pulsar/actors", {"readers": 2}, {}),
    ("compaction/pulsar-trimming/actors", {"readers": 2}, {}),
)


@pytest.mark.parametrize(("name", "sizes", "chosen"), OURS)
def test_states_of_a_class_take_the_same_steps(name: str, sizes: dict[str, int], chosen: dict[str, str]) -> None:
    """Along runs of our models, a state, its images under renamings, and the one that stands for them all lead to the
    same classes, by the same actions, and violate the same."""
    base = find_model(name).make(sizes, chosen)
    model = find_model(name).make(sizes, chosen, faults=attrs.evolve(FAULTS, targets=tuple(base.actors)))
    known = Remembered(model, [prop for prop in model.properties if prop.on != "step"])
    closed = Quotient(model, known, numbers=True, names=False)
    classes = Quotient(model, known, numbers=True, names=True)
    chance, state = random.Random(1), known.starts[0]
    for _ in range(40):
        assert behaviour(known, closed, closed.least(state)) == behaviour(known, closed, state)
        images = [chance.choice(classes.images).of(state)] if classes.images else []
        others = {classes.least(state), *images}
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


ALL_OF_THEM = (NUMBERS, SYMMETRY, ORDER)
EACH = ((NUMBERS,), (SYMMETRY,), (NUMBERS, SYMMETRY), (ORDER,), (NUMBERS, ORDER), (SYMMETRY, ORDER), ALL_OF_THEM)
QUICK = settings(
    max_examples=300, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@given(protocols())
@QUICK
def test_reduced_searches_of_drawn_protocols_find_the_same(model: Model) -> None:
    """Verdicts, deadlocks, witnesses and their lengths are those of the unreduced search; classes are exact. Without
    orders of steps that make no difference, what is found is the same, and lengths are where they are said to be."""
    compare(model, ((NUMBERS, SYMMETRY), ALL_OF_THEM))


PARTS = 5


@pytest.mark.large
@pytest.mark.parametrize("part", range(PARTS))
def test_reduced_searches_of_many_drawn_protocols_find_the_same(part: int) -> None:
    """The same for ten thousand, with each reduction and all of them together."""
    drawn = settings(QUICK, max_examples=10_000 // PARTS)(given(protocols())(lambda model: compare(model, EACH)))
    seed(part)(drawn)()


def caught(
    reductions: tuple[str, ...], drawn: SearchStrategy[Model] | None = None, examples: int = 300
) -> bool:
    """Say whether comparing drawn protocols shows that a reduction is broken."""
    stopping = settings(QUICK, max_examples=examples, report_multiple_bugs=False)
    models = protocols() if drawn is None else drawn
    check: Callable[[], None] = stopping(given(models)(lambda model: compare(model, (reductions,))))
    try:
        check()
    except (AssertionError, StopIteration, ExceptionGroup):
        return True
    return False


def watched(model: Model) -> Model:
    """Return a model with a property for each of the moments that its clients and its server may be at together."""
    who = (*CLIENTS, SERVER)
    moments = product(range(STATES), repeat=len(who))
    return attrs.evolve(model, properties=tuple(sometimes(str(at), partial(_are, who, at)) for at in moments))


def _are(who: tuple[str, ...], at: tuple[int, ...], view: View) -> bool:
    return all(view[name].at == moment for name, moment in zip(who, at, strict=True))


def test_a_renaming_that_breaks_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that change places are not what they were."""
    monkeypatch.setattr(quotient, "ranks", lambda numbers: dict(zip(sorted(numbers), range(len(numbers), 0, -1),
                                                                    strict=True)))
    assert caught((NUMBERS,))


def test_a_dependency_that_is_forgotten_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """That others may send something to the actors that are chosen must not be left out of account."""
    real = Futures.without
    monkeypatch.setattr(Futures, "without", lambda self, *at: ((0,) * len(self.actors), real(self, *at)[1]))
    assert caught((ORDER,), examples=1_000)


def test_a_visible_step_that_is_hidden_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that changes what a property looks at must not be put before others as if it did not."""
    assert not caught((ORDER,), protocols().map(watched), examples=30)
    monkeypatch.setattr(Order, "_is_visible", lambda self, change: False)
    assert caught((ORDER,), protocols().map(watched))
