"""What a demo shows: a model, a scenario or a trail, with the faults that a person may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from harness.model import (
    NO_FAULTS,
    Faults,
    Model,
    ModelSpec,
    Refusal,
    Scenario,
    find_model,
    find_runnable,
    find_scenario,
    model_specs,
    scenarios,
    tours,
)
from harness.record import Trail
from harness.simulate.runs.plan import Plan, everything, plan_of

GENEROUS = 99
"""How often a person may use each kind of fault by default."""
BUDGETS = ("own", "generous")


@attrs.frozen(eq=False)
class OpenedModel:
    """A model that is shown, and how runs of it are judged."""

    model: Model
    plan: Plan
    title: str
    budget: str
    """`own`: the faults of the scenario or trail; `generous`: the person may inject any fault, any time."""
    initial: int = 0


def open_what(
    what: str, sizes: Mapping[str, int] | None = None, settings: Mapping[str, str] | None = None,
    budget: str | None = None,
) -> OpenedModel:
    """Open a scenario with its own budget, a model with a generous one, or either with `budget`. Raises Refusal."""
    if budget not in (None, *BUDGETS):
        raise Refusal(f"expected the budget {' or '.join(BUDGETS)}, found {budget!r}")
    scenario, spec = find_runnable(what, or_tour=True)
    base = scenario or Scenario(what, spec.title, what)
    budget = budget or ("generous" if scenario is None else "own")
    chosen = ({**base.sizes, **(sizes or {})}, {**base.settings, **(settings or {})}, base.network)
    faults = base.faults
    if budget == "generous":
        faults = generous(spec, spec.make(*chosen), base.mode)
    model = spec.make(*chosen, faults)
    plan = everything(model) if scenario is None else plan_of(scenario)
    return OpenedModel(model, plan, base.title, budget if model.faulty else "own")


def open_trail(trail: Trail) -> OpenedModel:
    """Open the model of a trail, under the trail's own faults. Raises Refusal."""
    model = trail.build()
    plan = Plan(trail.claims, len(trail.choices), trail.mode, scenario=trail.scenario)
    scenario = find_scenario(trail.scenario) if trail.scenario else None
    title = scenario.title if scenario is not None else find_model(trail.model).title
    return OpenedModel(model, plan, title, "own", trail.initial)


def generous(spec: ModelSpec, model: Model, mode: str) -> Faults:
    """Return a budget of every kind of fault that the model and its network know, for every actor."""
    if not spec.may_fault:
        return NO_FAULTS
    return Faults(
        drop=GENEROUS, duplicate=0 if model.network.name == "unordered-set" else GENEROUS, delay=GENEROUS,
        reorder=GENEROUS if model.network.name == "fifo" else 0, partition=GENEROUS, one_way=GENEROUS, pause=GENEROUS,
        crash=GENEROUS, skew=GENEROUS if mode == "timed" else 0, targets=tuple(model.actors),
    )


def catalogue() -> dict[str, Any]:
    """Return what can be opened, as a JSON object."""
    return {
        "models": [_model_json(spec) for spec in model_specs()],
        "scenarios": [
            {"name": row.name, "title": row.title, "model": row.model, "expected": row.expected} for row in scenarios()
        ],
        "tours": [
            {"name": tour.name, "title": tour.title, "model": tour.model, "length": len(tour.steps)} for tour in tours()
        ],
    }


def _model_json(spec: ModelSpec) -> dict[str, Any]:
    return {
        "name": spec.name, "title": spec.title, "faults": spec.may_fault,
        "sizes": {name: attrs.asdict(size) for name, size in spec.sizes.items()},
        "settings": {name: {**attrs.asdict(setting), "values": list(setting.values)}
                     for name, setting in spec.settings.items()},
    }
