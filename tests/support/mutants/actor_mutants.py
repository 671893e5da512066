"""Actors with a decision changed on purpose, and a strategy that spares faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from harness.model import Actor, Message, Model, Part, Turn
from harness.record import Recorder
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.states.nodes import Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import UNFAIR, RandomStrategy
from kafka_proto.requests.transaction_state import TxnState
from kafka_proto.transactions.log import Committed

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


def is_writing(option: Option) -> bool:
    """Say whether an entry is on its way into the log, or the news of it to a broker."""
    return option.action in ("AppendTxnLogEntry", "CommitTxnLogAppend", "ReceiveCommitted")


def is_aborting(option: Option) -> bool:
    """Say whether a broker is yet to hear that an abort is prepared."""
    return isinstance(option.message, Committed) and option.message.entry.transition.state is TxnState.PREPARE_ABORT


class Sparing(RandomStrategy):
    """Any possible step, but elections and crashes only at a delicate moment: else most come too early to matter."""

    name = "sparing"

    def __init__(self, seed: int, delicate: Callable[[Option], bool] = is_writing) -> None:
        super().__init__(seed)
        self._delicate = delicate

    def pick(self, options: Sequence[Option]) -> int:
        now = any(self._delicate(option) for option in options) or all(option.kind in UNFAIR for option in options)
        kept = [n for n, option in enumerate(options) if now or option.kind not in UNFAIR]
        return kept[super().pick([options[n] for n in kept])]


def mutated(model: Model, action: str, change: Change) -> Model:
    """Return a model whose actors take other turns by an action."""
    return attrs.evolve(model, processes=tuple(Mutant(actor, action, change) for actor in model.processes))


def found(tables: Tables, invariant: str) -> Run:
    """Return the first run that breaks an invariant."""
    runs = (run_plain(tables, Plan((invariant,), steps=STEPS), Sparing(n), Recorder()) for n in range(WITHIN))
    return next(run for run in runs if not run.verdict.ok)
