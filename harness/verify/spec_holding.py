"""The hunt's runs without a violation, checked against their spec as they are made."""

from __future__ import annotations

import attrs

from harness.record import Trail
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import Strategy
from harness.simulate.trails.replay import Replay
from harness.simulate.trails.shrink import perturbing_part, shrink_while
from harness.verify.explanation import explain
from harness.verify.refinement import Failure, Refiner


class SpecHolding(Refiner):
    """Holds runs on some tables against the spec of their model: a `harness.simulate.hunting.tasks.Holding`."""

    def run(self, plan: Plan, strategy: Strategy) -> tuple[Run, str | None]:
        """Make a run; return it, and why a step of it is none of the spec's."""
        run, refined = self.simulate(plan, strategy)
        return run, None if refined.failure is None else self._why(refined.failure)

    def shrunk(self, trail: Trail) -> tuple[Trail, str]:
        """Return a short trail that leaves the spec by the same action of the actors, and why it does."""
        failures: list[Failure] = []

        def still(candidate: Trail) -> Trail | None:
            run, failure = self._tried(candidate)
            if failure is None or (failures and failure.action != failures[0].action):
                return None
            failures.append(failure)
            return self._up_to(run.trail, failure)

        short = shrink_while(self.tables, trail, still)
        _, failure = self._tried(short)
        assert failure is not None
        return short, self._why(failure)

    def _tried(self, trail: Trail) -> tuple[Run, Failure | None]:
        """Replay the choices of a trail that are possible; return the run, and the first step that is no step."""
        self.make_room()
        run, trace = self.follow(Replay(self.tables, trail, loose=True))
        return run, self.judge(trace).failure

    def _up_to(self, trail: Trail, failure: Failure) -> Trail:
        """Return a trail without what comes after its failing step, where that still fails then.

        What comes after it may matter: a response counts when it is served if it is applied later.
        """
        if failure.step >= len(perturbing_part(trail)):
            return trail
        choices = tuple(trail.choices[: failure.step])
        cut = attrs.evolve(trail, choices=choices, fair_from=None, back_to=None)
        again = self._tried(cut)[1]
        return cut if again is not None and again.action == failure.action else trail

    def _why(self, failure: Failure) -> str:
        """Return in a sentence why a step is none of the spec's."""
        explained = explain(self, failure)
        said = [f"step {explained.step} is not a step of the spec: {explained.label}"]
        said += [f"nearest in the spec: {explained.nearest}"] if explained.nearest is not None else []
        return "; ".join([*said, *explained.why])


def held(tables: Tables) -> SpecHolding | None:
    """Return what checks runs on these tables against their spec, or None if the model names none."""
    return None if tables.model.refinement is None else SpecHolding(tables.model, tables, is_hasty=True)
