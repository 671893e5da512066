"""Numbers of whole transactions that are only compared: declarations hold, wrong ones are caught, searches agree."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.commands.command_line import call
from support.runs import renaming
from support.runs.renaming import departures, numbers, walk

from harness.model import Faults, Model, find_model
from harness.model.fresh import Sort, declared

FAULTS = Faults(drop=2, duplicate=2, delay=2, partition=1, crash=3, targets=("b1", "b2"))
TWO = {"producers": 2, "brokers": 2, "partitions": 2, "records": 2, "consumers": 1}
EVERYTHING = {"timeouts": "request,delivery,transaction"}
UNUSED = {"produce"}
"""A sort that a replica declares for clients of its own, where what waits for its records are requests."""
LOCAL, LATER = {**EVERYTHING, "log": "at-once"}, {**EVERYTHING, "log": "later", "client": "aiokafka"}
MOVING = {**EVERYTHING, "log": "replicated"}
LARGE = pytest.mark.large


def made(name: str, settings: dict[str, str], **sizes: int) -> Model:
    return find_model(f"kafka/{name}").make({**TWO, **sizes}, settings, faults=FAULTS)


def found(model: Model, seeds: range, steps: int) -> tuple[list[str], set[str]]:
    """Return how runs depart from renamed ones, and of which sorts their states have numbers."""
    why, seen = list[str](), set[str]()
    for seed in seeds:
        chance = random.Random(seed)
        for state in walk(model, seed, steps):
            seen |= {sort for sort, _ in numbers(model, state)}
            why += departures(model, state, chance)
    return why, seen


@pytest.mark.parametrize(("name", "settings", "seeds", "steps"), [
    ("4.0", LOCAL, 1, 60), ("3.9", LATER, 1, 60),
    *(pytest.param(name, settings, 5, 100, marks=LARGE) for name, settings in (
        ("2.3", EVERYTHING), ("3.5", LOCAL), ("3.9", LATER), ("4.0", LOCAL), ("4.0", LATER),
    )),
    pytest.param("4.0", MOVING, 3, 100, marks=LARGE), pytest.param("3.5", MOVING, 3, 100, marks=LARGE),
])
def test_what_is_declared_is_only_compared(name: str, settings: dict[str, str], seeds: int, steps: int) -> None:
    """Renamed, each state of some runs offers the same steps, which lead to the same states, renamed."""
    is_moving = settings is MOVING
    model = made(name, settings, elections=2) if is_moving else made(name, settings)
    why, seen = found(model, range(seeds), steps)
    assert not why
    verifies = set() if name in ("2.3", "3.5") else {"guard"}
    replicates = {"fetch"} if is_moving else set()
    possible = {"broker_epoch", "connection", "correlation"} | verifies | replicates
    assert possible | UNUSED | {"guard", "fetch"} == set(declared(model.types))
    common = {"connection", "correlation"} if seeds == 1 else {"broker_epoch", "connection", "correlation"}
    assert common | (replicates if is_moving or seeds == 1 else verifies) <= seen <= possible


def test_what_others_declare_is_only_compared() -> None:
    """Likewise of producers without transactions, and of who deletes records."""
    sizes = {"producers": 0, "idempotent-producers": 1, "deletions": 2, "consumers": 0}
    why, seen = found(made("2.3", {"timeouts": "request,delivery"}, **sizes), range(3), 40)
    assert not why
    assert {"connection", "correlation"} <= seen


def ends(change: Callable[[dict[str, Sort]], dict[str, Sort]], patch: pytest.MonkeyPatch) -> list[str]:
    """Return how a run with two markers under way departs from renamed ones once declarations are changed."""
    patch.setattr(renaming, "declared", lambda types: change(declared(types)))
    model = find_model("kafka/4.0").make({"brokers": 1, "records": 2}, {"timeouts": "request"})
    return found(model, range(1), 32)[0]


def test_the_order_of_correlation_ids_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker asks again in the order in which it asked: ids that change places are caught, others are not."""
    assert not ends(lambda sorts: sorts, monkeypatch)
    why = ends(lambda sorts: {**sorts, "correlation": attrs.evolve(sorts["correlation"], ordered=False)}, monkeypatch)
    assert any("RequestTimeout" in each and "inbox[b1]" in each for each in why)


def test_a_guard_is_of_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """A declaration that leaves out whose they are gives one guard two names: who joins a verification shows it."""
    monkeypatch.setattr(sys.modules[declared.__module__], "part_of", lambda slot: "")
    why = ends(lambda sorts: sorts, monkeypatch)
    assert any("ReceiveProduceRequest" in each and "are others" in each for each in why)


@pytest.mark.parametrize(("name", "timers"), [
    ("4.0", 1), *(pytest.param(name, 2, marks=LARGE) for name in ("3.5", "3.9", "4.0")),
])
def test_searches_find_the_same_in_fewer_states(name: str, timers: int, tmp_path: Path) -> None:
    """A complete search with `--reduce numbers` violates and reaches the same, by runs of the same lengths."""
    size = ("--size", "brokers=1", "--size", "partitions=1", "--size", "records=1", "--timers", str(timers))
    plain, reduced = (
        call("check", f"kafka/{name}", *size, "--no-stop", "--reduce", reduce, "--json", "--out", tmp_path).json
        for reduce in ("none", "numbers")
    )
    assert plain["complete"] and reduced["complete"] and reduced["reductions"] == ["numbers"]
    assert reduced["distinct"] < plain["distinct"]
    assert plain["violated"]
    assert lengths(reduced) == lengths(plain)


def lengths(result: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the lengths of what a search violated and reached; there may be several runs of a length."""
    reached = {name: found and found["length"] for name, found in result["witnesses"].items()}
    return {**reached, **{each["property"]: each["length"] for each in result["violated"]}}
