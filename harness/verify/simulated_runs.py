"""Many runs of a model of actors, simulated and checked against the spec, and what they come to together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from harness.memo.interning import long_lived
from harness.model import Model
from harness.record import Trail
from harness.simulate.runs.plan import Plan
from harness.simulate.states.guards import Guards
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.verify.explanation import Explanation, explain
from harness.verify.refinement import Refined, Refiner

Report = Callable[[int, int, str], None]


@attrs.define
class Totals:
    """What runs come to together, in terms of the spec."""

    runs: int = 0
    steps: int = 0
    stutters: int = 0
    actions: Counter[str] = attrs.field(factory=Counter)
    """How often each action of the spec was taken; those never taken are not there."""
    extensions: Counter[str] = attrs.field(factory=Counter)
    """The same for each extension action, with zeros."""
    pairs: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    """How often an action of the actors was which of the spec, as in `Refined`."""
    reached: set[int] = attrs.field(factory=set)
    """Fingerprints of the spec's states that were reached."""
    untaken: tuple[str, ...] = ()
    """Actions of the spec that were possible somewhere and are no run's step: a mapping may be blind to them."""
    violated: Counter[str] = attrs.field(factory=Counter)
    """How many runs violate each claimed property."""
    failed: int = 0
    """Runs with a step that the spec does not allow."""
    seed: int | None = None
    """The first of these runs: its seed, why it leaves the spec, and its trail."""
    explanation: Explanation | None = None
    trail: Trail | None = None
    interrupted: bool = False

    def add(self, refined: Refined) -> None:
        """Count a run."""
        self.runs += 1
        self.steps += refined.steps
        self.stutters += refined.stutters
        self.actions.update(refined.actions)
        self.extensions.update(refined.extensions)
        self.pairs.update(refined.pairs)
        self.reached |= refined.reached
        self.failed += refined.failure is not None

    def by_action(self) -> dict[str, dict[str, int]]:
        """Return, for each action of the actors, how often it was which action of the spec; a stutter is `stutter`."""
        found: dict[str, dict[str, int]] = {}
        for (action, name), count in sorted(self.pairs.items()):
            found.setdefault(action, {})[name or "stutter"] = count
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the totals as a JSON object, without the trail."""
        return {
            "runs": self.runs, "steps": self.steps, "stutters": self.stutters, "actions": dict(sorted(
                self.actions.items())), "extensions": dict(sorted(self.extensions.items())),
            "spec_states": len(self.reached), "violated": dict(sorted(self.violated.items())), "failed": self.failed,
            "by_action": self.by_action(), "untaken": list(self.untaken),
            "seed": self.seed, "interrupted": self.interrupted,
            "explanation": None if self.explanation is None else self.explanation.to_json(),
        }


def refine_runs(
    model: Model, plan: Plan, seeds: Iterable[int], strategy: str = "random", refiner: Refiner | None = None,
    progress: Report | None = None, stop: bool = False,
) -> Totals:
    """Simulate runs of a model and hold each against its spec, to the end or to the first failure (`stop`).

    An interrupt ends it; the totals are then those of the runs made, and say so. Raises Refusal.
    """
    is_ours = refiner is None
    refiner = refiner or Refiner(model, Tables(model, Guards() if strategy == "guided" else None))
    totals, source, planned = Totals(), Strategies(strategy), list(seeds)
    with long_lived():
        try:
            for seed in planned:
                chosen = source.run(seed)
                if chosen is None:
                    break
                run, refined = refiner.simulate(plan, chosen)
                totals.add(refined)
                totals.violated.update(verdict.violated for verdict in run.violations if verdict.violated)
                if refined.failure is not None and totals.explanation is None:
                    totals.seed, totals.trail = seed, run.trail
                    totals.explanation = explain(refiner, refined.failure)
                    if stop:
                        break
                if progress is not None:
                    progress(totals.runs, len(planned), f"{totals.failed:,} failed")
        except KeyboardInterrupt:
            totals.interrupted = True
    totals.untaken = tuple(sorted(refiner.possible - set(totals.actions) - set(totals.extensions)))
    if is_ours:
        refiner.close()
    return totals
