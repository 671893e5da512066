"""Operations of clients on logs, as any system's client saw them: sends with the offsets they got, polls with records.

An operation that fails did not happen. One whose outcome is not known (`info`) happened if a record of it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from harness.model.values import Value
from harness.model.view import View

INVOKE, OK, FAIL, INFO, FAULT = "invoke", "ok", "fail", "info", "fault"
SEND, POLL, ASSIGN, SUBSCRIBE, CRASH = "send", "poll", "assign", "subscribe", "crash"
MIXED = ("send", "poll", "txn")
"""Operations that send and read, by their names."""


@attrs.frozen
class LogOperation:
    """An operation of a client as it begins or ends, or something that was done to the system."""

    n: int
    """Its place in the history, from 1."""
    at_us: int | None
    process: str
    outcome: str
    """`invoke`, `ok`, `fail` or `info` (outcome unknown); `fault` for what was done to the system."""
    name: str
    parts: tuple[Sequence[Any], ...]
    """What it consists of, as JSON: `["send", key, offset, value]`, the offset null where it is unknown;
    `["poll", [[key, [[offset, value], ...]], ...]]`, nothing before it has ended; `["assign", [key, ...], from start]`
    and `["subscribe", [key, ...], false]`."""


class TakenStep(Protocol):
    """A step of a run, as a history has it."""

    @property
    def n(self) -> int: ...

    @property
    def process(self) -> str: ...

    @property
    def action(self) -> str: ...

    @property
    def args(self) -> tuple[str, ...]: ...

    @property
    def received(self) -> Value: ...

    @property
    def sent(self) -> tuple[Value, ...]: ...

    @property
    def op(self) -> Mapping[str, Any] | None: ...


class ClientView(Protocol):
    """Makes operations of the steps of one run of a model: what its clients asked for, and what they got."""

    level: str
    """What readers are promised, by the name of a level of isolation."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """Return, in the end, what is not judged, and why."""

    def look(self, step: TakenStep) -> Iterable[LogOperation]:
        """Return what begins or ends with the next step."""

    def finish(self, n: int, view: View) -> Iterable[LogOperation]:
        """Return what never ended, from step n on, and a reader who reads all there is in the last state."""
