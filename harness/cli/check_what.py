"""What `check` and `simulate` are asked for: sizes, settings, network, faults, and timers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import click

from harness.explore.target import SearchTarget, search_target
from harness.model import Faults, Model, Refusal, unknown
from harness.model.faults import FAULT_KINDS, LINK_KINDS
from harness.record.trail import build_model
from harness.simulate.runs.plan import Plan, resolve

NONE, ANY, ALL = "none", "any", "all"
WITH_TARGETS = (*LINK_KINDS, "pause", "crash")
"""Kinds of faults that affect an actor, not a message."""
FAULTS = click.option(
    "--faults", multiple=True, metavar="KIND=N,...|all",
    help="Fault budget of a run, such as drop=1,crash=1; all is each kind that can happen, once. Other kinds keep the "
         "scenario's budget; none removes all faults.")
TARGETS = click.option(
    "--target", "targets", multiple=True, metavar="ACTOR",
    help="Actor that may crash, pause or be cut off; may be repeated (default: the scenario's, else all).")


def asked_target(
    what: str, sizes: Mapping[str, int], settings: Mapping[str, str], network: str | None,
    faults: tuple[str, ...], targets: tuple[str, ...], timers: tuple[str, ...],
) -> SearchTarget:
    """Return what is to be searched: what a scenario declares, but for what is given. Raises Refusal."""
    asked = search_target(what, sizes, settings, network)
    if faults or targets:
        model = attrs.evolve(asked, faults=Faults()).make()
        asked = attrs.evolve(asked, faults=asked_faults(asked.faults, model, faults, targets, searches=True))
    if timers:
        limits = {} if timers == (ANY,) else _numbers(timers, "--timers", "1 or RequestTimeout=1")
        asked = attrs.evolve(asked, timers=limits)
    return asked


def asked_runs(
    what: str, sizes: Mapping[str, int], settings: Mapping[str, str], faults: tuple[str, ...], targets: tuple[str, ...]
) -> tuple[Model, Plan]:
    """Return what is simulated, and how: as a scenario or model has it, but for what is given. Raises Refusal."""
    model, plan = resolve(what, None, sizes, settings)
    if not (faults or targets):
        return model, plan
    bare, _ = resolve(what, Faults(), sizes, settings)
    return resolve(what, asked_faults(model.faults, bare, faults, targets), sizes, settings)


def _numbers(given: Iterable[str], option: str, example: str) -> dict[str, int]:
    """Return `NAME=N,...` as numbers by name; a number alone has the name `ALL`. Raises Refusal."""
    found: dict[str, int] = {}
    for part in (part for text in given for part in text.split(",") if part):
        name, equals, number = part.rpartition("=")
        if not (number.isascii() and number.isdigit()) or (equals and not name):
            raise Refusal(f"{option} takes whole numbers, such as {option} {example}, not {part!r}")
        found[name] = int(number)
    return found


def asked_faults(
    own: Faults, model: Model, given: tuple[str, ...], targets: tuple[str, ...], *, searches: bool = False
) -> Faults:
    """Return the faults of a scenario, or none, with those given instead; `model` is without faults. Raises Refusal.

    `all` is each kind that can happen, once.
    """
    parts = [part for text in given for part in text.split(",")]
    base = Faults() if NONE in parts else own
    numbers = dict.fromkeys((kind for kind in FAULT_KINDS if _cannot(kind, model, searches) is None), 1)
    numbers = numbers if ALL in parts else {}
    numbers |= _numbers((part for part in parts if part not in (NONE, ALL)), "--faults", "drop=1,crash=1")
    for kind in numbers:
        if kind not in FAULT_KINDS:
            said = f"there is no kind of fault {kind!r}"
            raise Refusal(unknown(said, kind, (*FAULT_KINDS, NONE, ALL), "the kinds are"))
    changes: dict[str, Any] = {**numbers, "targets": targets or base.targets}
    chosen = attrs.evolve(base, **changes)
    if not chosen.targets and chosen.reaches(*WITH_TARGETS):
        chosen = attrs.evolve(chosen, targets=tuple(model.actors))
    if targets and not chosen.reaches(*WITH_TARGETS):
        kinds = ", ".join(WITH_TARGETS)
        raise Refusal(f"--target names the actors that {kinds} may affect, but --faults has none of these; add one")
    build_model(model.name, model.sizes, model.settings, model.network.name, chosen, ())
    for kind, number in numbers.items():
        if number and (why := _cannot(kind, model, searches)):
            raise Refusal(f"--faults {kind}={number} has no effect: {why}; leave it out")
    return chosen


def _cannot(kind: str, model: Model, searches: bool) -> str | None:
    """Say why a kind of faults cannot happen in a model, or return None."""
    if kind == "skew" and searches:
        return "a search takes steps in every order, without clocks"
    if kind == "duplicate" and model.network.name == "unordered-set":
        return f"the network {model.network.name} is a set: a duplicate is the same message"
    if kind == "reorder" and model.network.name != "fifo":
        return f"the network {model.network.name} keeps no order"
    if kind == "crash" and not any(actor.may_crash for actor in model.actors.values()):
        return f"no actor of {model.name} may crash"
    return None
