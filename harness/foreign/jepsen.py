"""Jepsen's histories of logs: the operation maps of its workload for Kafka-like systems, read from EDN.

An operation is a map with `:process`, `:type`, `:f` and `:value`, and mostly `:time` (nanoseconds) and `:index`. The
file holds one map after the other, as Jepsen writes its `history.edn`, or a vector of maps. docs/use/campaigns.md lists
what is read of them. Source: the documentation of `jepsen.tests.kafka` and of `jepsen.history`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.foreign import edn
from harness.foreign.edn import Keyword, Map
from harness.model import Refusal
from harness.model.log_operations import (
    ASSIGN,
    CRASH,
    FAULT,
    INVOKE,
    MIXED,
    OK,
    POLL,
    SEND,
    SUBSCRIBE,
    LogOperation,
)

TYPES = ("invoke", "ok", "fail", "info")
IGNORED = "debug-topic-partitions"
"""An operation of Jepsen's final phase, which asks brokers what they think of each other."""
NAMES = (*MIXED, ASSIGN, SUBSCRIBE, CRASH, IGNORED)
FROM_START = Keyword("seek-to-beginning?")


def operations(path: Path) -> Iterator[LogOperation]:
    """Yield the operations of a file in their order. Raises Refusal naming the line of one that is none of a log."""
    n = 0
    for line, form in edn.forms(path):
        n += 1
        try:
            yield _operation(n, form)
        except ValueError as error:
            raise Refusal(f"{path}, line {line}: {error}") from None
    if not n:
        raise Refusal(f"{path} holds no operation; give a history that Jepsen wrote, such as its history.edn")


def _operation(n: int, form: Any) -> LogOperation:
    """Return the operation of a map. Raises ValueError."""
    if not isinstance(form, Map):
        raise ValueError(f"expected the map of an operation, found {_short(form)}")
    process, kind, name = (_given(form, key) for key in ("process", "type", "f"))
    if not isinstance(kind, Keyword) or kind.name not in TYPES:
        raise ValueError(f"unknown :type {_short(kind)}; the types are {', '.join(f':{name}' for name in TYPES)}")
    time = form.get(Keyword("time"))
    if time is not None and (not _is_whole(time) or not 0 <= time < 1 << 63):
        raise ValueError(f"expected nanoseconds as :time, found {_short(time)}")
    at_us = None if time is None else time // 1_000
    if not _is_whole(process):
        return LogOperation(n, at_us, edn.written(process).removeprefix(":"), FAULT,
                         edn.written(name).removeprefix(":"), ())
    if not isinstance(name, Keyword) or name.name not in NAMES:
        known = ", ".join(f":{name}" for name in NAMES)
        raise ValueError(f"unknown :f {_short(name)}; the operations on a log are {known}")
    parts = _parts(name.name, kind.name, form)
    return LogOperation(n, at_us, str(process), kind.name, name.name, parts)


def _given(form: Map, name: str) -> Any:
    if Keyword(name) not in form:
        raise ValueError(f"an operation has :process, :type and :f; this one has no :{name}")
    return form[Keyword(name)]


def _parts(name: str, kind: str, form: Map) -> tuple[list[Any], ...]:
    value = form.get(Keyword("value"))
    if name in (CRASH, IGNORED):
        return ()
    if name in (ASSIGN, SUBSCRIBE):
        if not isinstance(value, tuple | frozenset):
            raise ValueError(f"expected the keys of logs as :value of :{name}, found {_short(value)}")
        keys = [_scalar(key) for key in (value if isinstance(value, tuple) else sorted(value, key=edn.written))]
        return ([name, keys, form.get(FROM_START) is True],)
    if not isinstance(value, tuple):
        raise ValueError(f"expected a vector of sends and polls as :value, found {_short(value)}")
    return tuple(_part(kind, part) for part in value)


def _part(kind: str, part: Any) -> list[Any]:
    """Return a send or a poll inside an operation."""
    name = part[0] if isinstance(part, tuple) and part else None
    if name == Keyword(SEND) and len(part) == 3:
        key, payload = part[1:]
        pair = isinstance(payload, tuple) and len(payload) == 2 and (payload[0] is None or _is_offset(payload[0]))
        offset, value = payload if pair and kind != INVOKE else (None, payload)
        return [SEND, _scalar(key), offset, _scalar(value)]
    if name == Keyword(POLL) and len(part) <= 2:
        payload = part[1] if len(part) == 2 else None
        if payload is None or (kind != OK and not isinstance(payload, Map)):
            payload = Map()
        if isinstance(payload, Map):
            logs = [[_scalar(key), [_record(record) for record in _vector(payload[key])]] for key in payload]
            return [POLL, sorted(logs, key=lambda log: str(log[0]))]
    raise ValueError(f"expected [:send KEY VALUE] or [:poll {{KEY [[OFFSET VALUE] ...]}}], found {_short(part)}")


def _vector(records: Any) -> tuple[Any, ...]:
    if not isinstance(records, tuple):
        raise ValueError(f"expected a vector of [OFFSET VALUE], found {_short(records)}")
    return records


def _record(record: Any) -> list[Any]:
    if not isinstance(record, tuple) or len(record) != 2 or not _is_offset(record[0]):
        raise ValueError(f"expected [OFFSET VALUE], found {_short(record)}")
    return [record[0], _scalar(record[1])]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_offset(value: Any) -> bool:
    return _is_whole(value) and value >= 0


def _scalar(value: Any) -> int | str:
    """Return a key or value as JSON has it: a whole number as it is, all else as the text of its EDN."""
    return value if _is_whole(value) else edn.written(value)


def _short(value: Any) -> str:
    text = edn.written(value)
    return text if len(text) <= edn.SHOWN else f"{text[: edn.SHOWN]}..."
