"""Messages in the labels of a trail: by the step that sent them, so that a label outlives a new field of its message.

The message that step 5 sent is `@5`; where a step sends several, the second is `@5.1`. Equal messages cannot be told
apart, so the step that sent the first of them names them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.model import Message

REFERENCE = re.compile(r"^(?P<name>.*) @(?P<at>\d+(?:\.\d+)?)$")


class References:
    """The messages that a run has sent so far, and the steps that name them."""

    def __init__(self) -> None:
        self._names: dict[Message, str] = {}
        self._messages: dict[str, Message] = {}

    def note(self, n: int, sent: Iterable[Message]) -> None:
        """Take note of the messages that step n sent."""
        for at, message in enumerate(sent):
            name = f"{n}.{at}" if at else str(n)
            self._messages[name] = message
            self._names.setdefault(message, name)

    def shortened(self, label: str, message: Message | None) -> tuple[str, str | None]:
        """Return the label for a trail's file, and the message in one line if a reference stands for it."""
        if message is None or message not in self._names:
            return label, None
        brief = message.brief()
        if not label.endswith(f" {brief}"):
            return label, None
        return f"{label[: -len(brief)]}@{self._names[message]}", brief

    def full(self, label: str) -> str:
        """Return the label of a step with its message in one line; one that refers to nothing known stays as it is."""
        found = REFERENCE.match(label)
        message = self._messages.get(found["at"]) if found is not None else None
        return label if found is None or message is None else f"{found['name']} {message.brief()}"
