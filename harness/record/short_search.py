"""What a short search adds when runs found nothing: that a search of every state ends soon, and with what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from harness.record.wording import counted


@attrs.frozen
class Ahead:
    """A search that ends soon: of every state, or up to a violation."""

    command: str
    """The command that makes it."""
    states: int
    """The states that it visits."""
    violated: str | None = None
    """The invariant that it finds violated."""
    steps: int | None = None
    """The fewest steps to that violation."""
    raised: str | None = None
    """The exception that protocol code raises in it."""
    is_timed: bool = False
    """Whether the runs were in virtual time, which a search does not model."""

    @property
    def is_bad(self) -> bool:
        """Whether it finds something wrong that the runs did not show."""
        return self.violated is not None or self.raised is not None

    @property
    def sentence(self) -> str:
        """What it finds, in a sentence that leads to the command."""
        if self.raised is not None:
            return f"a search of every state raises an exception, {self.raised}:"
        if self.violated is not None:
            found = f"that {self.violated} is violated after {counted(self.steps or 0, 'step')}"
            return f"a search of every state{', without time,' if self.is_timed else ''} finds {found}:"
        return f"a search of all {counted(self.states, 'state')} finds no invariant violated:"

    def to_json(self) -> Mapping[str, Any]:
        """Return it as a JSON object."""
        return attrs.asdict(self)
