"""A fault, a mending or an election that an application asks for, and which options of a state would be one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from harness.model import Kind

if TYPE_CHECKING:
    from harness.simulate.states.nodes import Option

FROM_OUTSIDE = (Kind.FAULT, Kind.HEAL, Kind.PERTURBATION)
"""What the environment does."""


@attrs.frozen
class Wish:
    """A step of the environment that a caller waits for: its action, the actors it is about, and which messages."""

    action: str
    who: tuple[str, ...] = ()
    message: str = ""
    """The type of the message that the fault hits, or none."""
    source: str = ""
    dest: str = ""

    def among(self, options: Sequence[Option]) -> int:
        """Return the first option that is what was asked for, or -1."""
        return next((n for n, option in enumerate(options) if self.fits(option)), -1)

    def fits(self, option: Option) -> bool:
        """Say whether an option is what was asked for."""
        step = option.choice.step
        if option.kind not in FROM_OUTSIDE or step.action != self.action or step.args[: len(self.who)] != self.who:
            return False
        if not (self.message or self.source or self.dest):
            return True
        hit = step.consumed or next(iter(step.sent), None)
        if hit is None:  # a release or a reconnection names the message, or the connection, in its detail
            wanted = (self.message, f"{self.source}->" if self.source else "", f"->{self.dest}" if self.dest else "")
            return all(part in step.detail for part in wanted)
        return all(
            wanted in ("", found)
            for wanted, found in ((self.message, hit.type), (self.source, hit.source), (self.dest, hit.dest))
        )

    def __str__(self) -> str:
        link = f"{self.source or 'anybody'} to {self.dest or 'anybody'}" if self.source or self.dest else ""
        about = " from ".join(part for part in (self.message, link) if part)
        return f"{self.action}({','.join(self.who)})" + (f" of {about}" if about else "")
