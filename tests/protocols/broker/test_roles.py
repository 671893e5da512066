"""A role is a part of its own and pure functions: a broker takes on another one by a line in its composition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import pytest
from support.runs.made_runs import states_of

from harness.model import Faults, Local, Message, Part, View, find_model, persisted, volatile
from harness.record import Recorder
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from kafka_proto.broker.logs.replicated import REPLICA
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.roles import Append, Effect, Role, RoleStep
from kafka_proto.cluster import composition
from kafka_proto.cluster.properties import INVARIANTS

MOST = 2
MODEL, REPLICATED = "kafka/4.0", {"log": "replicated"}
SIZES = {"brokers": 3, "replication-factor": 3, "partitions": 1, "records": 1, "elections": 2}


@attrs.frozen
class Notes:
    """What the toy keeps: notes written, if it reminded, if it serves, what it knows of its log, what was answered."""

    written: int = persisted(default=0)
    reminded: bool = persisted(default=False)
    serves: bool = volatile(default=False)
    known: tuple[str, ...] = volatile(default=())
    answered: tuple[str, ...] = volatile(default=())


NOTES = Part("notes", Notes())


class NoteKeeper(Role):
    """A role with a log partition of its own, to which it appends two notes at once, a few times."""

    parts = (NOTES,)
    partitions = ("notes",)

    def __init__(self, name: str) -> None:
        self.name = name

    def started(self, local: Local) -> Local:
        return self.resigned(local, "notes") if self.name != "b2" else self.loaded(local, "notes", ())

    def receive(self, local: Local, message: Message) -> RoleStep | None:
        assert message.type != "InitProducerIdRequest" or message.dest == self.name
        return None

    def step(self, local: Local, may_append: Callable[[str], bool]) -> Iterable[RoleStep]:
        notes = local[NOTES]
        if notes.serves and notes.written < MOST and may_append("notes"):
            after = local.put(NOTES, attrs.evolve(notes, written=notes.written + 1))
            both = tuple(Append("notes", f"{self.name}.{notes.written}.{n}", f"callback {n}") for n in range(2))
            yield RoleStep(after, (), both, action="Note", who=(self.name,))

    def timers(self, local: Local) -> dict[str, int | None]:
        return {"Remind": None} if local[NOTES].serves and not local[NOTES].reminded else {}

    def timer_fired(self, local: Local, timer: str) -> Iterable[RoleStep]:
        if timer == "Remind":
            yield RoleStep(local.put(NOTES, attrs.evolve(local[NOTES], reminded=True)), action=timer, who=(self.name,))

    def serves(self, local: Local, p: str) -> bool:
        return local[NOTES].serves

    def loaded(self, local: Local, p: str, records: Iterable[Any]) -> Local:
        return local.put(NOTES, attrs.evolve(local[NOTES], serves=True, known=tuple(records)))

    def resigned(self, local: Local, p: str) -> Local:
        return local.put(NOTES, attrs.evolve(local[NOTES], serves=False, known=()))

    def committed(self, local: Local, p: str, record: Any) -> Local:
        return local.put(NOTES, attrs.evolve(local[NOTES], known=(*local[NOTES].known, record)))

    def completed(self, local: Local, p: str, record: Any, callback: Any) -> Effect:
        return Effect(local.put(NOTES, attrs.evolve(local[NOTES], answered=(*local[NOTES].answered, record))))


@pytest.fixture
def with_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line: brokers are made with the role. Its partition is placed as the others are, on b2 at first."""
    place, roles_of = Placement.of, composition.roles_of

    def placed(sizes: Mapping[str, int]) -> Placement:
        found = place(sizes)
        object.__setattr__(found, "all_partitions", (*found.all_partitions, "notes"))
        object.__setattr__(found, "_leaders", {**found._leaders, "notes": "b2"})
        return found

    def made(name: str, *rest: Any, **also: Any) -> tuple[Role, ...]:
        return (*roles_of(name, *rest, **also), NoteKeeper(name))

    monkeypatch.setattr(Placement, "of", staticmethod(placed))
    monkeypatch.setattr(composition, "roles_of", made)


@pytest.mark.usefixtures("with_notes")
def test_new_role_is_a_line_of_the_composition() -> None:
    """Its records are replicated, committed and loaded by the next leader; all that the cluster claims still holds."""
    crash = Faults(crash=1, targets=("b2",))
    model = find_model(MODEL).make(SIZES, REPLICATED, faults=crash)
    tables, plan = Tables(model), Plan(INVARIANTS, steps=200)
    wrote, heard, handed_on, reminded, lagged = set[str](), 0, 0, 0, 0
    for seed in range(8):
        recorder = Recorder()
        run = run_plain(tables, plan, RandomStrategy(seed), recorder)
        assert run.verdict.ok, run.verdict
        wrote |= {str(event["args"]) for event in map(json.loads, recorder.lines) if event.get("action") == "Note"}
        *states, last = states_of(model, run)
        for state, chosen in zip(states, run.trail.choices, strict=True):
            labels = [c.label for c in model.choices(state)]
            assert len(labels) == len(set(labels)), "a timer of the role fires no timer of the log"
            reminded += chosen.label.startswith("Remind")
            lagged += any(label.startswith("Remind") for label in labels) and any("ShrinkIsr" in one for one in labels)
        view = View(last)
        for b in ("b1", "b2", "b3"):
            notes, replica = NOTES.of(view, b), REPLICA["notes"].of(view, b)
            if notes.serves:
                assert notes.known == tuple(entry.value for entry in replica.log)[: replica.high_watermark]
                assert set(notes.answered) <= set(notes.known)
                heard += len(notes.answered)
                handed_on += any(not note.startswith(b) for note in notes.known)
    assert len(wrote) > 1 and heard and handed_on and reminded and lagged


def test_brokers_without_the_role_have_no_part_of_it() -> None:
    """What is not in the composition is nowhere."""
    crash = Faults(crash=1, targets=("b1",))
    (first,) = find_model(MODEL).make(SIZES, REPLICATED, faults=crash).initial_states()
    assert not [name for name in first if "notes" in name]
