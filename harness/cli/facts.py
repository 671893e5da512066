"""A model, a scenario or a tour in full: what `kafka-proto list NAME` says of it, and the commands that run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from harness.model import Model, ModelSpec, Refusal, Scenario, Setting, Tour
from harness.model.faults import FAULT_KINDS, Faults
from harness.model.fresh import declared
from harness.record.wording import counted, wrapped

FORMS = {
    "[]": "always", "sometimes": "sometimes", "<>": "eventually", "<>[]": "eventually, for good",
    "[]<>": "again and again", "~>": "leads to",
}
"""The temporal shapes of properties, in words."""
FEW_VALUES = 5
"""Of a setting, which are listed as one word."""
Rows = list[tuple[str, str]]
Listed = ModelSpec | Scenario | Tour


@attrs.frozen
class Catalogue:
    """Some of the known models, scenarios and tours, each in the order of its table."""

    models: tuple[ModelSpec, ...]
    scenarios: tuple[Scenario, ...]
    tours: tuple[Tour, ...]

    def __bool__(self) -> bool:
        return bool(self.models or self.scenarios or self.tours)

    def all(self) -> tuple[Listed, ...]:
        """Return models, then scenarios, then tours."""
        return (*self.models, *self.scenarios, *self.tours)

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.all()]

    def where(self, test: Callable[[Listed], bool]) -> Catalogue:
        """Return the items for which a test is true."""
        return Catalogue(tuple(filter(test, self.models)), tuple(filter(test, self.scenarios)),
                         tuple(filter(test, self.tours)))


def in_full(named: Catalogue, every: Catalogue, width: int) -> list[str]:
    """Return the lines that show a named item in full."""
    lines: list[str] = []
    for one in named.all():
        kind = {ModelSpec: "model", Scenario: "scenario", Tour: "tour"}[type(one)]
        lines += ["", *wrapped(f"{one.name}: {one.title} ({kind})", width)]
        for head, rows in _facts(one, every):
            lines += ["", f"  {head}", *_table(rows, width)]
    others = [name for name in every.names if named.names[0] in name and name not in named.names]
    if others:
        lines += ["", *wrapped(f"See also {', '.join(others)}", width, "", "  ")]
    return lines[1:]


def _table(rows: Rows, width: int) -> list[str]:
    """Return rows of two columns; if the left column is too long, the right one comes below it."""
    left = max((len(name) for name, text in rows if text), default=0)
    left = min(left, width // 3)
    lines: list[str] = []
    for name, text in rows:
        if not text:
            lines.append(f"    {name}")
            continue
        head = f"    {name:{left}}  "
        if len(name) > left:
            lines.append(f"    {name}")
            head = " " * (left + 6)
        body = wrapped(text, width - left - 6) or [""]
        lines += [head + body[0], *(" " * (left + 6) + line for line in body[1:])]
    return lines


def _facts(one: Listed, every: Catalogue) -> list[tuple[str, Rows]]:
    """Return what there is to say about one, as headed tables; empty ones are left out."""
    of = {ModelSpec: _model_facts, Scenario: _scenario_facts, Tour: _tour_facts}[type(one)]
    return [(head, rows) for head, rows in of(one, every) if rows]  # type: ignore[operator]


def _model_facts(spec: ModelSpec, every: Catalogue) -> Iterable[tuple[str, Rows]]:
    model = built(spec)
    yield "Sizes (--size NAME=N)", [
        (f"{name}={size.default}", f"{size.minimum} to {size.maximum}{size.doc and f'; {size.doc}'}")
        for name, size in spec.sizes.items()
    ]
    yield "Settings (--set NAME=VALUE)", [
        (f"{name}={setting.default}", f"{values(setting)}{setting.doc and f'; {setting.doc}'}")
        for name, setting in spec.settings.items()
    ]
    kinds = ", ".join(FAULT_KINDS) if spec.may_fault else "none; faults are steps of the spec"
    yield "Network and faults", [("network", f"{', '.join(spec.networks)}"), ("faults", kinds)]
    if model is not None:
        if model.actors:
            yield "Actors (at the default sizes)", [(", ".join(model.actors), "")]
        yield "Numbers that are only compared", [
            (name, f"{'by order' if sort.ordered else 'for equality'}; " + ", ".join(
                f"{field} per {' and '.join(per)}" if per else field for field, per in sort.fields.items()))
            for name, sort in declared(model.types).items()
        ]
        yield "Properties", [(prop.name, _property(prop, model)) for prop in model.properties]
        refines = model.refinement() if model.refinement is not None else None
        if refines is not None:
            yield "Refines", [(refines.spec.name, "kafka-proto verify checks each step"),
                              *((f"  {name}", why) for name, why in refines.extensions.items())]
    yield "Scenarios", [
        (row.name, f"expected to violate {row.expected}" if row.expected else "no violation expected")
        for row in every.scenarios if row.model == spec.name
    ]
    yield "Tours", [(tour.name, tour.title) for tour in every.tours if tour.model == spec.name]
    yield "Run it", [(command, "") for command in commands(spec, model)]


def _property(prop: Any, model: Model) -> str:
    claimed = "" if prop.form == "sometimes" or model.claimed is None or prop.name in model.claimed else ", not claimed"
    return f"{FORMS.get(prop.form, prop.form)}{claimed}{prop.source and f'; {prop.source}'}"


def _scenario_facts(row: Scenario, every: Catalogue) -> Iterable[tuple[str, Rows]]:
    spec = next((spec for spec in every.models if spec.name == row.model), None)
    defaults = {name: size.default for name, size in spec.sizes.items()} if spec else {}
    yield "Model", [(row.model, spec.title if spec else "")]
    yield "Sizes", [(f"{name}={row.sizes.get(name, n)}", "" if row.sizes.get(name, n) == n else f"{n} in the model")
                    for name, n in {**row.sizes, **defaults}.items()]
    settings = {**{name: setting.default for name, setting in (spec.settings if spec else {}).items()}, **row.settings}
    yield "Settings", [(f"{name}={value}", "") for name, value in settings.items()]
    yield "Network and faults", [*([("network", row.network)] if row.network else []), *_faults(row.faults)]
    yield "Clients", [("", row.workload)] if row.workload else []
    yield "Claims", [(name, "expected to be violated" if name == row.expected else "") for name in row.claims]
    yield "Witnesses (some run must reach each)", [(name, "") for name in row.witnesses]
    flawed = [other.name for other in every.scenarios if other.repaired == row.name]
    twin = [*([("repaired", row.repaired)] if row.repaired else []), *(("repairs", name) for name in flawed)]
    checked = row.checked
    if checked is not None:
        of = " ".join(f"--size {name}={n}" for name, n in checked.sizes.items())
        of += "".join(f" --set {name}={value}" for name, value in checked.settings.items())
        twin.append(("in a spec", f"{checked.model} violates {checked.violates} {of}".rstrip()))
    yield "Outcome", [("expected", f"violates {row.expected}" if row.expected else "no violation"), *twin]
    timed = "timed: the earliest event in virtual time" if row.mode == "timed" else "free: any possible step"
    yield "Runs", [("mode", timed), ("steps", f"at most {row.steps}, before the fair ending"),
                   ("timeouts", f"at most {counted(row.timeouts, 'timer')} fired early"),
                   ("in a search", f"at most {counted(row.searched_timers, 'timer')} fired in a run"),
                   ("runs", f"{row.runs:,} by each strategy")]
    names = commands(row, built(spec) if spec else None)
    yield "Run it", [(command, "") for command in names]


def _tour_facts(tour: Tour, every: Catalogue) -> Iterable[tuple[str, Rows]]:
    spec = next((spec for spec in every.models if spec.name == tour.model), None)
    yield "Model", [(tour.model, spec.title if spec else "")]
    yield "Sizes", [(f"{name}={n}", "") for name, n in tour.sizes.items()]
    yield "Settings", [(f"{name}={value}", "") for name, value in tour.settings.items()]
    yield "Faults", _faults(tour.faults)
    yield "About", [("", tour.intro)] if tour.intro else []
    yield "Claims", [(name, "violated in the last state" if name == tour.violates else "") for name in tour.claims]
    yield "Steps", [(counted(len(tour.steps), "step"), "")]
    yield "Run it", [(command, "") for command in commands(tour, None)]


def _faults(faults: Faults) -> Rows:
    """Return what may go wrong, as rows."""
    rows = [(kind, counted(getattr(faults, kind), "time")) for kind in FAULT_KINDS if getattr(faults, kind)]
    if faults.targets:
        rows.append(("targets", ", ".join(faults.targets)))
    if faults.links:
        rows.append(("between", ", ".join(f"{one}-{other}" for one, other in faults.links)))
    for rule in faults.rules:
        which = f"number {rule.nth} of" if rule.nth else "every"
        where = f"{rule.source and f' from {rule.source}'}{rule.dest and f' to {rule.dest}'}"
        rows.append((rule.kind, f"{which} {rule.message or 'message'}{where}"))
    for timed in faults.timed:
        until = "" if timed.until_ms is None else f" to {timed.until_ms}"
        rows.append((timed.kind, f"{' and '.join(timed.who)}, at {timed.at_ms}{until} ms"))
    return rows or [("faults", "none")]


def commands(one: Listed, model: Model | None) -> list[str]:
    """Return the commands that run a model, a scenario or a tour, ready to be copied."""
    if isinstance(one, Tour):
        return [f"kafka-proto demo {one.name}"]
    found = [f"kafka-proto simulate {one.name} --seeds 1000"]
    if isinstance(one, Scenario):
        found.insert(0, f"kafka-proto hunt {one.name}")
    if model is not None and not model.actors:
        found.append(f"kafka-proto check {one.name}")
    if model is not None and model.refinement is not None:
        found.append(f"kafka-proto verify {one.name} --seeds 100")
    return [*found, f"kafka-proto demo {one.name}"]


def values(setting: Setting) -> str:
    """Return the values that a setting may have; where they are many, so that a line may end between them."""
    if setting.several:
        return f"any of {', '.join(setting.values)}"
    return "|".join(setting.values) if len(setting.values) <= FEW_VALUES else f"one of {', '.join(setting.values)}"


def built(spec: ModelSpec) -> Model | None:
    """Return a model at its default sizes, or None if it cannot be built so."""
    try:
        return spec.make()
    except Refusal:
        return None
