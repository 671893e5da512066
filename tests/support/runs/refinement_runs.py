"""What tests of refinements share: models whose refinement is changed on purpose, and the runs of a strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from harness.model import Model, Refinement, Value, View, parts
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies


def refinement_of(model: Model) -> Refinement:
    """Return the refinement of a model that has one."""
    assert model.refinement is not None
    return model.refinement()


def remade(model: Model, change: Callable[[Refinement], Refinement]) -> Model:
    """Return a model under a changed refinement."""
    changed = change(refinement_of(model))
    return attrs.evolve(model, refinement=lambda: changed)


def freezing(variable: str) -> Callable[[Refinement], Refinement]:
    """Return the change after which the mapping leaves a variable, or a field of one, as it was at first."""

    def change(sound: Refinement) -> Refinement:
        start = {name: value for name, value in sound.spec.initial_states()[0].items() if variable in parts(name)}

        def abstract(view: View, ghost: Value) -> tuple[Mapping[str, Value], Value]:
            state, after = sound.abstract(view, ghost)
            return {**state, **start}, after

        return attrs.evolve(sound, abstract=abstract)

    return change


def lacking(extension: str) -> Callable[[Refinement], Refinement]:
    """Return the change after which the spec is without an extension action, where that is a process of its own."""

    def change(sound: Refinement) -> Refinement:
        processes = tuple(p for p in sound.spec.processes if parts(p.name)[0] != extension)
        return attrs.evolve(
            sound, spec=attrs.evolve(sound.spec, processes=processes),
            by={name: actions for name, actions in sound.by.items() if name != extension},
            extensions={name: reason for name, reason in sound.extensions.items() if name != extension},
        )

    return change


def runs_of(tables: Tables, plan: Plan, strategy: str) -> Iterator[Run]:
    """Yield the runs of a strategy, for ever or until it is exhausted."""
    source, seed = Strategies(strategy), 0
    while (chosen := source.run(seed)) is not None:
        yield run_plain(tables, plan, chosen)
        seed += 1
