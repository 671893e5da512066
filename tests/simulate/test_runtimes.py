"""One meaning, three drivers: the tables and the tasks on trio do what the reference semantics says, step by step."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs
import pytest
import trio

from harness.model import (
    NO_FAULTS,
    Actor,
    Faults,
    Message,
    Model,
    Refusal,
    Rule,
    Scenario,
    Turn,
    View,
    encode,
    find_model,
    find_scenario,
    model_of,
    model_specs,
    parts,
    scenarios,
)
from harness.model.faults import RULE_COUNTS
from harness.record import Chosen, Recorder
from harness.simulate import tables as tables_module
from harness.simulate.actor_tasks import ActorTask
from harness.simulate.nodes import Node, Option
from harness.simulate.plan import Plan, plan_of
from harness.simulate.replay import replay_plain
from harness.simulate.run import Run
from harness.simulate.session import Session, run_plain
from harness.simulate.strategies import NAMES, Strategies
from harness.simulate.strategy import RandomStrategy, Strategy
from harness.simulate.tables import Tables
from harness.simulate.trio_runtime import Host, replay_on_trio, run_on_trio
from kafka_proto.transactions.coordinator_role import PRODUCER_IDS

ACTORS = "transactions/repaired/actors"
EVERYBODY = ("b1", "b2", "c1", "c2")
RULES = (
    Rule("drop", message="InitPidResponse", nth=2), Rule("delay", source="c1", nth=3), Rule("duplicate", dest="b2"),
    Rule("reorder", nth=4),
)
BUDGETS: dict[str, tuple[str, Faults]] = {
    "none": ("bag", NO_FAULTS),
    "messages": ("bag", Faults(drop=2, duplicate=2, delay=2)),
    "connections": ("fifo", Faults(reorder=2, partition=1, one_way=1, targets=("b1",))),
    "actors": ("bag", Faults(pause=1, crash=2, skew=1, targets=EVERYBODY)),
    "rules": ("fifo", Faults(rules=RULES)),
    "everything": (
        "fifo",
        Faults(2, 2, 2, 2, 1, 1, 1, 1, 1, targets=EVERYBODY, rules=RULES),
    ),
}


def models() -> Iterator[Any]:
    """Yield every registered model that speaks of transactions, the faulty ones under every budget."""
    for spec in model_specs():
        if not spec.name.startswith("transactions/"):
            continue
        for budget, (network, faults) in BUDGETS.items():
            if spec.may_fault:
                yield pytest.param(spec.name, network, faults, id=f"{spec.name}-{budget}")
            elif faults == NO_FAULTS:
                yield pytest.param(spec.name, None, faults, id=spec.name)


def walk(model: Model, seed: int, steps: int) -> Iterator[tuple[Any, Any]]:
    """Walk at random by the reference semantics; yield each state, and the choice that is taken there."""
    chance = random.Random(seed)
    state = chance.choice(model.initial_states())
    for _ in range(steps):
        choices = model.choices(state)
        if not choices:
            return
        choice = chance.choice(choices)
        yield state, choice
        state = model.apply(state, choice)


def assert_same(tables: Tables, node: Node, model: Model, state: Any) -> None:
    """Compare what the tables say of a state with what the model says."""
    assert tables.state(node) == state
    assert [option.label for option in node.options] == [choice.label for choice in model.choices(state)]
    why = {p.name: model.why_not(p, View(state)) for p in model.properties if p.is_safety}
    assert (node.failing or {}) == {name: reason for name, reason in why.items() if reason is not None}


def assert_tables_follow(tables: Tables, model: Model, seed: int, steps: int) -> None:
    """Compare tables and reference along a random walk, and at every neighbour of some states on its way."""
    node: Node | None = None
    for n, (state, choice) in enumerate(walk(model, seed, steps)):
        if node is None:
            node = tables.start(model.initial_states().index(state))
        assert_same(tables, node, model, state)
        for option, other in zip(node.options, model.choices(state), strict=True):
            effects = option.edge(node.state).effects
            assert effects == model.effects(View(state), other.step)
            assert option.choice.step == other.step
        if n % 20 == 0:
            for m, other in enumerate(model.choices(state)):
                assert tables.state(tables.follow(node, m)) == model.apply(state, other)
        node = tables.follow(node, [option.label for option in node.options].index(choice.label))


@pytest.mark.parametrize(("name", "network", "faults"), list(models()))
def test_tables_equal_the_reference_semantics(name: str, network: str | None, faults: Faults) -> None:
    """Along random walks the tables offer the same labels in the same order, with the same effects and verdicts."""
    model = find_model(name).make(network=network, faults=faults)
    tables = Tables(model)
    for seed in range(3):
        assert_tables_follow(tables, model, seed, 70)


def test_tables_equal_the_reference_semantics_with_history_variables() -> None:
    """So they do when the network remembers what was received."""
    model = find_model("transactions/diary-02").make(history_variables=True)
    assert_tables_follow(Tables(model), model, 0, 40)


def test_tables_give_the_reason_of_the_reference_semantics() -> None:
    """Where a property fails for several indices at once, tables and reference give the same one's reason."""
    model = find_model("transactions/gist").make({"brokers": 3, "elections": 3})
    prop, several = model.property("FollowersHoldNoUncommitted"), 0
    assert prop.over is not None
    for seed in range(12):
        assert_tables_follow(Tables(model), model, seed, 50)
        for state, _ in walk(model, seed, 50):
            several += sum(prop.check(View(state), index) is not None for index in prop.over) > 1
    assert several


@pytest.mark.usefixtures("settled")
def test_tables_that_forget_equal_the_reference_semantics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that are full start over, with nodes or with everything, and still say the same."""
    model = find_model(ACTORS).make(faults=BUDGETS["actors"][1])
    monkeypatch.setattr(tables_module, "MAX_NODES", 9)
    for leaves in (10**9, 200):
        monkeypatch.setattr(tables_module, "MAX_LEAVES", leaves)
        assert_tables_follow(Tables(model), model, 5, 50)


NETWORK = ("inbox", "held", "discarded")


@pytest.mark.parametrize(
    ("name", "network", "faults"), [param for param in models() if "/actors" in param.values[0]]
)
def test_no_step_writes_another_actors_slot(name: str, network: str, faults: Faults) -> None:
    """What an actor does changes its own state, its disk, and the network; what happens to an actor, that actor's."""
    model = find_model(name).make({"clients": 2, "elections": 2}, network=network, faults=faults)
    own = {slot: actor.name for actor in model.actors.values()
           for slot in (*actor.layout.slots, *actor.layout.disks.values())}
    for seed in range(3):
        for state, _ in walk(model, seed, 60):
            for choice in model.choices(state):
                written = {slot for slot, _ in model.effects(View(state), choice.step).writes}
                allowed: set[str] = {RULE_COUNTS} | {slot for slot in written if parts(slot)[0] in NETWORK}
                owners = {own[slot] for slot in written if slot in own}
                if choice.process in model.actors:
                    assert written <= allowed | set(own) and owners <= {choice.process}
                else:
                    assert owners <= set(choice.step.args)


@pytest.mark.parametrize("name", ["transactions/diary-02/actors", ACTORS])
def test_no_actor_reads_another_actors_slot(name: str) -> None:
    """What an actor offers depends on its own state, and on the message that it gets."""
    model = find_model(name).make(faults=BUDGETS["everything"][1])
    for state, choice in walk(model, 1, 60):
        for actor in model.actors.values():
            view = View(state)
            list(actor.steps(view))
            assert view.reads() and set(view.reads()) <= set(actor.layout.slots)
        if choice.step.consumed is not None and choice.process in model.actors:
            view = View(state)
            list(model.actors[choice.process].receive(view, choice.step.consumed))
            assert view.reads() and set(view.reads()) <= set(model.actors[choice.process].layout.slots)


@pytest.mark.parametrize("scenario", list(scenarios()), ids=lambda scenario: scenario.name)
def test_both_runtimes_give_one_digest(scenario: Scenario) -> None:
    """A run of a seed is the same on both runtimes, and so are its replays, whichever runtime made the trail."""
    tables, plan = Tables(model_of(scenario)), plan_of(scenario)
    for seed in range(4):
        name = NAMES[seed % 2]

        def strategy(name: str = name, seed: int = seed) -> Strategy:
            chosen = Strategies(name).run(seed)
            assert chosen is not None
            return chosen

        plain = run_plain(tables, plan, strategy(), Recorder())
        on_trio = run_on_trio(Tables(tables.model), plan, strategy(), Recorder())
        assert on_trio.trail == plain.trail
        there, back = replay_on_trio(plain.trail, Recorder(), tables), replay_plain(on_trio.trail, Recorder())
        assert len({run.digest for run in (plain, on_trio, there, back)}) == 1
        assert [run.verdict for run in (on_trio, there, back)] == [plain.verdict] * 3
        assert on_trio.witnessed == there.witnessed == back.witnessed == plain.witnessed


@pytest.mark.parametrize("replay", [replay_plain, replay_on_trio])
def test_trail_that_does_not_fit_is_refused_in_both_runtimes(replay: Callable[..., Run]) -> None:
    """An edited choice is refused at its step, in a sentence that says what was asked and what is possible."""
    trail = run_of("fencing").trail
    edited = (*trail.choices[:4], Chosen("Nonsense(b1)"), *trail.choices[4:])
    with pytest.raises(Refusal, match=r"does not fit at step 5: it asks for 'Nonsense\(b1\)', possible are: "):
        replay(attrs.evolve(trail, choices=edited))


def found(name: str) -> Scenario:
    scenario = find_scenario(name)
    assert scenario is not None
    return scenario


def run_of(name: str, seed: int = 0) -> Run:
    scenario = found(name)
    return run_plain(Tables(model_of(scenario)), plan_of(scenario), RandomStrategy(seed), Recorder())


class Watching(RandomStrategy):
    """A random strategy that lets somebody look at the host before each step."""

    def __init__(self, seed: int, look: Callable[[Host, Sequence[Option]], None]) -> None:
        super().__init__(seed)
        self.host: Host
        self._look = look

    def pick(self, options: Sequence[Option]) -> int:
        self._look(self.host, options)
        return super().pick(options)


def hosted(what: str | Model, seed: int, look: Callable[[Host, Sequence[Option]], None]) -> Run:
    """Run a scenario, or a model without claims, on trio, and look at its host before each step."""
    if isinstance(what, str):
        scenario = found(what)
        model, plan = model_of(scenario), plan_of(scenario)
    else:
        model, plan = what, Plan((), steps=150)
    strategy = Watching(seed, look)
    strategy.host = Host(Session(Tables(model), plan, strategy, Recorder()))
    return trio.run(strategy.host.run)


def is_as_the_tables_say(host: Host, task: ActorTask) -> bool:
    """Say whether a task has the state that the tables have for its actor."""
    kept = task.actor.layout.values(task.local)
    return kept == {name: host.tables.value(host.session.node, name) for name in kept}


def test_tasks_own_the_state_that_the_tables_say() -> None:
    """Before each step every task that lives is parked, its mailbox empty, its state that of the tables."""
    seen = set()

    def look(host: Host, _: Sequence[Option]) -> None:
        for name, task in host.tasks.items():
            if task.task is not None:
                seen.add(name)
                assert not task.mailbox
                assert is_as_the_tables_say(host, task)

    for seed in range(3):
        hosted("fencing-battle", seed, look)
    assert seen == {"b1", "b2", "c1", "c2", "controller", "log-p1"}


class Watched(deque[Message]):
    """A mailbox that remembers what was taken out."""

    def __init__(self, taken: list[tuple[str, Message]], name: str) -> None:
        super().__init__()
        self._taken = taken
        self._name = name

    def popleft(self) -> Message:
        message = super().popleft()
        self._taken.append((self._name, message))
        return message


def test_messages_reach_a_task_through_its_mailbox() -> None:
    """What the tasks take out of their mailboxes is what the history says they received, in that order."""
    taken: list[tuple[str, Message]] = []

    def look(host: Host, _: Sequence[Option]) -> None:
        for name, task in host.tasks.items():
            if not isinstance(task.mailbox, Watched):
                task.mailbox = Watched(taken, name)

    run = hosted("happy-path", 0, look)
    assert run.recorder is not None
    main = run.recorder.lines[: run.trail.fair_from + 1 if run.trail.fair_from is not None else None]
    events = [json.loads(line) for line in main[1:]]
    received = [(event["process"], event["received"]) for event in events if "received" in event]
    assert len(received) > 10
    assert [(name, encode(message)) for name, message in taken][: len(received)] == received


def test_message_that_does_not_reach_the_mailbox_is_missed() -> None:
    """A task gets its messages nowhere else: where the mailbox swallows them, it cannot take its turn."""

    class Swallowing(deque[Message]):
        def append(self, message: Message) -> None:
            pass

    def look(host: Host, _: Sequence[Option]) -> None:
        host.tasks["b1"].mailbox = Swallowing()

    with pytest.raises(AssertionError, match=r"b1 was asked for 'Receive.*', which its own state does not offer"):
        hosted("fencing", 0, look)


def crashing() -> Model:
    return find_model(ACTORS).make(faults=Faults(crash=3, targets=("b1",)))


def test_crash_cancels_the_task_and_restart_starts_another() -> None:
    """A crashed actor has no task until its restart, which gives it a new one with what was flushed."""
    tasks: list[ActorTask] = []
    outcomes: list[str] = []

    def look(host: Host, options: Sequence[Option]) -> None:
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


def tampering(change: Callable[[Host], None], at: int) -> Callable[[Host, Sequence[Option]], None]:
    def look(host: Host, _: Sequence[Option]) -> None:
        if host.session.steps == at:
            change(host)

    return look


@pytest.mark.parametrize("at", [1, 8, 15])
def test_task_with_a_state_that_was_tampered_with_is_an_error(at: int) -> None:
    """The host notices a task whose state went another way than the tables."""

    def change(host: Host) -> None:
        task = host.tasks["b1"]
        ids = task.local[PRODUCER_IDS]
        task.local = task.local.put(PRODUCER_IDS, attrs.evolve(ids, pid_source=ids.pid_source + 7))

    with pytest.raises(AssertionError, match="b1's own state went another way than the tables at"):
        hosted("fencing", 0, tampering(change, at))


@attrs.frozen
class Count:
    n: int = 0


class Counter(Actor[Count]):
    """Counts to nine, by steps of one label."""

    name = "counter"
    initial = Count()

    def step(self, local: Count) -> Iterable[Turn[Count]]:
        if local.n < 9:
            yield Turn("Tick", (self.name,), Count(local.n + 1))


def test_task_with_a_state_of_the_past_is_an_error() -> None:
    """The host notices it, too, where a task is set back to a state it had before, whose turns are known."""
    past: list[Count] = []

    def look(host: Host, _: Sequence[Option]) -> None:
        past.append(host.tasks["counter"].local)
        if len(past) == 6:
            host.tasks["counter"].local = past[2]

    tables = Tables(Model("counter", (Counter(),), ({},)))
    run_on_trio(tables, Plan(()), RandomStrategy(0))
    strategy = Watching(0, look)
    strategy.host = Host(Session(tables, Plan(()), strategy))
    with pytest.raises(AssertionError, match=r"counter's own state went another way than the tables at 'Tick"):
        trio.run(strategy.host.run)


def test_disk_that_was_tampered_with_is_an_error() -> None:
    """A restart from another disk than the tables know is noticed."""

    def look(host: Host, options: Sequence[Option]) -> None:
        if any(option.label == "Restart(b1)" for option in options):
            host.disks["disk[b1][metadata]"] = host.disks["disk[b1][metadata]"].set("incarnation", 99)

    with pytest.raises(AssertionError, match="b1 restarts with another state than its disk gives it"):
        hosted(crashing(), 0, look)


def test_models_without_actors_have_no_tasks() -> None:
    """A spec composition runs on trio as transactions on its slots."""

    def look(host: Host, _: Sequence[Option]) -> None:
        assert host.tasks == {}

    assert hosted("s4-copied-tail-repaired", 0, look).digest == run_of("s4-copied-tail-repaired").digest


def actors_of(model: Model) -> Iterable[Actor[Any]]:
    return model.actors.values()


def test_actor_composition_consists_of_actors() -> None:
    """In the actor compositions everybody but the environment is an actor, hence a task on trio."""
    for name in ("transactions/diary-02/actors", ACTORS):
        model = find_model(name).make()
        assert tuple(actors_of(model)) == model.processes
