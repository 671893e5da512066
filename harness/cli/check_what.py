"""What `check` is asked to search: its options for sizes, settings, network, faults, and timers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from harness.explore.target import SearchTarget, search_target
from harness.model import Faults, Model, Refusal, unknown
from harness.model.faults import FAULT_KINDS, LINK_KINDS
from harness.record.trail import build_model

NONE, ANY = "none", "any"
WITH_TARGETS = (*LINK_KINDS, "pause", "crash")
"""Kinds of faults that affect an actor, not a message."""


def asked_target(
    what: str, sizes: Mapping[str, int], settings: Mapping[str, str], network: str | None,
    faults: tuple[str, ...], targets: tuple[str, ...], timers: tuple[str, ...],
) -> SearchTarget:
    """Return what is to be searched: what a scenario declares, but for what is given. Raises Refusal."""
    asked = search_target(what, sizes, settings, network)
    if faults or targets:
        asked = attrs.evolve(asked, faults=_faults(asked, faults, targets))
    if timers:
        limits = {} if timers == (ANY,) else _numbers(timers, "--timers", "1 or RequestTimeout=1")
        asked = attrs.evolve(asked, timers=limits)
    return asked


def _numbers(given: Iterable[str], option: str, example: str) -> dict[str, int]:
    """Return `NAME=N,...` as numbers by name; a number alone has the name `ALL`. Raises Refusal."""
    found: dict[str, int] = {}
    for part in (part for text in given for part in text.split(",") if part):
        name, equals, number = part.rpartition("=")
        if not (number.isascii() and number.isdigit()) or (equals and not name):
            raise Refusal(f"{option} takes whole numbers, such as {option} {example}, not {part!r}")
        found[name] = int(number)
    return found


def _faults(asked: SearchTarget, given: tuple[str, ...], targets: tuple[str, ...]) -> Faults:
    """Return the scenario's faults, or none, with those given instead. Raises Refusal."""
    parts = [part for text in given for part in text.split(",")]
    base = Faults() if NONE in parts else asked.faults
    numbers = _numbers((part for part in parts if part != NONE), "--faults", "drop=1,crash=1")
    for kind in numbers:
        if kind not in FAULT_KINDS:
            said = f"there is no kind of fault {kind!r}"
            raise Refusal(unknown(said, kind, (*FAULT_KINDS, NONE), "the kinds are"))
    model = attrs.evolve(asked, faults=Faults()).make()
    changes: dict[str, Any] = {**numbers, "targets": targets or base.targets}
    chosen = attrs.evolve(base, **changes)
    if not chosen.targets and chosen.reaches(*WITH_TARGETS):
        chosen = attrs.evolve(chosen, targets=tuple(model.actors))
    if targets and not chosen.reaches(*WITH_TARGETS):
        kinds = ", ".join(WITH_TARGETS)
        raise Refusal(f"--target names the actors that {kinds} may affect, but --faults has none of these; add one")
    build_model(asked.spec.name, asked.sizes, asked.settings, model.network.name, chosen, ())
    for kind, number in numbers.items():
        if number and (why := _cannot(kind, model)):
            raise Refusal(f"--faults {kind}={number} has no effect: {why}; leave it out")
    return chosen


def _cannot(kind: str, model: Model) -> str | None:
    """Say why a kind of faults cannot happen in a model, or return None."""
    if kind == "skew":
        return "a search takes steps in every order, without clocks"
    if kind == "duplicate" and model.network.name == "unordered-set":
        return f"the network {model.network.name} is a set: a duplicate is the same message"
    if kind == "reorder" and model.network.name != "fifo":
        return f"the network {model.network.name} keeps no order"
    if kind == "crash" and not any(actor.may_crash for actor in model.actors.values()):
        return f"no actor of {model.name} may crash"
    return None
