"""Departures from a version of a protocol: flaws that are repaired, and published bugs that are built in.

A version is a frozen value whose fields are the decisions that it is made of. No decision asks which version it is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs

V = TypeVar("V")


@attrs.frozen
class Departure:
    """A departure from a version: `instead` names decisions, each with its replacement."""

    id: str
    title: str
    instead: Mapping[str, Any]

    def is_in(self, version: object) -> bool:
        """Say whether a version has the decisions of this departure."""
        return all(getattr(version, name) == decision for name, decision in self.instead.items())


def departed(version: V, table: Iterable[Departure], chosen: str) -> V:
    """Return a version with the departures of a comma-separated list of ids. Raises KeyError for an unknown id."""
    by_id = {departure.id: departure for departure in table}
    for name in filter(None, chosen.split(",")):
        version = attrs.evolve(version, **by_id[name].instead)  # type: ignore[misc]
    return version
