"""What is searched: a model, or what a scenario declares, with its sizes, settings, network, faults, and timers."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from harness.explore.bounded import ALL, bounded
from harness.model import Faults, Model, ModelSpec, Refusal, Scenario, find_model, find_runnable


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
    timers: Mapping[str, int] | None = None
    """How many timers may fire in a run: by name, or all together under `ALL`; empty for any number.

    None for as many as the scenario declares; of a model, or of a scenario of a spec without faults, any number.
    """

    def make(self, history_variables: bool = False) -> Model:
        """Build the model, without a bound on timers, with the module's history variables where they are wanted."""
        return self.spec.make(self.sizes, self.settings, self.network, self.faults, history_variables)

    def searched(self, view: bool = False) -> Model:
        """Build the model that is searched: a spec's with history variables, unless a view hides them; with bounds."""
        built = self.make(history_variables=True)
        is_free = bool(built.actors) or built.faulty
        if is_free or (view and "messages_discard" in built.view_hides):
            built = self.make()
        own = {ALL: self.scenario.searched_timers} if is_free and self.scenario is not None else {}
        return bounded(built, own if self.timers is None else self.timers)

    def claims(self, model: Model) -> tuple[str, ...]:
        """Return the properties that are claimed: by the scenario, by the model, or all."""
        if self.scenario is not None:
            return self.scenario.claims
        return model.claimed if model.claimed is not None else tuple(prop.name for prop in model.properties)

    def invariants(self, model: Model) -> tuple[str, ...]:
        """Return the invariants that are claimed."""
        claims = self.claims(model)
        return tuple(prop.name for prop in model.properties if prop.is_safety and prop.name in claims)

    def temporal_claims(self, model: Model) -> tuple[str, ...]:
        """Return the temporal properties that a scenario claims."""
        claims = () if self.scenario is None else self.scenario.claims
        return tuple(prop.name for prop in model.properties if prop.is_temporal and prop.name in claims)


def search_target(
    what: str, sizes: Mapping[str, int] | None = None, settings: Mapping[str, str] | None = None,
    network: str | None = None,
) -> SearchTarget:
    """Return a scenario with all that it declares, or a model, as a target, but for what is given. Raises Refusal."""
    spec, scenario = _found(what)
    base = scenario or Scenario(what, spec.title, what)
    return SearchTarget(
        what, spec, scenario, {**base.sizes, **(sizes or {})}, {**base.settings, **(settings or {})},
        network or base.network, base.faults,
    )


def _found(what: str) -> tuple[ModelSpec, Scenario | None]:
    try:
        return find_model(what), None
    except Refusal:
        scenario, spec = find_runnable(what)
        return spec, scenario
