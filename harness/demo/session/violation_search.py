"""Looking for a violation of what is shown: one seed and strategy after the other, from the start of the run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from harness.demo.session.opened_model import OpenedModel
from harness.demo.session.strategy_runner import STRATEGIES, rarely_faults
from harness.model import Model, Refusal, find_model
from harness.model.faults import FAULT_KINDS, Faults
from harness.record import Trail
from harness.record.wording import counted
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.session import Session, drive
from harness.simulate.states.nodes import Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.strategies.strategy import Wrapped

MOST_RUNS = 3_000
"""Runs of a search, by default: a thousand seeds of each strategy."""


class ViolationSearch:
    """Runs of one model, until one violates what is claimed. `run` is for a thread; everything else may be read.

    Without threads, the caller goes along `each_run` for a while, and comes again.
    """

    def __init__(self, opened: OpenedModel, runs: int, seed: int, inject_faults: bool) -> None:
        if runs < 1:
            raise Refusal(f"expected at least 1 run to search, found {runs}")
        if not opened.plan.claims:
            raise Refusal(f"{opened.model.name} has no claims to violate")
        self.model = opened.model if inject_faults else without_faults(opened.model)
        self.plan: Plan = opened.plan
        self.runs, self.seed, self.inject_faults = runs, seed, inject_faults
        self.tried, self.steps = 0, 0
        self.now = ""
        """The strategy and seed of the run under way."""
        self.found: Trail | None = None
        self.is_stopped = False
        self._rare = opened.budget == "generous" and self.plan.mode == "free"
        self._faults = opened.model.faults
        self._began = time.monotonic()

    def stop(self) -> None:
        """End the search before its next run, or in the middle of a long one."""
        self.is_stopped = True

    def run(self) -> Trail | None:
        """Search; return the trail of the first run that violates something, or None."""
        for _ in self.each_run():
            pass
        return self.found

    def each_run(self) -> Iterator[None]:
        """Search, one run at a time; the last one is the one that violates something."""
        tables = Tables(self.model)
        sources = [Strategies(name) for name in STRATEGIES]
        for n in range(self.runs):
            if self.is_stopped:
                break
            seed = self.seed + n // len(sources)
            strategy = sources[n % len(sources)].run(seed)
            assert strategy is not None, "only a systematic search comes to an end"
            self.now = f"{strategy.name}, seed {seed}"
            chosen = Sparing(strategy) if self._rare else strategy
            run = drive(Session(tables, self.plan, chosen, watch=lambda _: not self.is_stopped))
            if self.is_stopped:
                break
            self.tried, self.steps = n + 1, self.steps + len(run.trail.choices)
            if not run.verdict.ok:
                self.found = self._with_faults(run.trail)
            yield
            if self.found is not None:
                break

    def _with_faults(self, trail: Trail) -> Trail:
        """Return a trail that was found without faults so that a person may go on with those of the session."""
        return trail if self.inject_faults or trail.fair_from is not None else attrs.evolve(trail, faults=self._faults)

    def to_json(self) -> dict[str, Any]:
        """Return how far the search is, as a JSON object; times in seconds."""
        rate = self.tried / max(1e-9, time.monotonic() - self._began)
        left = round((self.runs - self.tried) / rate) if self.tried else None
        return {"tried": self.tried, "runs": self.runs, "steps": self.steps, "now": self.now,
                "rate": round(rate, 1), "seconds_left": left, "inject_faults": self.inject_faults}

    def progress(self) -> str:
        """Return how far the search is, in words."""
        now = self.to_json()
        left = f", at most {span(now['seconds_left'])} left" if now["seconds_left"] is not None else ""
        return f"{self.tried:,} of {counted(self.runs, 'run')}, {now['rate']:g} a second{left}; {self.now}"

    def outcome(self) -> str:
        """Return the outcome of the search, in a sentence."""
        tried = f"{counted(self.tried, 'run')} ({counted(self.steps, 'step')})"
        if self.found is not None:
            how = f"{self.found.strategy}, seed {self.found.seed}"
            return f"run {self.tried:,} violates {self.found.violates}: {how}"
        if self.is_stopped:
            return f"the search was stopped; no violation in {tried}"
        off = "" if self.inject_faults or not self._faults.reaches(*FAULT_KINDS) else "; faults were off"
        return f"no violation in {tried} with {', '.join(STRATEGIES)}{off}"


def span(seconds: int) -> str:
    """Return a time as text."""
    if seconds < 120:
        return f"{seconds} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{round(seconds / 3600)} h"


class Sparing(Wrapped):
    """A strategy that keeps faults rare in its runs, where most of what is possible is a fault."""

    def pick(self, options: Sequence[Option]) -> int:
        kept = rarely_faults(options, list(range(len(options))), self.chance)
        return kept[self.inner.pick([options[n] for n in kept])]


def without_faults(model: Model) -> Model:
    """Return a model without the faults that can be chosen; rules for certain messages stay."""
    if not model.faulty:
        return model
    faults = Faults(targets=model.faults.targets, links=model.faults.links, rules=model.faults.rules)
    return find_model(model.name).make(dict(model.sizes), dict(model.settings), model.network.name, faults)
