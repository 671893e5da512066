"""What a step shows to people where a process stands for many: lifelines, messages between them, what became of them.

A process whose steps are input from outside has no messages on the model's network. It may tell of each step who did
what (`Step.told`), for timelines and the demo. Nothing decides by it, and no file or digest has it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from harness.model.gate import Gate
from harness.model.message import Message

DELIVERED = "delivered"
"""The fate of a told message that arrived; its others are those of messages: held, released, dropped, lost."""


@attrs.frozen
class ShownMessage(Message):
    """A message as people read it: what it is called, and names with values, those first that matter most."""

    name: str
    about: tuple[tuple[str, str], ...] = ()

    @property
    def type(self) -> str:
        return self.name

    @property
    def fields(self) -> str:
        """The names with values, in one line."""
        return " ".join(f"{name}={value}" if value else name for name, value in self.about)

    def brief(self) -> str:
        return " ".join(filter(None, (self.name, f"{self.source}->{self.dest}", self.fields)))


@attrs.frozen
class ToldMessage:
    """A message that a step tells of; no other one of the run has its id."""

    id: str
    message: ShownMessage
    copy_of: str | None = None
    """For a duplicate: the id of the original."""
    is_minor: bool = False
    """Whether it is left out where only what matters is shown."""


@attrs.frozen
class Telling:
    """What a step shows: where it stands, in words, and the messages that it sent, delivered, held or lost."""

    lane: str
    label: str
    """Empty if the messages say it all."""
    lanes: tuple[str, ...]
    """All lifelines that the run has so far, in the order in which they stand."""
    sent: tuple[ToldMessage, ...] = ()
    fates: tuple[tuple[str, str], ...] = ()
    """What befell messages, by their ids, in this order."""
    changed: tuple[str, ...] = ()
    gates: Mapping[str, Gate] = attrs.field(factory=dict)
    """The lifelines that are down, paused or cut off."""
    sort: str = ""
    """What sort of fault or mending it is, as `crash`; empty if it is neither."""
    is_minor: bool = False
    """Whether it is folded away where only what matters is shown."""

    @property
    def headline(self) -> str:
        """The label, or else the first message that matters."""
        first = next((told.message for told in self.sent if not told.is_minor or self.is_minor), None)
        return self.label or (first.name if first is not None else "")
