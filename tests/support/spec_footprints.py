"""What each action of a spec reads, writes, takes and sends: asked in every state, not read off the code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import attrs

from harness.explore.plain import Traversal
from harness.model import Message, Model, State, View, find_model
from harness.model.spec import Action, Index, SpecProcess
from harness.model.view import parts


@attrs.define
class Footprint:
    """What an action has to do with: variables of the spec, and types of messages."""

    reads: set[str] = attrs.field(factory=set)
    writes: set[str] = attrs.field(factory=set)
    takes: set[str] = attrs.field(factory=set)
    sends: set[str] = attrs.field(factory=set)

    def look(self, model: Model, state: State, process: SpecProcess, one: Action, index: Index) -> None:
        """Add what an action does in one state, for one choice of what it ranges over."""
        arriving = model.arrivals(process, View(state)) if one.receives else ()
        for message in [(m,) for m in arriving if may_receive(one, index, m)] if one.receives else [()]:
            view = View(state)
            for step in one.steps(process.k, view, index, *message):
                self.writes.update(variable(name) for name, _ in step.writes)
                self.sends.update(type(sent).__name__ for sent in step.sent)
                self.takes.update(type(taken).__name__ for taken in message)
            self.reads.update(variable(name) for name in view.reads())


def may_receive(one: Action, index: Index, message: Message) -> bool:
    """Say whether an action is about a message, for one choice of who receives it and from whom."""
    return isinstance(message, one.receives) and index == (message.dest, message.source)[: len(index)]


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
    found: dict[str, Footprint] = {}
    for _, state, transitions in Traversal(model, lambda state: tuple(state.values())):
        for process in model.processes:
            assert isinstance(process, SpecProcess)
            for one, index in process.actions:
                found.setdefault(one.name, Footprint()).look(model, state, process, one, index)
        for _ in transitions:
            pass
    return found
