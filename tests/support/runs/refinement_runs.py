"""Models that are changed on purpose: their refinement, or an actor."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from harness.model import Actor, Model, Refinement, Value, View, parts
from support.mutants.actor_mutants import Change, Mutant


def remade(model: Model, change: Callable[[Refinement], Refinement]) -> Model:
    """Return a model under a changed refinement."""
    assert model.refinement is not None
    changed = change(model.refinement())
    return attrs.evolve(model, refinement=lambda: changed)


def acting(model: Model, action: str, change: Change, actor: str | None = None) -> Model:
    """Return a model in which an actor, or every one, takes other turns by an action."""
    wrong = (Mutant(p, action, change) if isinstance(p, Actor) and actor in (None, p.name) else p
             for p in model.processes)
    return attrs.evolve(model, processes=tuple(wrong))


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
