"""A list, a dict or another object that can be changed in a state or a message: one sentence says where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.commands.command_line import call

import harness
from harness import model as m
from harness.model.spec import Change, action, processes


@attrs.frozen
class Note(m.Message):
    """A message that says something."""

    text: Any


@attrs.frozen
class Kept:
    """What a writer keeps."""

    notes: Any = ()


@attrs.define
class Changeable:
    """A class whose objects can be changed."""

    size: int = 1


@attrs.frozen
class Writer(m.Actor[Kept]):
    """Sends one note to the other writer, and keeps what it is sent."""

    name: str
    other: str
    first: Any
    sends: Any
    keeps: Any
    has_inbox = True

    @property
    def initial(self) -> Kept:  # type: ignore[override]
        return Kept(self.first)

    def step(self, local: Kept) -> Iterable[m.Turn[Kept]]:
        if local.notes == ():
            sent = Note(self.sends, source=self.name, dest=self.other)
            yield m.Turn("Write", (self.name,), Kept(("sent",)), (sent,))

    def on_message(self, local: Kept, message: m.Message) -> Iterable[m.Turn[Kept]]:
        yield m.Turn("Keep", (self.name,), Kept(self.keeps))


def register(build: Callable[[m.Network, m.Faults], m.Model]) -> None:
    """Register a model `notes` of this process."""

    def made(_: Mapping[str, int], __: Mapping[str, str], network: m.Network, faults: m.Faults, ___: bool) -> m.Model:
        return build(network, faults)

    spec = m.ModelSpec("notes", "writers of notes", made, {"writers": m.Size(2)}, {}, ("bag", "fifo"), may_fault=True)
    m.register(m.System("notes", (spec,)))


@pytest.fixture(autouse=True)
def gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Take the model back, and leave no files."""
    monkeypatch.chdir(tmp_path)
    yield
    m.unregister("notes")


COMMANDS = {
    "simulate": ("simulate", "notes", "--seeds", 5), "trio": ("simulate", "notes", "--seeds", 5, "--runtime", "trio"),
    "check": ("check", "notes"), "faults": ("check", "notes", "--faults", "duplicate=1"),
    "fifo": ("check", "notes", "--network", "fifo"), "reduced": ("check", "notes", "--reduce", "order"),
    "graph": ("graph", "notes", "--out", "notes.svg"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
@pytest.mark.parametrize(("place", "value", "said"), [
    ("first", [], "w1.notes is a list ([]), but nothing in a state or a message may change; use a tuple there"),
    ("keeps", [1, "two"], ".notes is a list ([1, 'two']), but nothing in a state or a message may change; use "
     "a tuple there"),
    ("keeps", (1, m.FrozenMap({"a": {"b": 2}})), ".notes[1]['a'] is a dict ({'b': 2}), but nothing in a state "
     "or a message may change; use a FrozenMap there"),
    ("keeps", Changeable(), ".notes is a Changeable (Changeable(size=1)), but nothing in a state or a message "
     "may change; use a frozen attrs class, a tuple, a frozenset or a FrozenMap there"),
    ("sends", {"a"}, "Note.text is a set ({'a'}), but nothing in a state or a message may change; use a "
     "frozenset there"),
], ids=["first", "list", "dict", "class", "message"])
def test_what_can_be_changed_in_a_state_is_one_sentence(
    place: str, value: Any, said: str, command: tuple[object, ...]
) -> None:
    """The field is named by its path, what it holds is shown, and what to use instead is said; the exit code is 2."""
    ways = {"first": (), "sends": "hello", "keeps": ("kept",), place: value}
    register(lambda network, faults: m.Model(
        "notes", tuple(Writer(one, other, **ways) for one, other in (("w1", "w2"), ("w2", "w1"))), network=network,
        faults=faults, types=(Note, Kept)))
    assert call(*command).refusal.endswith(said)


def lamp(value: Any) -> m.Model:
    """Return a spec composition whose only action writes something to a slot."""

    @action("Switch")
    def switch(_: Any, view: m.View) -> Iterable[Change]:
        if view["lit[l1]"] == 0:
            yield Change((("lit[l1]", value),))

    return m.Model("notes", processes((switch,), None), ({"lit[l1]": 0},))


@pytest.mark.parametrize("command", [COMMANDS[name] for name in ("simulate", "check", "graph")], ids=lambda c: c[0])
def test_a_list_that_an_action_writes_is_one_sentence(command: tuple[object, ...]) -> None:
    """The slot is named where the value itself is none."""
    register(lambda _, __: lamp([1]))
    assert call(*command).refusal == ("lit[l1] is a list ([1]), but nothing in a state or a message may change; "
                                      "use a tuple there")


def test_a_list_as_the_value_of_an_operation_is_one_sentence() -> None:
    """What is recorded of an operation is a value, too."""

    class Asks(Writer):
        def step(self, local: Kept) -> Iterable[m.Turn[Kept]]:
            if local.notes == ():
                yield m.Turn("Write", (self.name,), Kept(("sent",)), op=m.Op("w1", "write", "ok", [1]))

    register(lambda network, faults: m.Model("notes", (Asks("w1", "w1", (), "", ()),), types=(Note, Kept)))
    assert "list is not a protocol value; use a tuple" in call("simulate", "notes", "--seed", 1).refusal


def test_a_simulated_test_of_such_a_model_fails_with_the_sentence() -> None:
    """A test that somebody else wrote sees the same as the command line."""
    register(lambda network, faults: m.Model(
        "notes", (Writer("w1", "w1", (), "", [1]),), network=network, faults=faults, types=(Note, Kept)))

    @harness.simulated("notes", seeds=1)
    def test(run: Any) -> None:
        """Never gets there."""

    with pytest.raises(m.Refusal, match=r"w1\.notes is a list \(\[1\]\)"):
        test()
