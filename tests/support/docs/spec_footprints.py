"""What each action of a spec reads, writes, takes and sends: asked in every state, not read off the code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import attrs

from harness.explore.plain import Traversal
from harness.model import Model, State, Step, View, find_model
from harness.model.spec import SpecProcess
from harness.model.view import parts


@attrs.define
class Footprint:
    """What an action has to do with: variables of the spec, and types of messages."""

    reads: set[str] = attrs.field(factory=set)
    writes: set[str] = attrs.field(factory=set)
    takes: set[str] = attrs.field(factory=set)
    sends: set[str] = attrs.field(factory=set)

    def look(self, model: Model, state: State, alone: SpecProcess) -> None:
        """Add what a process does in one state; it has one action, for one choice of what that ranges over."""
        view = View(state)
        self._add(view, alone.steps(view))
        for message in model.arrivals(alone, View(state)):
            view = View(state)
            if self._add(view, alone.receive(view, message)):
                self.takes.add(type(message).__name__)

    def _add(self, view: View, steps: Iterable[Step]) -> bool:
        """Add what steps do and what was read for them; return whether there are any."""
        there = tuple(steps)
        for step in there:
            self.writes.update(variable(name) for name, _ in step.writes)
            self.sends.update(type(sent).__name__ for sent in step.sent)
        self.reads.update(variable(name) for name in view.reads())
        return bool(there)


def variable(name: str) -> str:
    """Return what a slot holds: its variable, with the field if it is one, whoever's it is."""
    first, *index = parts(name)
    return ".".join([first, *(part for part in index if not part[-1].isdigit())])


def footprints(model: str, sizes: Mapping[str, int], settings: Mapping[str, str]) -> Mapping[str, Footprint]:
    """Return the footprint of each action of a spec, by its name, over all reachable states at a size."""
    return _footprints(model, tuple(sizes.items()), tuple(settings.items()))


@cache
def _footprints(
    name: str, sizes: tuple[tuple[str, int], ...], settings: tuple[tuple[str, str], ...]
) -> Mapping[str, Footprint]:
    model = find_model(name).make(dict(sizes), dict(settings))
    alone = []
    for process in model.processes:
        assert isinstance(process, SpecProcess)
        alone += [(one.name, SpecProcess(process.name, process.k, ((one, index),))) for one, index in process.actions]
    found = {action: Footprint() for action, _ in alone}
    for _, state, transitions in Traversal(model, lambda state: tuple(state.values())):
        for action, by_itself in alone:
            found[action].look(model, state, by_itself)
        for _ in transitions:
            pass
    return found
