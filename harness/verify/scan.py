"""One pass over the events of a recorded run: what each says and does, held against the model, and nothing kept of it.

Of a run of any length only the state after the last event stays, and what was found. A refinement looks ahead, so for
one the states stay, as ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from harness.memo.interning import Ids
from harness.model import Value, View
from harness.record import Event
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import DEADLOCK
from harness.verify.linearization import Taken
from harness.verify.refinement import Refiner, Trace, state_after
from harness.verify.well_formed import Consistency, Oddity, departure, wrong_with

MOST_ODDITIES = 5
"""Findings about the record itself that are kept; the first says the most."""


@attrs.frozen
class Broken:
    """A property that fails: where first, why, and whether the file claims it."""

    name: str
    step: int
    reason: str
    claimed: bool


@attrs.define(eq=False)
class SeenStep:
    """What was seen of a step, whatever its number and its time."""

    after: Ids
    """The state after it."""
    failing: Mapping[str, str]
    """The invariants that fail there, and why."""
    wrong: tuple[tuple[str, str], ...]
    """Rules of the record that it breaks, and how."""
    departs: str | None
    """Why the model's own actors would not take it so, where that was asked."""
    taken: Taken | None
    """The step as a refiner takes it; None if there is no step."""


class Scan:
    """Looks at the events of one run in their order, the initial one first."""

    def __init__(self, tables: Tables, refiner: Refiner | None, header: Mapping[str, Any], asks: bool = True) -> None:
        self.tables = tables
        self._asks = asks
        """Whether processes are asked if they would take the steps so: the steps of a session replayed here are theirs.
        """
        self.refiner = refiner
        self.steps = -1
        """How many steps there were; the initial event is none."""
        self.broken: dict[str, Broken] = {}
        """Each invariant that fails somewhere, where it first does."""
        self.misrecorded: str | None = None
        """The first event that does not say which invariants fail in its state."""
        self.departed: Oddity | None = None
        """The first step that the model's own actors would not take so."""
        self._claims = {*header["claims"], "(properties)"}
        self._consistency = Consistency(MOST_ODDITIES)
        self._state: Ids | None = None
        self._values: dict[str, Value] = {}
        self._failing: Mapping[str, str] = {}
        self._first: tuple[int, Mapping[str, str]] | None = None
        """The first state in which a claimed invariant fails, with all that fail there."""
        self._states: list[Ids] = []
        self._taken: list[Taken] = []

    def look(self, event: Event) -> None:
        """Look at the next event."""
        before, after = self._state, state_after(self.tables, self._state, event)
        failing = failing_in(self.tables, after) if after != before else self._failing
        wrong = tuple(wrong_with(self.tables.model, self._values, event))
        departs = None
        if self.departed is None and self._asks:
            departs = (departure(self.tables.model, View(self._values), event) if before is not None
                       else unusual_start(self.tables, after))
        taken = self.refiner.taken(event) if self.refiner is not None else None
        self.take(event.n, event.at_us, event.op, event.violated, SeenStep(after, failing, wrong, departs, taken))
        self._values.update(event.writes)
        if self.refiner is None and self.tables.is_full:
            self._state = self.tables.renewed_state(after)

    def take(
        self, n: int, at_us: int | None, op: Mapping[str, Any] | None, violated: Mapping[str, str], seen: SeenStep
    ) -> None:
        """Take in event n: its time, operation, what it says that fails, and what was seen of its step."""
        self._failing = found = seen.failing
        if found or (self.misrecorded is None and violated):
            self._properties(n, violated)
        self._consistency.take(n, at_us, op, seen.wrong)
        if seen.departs is not None and self.departed is None:
            self.departed = Oddity(n, seen.departs)
        if seen.taken is not None:
            if self._states:
                self._taken.append(seen.taken)
            self._states.append(seen.after)
        self._state = seen.after
        self.steps += 1

    def _properties(self, n: int, violated: Mapping[str, str]) -> None:
        found = self._failing
        for name, reason in found.items():
            if name not in self.broken:
                self.broken[name] = Broken(name, n, reason, name in self._claims)
        if self._first is None and not self._claims.isdisjoint(found):
            self._first = n, found
        if self.misrecorded is None and dict(violated) != found:
            said, true = (", ".join(sorted(names)) or "nothing" for names in (violated, found))
            if said == true:
                said, true = f"{said} for one reason", "it for another one"
            self.misrecorded = f"step {n} is recorded to violate {said}; its state violates {true}"

    @property
    def odd(self) -> tuple[Oddity, ...]:
        """What no run of the model is like, in the record itself."""
        return self._consistency.odd()

    @property
    def trace(self) -> Trace:
        """The run as a refiner takes it."""
        return Trace(self._states, self._taken)

    def differences(self, verdict: Mapping[str, Any]) -> tuple[str, ...]:
        """Return where what a history says about its states, and its verdict, is not what they say."""
        said = self._unlike(verdict)
        return tuple(sentence for sentence in (self.misrecorded, said) if sentence is not None)

    def _unlike(self, verdict: Mapping[str, Any]) -> str | None:
        kind, first = verdict.get("kind"), self._first
        if first is None and kind == "safety":
            return f"the recorded verdict is that {verdict['violated']} fails; no state violates a claim"
        if first is not None and kind != "safety":
            names = ", ".join(sorted(name for name in first[1] if name in self._claims))
            return f"the recorded verdict is {verdict_text(verdict)}; the state after step {first[0]} violates {names}"
        if first is not None and (verdict["step"] != first[0] or verdict["violated"] not in first[1]):
            return f"the recorded verdict is {verdict_text(verdict)}; a claimed property first fails at step {first[0]}"
        may_go_on = kind == "deadlock" and (self._state is None or self.tables.node(self._state).options)
        if kind == "deadlock" and (verdict["violated"] != DEADLOCK or may_go_on):
            return "the recorded verdict is a deadlock; the last state has a possible step"
        return None


def unusual_start(tables: Tables, state: Ids) -> str | None:
    """Return why a state, given as ids, is no initial one; None if it is."""
    return None if tables.starts_in(state) else f"{tables.model.name} does not start like this"


def failing_in(tables: Tables, state: Ids) -> dict[str, str]:
    """Return the invariants that fail in a state and why; an invariant whose check raises on the state fails too."""
    try:
        return tables.said(tables.checked(state))
    except Exception as error:
        return {"(properties)": f"they cannot be evaluated in this state: {type(error).__name__}: {error}"}


def verdict_text(verdict: Mapping[str, Any]) -> str:
    """Return a verdict in words."""
    return "that nothing is violated" if verdict["ok"] else f"{verdict['violated']} at step {verdict['step']}"
