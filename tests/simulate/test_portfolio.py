"""The portfolio strategy: its ways and its aim, runs that need no other run, and the published flaws found."""

from __future__ import annotations

from contextlib import closing

import pytest
from support.runs.named_runs import scenario_of, strategy_of

from harness.model import Kind, scenarios
from harness.record import Recorder
from harness.simulate.hunting.tasks import Task, carry_out
from harness.simulate.runs.plan import resolve
from harness.simulate.runs.session import Session, run_plain
from harness.simulate.states.guards import Guards
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies import portfolio
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.strategies.portfolio import WAYS, PortfolioStrategy
from harness.simulate.strategies.strategy import UNFAIR
from harness.simulate.trails.replay import replay_plain

CRASHING, MOVING = "exactly-once-crashes", "rp-03-unknown-epoch"
AT_ONCE = ("late-marker", "older-transaction-taken", "pc-05-read-too-far", "s2-stuck-replica")
"""Flaws that a handful of runs finds."""
RARE = ("rp-05-unfenced-fetch", "rp-08-stale-high-watermark")
"""Flaws of which a run of the portfolio has less than one chance in a thousand: in a hunt, others find them."""
MOST = 2_000


def test_every_way_is_drawn_and_half_the_runs_aim() -> None:
    """By the seed alone."""
    made = [PortfolioStrategy(seed) for seed in range(300)]
    counts = [sum(run.way == way for run in made) for way in WAYS]
    assert sum(counts) == 300 and min(counts) > 70
    assert 120 < sum(run.aims for run in made) < 180


@pytest.mark.parametrize("name", [CRASHING, MOVING, "leaders-crash"])
def test_portfolio_trail_replays_and_no_run_needs_another(name: str) -> None:
    """Seeds in any order, tables that others used, coverage counted or not: the same trail, digest and verdict."""
    model, plan = resolve(name)
    source = Strategies("portfolio")
    with closing(Tables(model)) as tables:
        runs = [run_plain(tables, plan, PortfolioStrategy(seed), Recorder()) for seed in range(6)]
    with closing(Tables(model, Guards())) as counted:
        source.cover(counted)
        for seed in (4, 1, 5, 0):
            strategy = source.run(seed)
            assert strategy is not None
            again = run_plain(counted, plan, strategy, Recorder())
            assert (again.trail, again.digest) == (runs[seed].trail, runs[seed].digest)
    for seed in (4, 1, 5, 0):
        replayed = replay_plain(runs[seed].trail, Recorder())
        assert (replayed.digest, replayed.verdict) == (runs[seed].digest, runs[seed].verdict)


def test_timed_runs_are_those_of_random() -> None:
    """Where time decides what comes next, there is nothing to choose and nothing to aim."""
    model, plan = resolve("leaders-move")
    assert plan.mode == "timed"
    tables = Tables(model)
    one, other = (run_plain(tables, plan, strategy_of(name, 3)).trail for name in ("portfolio", "random"))
    assert one.choices == other.choices


def writes_or_answers(model_disks: frozenset[str], before: Node, option: Option) -> bool:
    """Say whether a step writes to a disk or answers an operation."""
    op = option.choice.step.op
    written = {slot for slot, _ in option.edge(before.state).effects.writes}
    return bool(written & model_disks) or (op is not None and op.outcome == "ok")


@pytest.mark.parametrize(("name", "kind"), [(CRASHING, Kind.FAULT), (MOVING, Kind.PERTURBATION)])
def test_run_that_aims_spends_faults_after_persisted_writes_and_answers(
    name: str, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it spends one after each such step and after no other, each fault comes right after one, of its process
    where there is one of it."""
    monkeypatch.setattr(portfolio, "AIMED", (1,))
    monkeypatch.setattr(portfolio, "SPARED", (1 << 50,))
    model, plan = resolve(name)
    tables, spent = Tables(model), 0
    disks = frozenset(disk for actor in model.actors for disk in model.disks_of(actor).values())
    for seed in [seed for seed in range(40) if PortfolioStrategy(seed).aims]:
        session = Session(tables, plan, PortfolioStrategy(seed))
        last: tuple[Node, Option] | None = None
        while (n := session.decide()) >= 0 and session.fair_from is None:
            before, option = session.node, session.node.options[n]
            others = [other for other in before.options if other.kind not in UNFAIR]
            if option.kind is kind and others:
                assert last is not None and writes_or_answers(disks, *last)
                near = last[1].process
                touching = [other for other in before.options if other.kind in UNFAIR and touches(other, near)]
                assert not touching or option in touching
                spent += 1
            session.take(n)
            last = None if option.kind in UNFAIR else (before, option)
    assert spent >= 10


def touches(option: Option, process: str) -> bool:
    """Say whether a fault names a process, or takes a message from or to it."""
    step = option.choice.step
    return process in step.args or (step.subject is not None and process in (step.subject.source, step.subject.dest))


@pytest.mark.parametrize("name", [
    pytest.param(row.name, marks=() if row.name in AT_ONCE else pytest.mark.large)
    for row in scenarios() if row.repaired and row.name not in RARE
])
def test_portfolio_finds_every_flaw_but_two(name: str) -> None:
    """Within 2,000 runs, as it is: it has no parameters but the seed."""
    scenario = scenario_of(name)
    tried, = carry_out((Task(name, "portfolio", MOST),))
    assert tried.found_at is not None and tried.trail is not None
    assert scenario.expected in {verdict.violated for verdict in replay_plain(tried.trail).violations}
