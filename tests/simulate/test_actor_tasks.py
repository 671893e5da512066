"""Actors as trio tasks: each owns its state, gets messages through its mailbox, and is held against the tables."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence

import attrs
import pytest
import trio
from support.runs.made_runs import run_on_trio
from support.runs.named_runs import run_of
from support.toys.faulty_world import Diary, note, world

from harness import model as m
from harness.record import Recorder
from harness.simulate.runs.plan import Plan, resolve
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import Session
from harness.simulate.runtimes.actor_tasks import ActorTask
from harness.simulate.runtimes.trio_runtime import TrioHost
from harness.simulate.states.nodes import Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from kafka_proto.broker.parts import BLOCKS

ACTORS = "kafka/4.0"


class Watching(RandomStrategy):
    """A random strategy that lets somebody look at the host before each step."""

    def __init__(self, seed: int, look: Callable[[TrioHost, Sequence[Option]], None]) -> None:
        super().__init__(seed)
        self.host: TrioHost
        self._look = look

    def pick(self, options: Sequence[Option]) -> int:
        self._look(self.host, options)
        return super().pick(options)


def hosted(what: str | m.Model, seed: int, look: Callable[[TrioHost, Sequence[Option]], None]) -> Run:
    """Run a scenario, or a model without claims, on trio, and look at its host before each step."""
    model, plan = resolve(what) if isinstance(what, str) else (what, Plan((), steps=150))
    return watched(Tables(model), plan, seed, look)


def watched(tables: Tables, plan: Plan, seed: int, look: Callable[[TrioHost, Sequence[Option]], None]) -> Run:
    strategy = Watching(seed, look)
    strategy.host = TrioHost(Session(tables, plan, strategy, Recorder()))
    return trio.run(strategy.host.run)


def is_as_the_tables_say(host: TrioHost, task: ActorTask) -> bool:
    """Say whether a task has the state that the tables have for its actor."""
    kept = task.actor.layout.values(task.local)
    return kept == {name: host.tables.value(host.session.node, name) for name in kept}


def test_tasks_own_the_state_that_the_tables_say() -> None:
    """Before each step every task that lives is parked, its mailbox empty, its state that of the tables."""
    seen = set()

    def look(host: TrioHost, _: Sequence[Option]) -> None:
        for name, task in host.tasks.items():
            if task.task is not None:
                seen.add(name)
                assert not task.mailbox
                assert is_as_the_tables_say(host, task)

    for seed in range(3):
        hosted("fencing-battle", seed, look)
    assert seen == {"b1", "b2", "c1", "c2"}


class Watched(deque[m.Message]):
    """A mailbox that remembers what was taken out."""

    def __init__(self, taken: list[tuple[str, m.Message]], name: str) -> None:
        super().__init__()
        self._taken = taken
        self._name = name

    def popleft(self) -> m.Message:
        message = super().popleft()
        self._taken.append((self._name, message))
        return message


def test_messages_reach_a_task_through_its_mailbox() -> None:
    """What the tasks take out of their mailboxes is what the history says they received, in that order."""
    taken: list[tuple[str, m.Message]] = []

    def look(host: TrioHost, _: Sequence[Option]) -> None:
        for name, task in host.tasks.items():
            if not isinstance(task.mailbox, Watched):
                task.mailbox = Watched(taken, name)

    run = hosted("happy-path", 0, look)
    assert run.recorder is not None
    main = run.recorder.lines[: run.trail.fair_from + 1 if run.trail.fair_from is not None else None]
    events = [json.loads(line) for line in main[1:]]
    received = [(event["process"], event["received"]) for event in events if "received" in event]
    assert len(received) >= 10
    assert [(name, m.encode(message)) for name, message in taken][: len(received)] == received


def test_message_that_does_not_reach_the_mailbox_is_missed() -> None:
    """A task gets its messages nowhere else: where the mailbox swallows them, it cannot take its turn."""

    class Swallowing(deque[m.Message]):
        def append(self, message: m.Message) -> None:
            pass

    def look(host: TrioHost, _: Sequence[Option]) -> None:
        host.tasks["b1"].mailbox = Swallowing()

    with pytest.raises(AssertionError, match=r"b1 was asked for 'Receive.*', which its own state does not offer"):
        hosted("exactly-once-zombie", 0, look)


def crashing() -> m.Model:
    return m.find_model(ACTORS).make(faults=m.Faults(crash=3, targets=("b1",)))


def test_crash_cancels_the_task_and_restart_starts_another() -> None:
    """A crashed actor has no task until its restart, which gives it a new one with what was flushed."""
    tasks: list[ActorTask] = []
    outcomes: list[str] = []

    def look(host: TrioHost, options: Sequence[Option]) -> None:
        task = host.tasks["b1"]
        if not any(task is other for other in tasks):
            tasks.append(task)
        down = any(option.label == "Restart(b1)" for option in options)
        assert (task.task is None) == task.scope.cancelled_caught == down
        alive = {child.name for child in host.task.child_nurseries[0].child_tasks}
        assert alive == set(host.tasks) - ({"b1"} if down else set())
        if not down:
            assert is_as_the_tables_say(host, task)
        outcomes.append("down" if down else "up")

    for seed in range(4):
        tasks.clear()
        run = hosted(crashing(), seed, look)
        crashes = [chosen.label for chosen in run.trail.choices].count("Crash(b1)")
        restarts = [chosen.label for chosen in run.trail.choices].count("Restart(b1)")
        assert crashes == 3 and len(tasks) == 1 + restarts
    assert set(outcomes) == {"up", "down"}


@pytest.mark.parametrize("at", [1, 8, 15])
def test_task_with_a_state_that_was_tampered_with_is_an_error(at: int) -> None:
    """The host notices a task whose state went another way than the tables."""

    def look(host: TrioHost, _: Sequence[Option]) -> None:
        if host.session.steps == at:
            task = host.tasks["b1"]
            blocks = task.local[BLOCKS]
            task.local = task.local.put(BLOCKS, attrs.evolve(blocks, count=blocks.count + 7))

    with pytest.raises(AssertionError, match="b1's own state went another way than the tables at"):
        hosted("exactly-once-zombie", 0, look)


def test_task_with_a_state_of_the_past_is_an_error() -> None:
    """The host notices it, too, where a task is set back to a state it had before, whose turns are known."""
    past: list[Diary] = []

    def look(host: TrioHost, _: Sequence[Option]) -> None:
        past.append(host.tasks["a"].local)
        if len(past) == 20:
            host.tasks["a"].local = next(local for local in past if local != past[-1])

    tables = Tables(world(*(note(1) for _ in range(9)), faults=m.NO_FAULTS).model)
    run_on_trio(tables, Plan(()), RandomStrategy(0))
    with pytest.raises(AssertionError, match=r"a's own state went another way than the tables at 'Send"):
        watched(tables, Plan(()), 0, look)


def test_disk_that_was_tampered_with_is_an_error() -> None:
    """A restart from another disk than the tables know is noticed."""

    def look(host: TrioHost, options: Sequence[Option]) -> None:
        if any(option.label == "Restart(b1)" for option in options):
            host.disks["disk[b1][metadata]"] = host.disks["disk[b1][metadata]"].set("broker_epoch", 99)

    with pytest.raises(AssertionError, match="b1 restarts with another state than its disk gives it"):
        hosted(crashing(), 0, look)


def test_models_without_actors_have_no_tasks() -> None:
    """A spec composition runs on trio as transactions on its slots."""

    def look(host: TrioHost, _: Sequence[Option]) -> None:
        assert host.tasks == {}

    assert hosted("s4-copied-tail-repaired", 0, look).digest == run_of("s4-copied-tail-repaired").digest


def test_actor_composition_consists_of_actors() -> None:
    """In the actor compositions everybody but the environment is an actor, hence a task on trio."""
    for name in ("replication/kip-320/actors", ACTORS):
        model = m.find_model(name).make()
        assert tuple(model.actors.values()) == model.processes
