"""The trio runtime: each actor is a task that owns its state; a scheduler hands the baton to one task at a time.

Of the simulator, only this module knows trio. A task gets messages through its mailbox only, takes its turn with the
actor's own pure functions, and answers with what it sends; a crash cancels it, a restart starts another one from what
was flushed.
All tasks are parked in `trio.lowlevel.wait_task_rescheduled`, so that trio's shuffled run loop decides nothing.
Models that are no actor compositions run here as transactions on their slots while the tasks are parked.

The host keeps the network and the record by the same tables as the plain runtime, and checks each new turn of a task
against them: a task whose state went another way is an error, not another history. `Host` takes a session to its end,
`LiveHost` is stepped from outside and can be put back to another state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import trio
import trio.testing

from harness.model import (
    NO_FAULTS,
    Actor,
    Faults,
    Input,
    Message,
    Model,
    OperationFailed,
    Turn,
    Value,
    brief_input,
    durable,
    slot,
    survivor,
    unknown,
)
from harness.record import Recorder, Trail
from harness.simulate.failures import alone
from harness.simulate.injecting import Wish
from harness.simulate.replay import Replay
from harness.simulate.session import Plan, Run, Session, resolve, safety_only
from harness.simulate.strategies import Strategies
from harness.simulate.strategy import Strategy
from harness.simulate.tables import BYTES_PER_TURN, Node, Option, Tables

Turns = dict[tuple[int, int, str, int], tuple[Any, Any, Turn[Any]]]
"""Turns by identity of the local state and the message, label, and the id that the tables give to the local state: a
task whose state is another one never finds a turn here. State and message are kept alive to keep their identity."""

MAX_TURNS = 100_000


class ActorTask:
    """One actor as a task: the owner of its local state."""

    def __init__(self, host: Stage, actor: Actor[Any], local: Any, turns: Turns) -> None:
        self.host = host
        self.actor = actor
        self.local = local
        self.mailbox: deque[Message] = deque()
        self.wanted = ""
        self.input: Input | None = None
        """What comes from outside with the wanted turn."""
        self.answer: Turn[Any] | None = None
        self.error: Exception | None = None
        """Why there is no answer."""
        self.task: trio.lowlevel.Task | None = None
        self.scope = trio.CancelScope()
        self._turns = turns
        self._slot = host.tables.index[actor.name]

    async def run(self) -> None:
        """Park; when woken take the wanted turn and hand the baton back; until cancelled."""
        self.task = trio.lowlevel.current_task()
        wake, scheduler = trio.lowlevel.reschedule, self.host.task
        park = trio.lowlevel.wait_task_rescheduled
        try:
            with self.scope:
                while True:
                    await park(_succeeded)
                    try:
                        self.answer = turn = self._take_turn()
                        self.local = turn.local
                    except Exception as error:  # the scheduler waits, and has to hear of it
                        self.answer, self.error = None, error
                    wake(scheduler)
        finally:
            self.task = None

    def _take_turn(self) -> Turn[Any]:
        """Return the wanted turn of this actor in its own state, with the message at the head of its mailbox if any."""
        if self.input is not None:
            return self._take_input(self.input.value)
        message = self.mailbox.popleft() if self.mailbox else None
        key = (id(self.local), id(message), self.wanted, self.host.hosted.node.state[self._slot])
        known = self._turns.get(key)
        if known is not None:
            return known[2]
        offered = self.actor.turns(self.local) if message is None else self.actor.on_message(self.local, message)
        for turn in offered:
            label = turn.label if turn.detail or message is None else f"{turn.label} {message.brief()}"
            if label == self.wanted:
                self.host.check(self.actor, turn)
                if len(self._turns) >= MAX_TURNS:
                    self._turns.clear()
                self._turns[key] = (self.local, message, turn)
                self.host.tables.used += BYTES_PER_TURN
                return turn
        raise self._not_offered()

    def _take_input(self, value: Value) -> Turn[Any]:
        """Return the turn of this actor in its own state with input from outside, which hardly ever comes twice."""
        for turn in self.actor.on_input(self.local, value):
            if (turn.label if turn.detail else f"{turn.label} {brief_input(value)}") == self.wanted:
                self.host.check(self.actor, turn)
                return turn
        raise self._not_offered()

    def _not_offered(self) -> AssertionError:
        return AssertionError(f"{self.actor.name} was asked for {self.wanted!r}, which its own state does not offer")


def _succeeded(_: Any) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.SUCCEEDED


class Cluster:
    """What application code sees of a running simulation."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.result: Run | None = None

    def client(self, name: str) -> Any:
        """Return the application object of a client, as the protocol defines it. Raises KeyError, LookupError."""
        __tracebackhide__ = True
        model = self._host.session.model
        if name not in model.actors:
            raise KeyError(unknown(f"there is no client {name!r}", name, model.actors, "the actors are"))
        if model.application is None:
            raise LookupError(f"model {model.name} defines no application interface")

        async def command(action: str, *args: str) -> Value:
            __tracebackhide__ = True
            return await self._host.command(name, f"{action}({','.join((name, *args))})")

        return model.application(command)

    async def inject(self, action: str, *who: str, message: str = "", source: str = "", dest: str = "") -> str:
        """Let the environment do something as soon as it is possible, and return the label of that step.

        `action` is a fault (`Crash`, `Pause`, `SkewClock`, `Partition`, `Cut`, `Drop`, `Duplicate`, `Delay`,
        `Reconnect`), a mending (`Restart`, `Resume`, `SetClock`, `Heal`, `Release`) or an election of the protocol's.
        `who` are the step's arguments, or the first of them; the faults of messages take the `message`'s type,
        `source` and `dest` instead. Raises OperationFailed when the run ends before it was possible.
        """
        return await self._host.inject(Wish(action, who, message, source, dest))

    @property
    def step(self) -> int:
        """The number of steps taken so far."""
        return self._host.session.steps


Application = Callable[[Cluster], Awaitable[Any]]


class Hosted(Protocol):
    """A run whose present state tasks hold."""

    tables: Tables
    model: Model
    node: Node

    def took(self, n: int, after: Node) -> None: ...


class Stage:
    """The tasks that hold the present state of a run, and what it takes to step them."""

    def __init__(self, hosted: Hosted) -> None:
        self.hosted = hosted
        self.tables = hosted.tables
        self.tasks: dict[str, ActorTask] = {}
        self.disks: dict[str, Any] = {}
        """Each actor's local state as of its last flush; what is durable of it is looked at after a crash only."""
        self.task: trio.lowlevel.Task
        self._expected: tuple[Node, Option] | None = None

    def _start(self, nursery: trio.Nursery, actor: Actor[Any], local: Any) -> None:
        turns: Turns = self.tables.turns.setdefault(actor.name, {})
        task = self.tasks[actor.name] = ActorTask(self, actor, local, turns)
        nursery.start_soon(task.run, name=actor.name)

    async def _all_parked(self) -> None:
        """Wait until every task has started and is parked."""
        while any(task.task is None for task in self.tasks.values()):
            await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()

    async def _step(self, nursery: trio.Nursery, n: int) -> None:
        """Take option n: by its actor's task, or, for the environment and for spec models, as a transaction."""
        node = self.hosted.node
        option = node.options[n]
        after = node.succ[n] or self.tables.follow(node, n)
        task = self.tasks.get(option.process)
        if task is not None:
            if option.message is not None:
                task.mailbox.append(option.message)
            task.wanted, task.input = option.label, option.choice.step.input
            self._expected = (after, option)
            trio.lowlevel.reschedule(task.task)  # type: ignore[arg-type]
            await trio.lowlevel.wait_task_rescheduled(_succeeded)
            turn = task.answer
            if task.error is not None:
                error, task.error = task.error, None
                raise error
            if turn is None:
                raise AssertionError(f"{option.process} did not take its turn {option.label!r}")
            if turn.flush and task.actor.may_crash:
                self.disks[option.process] = turn.local
        elif option.action in ("Crash", "Restart"):
            await self._fate(nursery, option, after)
        self.hosted.took(n, after)

    async def _fate(self, nursery: trio.Nursery, option: Option, after: Node) -> None:
        """Cancel the task of an actor that crashes; start another one from what it had flushed when it restarts."""
        name = option.choice.step.args[0]
        if option.action == "Crash":
            task = self.tasks[name]
            task.scope.cancel()
            while task.task is not None:
                await trio.lowlevel.checkpoint()
            return
        actor = self.hosted.model.actors[name]
        local = actor.restarted(survivor(actor.initial, durable(self.disks[name])))
        if local != self.tables.value(after, name):
            raise AssertionError(f"{name} restarts with another state than its disk gives it")
        self._start(nursery, actor, local)
        while self.tasks[name].task is None:
            await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()

    def check(self, actor: Actor[Any], turn: Turn[Any]) -> None:
        """Check a turn that a task took for the first time against the tables."""
        assert self._expected is not None
        after, option = self._expected
        if turn.local != self.tables.value(after, actor.name) or turn.sent != option.choice.step.sent:
            raise AssertionError(f"{actor.name}'s own state went another way than the tables at {option.label!r}")

class LiveHost(Stage):
    """Tasks that hold the present state of a run which somebody decides from outside, forwards and backwards.

    One task must be the one that calls it all. The actors' tasks live in the nursery that is given, which nobody may
    cancel while that one takes a step.
    """

    def __init__(self, hosted: Hosted, nursery: trio.Nursery) -> None:
        super().__init__(hosted)
        self._nursery = nursery
        self._node: Node | None = None

    async def take(self, n: int) -> None:
        """Take option n of the present state; nothing cancels the caller in the middle of it."""
        with trio.CancelScope(shield=True):
            await self._step(self._nursery, n)
        self._node = self.hosted.node

    async def restore(self) -> None:
        """Put the tasks into the present state of the run, where somebody brought that about by other means."""
        node, model = self.hosted.node, self.hosted.model
        if node is self._node:
            return
        with trio.CancelScope(shield=True):
            await self._set_up(node, model)
        self._node = node

    async def _set_up(self, node: Node, model: Model) -> None:
        self.task = trio.lowlevel.current_task()
        for task in self.tasks.values():
            task.scope.cancel()
        while any(task.task is not None for task in self.tasks.values()):
            await trio.lowlevel.checkpoint()
        self.tables = self.hosted.tables
        self.tasks.clear()
        for name, actor in model.actors.items():
            if actor.may_crash:
                disk = self.tables.value(node, slot("disk", name))
                self.disks[name] = survivor(actor.initial, disk)
            if not model.faulty or self.tables.value(node, slot("gate", name)).status != "down":
                self._start(self._nursery, actor, self.tables.value(node, name))
        await self._all_parked()


class Host(Stage):
    """The scheduler of one run."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.session = session
        self.application_error: Exception | None = None
        self._news = trio.Event()
        self._pending: dict[str, tuple[str, trio.lowlevel.Task]] = {}
        self._results: dict[str, tuple[str, Value]] = {}
        self._wishes: dict[trio.lowlevel.Task, Wish] = {}
        """What applications want the environment to do, by the task that waits, in the order of asking."""
        self._injected: dict[trio.lowlevel.Task, str] = {}
        """The labels of the steps that these came to, or nothing."""

    async def run(self, application: Application | None = None) -> Run:
        """Run the session to its end, driven by an application if there is one."""
        try:
            return await self._run(application)
        except BaseExceptionGroup as group:
            raise alone(group) from None

    async def _run(self, application: Application | None) -> Run:
        self.task = trio.lowlevel.current_task()
        session = self.session
        async with trio.open_nursery() as nursery:
            for actor in session.model.actors.values():
                local = self.tables.value(session.node, actor.name)
                self.disks[actor.name] = actor.initial
                self._start(nursery, actor, local)
            await self._all_parked()
            if application is None:
                while (n := session.decide()) >= 0:
                    await self._step(nursery, n)
            else:
                await self._with_application(nursery, application)
            nursery.cancel_scope.cancel()
        return session.finish()

    async def _step(self, nursery: trio.Nursery, n: int) -> None:
        if self.session.follow(n) is not None:
            await super()._step(nursery, n)

    async def command(self, process: str, label: str) -> Value:
        """Carry out a command of an application: wait until its operation ends."""
        __tracebackhide__ = True
        if process in self._pending:
            raise RuntimeError(f"{process} has an operation under way; await it before the next one")
        self._pending[process] = (label, trio.lowlevel.current_task())
        self._news.set()
        await trio.lowlevel.wait_task_rescheduled(self._abandon(process))
        outcome, value = self._results.pop(process)
        if outcome != "ok":
            raise OperationFailed(outcome, value)
        return value

    def _abandon(self, process: str) -> Callable[[Any], trio.lowlevel.Abort]:
        def abandon(_: Any) -> trio.lowlevel.Abort:
            self._pending.pop(process, None)
            return trio.lowlevel.Abort.SUCCEEDED

        return abandon

    async def inject(self, wish: Wish) -> str:
        """Wait until the environment has done what an application wishes for; returns the label of that step."""
        task = trio.lowlevel.current_task()
        self._wishes[task] = wish
        self._news.set()

        def abandon(_: Any) -> trio.lowlevel.Abort:
            self._wishes.pop(task, None)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abandon)
        label = self._injected.pop(task)
        if not label:
            faults = self.session.model.faults
            why = "" if faults != NO_FAULTS else "; the model has no faults, give the budget with injected=Faults(...)"
            raise OperationFailed("fail", f"{wish} was not possible before the run ended{why}")
        return label

    def _fulfil(self) -> int:
        """Return the option of the present state that an application wishes for, or -1."""
        if self.session.may_go_on:
            for task, wish in self._wishes.items():
                n = wish.among(self.session.node.options)
                if n >= 0:
                    self._answer(task, self.session.node.options[n].label)
                    self.session.choose(n)
                    return n
        return -1

    def _answer(self, task: trio.lowlevel.Task, label: str) -> None:
        del self._wishes[task]
        self._injected[task] = label
        trio.lowlevel.reschedule(task)

    async def _with_application(self, nursery: trio.Nursery, application: Application) -> None:
        """Let the application run until it waits, then take a step; until it is done and the session ends."""
        done = False

        async def apply() -> None:
            nonlocal done
            try:
                await application(Cluster(self))
            except Exception as error:  # the run ends in order, then the caller hears of it
                self.application_error = error
            done = True
            self._news.set()

        session = self.session
        nursery.start_soon(apply, name="application")
        under_way: dict[str, tuple[str, trio.lowlevel.Task]] = {}
        while True:
            await trio.testing.wait_all_tasks_blocked()
            wanted = {process: label for process, (label, _) in self._pending.items()}
            session.allowed_commands = frozenset(label for process, label in wanted.items() if process not in under_way)
            session.held = not done
            n = self._fulfil()
            if n < 0:
                n = session.decide()
            if n >= 0:
                option = session.node.options[n]
                under_way |= {process: self._pending[process] for process in wanted if option.label == wanted[process]}
                await self._step(nursery, n)
                op = option.choice.step.op
                if op is not None and op.outcome != "invoke":
                    begun = under_way.pop(op.process, None)
                    if begun is not None and begun is self._pending.get(op.process):
                        self._resolve(op.process, op.outcome, op.value)
            elif self._wishes:
                self._answer(next(iter(self._wishes)), "")
            elif wanted:
                process = min(wanted)
                if under_way.get(process) is self._pending[process]:
                    del under_way[process]
                    self._resolve(process, "info", f"{wanted[process]} was not over when the run ended")
                else:
                    self._resolve(process, "fail", f"{wanted[process]} is not possible for {process} now")
            elif done:
                return
            else:
                self._news = trio.Event()
                await self._news.wait()

    def _resolve(self, process: str, outcome: str, value: Value) -> None:
        """End the operation that an application waits for."""
        _, task = self._pending.pop(process)
        self._results[process] = (outcome, value)
        trio.lowlevel.reschedule(task)


def run_on_trio(tables: Tables, plan: Plan, strategy: Strategy, recorder: Recorder | None = None) -> Run:
    """Make one run on trio."""
    return drive_on_trio(Session(tables, plan, strategy, recorder))


def drive_on_trio(session: Session) -> Run:
    """Take a session to its end on trio."""
    return trio.run(Host(session).run)


def replay_on_trio(trail: Trail, recorder: Recorder | None = None, tables: Tables | None = None) -> Run:
    """Replay a trail on trio. Raises Refusal at the first step that does not fit."""
    return trio.run(Host(Replay(tables or Tables(trail.build()), trail, recorder)).run)


def run_application(
    tables: Tables, plan: Plan, strategy: Strategy, application: Application, recorder: Recorder | None = None,
    by_hand: bool = False,
) -> tuple[Run, Exception | None]:
    """Make one run on trio in which application code decides what the clients do; return what it raised, or None.

    With `by_hand` nothing goes wrong but what the application injects.
    """
    host = Host(Session(tables, plan, strategy, recorder))
    host.session.by_hand = by_hand
    run = trio.run(host.run, application)
    return run, host.application_error


@asynccontextmanager
async def open_cluster(
    what: str, *, seed: int = 0, strategy: str = "random", recorder: Recorder | None = None,
    injected: Faults | None = None,
) -> AsyncIterator[Cluster]:
    """Run a scenario or model beside the code inside `async with`, in a trio program that is already running.

    When the block is left, by an exception too, the run goes on until nothing is left to do; then `cluster.result` is
    the finished run. Only invariants are claimed. `injected` is the budget of the faults that the code injects itself;
    then nothing else goes wrong.
    """
    model, plan = resolve(what, injected)
    plan = safety_only(plan, model)
    chosen = Strategies(strategy).run(seed)
    assert chosen is not None
    host = Host(Session(Tables(model), plan, chosen, recorder))
    host.session.by_hand = injected is not None
    cluster, closed = Cluster(host), trio.Event()
    failed: Exception | None = None

    async def until_closed(_: Cluster) -> None:
        await closed.wait()

    async def serve() -> None:
        cluster.result = await host.run(until_closed)

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            try:
                yield cluster
            except Exception as error:  # the run ends in order, then the caller hears of it
                failed = error
            finally:
                closed.set()
    except BaseExceptionGroup as group:
        raise alone(group) from None
    if failed is not None:
        raise failed
