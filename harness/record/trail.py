"""Trails: the decisions of a run, enough to replay it exactly. JSON Lines; docs/trail.md describes every field."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from harness.model import Faults, Model, Refusal, Rule, Timed, find_model
from harness.record.files import compact, read_lines, write_atomically

FORMAT = "kafka-proto/trail"
VERSION = 1


@attrs.frozen
class Chosen:
    """One decision: the label of the choice taken, and the virtual time in microseconds (timed mode)."""

    label: str
    at_us: int | None = None


@attrs.frozen
class Trail:
    """A run's decisions, with all it takes to build the model again.

    `fair_from` is the number of steps before the fair ending (liveness), or None; `back_to` the step whose state the
    last one repeats, where the fair ending is a cycle. `violates` names the property that the run violates.
    """

    model: str
    sizes: Mapping[str, int]
    settings: Mapping[str, str]
    network: str
    faults: Faults
    claims: tuple[str, ...]
    choices: tuple[Chosen, ...]
    mode: str = "free"
    strategy: str = "random"
    seed: int = 0
    scenario: str | None = None
    initial: int = 0
    fair_from: int | None = None
    back_to: int | None = None
    violates: str | None = None

    def build(self) -> Model:
        """Build the trail's model. Raises Refusal."""
        return find_model(self.model).make(self.sizes, self.settings, self.network, self.faults)

    def lines(self) -> list[str]:
        """Return the trail as JSON Lines."""
        header = {
            "format": FORMAT, "version": VERSION, "model": self.model, "sizes": dict(self.sizes),
            "settings": dict(self.settings), "network": self.network, "faults": faults_to_json(self.faults),
            "claims": list(self.claims), "mode": self.mode, "strategy": self.strategy, "seed": self.seed,
            "scenario": self.scenario, "initial": self.initial, "violates": self.violates,
        }
        steps = [
            compact({"n": n, "choose": chosen.label, **({} if chosen.at_us is None else {"at_us": chosen.at_us})})
            for n, chosen in enumerate(self.choices, 1)
        ]
        end = {"end": len(self.choices), "fair_from": self.fair_from, "back_to": self.back_to}
        return [compact(header), *steps, compact(end)]

    def write(self, path: Path) -> None:
        """Write the trail to a file, atomically."""
        write_atomically(path, self.lines())


def read_trail(path: Path) -> Trail:
    """Read a trail. Raises Refusal for a file that is cut off, damaged, or of another format or version."""
    header, *rest = read_lines(path, "trail")
    check_format(path, header, FORMAT, VERSION)
    if not rest or "end" not in rest[-1]:
        raise Refusal(f"{path} is cut off: a trail ends with an end line after its last choice")
    *steps, end = rest
    if end["end"] != len(steps):
        raise Refusal(f"{path} is damaged: it has {len(steps)} choices but its end line says {end['end']}")
    choices = []
    for number, step in enumerate(steps, 1):
        at_us = step.get("at_us")
        if step.get("n") != number or not isinstance(step.get("choose"), str) or not isinstance(at_us, int | None):
            wanted = f'{{"n": {number}, "choose": ...}}'
            raise Refusal(f"{path}, line {number + 1}: expected choice {number} as {wanted}")
        choices.append(Chosen(step["choose"], at_us))
    try:
        return Trail(
            _text(header["model"]), _mapping(header["sizes"], int), _mapping(header["settings"], str),
            _text(header["network"]), faults_from_json(header["faults"]), tuple(map(_text, header["claims"])),
            tuple(choices), _text(header["mode"]), _text(header["strategy"]), int(header["seed"]),
            header["scenario"], int(header["initial"]), end["fair_from"], end["back_to"], header["violates"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Refusal(f"{path}, line 1: the header does not fit a trail of version {VERSION} ({error})") from None


def check_format(path: Path, header: Mapping[str, Any], wanted: str, version: int) -> None:
    """Raise Refusal unless a header names the wanted format and version."""
    if header.get("format") != wanted:
        raise Refusal(f"{path} is no {wanted.split('/')[1]}: its first line does not say \"format\": \"{wanted}\"")
    if header.get("version") != version:
        raise Refusal(
            f"{path} is of format version {header.get('version')}, this program reads version {version}; "
            "record it again or use the program that wrote it"
        )


def faults_to_json(faults: Faults) -> dict[str, Any]:
    """Return the parts of a fault budget that are not at their default."""
    data = attrs.asdict(faults)
    return {name: value for name, value in data.items() if value}


def faults_from_json(data: Mapping[str, Any]) -> Faults:
    """Return the fault budget of a header. Raises TypeError or ValueError."""
    fields = dict(data)
    fields["rules"] = tuple(Rule(**rule) for rule in fields.get("rules", ()))
    fields["timed"] = tuple(Timed(**{**timed, "who": tuple(timed["who"])}) for timed in fields.get("timed", ()))
    fields["links"] = tuple((str(a), str(b)) for a, b in fields.get("links", ()))
    fields["targets"] = tuple(fields.get("targets", ()))
    return Faults(**fields)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {value!r}")
    return value


def _mapping(value: Any, kind: type) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(type(item) is kind for item in value.values()):
        raise TypeError(f"expected an object of {kind.__name__} values, found {value!r}")
    return value
