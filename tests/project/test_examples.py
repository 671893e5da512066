"""The examples of docs/examples: what stateright's tests pin for the same models, by the public command line.

Source of the figures: stateright 0.31, examples/2pc.rs, paxos.rs, linearizable-register.rs, single-copy-register.rs.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.commands.command_line import call
from support.searches.plain_search import search
from support.toys import own_protocols
from support.toys.faulty_world import World

from harness.model import Faults, FrozenMap, Model, System, find_model, fresh, register
from harness.verify.well_formed import wrong_with

EXAMPLES = ("two_phase_commit", "single_copy_register", "quorum_register", "paxos")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """The examples are registered during a test, and forgotten after it."""
    with own_protocols.registered(*EXAMPLES):
        yield


def distinct(tmp_path: Path, *arguments: object) -> int:
    """Search a model that is right, completely; return how many states it has."""
    done = call("check", *arguments, "--json", "--out", tmp_path)
    assert (done.code, done.json["verdict"], done.json["complete"]) == (0, "ok", True)
    assert all(done.json["witnesses"].values())
    states: int = done.json["distinct"]
    return states


@pytest.mark.parametrize(("managers", "engine", "states", "orbits"), [
    (3, "auto", 288, 80), (5, "auto", 8_832, 314), pytest.param(7, "python", 296_448, 920, marks=pytest.mark.large),
    pytest.param(7, "kernel", 296_448, 920, marks=pytest.mark.large),
])
def test_two_phase_commit_has_the_pinned_states(
    managers: int, engine: str, states: int, orbits: int, tmp_path: Path
) -> None:
    """All states, and the exact number of their classes under renaming."""
    size = ("two-phase-commit", "--size", f"resource-managers={managers}", "--engine", engine)
    assert distinct(tmp_path, *size) == states
    assert distinct(tmp_path, *size, "--symmetry") == orbits


@pytest.mark.parametrize("engine", ["python", "kernel", "plain"])
@pytest.mark.parametrize(
    ("model", "states", "chosen"),
    [("single-copy-register", 93, 3), ("quorum-register", 544, 11), ("paxos", 16_668, 8)],
)
def test_registers_have_the_pinned_states(
    model: str, states: int, chosen: int, engine: str, tmp_path: Path
) -> None:
    """Histories are part of the states; a written value is on its way to a reader after as many steps as there."""
    assert distinct(tmp_path, model, "--engine", engine) == states
    done = call("check", model, "--engine", engine, "--json", "--out", tmp_path)
    assert len(done.json["witnesses"]["ValueChosen"]["steps"]) == chosen


def test_two_copies_are_not_linearizable(tmp_path: Path) -> None:
    """The shortest counterexample has as many steps as stateright's; check, simulate, replay and verify agree on it."""
    size = ("single-copy-register", "--size", "servers=2")
    done = call("check", *size, "--json", "--out", tmp_path)
    (violated,) = done.json["violated"]
    assert (done.code, violated["property"], violated["length"] - 1) == (1, "Linearizable", 4)
    why = "after Write(A) of c1, Read() of c1 was answered None, not A"
    assert violated["reason"].endswith(why)
    trail = tmp_path / "single-copy-register-Linearizable.trail.jsonl"
    for runtime in ("plain", "trio"):
        replayed = call("replay", trail, "--runtime", runtime, "--json")
        assert (replayed.code, replayed.json["verdict"]["violated"]) == (1, "Linearizable")
    assert call("simulate", *size, "--seeds", 1, "--out", tmp_path).code == 1
    (history,) = tmp_path.glob("*random*.history.jsonl")
    (judged,) = call("verify", history, "--json").json["files"]
    assert judged["findings"] == ["property"]


def test_put_that_arrives_twice_breaks_the_quorum_register(tmp_path: Path) -> None:
    """A lost message breaks nothing; one that is doubled lets an old value be written again, after a newer one."""
    assert distinct(tmp_path, "quorum-register", "--faults", "drop=1") == 1_059
    done = call("check", "quorum-register", "--faults", "duplicate=1", "--json", "--out", tmp_path)
    (violated,) = done.json["violated"]
    assert (violated["property"], violated["length"] - 1) == ("Linearizable", 30)


@pytest.mark.parametrize("model", ["single-copy-register", "quorum-register"])
def test_register_search_agrees_with_the_reference(model: str, tmp_path: Path) -> None:
    """With faults, the plain reference meets as many states, and as many successors."""
    done = call("check", model, "--faults", "drop=1", "--json", "--out", tmp_path)
    reference = search(find_model(model).make(faults=Faults(drop=1)), ("Linearizable",))
    assert (done.json["distinct"], done.json["generated"]) == (reference.distinct, reference.generated)


def test_numbers_are_not_renamed_beside_an_auxiliary_variable(tmp_path: Path) -> None:
    """It may hold some of them, and nothing says where: refused by name, left out of all."""
    @attrs.frozen
    class Numbered:
        request: int = attrs.field(metadata=fresh("request"))

    (spec,) = import_module("single_copy_register").system().models

    def build(*given: Any) -> Model:
        return attrs.evolve(spec.build(*given), name="numbered", types=(*spec.build(*given).types, Numbered))

    register(System("numbered", (attrs.evolve(spec, name="numbered", build=build),)))
    assert call("check", "numbered", "--reduce", "numbers", "--out", tmp_path).refusal == (
        "numbered has auxiliary variables (calls), whose numbers are not renamed; leave --reduce numbers out"
    )
    assert distinct(tmp_path, "numbered", "--reduce", "all") == 93


def test_no_protocol_step_depends_on_an_auxiliary_variable() -> None:
    """Which turns there are, what they do to actors and what they send is the same whatever was noted before."""
    model = find_model("quorum-register").make()
    (start,) = model.initial_states()
    forgotten = {**start, "calls": FrozenMap()}
    one, other = ([(c.label, [w for w in c.step.writes if w[0] != "calls"], c.step.sent) for c in model.choices(state)]
                  for state in (start, forgotten))
    assert one == other


def test_history_with_another_auxiliary_variable_is_found() -> None:
    """What a record says of the calls must be what its steps say of them."""
    here = World(find_model("single-copy-register").make())
    here.take("ReceivePut(s1) Put c1")
    event = here.event(here.take("ReceivePutOk(c1)"))
    assert list(wrong_with(here.model, here.before, event)) == []
    left_out = {name: value for name, value in event.writes.items() if name != "calls"}
    for forged in ({**event.writes, "calls": FrozenMap()}, left_out):
        found = wrong_with(here.model, here.before, attrs.evolve(event, writes=forged))
        assert [rule for rule, _ in found] == ["AuxiliaryIsAsNoted"]
