"""Exceptions of protocol code: a finding like any violation, described in a sentence with the line that raised."""

from __future__ import annotations

import linecache
from traceback import walk_tb
from types import TracebackType

from harness.simulate.states.guards import NOT_PROTOCOL, package_of

RAISED = "Exception"
"""The name of the violation when protocol code raises an exception."""
KIND = "exception"
"""The kind of that verdict."""
LONGEST = 300
"""Characters of an exception's own message that are shown."""


def sentence(error: Exception) -> str:
    """Return an exception in a sentence: its type and the line that raised, then its message."""
    message = " ".join(str(error).split())
    shown = message if len(message) <= LONGEST else f"{message[:LONGEST]}..."
    return f"{type(error).__name__} raised {_place(error.__traceback__)}{f': {shown}' if shown else ''}"


def is_same(one: str | None, other: str | None) -> bool:
    """Say whether two such sentences name the same type of exception from the same line."""
    return _without_message(one) == _without_message(other)


def _without_message(sentence: str | None) -> str:
    head, bracket, rest = (sentence or "").partition(" [")
    return f"{head}{bracket}{rest.partition(']: ')[0]}"


def _place(traceback: TracebackType | None) -> str:
    """Return the innermost line of protocol code, or else of any code: `in serve (log.py, line 8) [...]`."""
    frames = list(walk_tb(traceback))
    if not frames:
        return "nowhere"
    ours = [each for each in frames if package_of(each[0]) not in NOT_PROTOCOL]
    frame, line = (ours or frames)[-1]
    code = frame.f_code
    file = code.co_filename.replace("\\", "/").rpartition("/")[2]
    text = linecache.getline(code.co_filename, line).strip()
    return f"in {code.co_name} ({file}, line {line}) [{text}]"
