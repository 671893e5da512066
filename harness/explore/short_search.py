"""A short search, after runs that found nothing: does one of every state end soon, and with what?"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from harness.explore.packed.result import Result
from harness.explore.packed.search import Search
from harness.explore.target import search_target
from harness.model import Model, Refusal
from harness.record.short_search import Ahead

SOON = 50_000
"""States within which a search ends soon: that takes some tenths of a second, or a few seconds of CPU at most."""
MEMORY = 1_000_000_000
"""Bytes that it takes at most."""


def _searched(model: Model, names: tuple[str, ...]) -> Result:
    search = Search(model, names, states=SOON, memory=MEMORY)
    try:
        return search.run()
    finally:
        search.close()


def look_ahead(
    what: str, sizes: Mapping[str, int] | None = None, settings: Mapping[str, str] | None = None,
    claims: Collection[str] | None = None,
) -> Ahead | None:
    """Search a scenario or a model as `check` does, and say what that comes to; None if it would not end soon.

    `claims` take the place of those that are the scenario's own.
    """
    words = ["kafka-proto", "check", what, *(f"--size={name}={number}" for name, number in (sizes or {}).items()),
             *(f"--set={name}={value}" for name, value in (settings or {}).items())]
    try:
        asked = search_target(what, sizes, settings)
        model = asked.searched()
        names = asked.invariants(model)
        if claims is not None and (chosen := tuple(name for name in names if name in claims)) != names:
            names = chosen
            words += [f"--invariant={name}" for name in chosen]
        result = _searched(model, names) if names else None
    except Refusal:
        return None
    except Exception as error:  # of the protocol's code, as no run met it
        first = next(iter(str(error).splitlines()), "")
        return Ahead(shlex.join(words), 0, raised=f"{type(error).__name__}{f': {first}' if first else ''}")
    if result is None:
        return None
    command, is_timed = shlex.join(words), asked.scenario is not None and asked.scenario.mode == "timed"
    if result.violations:
        first_violated = result.violations[0]
        return Ahead(command, result.distinct, first_violated.name, first_violated.length - 1, is_timed=is_timed)
    return Ahead(command, result.distinct, is_timed=is_timed) if result.complete else None
