"""The trio runtime: a host takes a session to its end on trio, with or without application code that drives clients.

The actors are tasks (see `actor_tasks`); the host is the scheduler that decides, with the session, which one is woken.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from harness.model import (
    NO_FAULTS,
    Faults,
    OperationFailed,
    Refusal,
    Value,
    brief_input,
    unknown,
)
from harness.record import Recorder, Trail
from harness.simulate.runs.failures import alone
from harness.simulate.runs.plan import Plan, resolve, safety_only
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import Session
from harness.simulate.runtimes.actor_tasks import ActorTasks
from harness.simulate.runtimes.injecting import Wish
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.strategies.strategy import Strategy
from harness.simulate.trails.replay import Replay


class Cluster:
    """What application code sees of a running simulation."""

    def __init__(self, host: TrioHost) -> None:
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

        return model.application(ClientCommands(self._host, name))

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


class ClientCommands:
    """The commands of one actor (`harness.model.Command`)."""

    def __init__(self, host: TrioHost, name: str) -> None:
        self._host = host
        self._name = name

    async def __call__(self, action: str, *args: str) -> Value:
        __tracebackhide__ = True
        return await self._host.command(self._name, f"{action}({','.join((self._name, *args))})")

    async def give(self, value: Value) -> Value:
        __tracebackhide__ = True
        return await self._host.give(self._name, value)


Application = Callable[[Cluster], Awaitable[Any]]


class TrioHost(ActorTasks):
    """The scheduler of one run."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.session = session
        self.application_error: Exception | None = None
        self._news = trio.Event()
        self._pending: dict[str, tuple[str, trio.lowlevel.Task]] = {}
        self._results: dict[str, tuple[str, Value]] = {}
        self._given: dict[str, Value] = {}
        """What applications gave their actors, by actor, in the order of giving, until it is taken."""
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
        session = self.session
        async with trio.open_nursery() as nursery:
            await self._start_all(nursery)
            if application is None:
                while (n := session.decide()) >= 0:
                    if (after := session.follow(n)) is not None:
                        await self._step(nursery, n, after)
            else:
                await self._with_application(nursery, application)
            nursery.cancel_scope.cancel()
        return session.finish()

    async def command(self, process: str, label: str) -> Value:
        """Carry out a command of an application: wait until its operation ends."""
        __tracebackhide__ = True
        self._only_one(process)
        self._pending[process] = (label, trio.lowlevel.current_task())
        self._news.set()
        await _until_woken(self._pending, process)
        outcome, value = self._results.pop(process)
        if outcome != "ok":
            raise OperationFailed(outcome, value)
        return value

    async def give(self, process: str, value: Value) -> Value:
        """Give an actor input from outside: wait until it is taken, and the operation that it begins ends."""
        __tracebackhide__ = True
        self._only_one(process)
        self._given[process] = value
        try:
            return await self.command(process, f"{brief_input(value)} for {process}")
        finally:
            self._given.pop(process, None)

    def _only_one(self, process: str) -> None:
        __tracebackhide__ = True
        if process in self._pending:
            raise RuntimeError(f"{process} has an operation under way; await it before the next one")

    def _next_given(self, *, now: bool) -> str:
        """Return the actor that takes what it was given next, or "": when that is is for the strategy's chance."""
        session = self.session
        if not self._given or not session.may_go_on:
            return ""
        is_due = now or not session.strategy.chance.index(1 + len(session.node.options), "input")
        return next(iter(self._given)) if is_due else ""

    def _offer(self, process: str) -> int:
        """Let what an actor was given be the only option; return that, or -1 where it cannot be taken."""
        try:
            if self.session.offer(process, self._given.pop(process)):
                self.session.choose(0)
                return 0
        except Refusal as error:
            self._resolve(process, "fail", str(error))
        return -1

    async def inject(self, wish: Wish) -> str:
        """Wait until the environment has done what an application wishes for; returns the label of that step."""
        task = trio.lowlevel.current_task()
        self._wishes[task] = wish
        self._news.set()
        await _until_woken(self._wishes, task)
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
            process = "" if n >= 0 else self._next_given(now=False)
            if n < 0 and not process:
                n = session.decide()
                process = "" if n >= 0 else self._next_given(now=True)
            if process:
                n = self._offer(process)
                if n < 0:
                    continue
                under_way[process] = self._pending[process]
            if n >= 0:
                option = session.node.options[n]
                under_way |= {process: self._pending[process] for process in wanted if option.label == wanted[process]}
                if (after := session.follow(n)) is not None:
                    await self._step(nursery, n, after)
                op = option.choice.step.op
                if op is None and process:
                    del under_way[process]
                    self._resolve(process, "ok", None)
                elif op is not None and op.outcome != "invoke":
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
                    early = process in self._given
                    why = "was not taken before the run ended" if early else f"is not possible for {process} now"
                    self._resolve(process, "fail", f"{wanted[process]} {why}")
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


async def _until_woken(waiting: dict[Any, Any], key: Any) -> None:
    """Park until this task is rescheduled; if it is cancelled, no caller is to wait for it any more."""
    def abandon(_: Any) -> trio.lowlevel.Abort:
        waiting.pop(key, None)
        return trio.lowlevel.Abort.SUCCEEDED

    await trio.lowlevel.wait_task_rescheduled(abandon)


def _run(host: TrioHost, application: Application | None = None) -> Run:
    """Run a host on trio, in this thread.

    At its end trio closes the socket of its wake-ups before it tells Python that signals are not written there any
    more. One that comes in between would be told on stderr as an error, so they are not written from the end of the run
    on; their handlers are called as ever.
    """
    async def run() -> Run:
        try:
            return await host.run(application)
        finally:
            if threading.current_thread() is threading.main_thread():
                signal.set_wakeup_fd(-1)

    return trio.run(run)


def drive_on_trio(session: Session) -> Run:
    """Take a session to its end on trio."""
    return _run(TrioHost(session))


def replay_on_trio(trail: Trail, recorder: Recorder | None = None, tables: Tables | None = None) -> Run:
    """Replay a trail on trio. Raises Refusal at the first step that does not fit."""
    session = Replay(tables or Tables(trail.build()), trail, recorder)
    run = _run(TrioHost(session))
    if tables is None:
        session.tables.close()
    return run


def run_application(
    tables: Tables, plan: Plan, strategy: Strategy, application: Application, recorder: Recorder | None = None,
    by_hand: bool = False,
) -> tuple[Run, Exception | None]:
    """Make one run on trio in which application code decides what the clients do; return what it raised, or None.

    With `by_hand` nothing goes wrong but what the application injects.
    """
    host = TrioHost(Session(tables, plan, strategy, recorder))
    host.session.by_hand = by_hand
    return _run(host, application), host.application_error


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
    host = TrioHost(Session(Tables(model), plan, chosen, recorder))
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
