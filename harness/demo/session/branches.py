"""What was done in a demo, and what may be done again: the steps of each branch, and how to get back to before a verb.

A branch holds all of its steps, those it shares with others included. Steps that are known by their label only (of a
trail that was opened) are ahead of it until the user goes there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from harness.model import Kind, Message, Step, Telling, Value
from harness.record import Chosen, Recorder
from harness.render.in_flight import MessageChanges
from harness.simulate.runs.run import Verdict

Mending = tuple[str, tuple[str, ...], str]
"""A step that mends a fault: its action, its arguments, the message that it is about."""
MENDED_BY = {"Crash": "Restart", "Pause": "Resume", "SkewClock": "SetClock", "Partition": "Heal", "Cut": "Heal",
             "Delay": "Release"}


def mending(step: Step) -> Mending:
    """Return what a step that mends is, or what would mend the fault that a step is."""
    action = MENDED_BY.get(step.action, step.action)
    return action, tuple(sorted(step.args)), step.detail


def own_faults_after(own_faults: frozenset[Mending], step: Step, by_hand: bool) -> frozenset[Mending]:
    """Return what would mend a person's own faults after a step."""
    if step.kind is Kind.HEAL:
        return own_faults - {mending(step)} if own_faults else own_faults
    if step.kind is not Kind.FAULT:
        return own_faults
    # An actor that was paused and is crashed by a strategy is down instead, and stays the person's.
    is_theirs = step.action == "Crash" and ("Resume", step.args, "") in own_faults
    return own_faults | {mending(step)} if (by_hand or is_theirs) and step.action in MENDED_BY else own_faults


@attrs.define(eq=False)
class StepRecord:
    """One step of a run, with all that is needed to come back to the state after it."""

    n: int
    chosen: Chosen
    process: str
    step: Step | None
    """None for the initial state."""
    state: tuple[Value, ...]
    """The state after the step: the values of the slots."""
    moved: MessageChanges
    lost: tuple[Message, ...]
    failing: Mapping[str, str]
    since: Mapping[str, int]
    """For each property that fails after the step: since which step."""
    witnessed: frozenset[str]
    violation: Verdict | None
    """The first violation of a claim on the way here."""
    timers: int
    """Timers that fired so far."""
    recorder: Recorder
    """The digest of the run so far."""
    text: str
    """The step as a JSON object."""
    by_hand: bool = False
    """Whether a person chose the step."""
    own_faults: frozenset[Mending] = frozenset()
    """What would mend the faults that a person injected and that still hold."""
    telling: Telling | None = None
    """What the step shows, if its process tells it."""


@attrs.frozen
class Ending:
    """How a trail ends beyond its steps: the fair ending, the step it leads back to, what it violates by that."""

    steps: int
    fair_from: int | None
    back_to: int | None
    fairness: str | None
    strategy: str
    seed: int
    verdict: Verdict | None
    text: str


@attrs.define(eq=False)
class RunBranch:
    """One line of steps. `records[n]` is step n, as far as the user went; the choices of the others are `ahead`."""

    name: str
    records: list[StepRecord]
    ahead: list[Chosen] = attrs.field(factory=list)
    origin: str | None = None
    """The branch from which this one was made."""
    fork: int = 0
    """The last step that both share."""
    at: int = 0
    """Where the user was last."""
    ending: Ending | None = None
    shrunk: Mapping[str, Any] | None = None
    """The outcome of shrinking its violation: the lengths before and after, and whether nothing shorter is possible."""

    @property
    def length(self) -> int:
        return len(self.records) - 1 + len(self.ahead)

    def choice(self, n: int) -> Chosen:
        """Return the choice of step n, from 1."""
        known = len(self.records) - 1
        return self.records[n].chosen if n <= known else self.ahead[n - known - 1]

    def cut(self, length: int) -> None:
        """Forget the steps after so many."""
        known = len(self.records) - 1
        del self.ahead[max(0, length - known) :]
        del self.records[length + 1 :]
        if self.ending is not None and self.ending.steps > length:
            self.ending = None


@attrs.frozen
class Memento:
    """Where everything was before a verb."""

    names: tuple[str, ...]
    current: str
    at: int
    length: int
    outcome: str | None = None
    """The outcome of the run that had ended there."""


@attrs.frozen
class LeftSession:
    """That another session was left for this one, by its number."""

    number: int
