"""Actors of several parts: what a turn writes, what a flush and a crash leave, and what is remembered by part."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar

import attrs
import pytest
import trio
from support.runs.made_runs import states_of
from support.searches import plain_search
from support.toys import own_protocols
from support.toys.faulty_world import World

from harness import model as m
from harness.demo.session.as_json import state_json
from harness.explore.any_model import PlainSearch
from harness.memo.read_memo import ReadMemo
from harness.record import Event, Recorder
from harness.render.changes import changes
from harness.render.itf import itf_value
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.session import Session, run_plain
from harness.simulate.runtimes.trio_runtime import TrioHost
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from harness.simulate.trails.replay import replay_plain
from harness.verify.linearization import Overlays, Taken
from harness.verify.well_formed import departure, wrong_with

library: Any = own_protocols.example("library")
"""The example of docs/use/your-own-protocol.md."""
A, B, DESK = "library[shelf][a]", "library[shelf][b]", "library[desk]"
CRASH = m.Faults(crash=2, targets=("library",))


def seen(*labels: str, server: Any = library.Library) -> World:
    """The library with crashes after some steps: one book on each shelf, or fewer."""
    world = World(library.library(CRASH, server))
    world.take(*labels)
    return world


STOCKED = (*("Send(c1)",) * 3, "ReceivePut(c1) Put c1->library shelf=a", "ReceivePut(c1) Put")


@pytest.fixture
def here() -> World:
    """The library with its three requests sent, and one book on each shelf."""
    return seen(*STOCKED)


def test_each_part_has_a_slot_and_a_disk_if_anything_of_it_is_persisted() -> None:
    """The names of slots come from the parts; an actor of one part has one slot as ever."""
    state = library.library(CRASH).initial_states()[0]
    assert {name for name in state if "library" in name and not name.startswith(("inbox", "held", "gate"))} == {
        A, B, DESK, f"disk[{A[:7]}][shelf][a]", "disk[library][shelf][b]",
    }
    assert "c1" in state and state[DESK] == library.Desk()


def test_turn_writes_the_parts_that_it_changes(here: World) -> None:
    """A flush writes the disks of these; a turn that changes two parts writes both."""
    written = [name for name, _ in here.take("ReceiveBorrow(c1)").step.writes]
    assert written == [A, DESK]
    other = seen("Send(c1)")
    assert [name for name, _ in other.take("ReceivePut(c1)").step.writes] == [A, "disk[library][shelf][a]"]


def test_crash_leaves_of_each_part_what_was_flushed(here: World) -> None:
    """Each shelf is as on its own disk, its volatile field and the desk are as at first."""
    here.take("ReceiveBorrow(c1)")
    assert here.state[A] == library.Shelf((), 1) and here.state[DESK].readers == {"c1"}
    here.take("Crash(library)")
    assert here.state[A] == library.Shelf(("x",), 0) and here.state[B] == library.Shelf(("y",), 0)
    assert here.state[DESK] == library.Desk()
    here.take("Restart(library)")
    assert here.state[A].books == ("x",)


class Flushes(library.Library):
    """A library that flushes shelf b alone with what it borrows."""

    def on_message(self, local: m.Local, message: m.Message) -> Iterable[m.Turn[m.Local]]:
        for turn in super().on_message(local, message):
            yield attrs.evolve(turn, flush=(library.SHELF["b"],) if turn.action == "ReceiveBorrow" else False)


def test_turn_may_say_which_parts_it_flushes() -> None:
    """What is named is flushed though the turn did not change it, and nothing else is."""
    world = seen(*STOCKED, server=Flushes)
    choice = world.take("ReceiveBorrow(c1)")
    assert [name for name, _ in choice.step.writes] == [A, DESK, B, "disk[library][shelf][b]"]
    assert list(wrong_with(world.model, world.before, world.event(choice))) == []
    world.take("Crash(library)")
    assert world.state[A].books == () and world.state[B].books == ("y",)


@attrs.frozen
class Line:
    """A record with fields of both kinds."""

    text: str = m.persisted()
    readers: int = m.volatile(default=0)
    notes: tuple[Line, ...] = m.nested(default=())


@attrs.frozen
class Book:
    lines: m.FrozenMap[str, Line] = m.nested(default=m.FrozenMap())
    cover: Line = m.nested(default=Line(""))
    opened: m.FrozenMap[str, Line] = m.volatile(default=m.FrozenMap())


def test_nested_records_lose_their_volatile_fields_in_a_crash() -> None:
    """Records in maps and tuples have fields of both kinds, and nobody takes them apart."""
    deep = Line("deep", 3)
    book = Book(m.FrozenMap({"1": Line("one", 2, (deep,))}), Line("cover", 1), m.FrozenMap({"1": deep}))
    again = m.survivor(Book(), m.durable(book))
    assert again == Book(m.FrozenMap({"1": Line("one", 0, (Line("deep"),))}), Line("cover"))


def test_parts_are_read_and_put_by_name() -> None:
    """A state with another part is a new one; parts that the actor has not, and names that clash, are refused."""
    first = m.Local.first("library", library.DESK, library.SHELF["a"])
    other = first.put(library.SHELF["a"], library.Shelf(("x",)))
    assert (first[library.SHELF["a"]].books, other[library.SHELF["a"]].books) == ((), ("x",))
    assert list(other.changed(first)) == [library.SHELF["a"]] and library.SHELF["b"] not in other
    with pytest.raises(KeyError, match=r"shelf\[b\] is none of the parts desk, shelf\[a\]"):
        other.put(library.SHELF["b"], library.Shelf())
    with pytest.raises(ValueError, match="one name must not lead to two parts of x: a, a"):
        m.Local.first("x", m.Part("a", Line("")), m.Part("a", Line("")))
    with pytest.raises(ValueError, match="one name must not lead to two parts"):
        m.Local.first("x", m.Part("a", Line("")), m.Parts("a", lambda: Line(""))["b"])


class Counting(library.Library):
    """Counts how often it is asked, by message."""

    asked: ClassVar[Counter[str]] = Counter()

    def on_message(self, local: m.Local, message: m.Message) -> Iterable[m.Turn[m.Local]]:
        self.asked[message.brief()] += 1
        return super().on_message(local, message)


def test_turn_on_one_part_is_not_asked_for_again_when_another_one_changes() -> None:
    """What is remembered of a turn depends on the parts that it read."""
    Counting.asked.clear()
    tables = Tables(library.library(server=Counting))
    for seed in range(30):
        run_plain(tables, Plan(()), RandomStrategy(seed))
    asked = {brief.partition(" c1->library ")[::2]: times for brief, times in Counting.asked.items()}
    assert asked == {("Put", "shelf=a book=x"): 1, ("Put", "shelf=b book=y"): 1, ("Borrow", "shelf=a"): 2}


def test_properties_are_looked_at_again_when_their_part_changes(here: World) -> None:
    """A check that is about the books of one shelf reads that shelf only, and is not asked again when it is used."""
    view = m.View(here.state)
    assert library.no_copy(view, "a") is None and view.reads() == (A,)
    tables = Tables(here.model)
    memo = ReadMemo(tables, partial(library.no_copy, shelf="a"))
    used = {**here.state, A: attrs.evolve(here.state[A], borrowed=7)}
    other = {**here.state, A: library.Shelf(("x", "x"))}
    first, again, failing = (memo.at(tables.intern(state)) for state in (here.state, used, other))
    assert again is first and failing.result == "a book stands on shelf a twice"


@pytest.mark.parametrize("faults", [m.NO_FAULTS, CRASH], ids=["calm", "crashes"])
def test_runs_of_parts_are_equal_in_both_runtimes(faults: m.Faults) -> None:
    """A task owns all parts of its actor: digests on plain and trio are equal, and tables say what the model says."""
    model = library.library(faults)
    tables = Tables(model)
    for seed in range(25):
        run = run_plain(tables, Plan(("NoCopy",)), RandomStrategy(seed), Recorder())
        host = TrioHost(Session(tables, Plan(("NoCopy",)), RandomStrategy(seed), Recorder()))
        assert trio.run(host.run).digest == run.digest is not None
        assert len(list(states_of(model, run))) == len(run.trail.choices) + 1
        assert replay_plain(run.trail, tables=tables).verdict == run.verdict


def test_search_of_parts_finds_what_the_reference_search_finds() -> None:
    """With crashes: as many states, of the same parts."""
    model = library.library(CRASH)
    found, reference = PlainSearch(model, ("NoCopy",)).run(), plain_search.search(model, ("NoCopy",))
    assert (found.distinct, found.generated) == (reference.distinct, reference.generated)
    assert found.complete and found.distinct > 100


FORGED: tuple[tuple[str, Callable[[Event], dict[str, object]]], ...] = (
    ("OwnStateOnly", lambda e: {**e.writes, "c1": library.Reader(())}),
    ("OwnStateOnly", lambda e: {**e.writes, "library": library.Shelf()}),
    ("DiskIsWhatWasHeld", lambda e: {**e.writes, "disk[library][shelf][a]": m.FrozenMap({"books": ("forged",)})}),
    ("DiskIsWhatWasHeld", lambda e: {**e.writes, "disk[library][shelf][b]": m.FrozenMap({"books": ("forged",)})}),
)


@pytest.mark.parametrize(("rule", "forge"), FORGED)
def test_write_that_is_not_the_actors_own_is_found(rule: str, forge: Callable[[Event], dict[str, object]]) -> None:
    """Another actor's slot, a slot that is no part, a disk with what no part holds; the event itself is in order."""
    world = seen("Send(c1)")
    event = world.event(world.take("ReceivePut(c1)"))
    event = attrs.evolve(event, writes={k: v for k, v in event.writes.items() if k != "budget"})
    assert list(wrong_with(world.model, world.before, event)) == []
    assert departure(world.model, m.View(world.before), event) is None
    found = [name for name, _ in wrong_with(world.model, world.before, attrs.evolve(event, writes=forge(event)))]
    assert rule in found


def test_client_that_writes_a_part_of_the_server_is_found(here: World) -> None:
    """A part is its actor's alone."""
    event = here.event(here.take("ReceiveAnswer(c1) Answer library->c1 book=x"))
    forged = attrs.evolve(event, writes={**event.writes, B: library.Shelf(("forged",))})
    assert dict(wrong_with(here.model, here.before, event)) == {}
    assert dict(wrong_with(here.model, here.before, forged)) == {
        "OwnStateOnly": f"c1 writes {B}, which it does not own"
    }


def test_changes_say_which_part_changed(here: World) -> None:
    """In words, per part, with what went to its disk; the demo shows each part as a slot of its actor."""
    step = here.take("ReceiveBorrow(c1)").step
    assert changes(here.before, dict(step.writes)) == (
        "library[desk]: readers + c1", "library[shelf][a]: books - x, borrowed 0->1",
    )
    other = seen("Send(c1)")
    step = other.take("ReceivePut(c1)").step
    assert changes(other.before, dict(step.writes)) == (
        "disk[library][shelf][a]: flushed books", "library[shelf][a]: books + x",
    )
    actors = state_json(("c1", "library"), here.before, here.state, None)["actors"]
    shown = {part["slot"]: part for part in actors["library"]}
    assert shown[A]["difference"] == ["books - x", "borrowed 0->1"] and not shown[B]["changed"]
    assert (shown[A]["part"], shown[DESK]["part"]) == ("shelf[a]", "desk") and "part" not in actors["c1"][0]


def test_parts_are_one_variable_of_their_actor(here: World) -> None:
    """Exports have the actor's name as a variable, and its parts as a record of maps."""
    parts = here.model.variables(here.state)["library"]
    assert parts["shelf"]["a"] == library.Shelf(("x",)) and parts["desk"] == library.Desk()
    assert '["desk"' in json.dumps(itf_value(parts))


def test_response_counts_when_it_is_served_in_the_part_that_it_changes() -> None:
    """What a mapping sees of a receiver of parts has the part that applying a response will change, and that alone."""
    model = library.library()
    tables = Tables(model)
    put = library.Put("a", "x", source="c1", dest="library")
    before = model.initial_states()[0]
    (turn,) = model.actors["library"].on_message(model.actors["library"].layout.read(before), put)
    after = {**before, **model.actors["library"].layout.values(turn.local)}
    states = [tables.intern(state) for state in (before, before, before, after)]
    steps = [Taken("Serve", "Serve", sent=(put,)), Taken("Other", "Other"), Taken("Apply", "Apply", consumed=put)]
    seen = Overlays(tables).seen(states, steps)
    assert list(seen) == [states[0], states[3], states[3], states[3]]


class Stateless(m.Actor[m.Local]):
    """An actor of parts that may not crash has no disks."""

    name = "s"
    initial = m.Local.first("s", m.Part("line", Line("")))


def test_actor_that_may_not_crash_has_no_disk() -> None:
    """Nothing is flushed for it."""
    model = m.Model("s", (Stateless(),), ({},))
    assert [name for name in model.initial_states()[0] if "disk" in name] == []
    assert model.slots_of("s") == ("s[line]",) and model.disks_of("s") == {} and model.slots_of("nobody") == ()
