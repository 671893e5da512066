"""What a protocol package offers the harness: models by name, with their sizes and settings, scenarios and tours.

A package registers a `System` through the entry point group `harness.systems`; the harness itself knows no protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.metadata import entry_points

import attrs

from harness.model.faults import NO_FAULTS, Faults
from harness.model.model import Model
from harness.model.network import NETWORKS, Network
from harness.model.plug_in import NotLoaded, load
from harness.model.refusal import Refusal
from harness.model.similar import did_you_mean, unknown
from harness.model.tour import Tour

GROUP = "harness.systems"


@attrs.frozen
class Size:
    """A model size: its default and the range that makes sense."""

    default: int
    minimum: int = 1
    maximum: int = 9
    doc: str = ""


@attrs.frozen
class Setting:
    """A named setting of a model and the values it takes; `several` allows a comma-separated list of them."""

    values: tuple[str, ...]
    default: str = ""
    several: bool = False
    doc: str = ""


Build = Callable[..., Model]


@attrs.frozen(eq=False)
class ModelSpec:
    """A model that can be built: `build(sizes, settings, network, faults, history_variables)` returns it."""

    name: str
    title: str
    build: Build
    sizes: Mapping[str, Size]
    settings: Mapping[str, Setting] = attrs.field(factory=dict)
    networks: tuple[str, ...] = ("unordered-set",)
    """Network semantics the model may run on; the first is its own."""
    may_fault: bool = False

    def make(
        self,
        sizes: Mapping[str, int] | None = None,
        settings: Mapping[str, str] | None = None,
        network: str | None = None,
        faults: Faults = NO_FAULTS,
        history_variables: bool = False,
    ) -> Model:
        """Build the model. Raises Refusal for unknown or impossible sizes, settings, network or faults."""
        chosen = {name: size.default for name, size in self.sizes.items()}
        for name, number in (sizes or {}).items():
            chosen[name] = self._checked_size(name, number)
        values = {name: setting.default for name, setting in self.settings.items()}
        for name, value in (settings or {}).items():
            values[name] = self._checked_setting(name, value)
        if faults != NO_FAULTS and not self.may_fault:
            raise Refusal(f"model {self.name} takes no faults; kafka-proto list --json says which models do")
        return self.build(chosen, values, self._checked_network(network), faults, history_variables)

    def _checked_size(self, name: str, number: int) -> int:
        size = self.sizes.get(name)
        if size is None:
            raise Refusal(unknown(f"model {self.name} has no size {name!r}", name, self.sizes, "its sizes are"))
        if not size.minimum <= number <= size.maximum:
            raise Refusal(
                f"size {name} of {self.name} must be between {size.minimum} and {size.maximum}, not {number}"
            )
        return number

    def _checked_setting(self, name: str, value: str) -> str:
        setting = self.settings.get(name)
        if setting is None:
            said = f"model {self.name} has no setting {name!r}"
            raise Refusal(unknown(said, name, self.settings, "its settings are:"))
        if value == setting.default:
            return value
        given = [part for part in value.split(",") if part] if setting.several else [value]
        wrong = [part for part in given if part not in setting.values]
        if wrong or len(set(given)) != len(given):
            many = "a comma-separated list of" if setting.several else "one of"
            said = f"setting {name} of {self.name} must be {many} {', '.join(setting.values)}, not {value!r}"
            meant = did_you_mean(wrong[0], setting.values) if wrong else ""
            raise Refusal(f"{said}; {meant}" if meant else said)
        return ",".join(sorted(given)) if setting.several else value

    def _checked_network(self, network: str | None) -> Network:
        name = network or self.networks[0]
        if name not in self.networks:
            meant = did_you_mean(name, self.networks)
            said = f"model {self.name} runs on the network {' or '.join(self.networks)}, not {name!r}"
            raise Refusal(f"{said}; {meant}" if meant else said)
        return NETWORKS[name]


@attrs.frozen(eq=False)
class Checked:
    """The same flaw in a spec composition: a model at a size, and the property that a search finds violated there."""

    model: str
    violates: str
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    settings: Mapping[str, str] = attrs.field(factory=dict)
    symmetry: bool = False


@attrs.frozen(eq=False)
class Scenario:
    """A row of the scenario table: a model at a size under faults, what is claimed, and what is expected to happen."""

    name: str
    title: str
    model: str
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    settings: Mapping[str, str] = attrs.field(factory=dict)
    network: str | None = None
    faults: Faults = NO_FAULTS
    workload: str = ""
    """What the applications want, in words; the scheduler chooses among the commands that the model offers."""
    claims: tuple[str, ...] = ()
    """Names of the always and eventually properties that are claimed under these faults."""
    witnesses: tuple[str, ...] = ()
    """Names of the sometimes properties that some run must reach."""
    expected: str | None = None
    """The property expected to be violated, or None when every claim must hold."""
    repaired: str | None = None
    """For a flawed row: the name of the row that differs in the variant only and must have no violation."""
    mode: str = "free"
    """`free`: any enabled step next; `timed`: the earliest event in virtual time."""
    steps: int = 200
    """Bound on the steps of one run, before its fair ending."""
    timeouts: int = 3
    """How many timers the scheduler may fire early in free mode."""
    timers: int | None = None
    """How many timers a search, which knows no time, lets fire in a run; None for as many as `timeouts`."""
    runs: int = 400
    """Default number of runs per strategy."""
    checked: Checked | None = None
    """If the flaw is in a spec too: the search that finds it. The scoreboard shows the length for comparison."""

    @property
    def searched_timers(self) -> int:
        """How many timers a search lets fire in a run."""
        return self.timeouts if self.timers is None else self.timers


@attrs.frozen(eq=False)
class System:
    """What one protocol package registers."""

    name: str
    models: tuple[ModelSpec, ...]
    scenarios: tuple[Scenario, ...] = ()
    tours: tuple[Tour, ...] = ()
    recorded: tuple[ModelSpec, ...] = ()
    """Models that do nothing without input from outside: their runs are replayed, never simulated or searched."""
    gone: Mapping[str, str] = attrs.field(factory=dict)
    """Models that older trails name, and what is to be used instead of each."""
    package: str = ""
    """The package that makes the models. What complete searches of the scenarios found is there, in `searched.json`."""


@lru_cache(maxsize=1)
def systems() -> tuple[System, ...]:
    """Return every registered system that can be loaded, sorted by name; `not_loaded` has the others."""
    found: list[System] = []
    _NOT_LOADED.clear()
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            found.append(load(entry, System))
        except NotLoaded as error:
            _NOT_LOADED.append(str(error))
    return (*found, *_EXTRA)


_EXTRA: list[System] = []
_NOT_LOADED: list[str] = []


def not_loaded() -> tuple[str, ...]:
    """Return a sentence for each registered system that could not be loaded, as far as systems were asked for."""
    return tuple(_NOT_LOADED)


def unknown_here(said: str, name: str, known: Iterable[str], has: str, see: str = "") -> Refusal:
    """Return the refusal of a name that no system has, as by `unknown`, after the systems that could not be loaded."""
    sentence = unknown(said, name, known, has, see)
    return Refusal("; ".join((*not_loaded(), f"without it {sentence}")) if not_loaded() else sentence)


def register(system: System) -> None:
    """Register a system of this process only: for tests and notebooks; packages use the entry point."""
    _EXTRA[:] = [*(other for other in _EXTRA if other.name != system.name), system]
    systems.cache_clear()


def unregister(name: str) -> None:
    """Take back what `register` registered."""
    _EXTRA[:] = [system for system in _EXTRA if system.name != name]
    systems.cache_clear()


def model_specs() -> Iterator[ModelSpec]:
    """Yield every model of every system."""
    for system in systems():
        yield from system.models


def scenarios() -> Iterator[Scenario]:
    """Yield every scenario of every system, in the order of its table."""
    for system in systems():
        yield from system.scenarios


def find_model(name: str) -> ModelSpec:
    """Return the model of that name. Raises Refusal.

    The system whose name the model's starts with is asked first, so that the others need not be loaded.
    """
    if not systems.cache_info().currsize:
        for entry in entry_points(group=GROUP, name=name.partition("/")[0]):
            try:
                system = load(entry, System)
            except NotLoaded:
                break
            found = next((spec for spec in (*system.models, *system.recorded) if spec.name == name), None)
            if found is not None:
                return found
    known = {spec.name: spec for spec in model_specs()}
    known |= {spec.name: spec for system in systems() for spec in system.recorded}
    if name not in known:
        scenario = find_scenario(name)
        if scenario is not None:
            raise Refusal(f"{name!r} is a scenario, not a model; give its model, {scenario.model}")
        refuse_if_gone(name)
        raise unknown_here(f"there is no model {name!r}", name, sorted(known), "the models are")
    return known[name]


def refuse_if_gone(name: str) -> None:
    """Raise Refusal, naming the replacement, for a model that existed once and is named by older trails."""
    for instead in (system.gone[name] for system in systems() if name in system.gone):
        raise Refusal(f"there is no model {name!r} any more; use {instead} instead")


def find_scenario(name: str) -> Scenario | None:
    """Return the scenario of that name, or None."""
    return next((scenario for scenario in scenarios() if scenario.name == name), None)


def find_runnable(name: str, or_tour: bool = False) -> tuple[Scenario | None, ModelSpec]:
    """Return the scenario of that name and its model, or None and the model of that name. Raises Refusal.

    With `or_tour` the caller also takes names of tours, so the error suggests these, too.
    """
    scenario = find_scenario(name)
    if scenario is not None:
        return scenario, find_model(scenario.model)
    models = [spec.name for spec in model_specs()]
    if name not in models:
        refuse_if_gone(name)
        known = [*models, *(one.name for one in scenarios()), *(tour.name for tour in tours() if or_tour)]
        said = f"there is no model {name!r}, nor a scenario{' or a tour' if or_tour else ''} of that name"
        raise unknown_here(said, name, known, "", "kafka-proto list")
    return None, find_model(name)


def tours() -> tuple[Tour, ...]:
    """Return every tour of every system, in the order of its table. Raises Refusal if two have one name."""
    found: dict[str, Tour] = {}
    for system in systems():
        for tour in system.tours:
            if tour.name in found:
                raise Refusal(f"two tours have the name {tour.name!r}; give one of them another name")
            found[tour.name] = tour
    return tuple(found.values())


def find_tour(name: str) -> Tour:
    """Return the tour of that name. Raises Refusal."""
    known = {tour.name: tour for tour in tours()}
    if name not in known:
        raise unknown_here(f"there is no tour {name!r}", name, known, "the tours are")
    return known[name]


def model_of(scenario: Scenario) -> Model:
    """Build the model of a scenario at its size, on its network, under its faults."""
    return find_model(scenario.model).make(scenario.sizes, scenario.settings, scenario.network, scenario.faults)
