"""Plans: how runs of a model are made and judged, from a scenario or from the model alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from harness.model import Faults, Model, Scenario, find_runnable
from harness.record import Chosen, Trail
from harness.simulate.runs.timing import Timing


@attrs.frozen
class Plan:
    """How runs of a model are made and judged."""

    claims: tuple[str, ...]
    """Names of the properties that must hold."""
    steps: int = 200
    mode: str = "free"
    timeouts: int = 3
    """Timers that may fire in free mode while something else is possible."""
    scenario: str | None = None
    timing: Timing = Timing()
    stop_at_violation: bool = True


def plan_of(scenario: Scenario) -> Plan:
    """Return the plan of a scenario's runs."""
    return Plan(scenario.claims, scenario.steps, scenario.mode, scenario.timeouts, scenario.name)


def resolve(
    what: str, faults: Faults | None = None, sizes: Mapping[str, int] | None = None,
    settings: Mapping[str, str] | None = None,
) -> tuple[Model, Plan]:
    """Return the model and plan of a scenario, or of a model at its default sizes claiming everything. Refusal.

    Given faults replace the scenario's own, given sizes and settings those of the same names.
    """
    scenario, spec = find_runnable(what)
    base = scenario or Scenario(what, spec.title, what)
    model = spec.make({**base.sizes, **(sizes or {})}, {**base.settings, **(settings or {})}, base.network,
                      base.faults if faults is None else faults)
    return model, everything(model) if scenario is None else plan_of(scenario)


def everything(model: Model) -> Plan:
    """Return a plan that claims what a model claims, or else its every invariant and temporal property."""
    every = tuple(p.name for p in model.properties if p.is_safety or p.is_temporal)
    return Plan(model.claimed if model.claimed is not None else every)


def safety_only(plan: Plan, model: Model) -> Plan:
    """Return a plan that claims the invariants of another one only."""
    return attrs.evolve(plan, claims=tuple(name for name in plan.claims if model.property(name).is_safety))


def trail_of(
    model: Model, plan: Plan, strategy: str, seed: int, choices: Sequence[Chosen] = (), initial: int = 0,
    fair_from: int | None = None, back_to: int | None = None, violates: str | None = None,
) -> Trail:
    """Return the trail of a run; before its first step if no choices are given."""
    return Trail(model.name, model.sizes, model.settings, model.network.name, model.faults, plan.claims, choices,
                 plan.mode, strategy, seed, plan.scenario, initial, fair_from, back_to, violates)
