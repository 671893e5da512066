"""Histories in a line: `PROCESS NAME WORD...`, operations with two spaces between them.

A word is a record, `x1@0` (value x1 in log x at offset 0), `x1` (offset not known) or `y:x1` (in log y); `poll` begins
what is read; `ok` is the outcome unless a word says `info` or `fail`. Each operation is an invocation and its end;
`begins-send` and `ends-send` are one of both. `assign` and `subscribe` have logs, and perhaps `from-start`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harness.model.log_operations import ASSIGN, FAIL, INFO, INVOKE, OK, POLL, SEND, SUBSCRIBE, LogOperation

RECORD = re.compile(r"(?:(?P<log>\w+):)?(?P<value>(?P<first>[a-z])\d+)(?:@(?P<offset>\d+))?")


def operations_of(text: str) -> Iterator[LogOperation]:
    """Yield the operations of a history."""
    n = 0
    for line in text.split("  "):
        process, name, *words = line.split()
        only, _, name = name.rpartition("-")
        outcome = next((word for word in words if word in (INFO, FAIL)), OK)
        parts = tuple(_parts(name, [word for word in words if word not in (INFO, FAIL)]))
        for kind in (INVOKE,) * (only != "ends") + (outcome,) * (only != "begins"):
            n += 1
            yield LogOperation(n, None, process, kind, name, parts)


def _parts(name: str, words: list[str]) -> Iterator[list[Any]]:
    if name in (ASSIGN, SUBSCRIBE):
        yield [name, [word for word in words if word != "from-start"], "from-start" in words]
        return
    reads = name == POLL
    polled: dict[str, list[list[Any]]] = {}
    for word in words:
        if word == POLL:
            reads = True
            continue
        found = RECORD.fullmatch(word)
        assert found is not None, word
        log, offset = found["log"] or found["first"], None if found["offset"] is None else int(found["offset"])
        if reads and offset is not None:
            polled.setdefault(log, []).append([offset, found["value"]])
        else:
            yield [SEND, log, offset, found["value"]]
    if reads:
        yield [POLL, sorted(polled.items())]
