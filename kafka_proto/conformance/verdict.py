"""Whether a record and its replay are equal, and the paths of what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.conformance.playing import play

UNORDERED = ("mine", "producers")
"""What a broker lists in the order of a hash map: its transactions, and the producers of a partition."""


@attrs.frozen
class RecordVerdict:
    """A record's verdict, as the command prints it."""

    situation: str
    broker_version: str
    transaction_version: int
    family: str
    equal: bool
    differences: tuple[str, ...]


Player = Callable[[dict[str, Any]], list[dict[str, Any]]]
"""Plays a record, and returns its steps as they were answered."""


def judge(record: dict[str, Any], version: BrokerVersion | None = None, player: Player | None = None) -> RecordVerdict:
    """Play a record, on a node of a version or as a player does, and say what differs, step by step."""
    try:
        played = play(record, version) if player is None else player(record)
    except (ConnectionError, KeyError, TypeError, ValueError) as error:
        played, why = [], f"not played: {type(error).__name__}: {error}"
        found: tuple[str, ...] = (why,)
    else:
        found = tuple(difference for number, (theirs, ours) in enumerate(zip(record["steps"], played, strict=True), 1)
                      for difference in differences(theirs, ours, f"step {number}"))
    return RecordVerdict(record["situation"], record["broker_version"], record["transaction_version"], record["family"],
                         not found, found)


def differences(theirs: Any, ours: Any, path: str) -> Iterator[str]:
    """Yield where two JSON values differ: the path, what the real broker has, and what ours has."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            one, other = theirs.get(key), ours.get(key)
            if key in UNORDERED and one is not None and other is not None:
                one, other = sorted(one), sorted(other)
            yield from differences(one, other, f"{path}.{key}")
    elif theirs != ours:
        yield f"{path}: expected {theirs!r}, found {ours!r}"
