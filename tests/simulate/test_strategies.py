"""Strategies and the door for chance: what is repeatable, what is exhaustive, and who is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs.named_runs import strategy_of

from harness.model import Model, Refusal, State, find_model
from harness.record import Recorder, Trail
from harness.simulate.runs.plan import Plan, resolve
from harness.simulate.runs.session import Session, run_plain
from harness.simulate.states.nodes import Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import NAMES, Strategies
from harness.simulate.strategies.chance import Enumerating, InteractiveChance, Seeded
from harness.simulate.strategies.strategy import InteractiveStrategy, PctStrategy, RandomStrategy

HARD = "fencing-battle"
SMALL = {"clients": 1, "brokers": 2, "elections": 1}


@pytest.fixture(scope="module")
def tables() -> Tables:
    """The tables of the scenario in which everything goes wrong."""
    return Tables(resolve(HARD)[0])


@pytest.fixture(scope="module")
def plan() -> Plan:
    return resolve(HARD)[1]


def labels(trail: Trail) -> tuple[str, ...]:
    return tuple(chosen.label for chosen in trail.choices)


def option(key: str) -> Any:
    """Return what a strategy sees of an option."""
    return SimpleNamespace(key=key, label=key)


@given(seed=st.integers(0, 10_000), sizes=st.lists(st.integers(1, 1_000), max_size=20))
def test_seeded_chance_repeats_itself(seed: int, sizes: list[int]) -> None:
    """The same seed gives the same answers, each among the alternatives."""
    one, other = Seeded(seed), Seeded(seed)
    answers = [one.index(n, "?") for n in sizes]
    assert answers == [other.index(n, "?") for n in sizes]
    assert all(0 <= answer < n for answer, n in zip(answers, sizes, strict=True))


def test_seeded_chance_reaches_every_alternative() -> None:
    """Over many questions no alternative is left out."""
    chance = Seeded(1)
    assert {chance.index(7, "?") for _ in range(500)} == set(range(7))


@pytest.mark.parametrize("name", ["random", "pct", "portfolio"])
def test_same_seed_gives_the_same_run(name: str, tables: Tables, plan: Plan) -> None:
    """A run of a seed has one trail and one digest, whatever ran before it on the same tables."""

    def made(seed: int, tables: Tables) -> tuple[Trail, str | None]:
        run = run_plain(tables, plan, strategy_of(name, seed), Recorder())
        return run.trail, run.digest

    first = [made(seed, tables) for seed in range(5)]
    assert [made(seed, tables) for seed in reversed(range(5))] == first[::-1]
    assert [made(seed, Tables(tables.model)) for seed in range(2)] == first[:2]


@pytest.mark.parametrize("name", ["random", "pct", "portfolio"])
def test_other_seeds_give_other_runs(name: str, tables: Tables, plan: Plan) -> None:
    """Twenty seeds give twenty trails in a scenario with as many interleavings as this one."""
    assert len({labels(run_plain(tables, plan, strategy_of(name, seed)).trail) for seed in range(20)}) == 20


SAME = """
import hashlib
from harness.simulate.runs.plan import resolve
from harness.simulate.runs.session import run_plain
from harness.simulate.strategies.by_name import NAMES, Strategies
from harness.simulate.states.tables import Tables

for scenario in ("fencing-battle", "leaders-crash", "exactly-once-late-answers", "s6-stuck-transition"):
    model, plan = resolve(scenario)
    tables = Tables(model)
    for name in NAMES:
        runs = Strategies(name)
        for seed in range(3):
            lines = run_plain(tables, plan, runs.run(seed)).trail.lines()
            print(scenario, name, seed, hashlib.sha256("\\n".join(lines).encode()).hexdigest())
"""


def test_same_seed_gives_the_same_trail_in_another_process() -> None:
    """Every strategy makes the same trails in other processes, whatever PYTHONHASHSEED says there."""
    outputs = []
    for hash_seed in ("0", "4711"):
        done = subprocess.run(
            [sys.executable, "-c", SAME], env={**os.environ, "PYTHONHASHSEED": hash_seed}, stdout=subprocess.PIPE,
            check=True, text=True,
        )
        outputs.append(done.stdout.splitlines())
    assert len(outputs[0]) == 4 * len(NAMES) * 3
    assert outputs[1] == outputs[0]


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_pct_changes_its_mind_depth_minus_one_times(depth: int) -> None:
    """With all chains possible all the time, at most d - 1 steps leave the last chain; some runs use all."""
    switches = []
    for seed in range(60):
        strategy = PctStrategy(seed, depth=depth, length=20)
        picked = [strategy.pick([option(key) for key in "abcdef"]) for _ in range(40)]
        switches.append(sum(one != other for one, other in pairwise(picked)))
        assert strategy.pick([option(key) for key in "abcdef"]) == picked[-1]
    assert max(switches) == depth - 1


def test_pct_chooses_among_the_steps_of_a_chain() -> None:
    """Steps of one chain (messages of one connection on an unordered network) are chosen from at random."""
    options = [option("b"), option("a"), option("a"), option("a")]
    picked = {PctStrategy(seed, depth=1).pick(options) for seed in range(60)}
    assert picked == {0, 1, 2, 3}


def demotions(picks: Sequence[tuple[str, frozenset[str]]]) -> int:
    """Return how many chains must have dropped for these picks of (chain, chains that were possible)."""
    over: set[tuple[str, str]] = set()
    dropped = 0
    for best, keys in picks:
        for key in sorted(keys - {best}):
            if (key, best) in over:
                over = {pair for pair in over if pair[0] != key}
                dropped += 1
            over.add((best, key))
    return dropped


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_pct_drops_at_most_depth_minus_one_chains_in_a_run(depth: int, tables: Tables, plan: Plan) -> None:
    """In real runs, where chains come and go, a chain loses against a lower one at change points only."""

    class Watched(PctStrategy):
        def pick(self, options: Sequence[Option]) -> int:
            n = super().pick(options)
            picks.append((options[n].key, frozenset(o.key for o in options)))
            return n

    found = set()
    for seed in range(20):
        picks: list[tuple[str, frozenset[str]]] = []
        run_plain(tables, plan, Watched(seed, depth))
        found.add(demotions(picks))
    assert max(found) <= depth - 1
    assert (max(found) > 0) == (depth > 1)


trees: st.SearchStrategy[list[Any]] = st.recursive(st.just([]), lambda inner: st.lists(inner, max_size=3), max_leaves=9)


def walked(chance: Enumerating, tree: list[Any]) -> tuple[int, ...]:
    """Return the decisions of one walk from the root of a tree to a leaf."""
    path = []
    while tree:
        path.append(chance.index(len(tree), "branch"))
        tree = tree[path[-1]]
    return tuple(path)


def prefixes(tree: list[Any], depth: int) -> Iterator[tuple[int, ...]]:
    """Yield every path from the root to a leaf or to a depth, in order."""
    if not tree or not depth:
        yield ()
        return
    for n, branch in enumerate(tree):
        yield from ((n, *rest) for rest in prefixes(branch, depth - 1))


@given(tree=trees, depth=st.integers(1, 5))
def test_enumerating_tries_every_prefix_once(tree: list[Any], depth: int) -> None:
    """The first `depth` decisions of the runs are all there are, each once and in order; then it stops for good."""
    chance, tried = Enumerating(depth), []
    while chance.begin():
        tried.append(walked(chance, tree)[:depth])
    assert tried == list(prefixes(tree, depth))
    assert not chance.begin()


def test_enumerating_goes_on_at_random_after_its_prefix() -> None:
    """Below its depth a run is decided by its number: repeatable, and not the same in each run."""

    def rests() -> list[tuple[int, ...]]:
        chance, found = Enumerating(1), []
        while chance.begin():
            found.append(tuple(chance.index(2, "?") for _ in range(20))[1:])
        return found

    assert rests() == rests()
    assert len(set(rests())) == 2


def sequences(model: Model, state: State, steps: int) -> Iterator[tuple[str, ...]]:
    """Yield the labels of every sequence of steps of a model, by the reference semantics."""
    choices = model.choices(state) if steps else []
    if not choices:
        yield ()
    for choice in choices:
        yield from ((choice.label, *rest) for rest in sequences(model, model.apply(state, choice), steps - 1))


@pytest.mark.parametrize("steps", [3, 6])
def test_systematic_runs_are_all_the_beginnings_of_a_model(steps: int) -> None:
    """Systematic runs of k steps are exactly the sequences of k steps of the reference semantics, each once."""
    model = find_model("transactions/diary-02").make(SMALL)
    tables, runs = Tables(model), Strategies("systematic", depth=steps)
    made: list[tuple[str, ...]] = []
    while (strategy := runs.run(len(made))) is not None:
        made.append(labels(run_plain(tables, Plan((), steps=steps), strategy).trail))
    assert made == list(sequences(model, model.initial_states()[0], steps))
    assert runs.run(0) is None


def test_interactive_strategy_is_asked_with_the_options() -> None:
    """Whoever decides sees the options of every state, as the reference semantics lists them, and gets what he asks."""
    model = find_model("transactions/diary-02").make(SMALL)
    seen: list[tuple[str, ...]] = []

    def last(options: Sequence[Option]) -> int:
        seen.append(tuple(option.label for option in options))
        return len(options) - 1

    run = run_plain(Tables(model), Plan((), steps=12), InteractiveStrategy(last))
    assert [options[-1] for options in seen] == list(labels(run.trail))
    state = model.initial_states()[0]
    for options in seen:
        choices = model.choices(state)
        assert options == tuple(choice.label for choice in choices)
        state = model.apply(state, choices[-1])


@pytest.mark.parametrize("answer", [-1, 99])
def test_interactive_strategy_refuses_what_is_no_option(answer: int) -> None:
    """An answer that is not the index of an option is an error that says which ones there are."""
    strategy = InteractiveStrategy(lambda options: answer)
    session = Session(Tables(find_model("transactions/diary-02").make(SMALL)), Plan(()), strategy)
    with pytest.raises(ValueError, match=f"step: {answer} is not one of the 2 alternatives 0 to 1"):
        session.decide()


def test_asked_chance_hears_what_is_decided() -> None:
    """Whoever is asked hears the number of alternatives and what they are about."""
    heard: list[tuple[int, str]] = []

    def ask(n: int, label: str) -> int:
        heard.append((n, label))
        return n - 1

    assert InteractiveChance(ask).index(3, "initial state") == 2
    assert heard == [(3, "initial state")]


def test_strategies_refuse_an_unknown_name() -> None:
    """A strategy that does not exist is refused in a sentence that names those that do."""
    with pytest.raises(Refusal, match=f"no strategy 'best'; the strategies are {', '.join(NAMES)}"):
        Strategies("best")


def test_initial_state_is_a_decision_of_the_strategy() -> None:
    """Where a model has several initial states, seeds start in different ones and the trail says in which."""
    model = find_model("transactions/diary-01").make({"brokers": 2, "txn-log-partitions": 2})
    tables = Tables(model)
    starts = {run_plain(tables, Plan((), steps=1), RandomStrategy(seed)).trail.initial for seed in range(40)}
    assert starts == set(range(len(model.initial_states())))
    assert len(starts) > 1
