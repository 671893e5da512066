"""Trails: the decisions of a run, enough to replay it. JSON Lines; docs/reference/formats.md describes every field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from harness.model import NO_FAULTS, Faults, Model, Refusal, Rule, Timed, did_you_mean, find_model, unknown
from harness.model.faults import FAULT_KINDS, LINK_KINDS, RULE_KINDS, TIMED_KINDS
from harness.record.choices import ChoiceLines, Chosen, SpooledChoices
from harness.record.expressions import with_expressions
from harness.record.fields import (
    ANY,
    COUNT,
    NAMES,
    NUMBER,
    NUMBERS,
    OBJECT,
    OBJECTS,
    PAIRS,
    TEXT,
    TEXTS,
    FieldKind,
    check_fields,
    check_given,
    one_of,
    optional,
    shown,
)
from harness.record.files import compact, each_text, parse_line, write_atomically

FORMAT, HISTORY_FORMAT = "kafka-proto/trail", "kafka-proto/history"
VERSION = 2
READABLE = (1, 2)
"""Format versions that can be read: in version 1 a label has its message in full."""

RUN_FIELDS: Mapping[str, FieldKind] = {
    "model": TEXT, "sizes": NUMBERS, "settings": NAMES, "network": TEXT, "faults": OBJECT, "claims": TEXTS,
    "mode": one_of("free", "timed"), "strategy": TEXT, "seed": NUMBER, "scenario": optional(TEXT),
}
"""What the headers of trails and histories have in common."""
HEADER_FIELDS: Mapping[str, FieldKind] = {**RUN_FIELDS, "initial": COUNT, "violates": optional(TEXT)}
END_FIELDS: Mapping[str, FieldKind] = {"end": COUNT, "fair_from": optional(COUNT), "back_to": optional(COUNT)}
FAIRNESS: Mapping[str, FieldKind] = {"fairness": FieldKind(
    "spec, none, action, weak, weak,ACTION or next",
    lambda value: isinstance(value, str) and re.fullmatch(r"spec|none|action|weak(,\w+)*|next", value) is not None,
)}
"""What the end line of a lasso has besides."""
INPUT_FIELDS: Mapping[str, FieldKind] = {"process": TEXT, "value": ANY}
"""What the line of a choice says of input from outside."""
FAULT_FIELDS: Mapping[str, FieldKind] = {
    **dict.fromkeys(FAULT_KINDS, COUNT), "targets": TEXTS, "links": PAIRS, "rules": OBJECTS, "timed": OBJECTS,
}
RULE_FIELDS: Mapping[str, FieldKind] = {
    "kind": one_of(*RULE_KINDS), "message": TEXT, "source": TEXT, "dest": TEXT, "nth": COUNT, "delay_ms": COUNT,
}
TIMED_FIELDS: Mapping[str, FieldKind] = {
    "kind": one_of(*TIMED_KINDS), "who": TEXTS, "at_ms": COUNT, "until_ms": optional(COUNT),
}


@attrs.frozen
class Trail:
    """A run's decisions, with all it takes to build the model again.

    `fair_from` is the number of steps before the fair ending (liveness), or None; `back_to` the step whose state the
    last one repeats, where the fair ending is a cycle. `violates` names the property that the run violates. `fairness`
    is set where a search found the ending: what it was allowed to assume (else the simulator's fair order is kept).
    """

    model: str
    sizes: Mapping[str, int]
    settings: Mapping[str, str]
    network: str
    faults: Faults
    claims: tuple[str, ...]
    choices: Sequence[Chosen]
    mode: str = "free"
    strategy: str = "random"
    seed: int = 0
    scenario: str | None = None
    initial: int = 0
    fair_from: int | None = None
    back_to: int | None = None
    violates: str | None = None
    fairness: str | None = None

    def build(self) -> Model:
        """Build the trail's model. Raises Refusal."""
        return build_model(self.model, self.sizes, self.settings, self.network, self.faults, self.claims)

    def lines(self) -> list[str]:
        """Return the trail as JSON Lines."""
        return list(self.each_line())

    def text(self) -> str:
        """Return the text of the trail's file."""
        return "".join(f"{line}\n" for line in self.each_line())

    def each_line(self) -> Iterator[str]:
        """Yield the lines of the trail, which may be too many to keep."""
        own = {"format": FORMAT, "version": VERSION, "initial": self.initial, "violates": self.violates}
        yield compact({**run_fields(self), **own})
        if isinstance(self.choices, SpooledChoices):
            yield from self.choices.lines()
        else:
            lines = ChoiceLines()
            yield from (lines.line(n, chosen) for n, chosen in enumerate(self.choices, 1))
        end: dict[str, Any] = {"end": len(self.choices), "fair_from": self.fair_from, "back_to": self.back_to}
        if self.fairness is not None:
            end["fairness"] = self.fairness
        yield compact(end)

    def write(self, path: Path) -> None:
        """Write the trail to a file, atomically."""
        write_atomically(path, self.each_line())


def run_fields(trail: Trail) -> dict[str, Any]:
    """Return what the headers of trails and histories have in common."""
    return {
        "model": trail.model, "sizes": dict(trail.sizes), "settings": dict(trail.settings), "network": trail.network,
        "faults": faults_to_json(trail.faults), "claims": list(trail.claims), "mode": trail.mode,
        "strategy": trail.strategy, "seed": trail.seed, "scenario": trail.scenario,
    }


def read_trail(path: Path) -> Trail:
    """Read a trail. Raises Refusal for a file that is cut off, damaged, or of another format or version."""
    return trail_of(path, each_text(path, "trail"))


def trail_of_text(name: str, text: str) -> Trail:
    """Return the trail in a text; a Refusal, raised as by `read_trail`, calls it `name`."""
    return trail_of(Path(name), text.removesuffix("\n").split("\n"))


def trail_of(path: Path, lines: Iterable[str]) -> Trail:
    """Return the trail in the lines of a file; there is at least one line. Raises Refusal."""
    header, *rest = [parse_line(path, "trail", number, line) for number, line in enumerate(lines, 1)]
    check_format(path, header, FORMAT, READABLE)
    if not rest or "end" not in rest[-1]:
        raise Refusal(f"{path} is cut off: a trail ends with an end line after its last choice; record the run again")
    *steps, end = rest
    check_line(path, 1, header, HEADER_FIELDS)
    check_line(path, len(rest) + 1, end, {**END_FIELDS, **(FAIRNESS if "fairness" in end else {})})
    if end["end"] != len(steps):
        raise Refusal(
            f"{path} is damaged: it has {len(steps)} choices but its end line says {end['end']}; record the run again"
        )
    _check_ending(path, end, len(steps))
    choices = []
    for number, step in enumerate(steps, 1):
        at_us = step.get("at_us")
        if step.get("n") != number or not TEXT.fits(step.get("choose")) or not optional(COUNT).fits(at_us):
            wanted = f'{{"n": {number}, "choose": ...}}'
            raise Refusal(f"{path}, line {number + 1}: expected choice {number} as {wanted}; record the run again")
        if "input" in step:
            check_line(path, number + 1, step, {"input": OBJECT})
            check_line(path, number + 1, step["input"], INPUT_FIELDS)
        choices.append(Chosen.read(step))
    return Trail(
        header["model"], header["sizes"], header["settings"], header["network"], read_faults(path, header),
        tuple(header["claims"]), tuple(choices), header["mode"], header["strategy"], header["seed"],
        header["scenario"], header["initial"], end["fair_from"], end["back_to"], header["violates"],
        end.get("fairness"),
    )


def _check_ending(path: Path, end: Mapping[str, Any], steps: int) -> None:
    """Raise Refusal unless the fair ending starts at one of the steps and leads back into itself."""
    fair_from, back_to = end["fair_from"], end["back_to"]
    if fair_from is not None and fair_from > steps:
        raise Refusal(f'{path}, line {steps + 2}: "fair_from" should be null or 0 to {steps}, found {fair_from}')
    if back_to is not None and (fair_from is None or not fair_from <= back_to < steps):
        wanted = "null" if fair_from in (None, steps) else f"null or {fair_from} to {steps - 1}"
        raise Refusal(f'{path}, line {steps + 2}: "back_to" should be {wanted}, found {back_to}')


def check_line(path: Path, line: int, data: Mapping[str, Any], wanted: Mapping[str, FieldKind]) -> None:
    """Raise Refusal unless the object on a line has all wanted fields, each of its kind."""
    try:
        check_fields(data, wanted)
    except ValueError as error:
        raise Refusal(f"{path}, line {line}: {error}; record the run again") from None


def check_format(path: Path, header: Mapping[str, Any], wanted: str, versions: Sequence[int]) -> None:
    """Raise Refusal unless a header names the wanted format and version."""
    if header.get("format") != wanted:
        said = format_said(header)
        raise Refusal(f'{path} is not a {wanted.split("/")[1]}: its first line {said}, not "{wanted}"; give another'
                      " file")
    version = header.get("version")
    if type(version) is not int or version not in versions:
        known = " and ".join(map(str, versions))
        raise Refusal(
            f"{path} is of format version {shown(version)}, this program reads version {known}; "
            "record it again or use the program that wrote it"
        )


def format_said(header: Mapping[str, Any]) -> str:
    """Return in words what a header says about its format."""
    return f'says "format": {shown(header["format"])}' if "format" in header else "names no format"


def is_trail(path: Path) -> bool:
    """Say whether a file is a trail; else it is a history. Raises Refusal if it is neither."""
    first = parse_line(path, "trail or history", 1, next(each_text(path, "trail or history")))
    if first.get("format") not in (FORMAT, HISTORY_FORMAT):
        said = f"its first line {format_said(first)}; give another file"
        raise Refusal(f"{path} is neither a trail nor a history: {said}")
    return bool(first["format"] == FORMAT)


def build_model(
    name: str, sizes: Mapping[str, int], settings: Mapping[str, str], network: str, faults: Faults,
    claims: Iterable[str],
) -> Model:
    """Build a recorded run's model. Raises Refusal, also for faults and claims that do not fit the model."""
    spec = find_model(name)
    model = spec.make(sizes, settings, network)
    if faults != NO_FAULTS:
        _check_names(faults, model)
        model = spec.make(sizes, settings, network, faults)
    claims = tuple(claims)
    model = with_expressions(model, claims)
    known = [prop.name for prop in model.properties]
    for claim in claims:
        if claim not in known:
            said = f"model {name} has no property {claim!r} to claim"
            raise Refusal(unknown(said, claim, known, "its properties are"))
    return model


def _check_names(faults: Faults, model: Model) -> None:
    """Raise Refusal for faults of an actor that the model, at its size, does not have."""
    actors = [*faults.targets, *(who for timed in faults.timed for who in timed.who if timed.kind not in LINK_KINDS)]
    cut = [who for link in faults.links for who in link]
    cut += [who for timed in faults.timed for who in timed.who if timed.kind in LINK_KINDS]
    for names, known in ((actors, tuple(model.actors)), (cut, model.addresses)):
        for name in names:
            if name not in known:
                has = ", ".join(known) or "nobody like that"
                meant = did_you_mean(name, known)
                said = f"the faults name {name!r}, but {model.name} at this size has {has}"
                raise Refusal(f"{said}; {meant}" if meant else said)


def faults_to_json(faults: Faults) -> dict[str, Any]:
    """Return the parts of a fault budget that are not at their default."""
    data = attrs.asdict(faults)
    return {name: value for name, value in data.items() if value}


def read_faults(path: Path, header: Mapping[str, Any]) -> Faults:
    """Return the fault budget of a file's header. Raises Refusal."""
    try:
        return faults_from_json(header["faults"])
    except ValueError as error:
        raise Refusal(f'{path}, line 1, "faults": {error}; record the run again') from None


def faults_from_json(data: Mapping[str, Any]) -> Faults:
    """Return the fault budget of a header. Raises ValueError."""
    _check_known(data, FAULT_FIELDS)
    fields = dict(data)
    fields["rules"] = tuple(_rule(rule) for rule in fields.get("rules", ()))
    fields["timed"] = tuple(_timed(timed) for timed in fields.get("timed", ()))
    fields["links"] = tuple((a, b) for a, b in fields.get("links", ()))
    fields["targets"] = tuple(fields.get("targets", ()))
    return Faults(**fields)


def _rule(data: Mapping[str, Any]) -> Rule:
    _check_known(data, RULE_FIELDS, "kind")
    return Rule(**data)


def _timed(data: Mapping[str, Any]) -> Timed:
    _check_known(data, TIMED_FIELDS, "kind", "who", "at_ms")
    wanted = 2 if data["kind"] in LINK_KINDS else 1
    if len(data["who"]) != wanted:
        raise ValueError(f'"who" of a timed {data["kind"]} should be {wanted} names, found {shown(data["who"])}')
    return Timed(**{**data, "who": tuple(data["who"])})


def _check_known(data: Mapping[str, Any], known: Mapping[str, FieldKind], *needed: str) -> None:
    """Raise ValueError unless an object has the needed fields and no unknown ones, each of its kind."""
    for name in data:
        if name not in known:
            meant = did_you_mean(name, known)
            raise ValueError(f'unknown field "{name}", known are {", ".join(known)}{meant and f"; {meant}"}')
    check_fields(data, {name: known[name] for name in needed})
    check_given(data, known)
