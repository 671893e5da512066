"""The command `kafka-proto list`: models, scenarios and tours; those that match some words; or one of them in full.

With `--json`, what is listed has the same shape in each case; what is named has more fields than the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import click

from harness.cli.facts import Catalogue, Listed, built, commands, in_full, values
from harness.cli.group import AS_JSON, cli, emit
from harness.cli.screen import TerminalOutput
from harness.model import ModelSpec, Refusal, Scenario, Tour, did_you_mean, model_specs, scenarios, tours
from harness.model.faults import FAULT_KINDS
from harness.record import faults_to_json
from harness.record.wording import counted, wrapped


@cli.command("list")
@click.argument("words", nargs=-1, metavar="[NAME|WORD...]")
@AS_JSON
def list_(words: tuple[str, ...], as_json: bool) -> None:
    """List models (with sizes and settings), scenarios and tours.

    WORD... lists only those with all words in their name, title, model, faults, properties or sources. An exact NAME
    shows one in full: sizes, settings, faults, properties, and commands to run it.
    """
    every = Catalogue(tuple(model_specs()), tuple(scenarios()), tours())
    named = every.where(lambda one: one.name == " ".join(words)) if words else None
    chosen = named or _about(every, words)
    if as_json:
        emit(_json(chosen, every, bool(named)))
    else:
        screen = TerminalOutput()
        screen.print(in_full(chosen, every, screen.width) if named else _briefly(chosen, screen.width))


def _about(every: Catalogue, words: Sequence[str]) -> Catalogue:
    """Return those that have all words in what is said about them. Raises Refusal if none has."""
    wanted = [word.casefold() for word in words]
    texts = {id(one): _text(one) for one in every.all()} if words else {}
    found = every.where(lambda one: all(word in texts[id(one)] for word in wanted))
    if found or not words:
        return found
    said = f"no model, scenario or tour matches {' and '.join(map(repr, words))}"
    lost = [word for word in wanted if not any(word in text for text in texts.values())]
    known = [*every.names, *sorted({word.strip("():,;.") for text in texts.values() for word in text.split()})]
    meant = did_you_mean(" ".join(words), every.names) or (did_you_mean(lost[0], known) if lost else "")
    todo = "kafka-proto list shows them all"
    if not lost and not meant:
        todo = "each word matches some, but none matches all; give fewer words"
    raise Refusal(f"{said}; {' '.join(filter(None, (meant, todo)))}")


def _text(one: Listed) -> str:
    """Return the text about an item that words are looked for in."""
    said: list[str] = [one.name, one.title]
    if isinstance(one, ModelSpec):
        model = built(one)
        said += [text for prop in (model.properties if model else ()) for text in (prop.name, prop.source)]
    elif isinstance(one, Scenario):
        said += [one.model, one.expected or "", *one.claims, *faults_to_json(one.faults)]
    else:
        said += [one.model, one.violates or "", *one.claims]
    return "\n".join(said).casefold()


def _briefly(chosen: Catalogue, width: int) -> list[str]:
    """Return the lines that name some of them, with what tells them apart."""
    lines: list[str] = []
    if chosen.models:
        lines += ["Models (kafka-proto simulate MODEL --size NAME=N --set NAME=VALUE)"]
    before: dict[str, str] = {}
    for spec in chosen.models:
        said = _sizes_and_settings(spec)
        as_before = before.items() & said.items() if before.keys() <= said.keys() else set()
        lines += ["", f"  {spec.name}", *wrapped(spec.title, width, "    ")]
        for name, text in said.items():
            lines += wrapped(text, width, "    ", "              ") if (name, text) not in as_before else []
        lines += ["    otherwise as the model above"] if as_before else []
        before = said
    if chosen.scenarios:
        lines += ["", "Scenarios (kafka-proto hunt [SCENARIO ...] or kafka-proto simulate SCENARIO)"]
    for row in chosen.scenarios:
        mode = ", timed" if row.mode == "timed" else ""
        lines += ["", f"  {row.name}", *wrapped(row.title, width, "    "), f"    {row.model}{mode}"]
        if row.expected:
            lines.append(f"    expected to violate {row.expected}")
    if chosen.tours:
        lines += ["", "Tours (kafka-proto demo TOUR)"]
    for tour in chosen.tours:
        ends = f", ends in a violation of {tour.violates}" if tour.violates else ""
        lines += ["", f"  {tour.name}", *wrapped(tour.title, width, "    "), f"    {tour.model}"]
        lines += wrapped(f"{counted(len(tour.steps), 'step')}{ends}", width, "    ")
    counts = ", ".join(counted(len(some), noun) for some, noun in (
        (chosen.models, "model"), (chosen.scenarios, "scenario"), (chosen.tours, "tour")) if some)
    lines += ["", *wrapped(f"{counts}; kafka-proto list NAME shows one in full, kafka-proto list WORD... some", width)]
    return lines[1:] if lines[0] == "" else lines


def _sizes_and_settings(spec: ModelSpec) -> dict[str, str]:
    """Return what is said of the sizes together, and of each setting by its name."""
    said = {"": "sizes     " + " ".join(f"{name}={size.default}" for name, size in spec.sizes.items())}
    for name, setting in spec.settings.items():
        default = f" ({setting.default})" if setting.default else ""
        said[name] = f"settings  {name}={values(setting)}{default}"
    return said


def _json(chosen: Catalogue, every: Catalogue, is_full: bool) -> dict[str, Any]:
    return {
        "models": [_model_json(spec, every if is_full else None) for spec in chosen.models],
        "scenarios": [_scenario_json(row, every if is_full else None) for row in chosen.scenarios],
        "tours": [_tour_json(tour, is_full) for tour in chosen.tours],
    }


def _model_json(spec: ModelSpec, every: Catalogue | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": spec.name, "title": spec.title, "networks": list(spec.networks), "faults": spec.may_fault,
        "sizes": {n: {"default": s.default, "minimum": s.minimum, "maximum": s.maximum} for n, s in spec.sizes.items()},
        "settings": {n: {"values": list(s.values), "default": s.default} for n, s in spec.settings.items()},
    }
    if every is None:
        return entry
    model = built(spec)
    for name, size in spec.sizes.items():
        entry["sizes"][name]["doc"] = size.doc
    for name, setting in spec.settings.items():
        entry["settings"][name]["doc"] = setting.doc
    refines = model.refinement() if model is not None and model.refinement is not None else None
    return entry | {
        "fault_kinds": list(FAULT_KINDS) if spec.may_fault else [],
        "actors": [] if model is None else list(model.actors),
        "properties": [] if model is None else [
            {"name": prop.name, "form": prop.form, "source": prop.source,
             "claimed": prop.form != "sometimes" and (model.claimed is None or prop.name in model.claimed)}
            for prop in model.properties
        ],
        "refines": refines and {"model": refines.spec.name, "extensions": dict(refines.extensions)},
        "scenarios": [row.name for row in every.scenarios if row.model == spec.name],
        "tours": [tour.name for tour in every.tours if tour.model == spec.name],
        "commands": commands(spec, model),
    }


def _scenario_json(row: Scenario, every: Catalogue | None) -> dict[str, Any]:
    entry = {
        "name": row.name, "title": row.title, "model": row.model, "sizes": dict(row.sizes),
        "settings": dict(row.settings), "claims": list(row.claims), "witnesses": list(row.witnesses),
        "expected": row.expected, "repaired": row.repaired, "mode": row.mode,
    }
    if every is None:
        return entry
    spec = next((spec for spec in every.models if spec.name == row.model), None)
    return entry | {
        "network": row.network, "faults": faults_to_json(row.faults), "workload": row.workload, "steps": row.steps,
        "timeouts": row.timeouts, "searched_timers": row.searched_timers, "runs": row.runs,
        "checked": row.checked and attrs.asdict(row.checked), "commands": commands(row, built(spec) if spec else None),
    }


def _tour_json(tour: Tour, is_full: bool) -> dict[str, Any]:
    entry = {"name": tour.name, "title": tour.title, "model": tour.model, "sizes": dict(tour.sizes),
            "settings": dict(tour.settings), "steps": len(tour.steps), "violates": tour.violates}
    if not is_full:
        return entry
    return entry | {"intro": tour.intro, "claims": list(tour.claims), "faults": faults_to_json(tour.faults),
                   "commands": commands(tour, None)}
