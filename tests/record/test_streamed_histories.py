"""Histories read event by event: the same events as together, damage is found before the first, changes on the way.

Then those of version 1, in which maps with whole numbers as keys were in the order of the keys' text, and values of
every model's types: read by name, and members of enumerations as members.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import attrs
import pytest
from support.commands.command_line import call
from support.toys.endless_counter import FAULTY, registered

from harness.model import FrozenMap, Model, Refusal, model_of, model_specs
from harness.record import read_events, read_history
from harness.record.files import compact
from harness.simulate.hunting.hunt import record_run
from harness.simulate.runs.plan import Plan, resolve
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy

registered()


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The history of a run of 300 steps."""
    plan = Plan(FAULTY.claims, 300, scenario=FAULTY.name)
    return record_run(Tables(model_of(FAULTY)), plan, RandomStrategy(1), tmp_path / "x.trail.jsonl")[0]


@pytest.mark.parametrize("typed", [True, False], ids=["with the model", "without"])
def test_events_are_read_one_by_one_as_they_are_together(typed: bool, recorded: Path) -> None:
    """The iterator gives the events that the whole history has, and has read no more than it gave."""
    model = model_of(FAULTY) if typed else None
    events = read_events(recorded, model)
    assert isinstance(events, Iterator)
    assert tuple(events) == read_history(recorded, model).events
    assert len(read_history(recorded, model).events) == 301


EDITS: list[tuple[str, Callable[[list[str]], object], str]] = [
    ("dropped", lambda found: found.pop(5), "its end line says 301"),
    ("swapped", lambda found: found.insert(5, found.pop(6)), "do not have the digest of its end line"),
    ("cut", lambda found: found.pop(), "is cut off"),
    ("no JSON", lambda found: found.insert(7, "{"), "line 8: not JSON"),
]


@pytest.mark.parametrize(("edit", "said"), [edit[1:] for edit in EDITS], ids=[edit[0] for edit in EDITS])
def test_events_of_a_damaged_history_are_not_even_begun(
    edit: Callable[[list[str]], object], said: str, recorded: Path
) -> None:
    """The digest is known to be right before the first event is given."""
    found = recorded.read_text(encoding="utf-8").splitlines()
    edit(found)
    recorded.write_text("\n".join(found) + "\n", encoding="utf-8")
    with pytest.raises(Refusal, match=said):
        next(read_events(recorded, model_of(FAULTY)))


def test_history_that_changes_while_it_is_read_is_refused(recorded: Path) -> None:
    """What was given is checked against the digest again at the end."""
    events = read_events(recorded, model_of(FAULTY))
    next(events)
    text = recorded.read_text(encoding="utf-8")
    before, _, after = text.rpartition('"detail":"')
    with recorded.open("r+", encoding="utf-8") as file:
        file.write(f'{before}"detail":"X{after[1:]}')
    with pytest.raises(Refusal, match="changed while it was read"):
        list(events)


def by_text(data: Any) -> Any:
    """Return JSON in which maps are in the order of their keys' text."""
    if isinstance(data, list):
        return [by_text(item) for item in data]
    if not isinstance(data, dict):
        return data
    if "$map" in data:
        return {"$map": sorted(([key, by_text(item)] for key, item in data["$map"]), key=lambda pair: compact(pair[0]))}
    return {name: by_text(item) for name, item in data.items()}


def as_version_1(path: Path, into: Path) -> str:
    """Write a history as version 1 had it, and return its digest."""
    header, *events, end = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    lines = [json.dumps(by_text(event), separators=(",", ":"), ensure_ascii=False) for event in events]
    digest = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    whole = [compact({**header, "version": 1}), *lines, compact({**end, "digest": digest})]
    into.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")
    return digest


def test_version_1_is_read_and_judged_as_it_was_written(tmp_path: Path) -> None:
    """A client of the run has asked ten times: both versions have the same events, each has its digest."""
    model, plan = resolve("idempotent-in-flight")
    path, run = record_run(Tables(model), plan, RandomStrategy(0), tmp_path / "now.trail.jsonl")
    before = tmp_path / "before.history.jsonl"
    run.trail.write(tmp_path / "before.trail.jsonl")
    assert as_version_1(path, before) != run.digest == read_history(path, model).digest
    assert read_history(before, model).events == read_history(path, model).events
    judged = [call("verify", each) for each in (path, before)]
    assert [each.code for each in judged] == [0, 0]
    now, then = (each.out.splitlines() for each in judged)
    needs_a_replay = "  not judged without the trail next to it: OperationsEnd, NothingStaysOpen"
    assert [line for line in then if line != needs_a_replay][1:] == now[1:] and needs_a_replay in then


# Values of every model's types read back as what they were.


def is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, StrEnum)


def lost(hint: Any) -> Iterator[Any]:
    """Yield the parts of a hint in which a member of an enumeration would come back as mere text."""
    arguments = get_args(hint)
    kinds = [argument for argument in arguments if is_enum(argument)]
    if kinds and get_origin(hint) is tuple and any(argument is str for argument in arguments):
        yield hint
    for argument in arguments:
        if any(is_enum(inner) for inner in get_args(argument)):
            yield hint


def test_members_of_enumerations_are_where_reading_finds_them() -> None:
    """As a field, or in a tuple, a set or the values of a map that is a field."""
    wrong = {f"{cls.__name__}.{name}" for spec in model_specs() for cls in spec.make().types if attrs.has(cls)
             for name, hint in get_type_hints(cls).items() if list(lost(hint))}
    assert wrong == set()
    assert list(lost(tuple[tuple[str, StrEnum], ...])) and list(lost(tuple[str, StrEnum]))
    assert not list(lost(FrozenMap[str, StrEnum])) and not list(lost(StrEnum | None))


def test_two_types_of_a_model_have_two_names() -> None:
    """Else recorded values of one would be read as the other."""
    one, other = attrs.make_class("Same", ["x"], frozen=True), attrs.make_class("Same", ["y"], frozen=True)
    with pytest.raises(ValueError, match="several types that are called Same"):
        Model("m", (), types=(one, other))
    Model("m", (), types=(one, one))


def test_run_with_leaders_that_crash_reads_back(tmp_path: Path) -> None:
    """The history of every role on replicated logs is judged by its own actors."""
    assert call("simulate", "leaders-crash", "--seed", 1, "--out", tmp_path).code == 0
    judged = call("verify", tmp_path / "leaders-crash-random-1.history.jsonl")
    assert (judged.code, judged.err) == (0, "")
