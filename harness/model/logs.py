"""Logs of a model as a viewer sees them: partitions with their records, marks at offsets, what is known besides.

A model that has logs gives a function from a view of a state to these (`Model.logs`). Nothing decides by them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import attrs

from harness.model.view import View

Details = tuple[tuple[str, str], ...]
"""Names and values, in the order in which they are read."""


class EntryKind(StrEnum):
    """What an entry is: a record outside of transactions, one of an open, committed or aborted one, or a marker."""

    PLAIN = "plain"
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    COMMIT_MARKER = "commit marker"
    ABORT_MARKER = "abort marker"


@attrs.frozen
class LogEntry:
    """A record at its offset: `note` is a word or two beside the offset, `seen_by` names the readers that got it."""

    offset: int
    text: str
    kind: EntryKind = EntryKind.PLAIN
    note: str = ""
    seen_by: tuple[str, ...] = ()
    details: Details = ()


@attrs.frozen
class LogMark:
    """An offset with a name, such as a high watermark, and its `label`, which is short. What is below it is before."""

    name: str
    label: str
    offset: int


@attrs.frozen
class ShownLog:
    """The log of a partition as one holder has it, by offset; `details` are of the log, as its producers' state."""

    partition: str
    holder: str
    end: int
    """The offset that the next record gets."""
    entries: tuple[LogEntry, ...] = ()
    marks: tuple[LogMark, ...] = ()
    details: Details = ()
    facts: Details = ()
    """What stands beside the name of the log, such as its leader."""


Logs = Callable[[View], tuple[ShownLog, ...]]
