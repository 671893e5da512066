"""Actors with a decision changed on purpose, and a strategy that spares faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from harness.model import Actor, Message, Part, Turn

WITHIN, TIMES, STEPS = 15, 20, 80
"""Runs within which a mutation is found, how many times as many runs of its twin are silent, and steps of a run."""
Change = Callable[[Any, Turn[Any]], Turn[Any] | None]
"""From the local state before and the turn to what happens instead, or to None where the turn is not there."""


class Mutant(Actor[Any]):
    """An actor whose turns by one action are changed; starting again counts as a turn here."""

    def __init__(self, actor: Actor[Any], action: str, change: Change) -> None:
        self.name, self.initial = actor.name, actor.initial
        self.may_crash, self._actor, self._action, self._change = actor.may_crash, actor, action, change

    def turns(self, local: Any) -> Iterable[Turn[Any]]:
        return self._changed(local, self._actor.turns(local))

    def on_message(self, local: Any, message: Message) -> Iterable[Turn[Any]]:
        return self._changed(local, self._actor.on_message(local, message))

    def restarted(self, local: Any) -> Any:
        (turn,) = self._changed(local, [Turn("Restart", (self.name,), self._actor.restarted(local))])
        return turn.local

    def _changed(self, local: Any, turns: Iterable[Turn[Any]]) -> list[Turn[Any]]:
        found = (self._change(local, turn) if turn.action == self._action else turn for turn in turns)
        return [turn for turn in found if turn is not None]


def knowing(turn: Turn[Any], part: Part[Any] | None = None, **wrong: Any) -> Turn[Any]:
    """Return a turn after which the local state, or a part of it, is another one in these fields."""
    if part is None:
        return attrs.evolve(turn, local=attrs.evolve(turn.local, **wrong))
    return attrs.evolve(turn, local=turn.local.put(part, attrs.evolve(turn.local[part], **wrong)))
