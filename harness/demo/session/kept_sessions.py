"""Sessions that were left for another one: kept as they were, so that they can be reopened."""

from __future__ import annotations

from typing import Any

import attrs

from harness.demo.session.run_state import RunState
from harness.model import Refusal

MOST_UNTOUCHED = 50
"""Sessions without a step that are kept, for undo alone."""


@attrs.frozen(eq=False)
class KeptSession:
    """A session that was left: what a list says of it, and all that it was."""

    number: int
    what: str
    """The scenario, tour or model."""
    title: str
    at: int
    steps: int
    """Steps of the branch that was shown."""
    branches: int
    violates: str | None
    is_touched: bool
    """Whether any step was taken in it."""
    held: RunState

    def to_json(self) -> dict[str, Any]:
        """Return what a list says of it, as a JSON object."""
        names = ("number", "what", "title", "at", "steps", "branches", "violates")
        return {name: getattr(self, name) for name in names}


class KeptSessions:
    """The sessions that were left, by number. A session that was stepped stays until it is reopened."""

    def __init__(self) -> None:
        self._kept: dict[int, KeptSession] = {}
        self._last = 1

    def number(self) -> int:
        """Return the number of a new session."""
        self._last += 1
        return self._last

    def put(self, kept: KeptSession) -> None:
        """Keep a session. Of the sessions without a step, the oldest are dropped."""
        self._kept[kept.number] = kept
        untouched = [number for number, known in self._kept.items() if not known.is_touched]
        for number in untouched[:-MOST_UNTOUCHED]:
            del self._kept[number]

    def find(self, number: int) -> KeptSession:
        """Return a session that is kept. Raises Refusal."""
        if number not in self._kept:
            known = ", ".join(str(kept.number) for kept in self.listed())
            raise Refusal(f"there is no session {number} to reopen; kept are {known or 'none'}")
        return self._kept[number]

    def take(self, number: int) -> None:
        """Forget a session, which is shown again."""
        del self._kept[number]

    def listed(self) -> list[KeptSession]:
        """Return the sessions in which a step was taken, the one left last first."""
        return [kept for kept in reversed(self._kept.values()) if kept.is_touched]
