"""A session whose steps come from a driver while they happen, as those of real clients; a person may act on it.

The driver hands in input from outside the model, which costs it nothing: the model takes it, as in a replay, when it is
shown. It is shown in its order, while the present is at the end of what was shown. Going back lets what comes meanwhile
wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol

import attrs

from harness.demo.session.as_json import Json
from harness.demo.session.interactive_run import MOST_STEPS
from harness.demo.session.live_session import LiveSession
from harness.demo.session.opened_model import OpenedModel
from harness.model import Value
from harness.record.choices import ChosenInput
from harness.record.wording import counted


@attrs.frozen
class Deed:
    """What a person may do to what is driven: a fault or its end, by a name that no other one has now."""

    label: str
    verb: str
    """What sort of step it is, as those of models have."""
    action: str
    """How the label begins: what is done, in a word or two."""
    actors: tuple[str, ...] = ()
    message: str | None = None
    """The id of the message in flight that it is about."""

    def to_json(self) -> Json:
        """Return it as a step that is possible now."""
        return {
            "index": -1, "label": self.label, "action": self.action, "kind": "fault",
            "args": self.label.removeprefix(self.action).split(),
            "process": self.actors[0] if self.actors else "environment", "verb": self.verb, "message": self.message,
            "actors": list(self.actors), "spec": None, "outside": True,
        }


class Driven(Protocol):
    """What drives a session."""

    def deeds(self) -> Iterable[Deed]:
        """Yield what may be done now."""

    def do(self, label: str) -> None:
        """Do one of those. Raises Refusal if it is none of them any more."""


class FedSession(LiveSession):
    """A session that is fed."""

    def __init__(self, opened: OpenedModel, driven: Driven) -> None:
        super().__init__(opened)
        self._driven = driven
        self._fed = self._held
        self._waiting = deque[tuple[str, Value]]()
        self.branch.name = "live"
        self._held.branches = {"live": self.branch}

    def put(self, process: str, value: Value) -> None:
        """Note that a process took a value. Those beyond what a session holds are not shown."""
        if len(self._fed.branches["live"].records) + len(self._waiting) <= MOST_STEPS:
            self._waiting.append((process, value))

    @property
    def is_fed(self) -> bool:
        return self._held is self._fed

    @property
    def may_catch_up(self) -> bool:
        """Say whether a step waits that may be shown now."""
        return self.is_fed and bool(self._waiting) and self.at == self.branch.length and self.branch.name == "live"

    def catch_up(self) -> None:
        """Show the next step."""
        self._held.node = self.tables.with_input(self.node, ChosenInput.of(*self._waiting.popleft()))
        self.took(0, self.tables.follow(self.node, 0))

    def deeds(self) -> list[Json]:
        return [deed.to_json() for deed in self._driven.deeds()] if self.is_fed else []

    def do(self, label: str) -> bool:
        if not self.is_fed or all(deed.label != label for deed in self._driven.deeds()):
            return False
        self._driven.do(label)
        self._changed(self.at)
        return True

    def over(self) -> str | None:
        if not self.is_fed:
            return super().over()
        if self.at >= MOST_STEPS:
            return f"a page shows {MOST_STEPS:,} steps; the session's trail has all"
        return f"live: {counted(len(self._waiting), 'step')} more" if self._waiting else "live: clients act"
