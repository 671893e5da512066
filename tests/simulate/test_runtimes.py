"""One meaning, three drivers: the tables and the tasks on trio do what the reference semantics says, step by step."""

from __future__ import annotations

import random
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
import trio
from support.runs.made_runs import run_on_trio
from support.runs.named_runs import each_kind, registering, strategy_of
from support.toys import mixed_links

from harness import model as m
from harness.explore.model_memo import Remembered
from harness.model.faults import RULE_COUNTS
from harness.record import Recorder
from harness.simulate.runs.plan import Plan, everything, plan_of
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.runtimes.trio_runtime import replay_on_trio
from harness.simulate.states import tables as tables_module
from harness.simulate.states.nodes import Node
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import NAMES
from harness.simulate.strategies.strategy import RandomStrategy, Strategy
from harness.simulate.trails.replay import replay_plain

ACTORS = "kafka/4.0"
EVERYBODY = ("b1", "b2", "c1")
mixed_links_are_known = registering(mixed_links.SYSTEM, autouse=False)
RULES = (
    m.Rule("drop", message="InitProducerIdResponse", nth=2), m.Rule("delay", source="c1", nth=3),
    m.Rule("duplicate", dest="b2"),
)
BUDGETS: dict[str, tuple[str, m.Faults]] = {
    "none": ("bag", m.NO_FAULTS),
    "messages": ("bag", m.Faults(drop=2, duplicate=2, delay=2)),
    "connections": ("connections", m.Faults(partition=1, one_way=1, targets=("b1",))),
    "actors": ("bag", m.Faults(pause=1, crash=2, skew=1, targets=EVERYBODY)),
    "rules": ("connections", m.Faults(rules=RULES)),
    "everything": (
        "connections", m.Faults(2, 2, 2, 0, 1, 1, 1, 1, 1, targets=EVERYBODY, rules=RULES),
    ),
}


def models() -> Iterator[Any]:
    """Yield every registered model that speaks of transactions, the faulty ones under every budget."""
    for spec in m.model_specs():
        if not spec.name.startswith("transactions/") and spec.name != ACTORS:
            continue
        for budget, (network, faults) in BUDGETS.items():
            if spec.may_fault:
                yield pytest.param(spec.name, network, faults, id=f"{spec.name}-{budget}")
            elif faults == m.NO_FAULTS:
                yield pytest.param(spec.name, None, faults, id=spec.name)


def walk(model: m.Model, seed: int, steps: int) -> Iterator[tuple[Any, Any]]:
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


def assert_same(tables: Tables, node: Node, model: m.Model, state: Any) -> None:
    """Compare what the tables say of a state with what the model says."""
    assert tables.state(node) == state
    assert [option.label for option in node.options] == [choice.label for choice in model.choices(state)]
    why = {p.name: model.why_not(p, m.View(state)) for p in model.properties if p.is_safety}
    assert (node.failing or {}) == {name: reason for name, reason in why.items() if reason is not None}


def assert_tables_follow(tables: Tables, model: m.Model, seed: int, steps: int) -> None:
    """Compare tables and reference along a random walk, and at every neighbour of some states on its way."""
    node: Node | None = None
    for n, (state, choice) in enumerate(walk(model, seed, steps)):
        if node is None:
            node = tables.start(model.initial_states().index(state))
        assert_same(tables, node, model, state)
        for option, other in zip(node.options, model.choices(state), strict=True):
            effects = option.edge(node.state).effects
            assert effects == model.effects(m.View(state), other.step)
            assert option.choice.step == other.step
        if n % 20 == 0:
            for at, other in enumerate(model.choices(state)):
                assert tables.state(tables.follow(node, at)) == model.apply(state, other)
        node = tables.follow(node, [option.label for option in node.options].index(choice.label))


@pytest.mark.parametrize(("name", "network", "faults"), list(models()))
def test_tables_equal_the_reference_semantics(name: str, network: str | None, faults: m.Faults) -> None:
    """Along random walks the tables offer the same labels in the same order, with the same effects and verdicts."""
    model = m.find_model(name).make(network=network, faults=faults)
    tables = Tables(model)
    for seed in range(3):
        assert_tables_follow(tables, model, seed, 70)


def test_tables_equal_the_reference_semantics_with_history_variables() -> None:
    """So they do when the network remembers what was received."""
    model = m.find_model("transactions/diary-02").make(history_variables=True)
    assert_tables_follow(Tables(model), model, 0, 40)


def test_tables_give_the_reason_of_the_reference_semantics() -> None:
    """Where a property fails for several indices at once, tables and reference give the same one's reason."""
    model = m.find_model("transactions/gist").make({"brokers": 3, "elections": 3})
    prop, several = model.property("FollowersHoldNoUncommitted"), 0
    assert prop.over is not None
    for seed in range(12):
        assert_tables_follow(Tables(model), model, seed, 50)
        for state, _ in walk(model, seed, 50):
            several += sum(prop.check(m.View(state), index) is not None for index in prop.over) > 1
    assert several


@pytest.mark.usefixtures("settled")
def test_tables_that_forget_equal_the_reference_semantics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that are full start over, with nodes or with everything, and still say the same."""
    model = m.find_model(ACTORS).make(faults=BUDGETS["actors"][1])
    monkeypatch.setattr(tables_module, "MAX_NODES", 9)
    for leaves in (10**9, 200):
        monkeypatch.setattr(tables_module, "MAX_LEAVES", leaves)
        assert_tables_follow(Tables(model), model, 5, 50)


NETWORK = ("inbox", "held", "discarded")


@pytest.mark.parametrize(
    ("name", "network", "faults"), [param for param in models() if param.values[0] == ACTORS]
)
def test_no_step_writes_another_actors_slot(name: str, network: str, faults: m.Faults) -> None:
    """What an actor does changes its own state, its disk, and the network; what happens to an actor, that actor's."""
    model = m.find_model(name).make({"producers": 2}, network=network, faults=faults)
    own = {slot: actor.name for actor in model.actors.values()
           for slot in (*actor.layout.slots, *actor.layout.disks.values())}
    for seed in range(3):
        for state, _ in walk(model, seed, 60):
            for choice in model.choices(state):
                written = {slot for slot, _ in model.effects(m.View(state), choice.step).writes}
                allowed: set[str] = {RULE_COUNTS} | {slot for slot in written if m.parts(slot)[0] in NETWORK}
                owners = {own[slot] for slot in written if slot in own}
                if choice.process in model.actors:
                    assert written <= allowed | set(own) and owners <= {choice.process}
                else:
                    assert owners <= set(choice.step.args)


@pytest.mark.parametrize("name", ["kafka/3.5", ACTORS])
def test_no_actor_reads_another_actors_slot(name: str) -> None:
    """What an actor offers depends on its own state, and on the message that it gets."""
    model = m.find_model(name).make(faults=BUDGETS["everything"][1])
    for state, choice in walk(model, 1, 60):
        for actor in model.actors.values():
            view = m.View(state)
            if state[f"gate[{actor.name}]"].status == "down":
                continue
            list(actor.steps(view))
            assert view.reads() and set(view.reads()) <= set(actor.layout.slots)
        if choice.step.consumed is not None and choice.process in model.actors:
            view = m.View(state)
            list(model.actors[choice.process].receive(view, choice.step.consumed))
            assert view.reads() and set(view.reads()) <= set(model.actors[choice.process].layout.slots)


@pytest.mark.parametrize("runs", [2, pytest.param(4, marks=pytest.mark.large)])
@pytest.mark.parametrize("scenario", each_kind(m.scenarios()))
def test_both_runtimes_give_one_digest(scenario: m.Scenario, runs: int) -> None:
    """A run of a seed is the same on both runtimes, and so are its replays, whichever runtime made the trail."""
    with closing(Tables(m.model_of(scenario))) as tables:
        for seed in range(runs):
            assert_one_digest(tables, plan_of(scenario), partial(strategy_of, NAMES[seed % 2], seed))


def assert_one_digest(tables: Tables, plan: Plan, strategy: Callable[[], Strategy]) -> Run:
    """Compare a run on both runtimes, and the replays of each on the other one."""
    plain = run_plain(tables, plan, strategy(), Recorder())
    with closing(Tables(tables.model)) as others:
        on_trio = run_on_trio(others, plan, strategy(), Recorder())
    assert on_trio.trail == plain.trail
    there, back = replay_on_trio(plain.trail, Recorder(), tables), replay_plain(on_trio.trail, Recorder())
    assert len({run.digest for run in (plain, on_trio, there, back)}) == 1
    assert [run.verdict for run in (on_trio, there, back)] == [plain.verdict] * 3
    assert on_trio.witnessed == there.witnessed == back.witnessed == plain.witnessed
    return plain


LINKS_CUT = m.Faults(drop=1, duplicate=1, delay=1, partition=2, one_way=1, crash=1, targets=("hub", "queue"))


@pytest.mark.usefixtures("mixed_links_are_known")
@pytest.mark.parametrize("mode", ["free", "timed"])
def test_runs_over_mixed_links_replay_everywhere(mode: str) -> None:
    """A run has one digest on both runtimes, and so have its replays; the queue stays in order."""
    tables, cut = Tables(m.find_model("mixed-links").make({"notes": 3}, faults=LINKS_CUT)), 0
    for seed in range(20):
        run = assert_one_digest(tables, Plan(("Small", "QueueInOrder"), mode=mode), partial(RandomStrategy, seed))
        assert run.verdict.ok
        cut += any(chosen.label.startswith("Partition(hub,queue)") for chosen in run.trail.choices)
    assert cut


@pytest.mark.usefixtures("mixed_links_are_known")
def test_simulation_and_search_know_the_same_steps() -> None:
    """Every state of a run offers the steps that the search finds there, in the same order."""
    model = m.find_model("mixed-links").make({"notes": 2})
    tables, known = Tables(model), Remembered(model)
    node = tables.start()
    for chosen in run_plain(tables, Plan(()), RandomStrategy(1)).trail.choices:
        labels = [option.label for option in node.options]
        assert labels == [way.step.label for way in known.ways(known.intern(tables.state(node)))]
        node = tables.follow(node, labels.index(chosen.label))
    assert [len(tables.value(node, "hub")[writer]) for writer in mixed_links.WRITERS] == [2, 2, 2]


def test_signals_are_not_written_to_a_socket_that_trio_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes while trio ends is for its handler alone: Python would tell of the closed socket on stderr."""
    left: list[int] = []

    def run(main: Callable[[], Awaitable[Run]], run_trio: Callable[..., Run] = trio.run) -> Run:
        async def noted() -> Run:
            found = await main()
            left.append(signal.set_wakeup_fd(-1))
            return found

        return run_trio(noted)

    monkeypatch.setattr(trio, "run", run)
    model = m.find_model(ACTORS).make()
    run_on_trio(Tables(model), everything(model), RandomStrategy(1))
    assert left == [-1]
