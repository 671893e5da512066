"""Actors as trio tasks: each owns its local state, gets messages through its mailbox, and takes one turn when woken.

All tasks are parked in `trio.lowlevel.wait_task_rescheduled`, so that trio's shuffled run loop decides nothing: a
`ActorTasks` wakes one, which takes its turn with the actor's own pure functions and hands the baton back. A crash
cancels a task, a restart starts another one from what was flushed. Models that are no actor compositions run here as
transactions on their slots while the tasks are parked.

The network and the record are kept by the same tables as on the plain runtime, and each new turn of a task is checked
against them: a task whose state went another way is an error, not another history. `LiveHost` is stepped from outside
and can be put back to another state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import trio
import trio.testing

from harness.memo.interning import Ids, IdView
from harness.model import Actor, Input, Message, Model, Turn, Value, brief_input, slot
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import BYTES_PER_TURN, Tables


class TakenTurn(NamedTuple):
    """A turn that a task took, the state after it, what it flushed, and what its identity kept alive is known by."""

    turn: Turn[Any]
    local: Any
    flushed: Mapping[str, Value]
    alive: tuple[Any, Message | None]


Turns = dict[Any, Any]
"""Turns by identity of the local state and the message, label, and the ids that the tables give to the local state: a
task in another state never finds a turn here. By these ids alone, states in which tasks started."""

MAX_TURNS = 100_000


class ActorTask:
    """One actor as a task: the owner of its local state."""

    def __init__(self, host: ActorTasks, actor: Actor[Any], local: Any, turns: Turns) -> None:
        self.host = host
        self.actor = actor
        self.local = local
        self.mailbox: deque[Message] = deque()
        self.wanted = ""
        self.input: Input | None = None
        """What comes from outside with the wanted turn."""
        self.answer: TakenTurn | None = None
        self.error: Exception | None = None
        """Why there is no answer."""
        self.task: trio.lowlevel.Task | None = None
        self.scope = trio.CancelScope()
        self._turns = turns
        self._ids = ids_of(host.tables, actor)

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
                        self.answer = taken = self._take_turn()
                        self.local = taken.local
                    except Exception as error:  # the scheduler waits, and has to hear of it
                        self.answer, self.error = None, error
                    wake(scheduler)
        finally:
            self.task = None

    def _take_turn(self) -> TakenTurn:
        """Take the wanted turn of this actor in its own state, with the message at the head of its mailbox if any."""
        if self.input is not None:
            return self._take_input(self.input.value)
        message = self.mailbox.popleft() if self.mailbox else None
        key = (id(self.local), id(message), self.wanted, self._ids(self.host.hosted.node.state))
        known = self._turns.get(key)
        if known is not None:
            return known  # type: ignore[no-any-return]
        offered = self.actor.turns(self.local) if message is None else self.actor.on_message(self.local, message)
        for turn in offered:
            label = turn.label if turn.detail or message is None else f"{turn.label} {message.brief()}"
            if label == self.wanted:
                taken = self._taken(turn, message)
                if len(self._turns) >= MAX_TURNS:
                    self._turns.clear()
                self._turns[key] = taken
                self.host.tables.used += BYTES_PER_TURN
                return taken
        raise self._not_offered()

    def _take_input(self, value: Value) -> TakenTurn:
        """Take the turn of this actor in its own state with input from outside, which hardly ever comes twice."""
        for turn in self.actor.on_input(self.local, value):
            if (turn.label if turn.detail else f"{turn.label} {brief_input(value)}") == self.wanted:
                return self._taken(turn, None)
        raise self._not_offered()

    def _taken(self, turn: Turn[Any], message: Message | None) -> TakenTurn:
        """Return what a turn that is taken for the first time makes of the state, once it is checked."""
        layout = self.actor.layout
        writes = dict(layout.writes(self.local, turn.local, turn.flush))
        self.host.check(self.actor, turn, writes)
        flushed = {disk: writes[disk] for disk in layout.disks.values() if disk in writes}
        return TakenTurn(turn, layout.settled(turn.local), flushed, (self.local, message))

    def _not_offered(self) -> AssertionError:
        return AssertionError(f"{self.actor.name} was asked for {self.wanted!r}, which its own state does not offer")


def ids_of(tables: Tables, actor: Actor[Any]) -> Callable[[Ids], Any]:
    """Return what gives the ids of an actor's local state in a state."""
    return itemgetter(*(tables.index[name] for name in actor.layout.slots))


def _succeeded(_: Any) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.SUCCEEDED


class Hosted(Protocol):
    """A run whose present state is held by tasks."""

    @property
    def tables(self) -> Tables: ...

    @property
    def model(self) -> Model: ...

    @property
    def node(self) -> Node: ...

    def took(self, n: int, after: Node) -> None: ...


class ActorTasks:
    """The tasks that hold the present state of a run, and what it takes to step them."""

    def __init__(self, hosted: Hosted) -> None:
        self.hosted = hosted
        self.tables = hosted.tables
        self.tasks: dict[str, ActorTask] = {}
        self.disks: dict[str, Value] = {}
        """What is on the actors' disks, by slot."""
        self.task: trio.lowlevel.Task
        self._expected: tuple[Node, Option] | None = None

    def _start(self, nursery: trio.Nursery, actor: Actor[Any], node: Node) -> None:
        """Start an actor's task in the state that it has in a node."""
        turns: Turns = self.tables.turns.setdefault(actor.name, {})
        ids = ids_of(self.tables, actor)(node.state)
        local = turns.get(ids)
        if local is None:
            local = turns[ids] = actor.layout.settled(actor.layout.read(IdView(self.tables, node.state)))
        task = self.tasks[actor.name] = ActorTask(self, actor, local, turns)
        nursery.start_soon(task.run, name=actor.name)

    async def _start_all(self, nursery: trio.Nursery) -> None:
        """Start the tasks of the actors that are not down, in the present state of the run."""
        self.task = trio.lowlevel.current_task()
        node, model = self.hosted.node, self.hosted.model
        for name, actor in model.actors.items():
            for disk in actor.layout.disks.values():
                self.disks[disk] = self.tables.value(node, disk)
            if not model.faulty or self.tables.value(node, slot("gate", name)).status != "down":
                self._start(nursery, actor, node)
        await self._all_parked()

    async def _all_parked(self) -> None:
        """Wait until every task that did not crash has started and is parked."""
        while any(task.task is None and not task.scope.cancel_called for task in self.tasks.values()):
            await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()

    async def _step(self, nursery: trio.Nursery, n: int, after: Node) -> None:
        """Take option n, which leads to `after`: by its actor's task, or, for environment and specs, as a transaction.
        """
        option = self.hosted.node.options[n]
        task = self.tasks.get(option.process)
        if task is not None:
            if option.message is not None:
                task.mailbox.append(option.message)
            task.wanted, task.input = option.label, option.choice.step.input
            self._expected = (after, option)
            trio.lowlevel.reschedule(task.task)  # type: ignore[arg-type]
            await trio.lowlevel.wait_task_rescheduled(_succeeded)
            taken = task.answer
            if task.error is not None:
                error, task.error = task.error, None
                raise error
            if taken is None:
                raise AssertionError(f"{option.process} did not take its turn {option.label!r}")
            if taken.flushed:
                self.disks.update(taken.flushed)
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
        layout = actor.layout
        local = actor.restarted(layout.read(layout.survivor(self.disks)))
        if any(value != self.tables.value(after, where) for where, value in layout.values(local).items()):
            raise AssertionError(f"{name} restarts with another state than its disk gives it")
        self._start(nursery, actor, after)
        await self._all_parked()

    def check(self, actor: Actor[Any], turn: Turn[Any], writes: Mapping[str, Value]) -> None:
        """Check a turn that a task took for the first time, and what it writes, against the tables."""
        assert self._expected is not None
        after, option = self._expected
        local = actor.layout.values(turn.local)
        other = any(value != self.tables.value(after, where) for where, value in {**local, **writes}.items())
        if other or turn.sent != option.choice.step.sent:
            raise AssertionError(f"{actor.name}'s own state went another way than the tables at {option.label!r}")


class LiveHost(ActorTasks):
    """Tasks that hold the present state of a run which is decided from outside, forwards and backwards.

    One task must be the one that calls it all. The actors' tasks live in the nursery that is given, which must not be
    cancelled while that one takes a step.
    """

    def __init__(self, hosted: Hosted, nursery: trio.Nursery) -> None:
        super().__init__(hosted)
        self._nursery = nursery
        self._node: Node | None = None

    async def take(self, n: int) -> None:
        """Take option n of the present state; nothing cancels the caller in the middle of it."""
        node = self.hosted.node
        with trio.CancelScope(shield=True):
            await self._step(self._nursery, n, node.succ[n] or self.tables.follow(node, n))
        self._node = self.hosted.node

    async def restore(self) -> None:
        """Put the tasks into the present state of the run, after other code brought that about."""
        if self.hosted.node is self._node:
            return
        with trio.CancelScope(shield=True):
            for task in self.tasks.values():
                task.scope.cancel()
            while any(task.task is not None for task in self.tasks.values()):
                await trio.lowlevel.checkpoint()
            self.tables = self.hosted.tables
            self.tasks.clear()
            await self._start_all(self._nursery)
        self._node = self.hosted.node
