"""What `check` is asked to search: a model or a scenario, with sizes, settings, network, faults, and timers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from harness.explore.bounded import ALL, bounded
from harness.model import Faults, Model, ModelSpec, Refusal, Scenario, find_model, find_runnable, unknown
from harness.model.faults import FAULT_KINDS, LINK_KINDS
from harness.record.trail import build_model

NONE, ANY = "none", "any"
WITH_TARGETS = (*LINK_KINDS, "pause", "crash")
"""Kinds of faults that affect an actor, not a message."""


@attrs.frozen(eq=False)
class SearchTarget:
    """A model to search. `make` builds it."""

    name: str
    """As it was asked for: of a model, or of a scenario."""
    spec: ModelSpec
    scenario: Scenario | None
    sizes: Mapping[str, int]
    settings: Mapping[str, str]
    network: str | None
    faults: Faults
    timers: Mapping[str, int]
    """How many timers may fire in a run: by name, or all together under `ALL`; empty for any number."""

    def make(self, history_variables: bool = False) -> Model:
        """Build the model, without a bound on timers, with the module's history variables where they are wanted."""
        return self.spec.make(self.sizes, self.settings, self.network, self.faults, history_variables)

    def searched(self, view: bool) -> Model:
        """Build the model that is searched: a spec's with history variables, unless a view hides them; with bounds."""
        built = self.make(history_variables=True)
        if built.actors or built.faulty or (view and "messages_discard" in built.view_hides):
            built = self.make()
        return bounded(built, self.timers)

    def claims(self, model: Model) -> tuple[str, ...]:
        """Return the properties that are claimed: by the scenario, by the model, or all."""
        if self.scenario is not None:
            return self.scenario.claims
        return model.claimed if model.claimed is not None else tuple(prop.name for prop in model.properties)

    def temporal_claims(self, model: Model) -> tuple[str, ...]:
        """Return the temporal properties that a scenario claims."""
        claims = () if self.scenario is None else self.scenario.claims
        return tuple(prop.name for prop in model.properties if prop.is_temporal and prop.name in claims)


def search_target(
    what: str, sizes: Mapping[str, int], settings: Mapping[str, str], network: str | None,
    faults: tuple[str, ...], targets: tuple[str, ...], timers: tuple[str, ...],
) -> SearchTarget:
    """Return what is to be searched: what a scenario says, but for what is given. Raises Refusal."""
    spec, scenario = _found(what)
    base = scenario or Scenario(what, spec.title, what)
    asked = SearchTarget(
        what, spec, scenario, {**base.sizes, **sizes}, {**base.settings, **settings}, network or base.network,
        base.faults, {},
    )
    if faults or targets:
        asked = attrs.evolve(asked, faults=_faults(asked, faults, targets))
    free = asked.make()
    limits = {} if timers == (ANY,) else _numbers(timers, "--timers", "1 or RequestTimeout=1")
    if not timers and scenario is not None and (free.actors or free.faulty):
        limits = {ALL: scenario.timeouts}
    return attrs.evolve(asked, timers=limits)


def _found(what: str) -> tuple[ModelSpec, Scenario | None]:
    try:
        return find_model(what), None
    except Refusal:
        scenario, spec = find_runnable(what)
        return spec, scenario


def _numbers(given: Iterable[str], option: str, example: str) -> dict[str, int]:
    """Return `NAME=N,...` as numbers by name; a number alone has the name `ALL`. Raises Refusal."""
    found: dict[str, int] = {}
    for part in (part for text in given for part in text.split(",") if part):
        name, equals, number = part.rpartition("=")
        if not (number.isascii() and number.isdigit()) or (equals and not name):
            raise Refusal(f"{option} takes whole numbers, as in {option} {example}, not {part!r}")
        found[name] = int(number)
    return found


def _faults(asked: SearchTarget, given: tuple[str, ...], targets: tuple[str, ...]) -> Faults:
    """Return the scenario's faults, or none, with those given instead. Raises Refusal."""
    base = Faults() if NONE in given else asked.faults
    numbers = _numbers((text for text in given if text != NONE), "--faults", "drop=1,crash=1")
    for kind in numbers:
        if kind not in FAULT_KINDS:
            said = f"there is no kind of faults {kind!r}"
            raise Refusal(unknown(said, kind, (*FAULT_KINDS, NONE), "the kinds are"))
    model = attrs.evolve(asked, faults=Faults()).make()
    changes: dict[str, Any] = {**numbers, "targets": targets or base.targets}
    chosen = attrs.evolve(base, **changes)
    if not chosen.targets and chosen.reaches(*WITH_TARGETS):
        chosen = attrs.evolve(chosen, targets=tuple(model.actors))
    if targets and not chosen.reaches(*WITH_TARGETS):
        kinds = ", ".join(WITH_TARGETS)
        raise Refusal(f"--target says which actors {kinds} may affect, but --faults has none of these; add one")
    build_model(asked.spec.name, asked.sizes, asked.settings, model.network.name, chosen, ())
    for kind, number in numbers.items():
        if number and (why := _cannot(kind, model)):
            raise Refusal(f"--faults {kind}={number} can do nothing: {why}; leave it out")
    return chosen


def _cannot(kind: str, model: Model) -> str | None:
    """Say why a kind of faults cannot happen in a model, or return None."""
    if kind == "skew":
        return "a search takes steps in every order and knows no clocks"
    if kind == "duplicate" and model.network.name == "unordered-set":
        return f"on the network {model.network.name} a message that is there twice is one"
    if kind == "reorder" and model.network.name != "fifo":
        return f"the network {model.network.name} keeps no order"
    if kind == "crash" and not any(actor.may_crash for actor in model.actors.values()):
        return f"no actor of {model.name} may crash"
    return None
