"""Loads what an entry point of another package names; if that fails, a sentence says which one and why."""

from __future__ import annotations

import traceback
from importlib.metadata import EntryPoint
from typing import TypeVar

T = TypeVar("T")

LOADERS = ("<frozen importlib", "importlib/", __file__)
"""Files, by parts of their names, that never contain a plug-in's mistake."""


class NotLoaded(Exception):
    """A plug-in that cannot be loaded: a sentence with its name, what is wrong, and in which file and line."""


def load(entry: EntryPoint, kind: type[T]) -> T:
    """Return what an entry point names, or what that returns if it is a function. Raises NotLoaded."""
    try:
        found = entry.load()
        if callable(found) and not isinstance(found, kind):
            found = found()
    except Exception as error:
        raise _not_loaded(entry, f"{_said(error)}{_where(error)}") from error
    if not isinstance(found, kind):
        raise _not_loaded(entry, f"it is of the type {type(found).__name__}, not {kind.__name__}")
    return found


def _not_loaded(entry: EntryPoint, why: str) -> NotLoaded:
    return NotLoaded(f"the plug-in {entry.name} ({entry.value}, of the entry points {entry.group}) cannot be loaded: "
                     f"{why}; repair or uninstall it")


def _said(error: Exception) -> str:
    """Return an error in one line."""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return " ".join(f"{type(error).__name__}: {said}".split())


def _where(error: Exception) -> str:
    """Return file and line of an error; nothing where the plug-in's code was not reached."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f" in {error.filename}, line {error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if not any(part in frame.filename for part in LOADERS)]
    return f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
