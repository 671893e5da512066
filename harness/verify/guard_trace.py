"""Watching a process decide: which functions of the protocol it calls for its steps, and which lines each executes.

Nothing of the protocol is changed for this: Python's own tracing tells which lines are executed. What guards these are,
`conditions` says.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import attrs

from harness.model import Decided, Step, Turn
from harness.model.spec import Action, Change
from harness.simulate.states.guards import source_of

_OF_SPEC = Action.steps.__code__
_MAKERS = (Step.__init__.__code__, Turn.__init__.__code__)
_CHANGES = (Change.__init__.__code__, Decided.__attrs_post_init__.__code__)


class TracedCall:
    """A call of a function of the protocol: what it was given, the lines it executed, what it called and made."""

    def __init__(self, frame: FrameType, parent: TracedCall | None) -> None:
        self.code = frame.f_code
        self.parent = parent
        self.began_at = len(parent.lines) if parent is not None else 0
        """How many lines the caller had executed."""
        self.given = dict(frame.f_locals)
        self.lines: list[int] = []
        self.known: dict[int, dict[str, Any]] = {}
        """The local variables before a line was last executed."""
        self.seen: list[dict[str, Any]] = []
        """The local variables before each of the lines."""
        self.globals = frame.f_globals
        self.calls: list[tuple[int, TracedCall]] = []
        self.made: list[tuple[str, tuple[str, ...], TracedCall | None]] = []
        """Action and arguments of each step or turn made here, and the generator it was made from, if any."""
        self.made_at: list[int] = []
        """How many lines were executed before each was made."""
        self.decided: list[tuple[str, tuple[str, ...], int]] = []
        """Action and arguments of each step whose change was made here, and how many lines were executed before."""
        self.gave = False
        self.returned: int | None = None
        self.is_generator = bool(frame.f_code.co_flags & inspect.CO_GENERATOR)
        self.is_over = False


@attrs.frozen
class FailedGuard:
    """The condition at which a call stopped, or another line if there was no condition."""

    file: str
    line: int
    text: str
    values: tuple[str, ...] = ()
    """The local variables in it: `name = value`."""
    inner: FailedGuard | None = None
    """The line of the decision function that it asks, where it asks one."""

    def sentence(self) -> str:
        """Return the guard as part of a sentence."""
        values = f", with {', '.join(self.values)}" if self.values else ""
        inner = f"; there {self.inner.sentence()}" if self.inner is not None else ""
        return f"{self.file}:{self.line}: {self.text}{values}{inner}"


def watch(ask: Callable[[], Iterable[Step]]) -> list[TracedCall]:
    """Return every call of the protocol's functions that it takes to ask for steps, in order."""
    calls: list[TracedCall] = []
    by_frame: dict[FrameType, TracedCall] = {}
    yielded: list[TracedCall] = []  # of a spec's action: the harness makes a step of each change
    changes: dict[int, tuple[TracedCall, int, object]] = {}  # what was decided lives on, so that its id stays its own

    def owner(frame: FrameType | None) -> TracedCall | None:
        while frame is not None:
            if frame in by_frame:
                return by_frame[frame]
            frame = frame.f_back
        return None

    def on_call(frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if code in _CHANGES:
            if (call := owner(frame.f_back)) is not None:
                changes[id(frame.f_locals["self"])] = (call, len(call.lines), frame.f_locals["self"])
            return None
        if code in _MAKERS:
            call = owner(frame.f_back)
            if call is None and yielded and frame.f_back is not None and frame.f_back.f_code is _OF_SPEC:
                call = yielded[-1]
                change = frame.f_back.f_locals["change"]
                maker, at, _ = changes.get(id(change), (call, len(call.lines), None))
                maker.decided.append((frame.f_locals["action"], tuple(frame.f_locals["args"]), at))
            if call is not None:
                made = frame.f_locals
                of = next((id(value) for value in call.given.values() if id(value) in changes), None)
                call, at, _ = changes[of] if of is not None else (call, len(call.lines), None)
                open_ = [c for _, c in call.calls if c.is_generator and not c.is_over and c.gave]
                call.made.append((made["action"], tuple(made["args"]), open_[-1] if open_ else None))
                call.made_at.append(at)
            return None
        if source_of(frame) is None:
            return None
        if frame not in by_frame:
            parent = owner(frame.f_back)
            if code.co_name.startswith("<") and parent is not None:
                by_frame[frame] = parent
            else:
                call = by_frame[frame] = TracedCall(frame, parent)
                calls.append(call)
                if parent is not None:
                    parent.calls.append((parent.lines[-1] if parent.lines else 0, call))
        return on_line

    def on_line(frame: FrameType, event: str, arg: Any) -> Any:
        call = by_frame[frame]
        if event == "line":
            call.lines.append(frame.f_lineno)
            if call.code is frame.f_code:
                call.known[frame.f_lineno] = dict(frame.f_locals)
            call.seen.append(call.known.get(frame.f_lineno, {}))
        elif event == "return" and call.code is frame.f_code:
            call.gave = call.gave or bool(arg)
            if call.is_generator and call.parent is None:
                yielded.append(call)
            call.is_over = arg is None
            call.returned = frame.f_lineno
        return on_line

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        for _ in ask():
            pass
    except Exception:
        pass  # a state that comes from a mapping may be one that the spec's functions were not written for
    finally:
        sys.settrace(before)
    return calls
