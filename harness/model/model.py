"""A model: processes composed with a network and faults. It says which steps are possible, and their effects.

This is the reference semantics, written to be read: every driver's faster tables must agree with it. A state is a
mapping from slot names to values. The network owns the slots `inbox[a]` (messages to a; another for each semantics that
the links to it have besides, as `inbox[a][reliable]`), `held[a]` (delayed ones) and, where history variables are on,
`discarded[a]` (the spec's `messages_discard`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import attrs

from harness.model.auxiliary import Auxiliary
from harness.model.command import Command
from harness.model.faults import (
    BUDGET,
    LINK_KINDS,
    NO_FAULTS,
    RULE_COUNTS,
    ActorFaults,
    Faults,
    LinkFaults,
    NetworkFaults,
)
from harness.model.gate import OPEN, Gate
from harness.model.improper import blamed
from harness.model.links import Inbox, Link, Routes
from harness.model.log_operations import ClientView
from harness.model.logs import Logs
from harness.model.message import Message, brief_input
from harness.model.network import FIFO, UNORDERED_SET, Network
from harness.model.process import Actor, Process
from harness.model.properties import Property, Reason
from harness.model.step import Input, Kind, Step
from harness.model.values import Value, canonical_sort, check_names
from harness.model.variables import gather
from harness.model.view import State, View, slot


@attrs.frozen(eq=False)
class Choice:
    """A step that is possible now, and the process that offers it."""

    process: str
    step: Step
    label: str


@attrs.frozen
class Effects:
    """What taking a step does: the slots it changes, and the sent messages that a fault took."""

    writes: tuple[tuple[str, Value], ...]
    lost: tuple[Message, ...] = ()
    held: tuple[Message, ...] = ()


class SlotWrites(dict[str, Value]):
    """The writes of a step, slot by slot, while they are worked out: its own writes first, then what inboxes become.

    A search that packs states overrides what is done to inboxes, and to what was discarded.
    """

    def __init__(self, view: View, own: Iterable[tuple[str, Value]]) -> None:
        super().__init__(own)
        self._view = view

    def now(self, where: str) -> Value:
        """Return the value of a slot so far."""
        before = self._view[where]
        return self.get(where, before)

    def take(self, inbox: Inbox, message: Message) -> None:
        """Take a message from where it waits."""
        self[inbox.slot] = inbox.network.take(self.now(inbox.slot), message)

    def discard(self, message: Message) -> None:
        """Note that a message was taken, where history variables are on."""
        seen = slot("discarded", message.dest)
        self[seen] = self.now(seen) | {message}

    def put(self, inbox: Inbox, message: Message) -> None:
        """Let a message wait."""
        self[inbox.slot] = inbox.network.put(self.now(inbox.slot), message)

    def reconnect(self, inbox: Inbox, source: str) -> None:
        """Let a source open a new connection to a FIFO inbox."""
        self[inbox.slot] = FIFO.reconnect(self.now(inbox.slot), source)


@attrs.frozen(eq=False)
class Model:
    """One protocol variant at one size.

    `initial` lists the initial states, without the slots of network, environment and actors with an `initial` of their
    own. `fairness` maps actions to `weak` or `strong`; others are unfair. It was built from `sizes` and `settings`.
    """

    name: str
    processes: tuple[Process, ...]
    initial: tuple[Mapping[str, Value], ...] = ({},)
    network: Network = UNORDERED_SET
    faults: Faults = NO_FAULTS
    properties: tuple[Property, ...] = ()
    fairness: Mapping[str, str] = attrs.field(factory=dict)
    history_variables: bool = False
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    settings: Mapping[str, str] = attrs.field(factory=dict)
    symmetric: tuple[tuple[str, ...], ...] = ()
    """Sets of interchangeable names: renaming within one changes only names."""
    types: tuple[type, ...] = ()
    """The attrs classes that occur in states and messages, for reading recorded values back by the classes' names."""
    view_hides: tuple[str, ...] = ()
    """Variables that the spec's VIEW leaves out: they do not tell states apart where a search uses the view."""
    constraint: Callable[[View], bool] | None = None
    """States where it is false are out of bounds: a search counts them as generated and goes no further."""
    claimed: tuple[str, ...] | None = None
    """The properties that are claimed by default; None means all (some are false as written)."""
    spec_variables: Callable[[Model, State], dict[str, Value]] | None = None
    """Gives a state as the spec's variables where gathering the slots of one name does not."""
    waits_for: Callable[[View], tuple[str, ...]] | None = None
    """Says, for a state in which nothing happens any more, which actors wait for which others."""
    logs: Logs | None = None
    """Gives the logs in a state, for display, if the model has any."""
    tells: bool = False
    """Whether its steps tell what they show (`Step.told`): then lifelines are theirs, and slots are not shown."""
    application: Callable[[Command], Any] | None = None
    """Makes the client object that application code uses, from the awaitable that carries out its commands."""
    client_view: Callable[[], ClientView] | None = None
    """Makes what turns a run into operations on logs, to be judged by what clients saw alone."""
    refinement: Callable[[], Any] | None = None
    """Builds the `harness.model.refinement.Refinement` that checks recorded steps of these actors, if any."""
    links: tuple[Link, ...] = ()
    """The links that there are, where that is not one between any two addresses, all by the network."""
    auxiliary: tuple[Auxiliary, ...] = ()
    """Variables that no process reads: what properties need to know of the past."""
    companions: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Texts in states that go with an interchangeable name, as what it sends: a renaming renames them, one by one."""
    actors: Mapping[str, Actor[Any]] = attrs.field(init=False)
    addresses: tuple[str, ...] = attrs.field(init=False)
    routes: Routes = attrs.field(init=False)
    """Where messages wait, by source and destination."""
    inboxes: Mapping[str, tuple[Inbox, ...]] = attrs.field(init=False)
    """The inboxes of each address, those of reliable links first."""
    environment: tuple[Process, ...] = attrs.field(init=False)
    faulty: bool = attrs.field(init=False)
    """Whether faults can be injected, so that gates and budgets exist."""

    def __attrs_post_init__(self) -> None:
        check_names(self.name, self.types)
        set_ = object.__setattr__
        set_(self, "addresses", tuple(p.name for p in self.processes if p.has_inbox))
        set_(self, "actors", {p.name: p for p in self.processes if isinstance(p, Actor)})
        set_(self, "routes", Routes(self.addresses, self.links, self.network))
        set_(self, "inboxes", self.routes.inboxes)
        set_(self, "environment", tuple(self._fault_processes()))
        set_(self, "faulty", self.faults != NO_FAULTS)

    def _fault_processes(self) -> Iterable[Process]:
        faults = self.faults
        if faults.reaches("drop", "duplicate", "delay", "reorder") or faults.rules:
            for address in self.addresses:
                lossy = tuple(inbox for inbox in self.inboxes[address] if not inbox.network.is_reliable)
                if lossy:
                    yield NetworkFaults(address, lossy, self.routes)
        if faults.reaches(*LINK_KINDS):
            links = dict.fromkeys((min(pair), max(pair)) for pair in faults.links or self._linked())
            for one, other in links:
                yield LinkFaults(one, other)
            for one, other in dict.fromkeys((min(t.who), max(t.who)) for t in faults.timed if t.kind in LINK_KINDS):
                if (one, other) not in links:
                    yield LinkFaults(one, other, timed_only=True)
        if faults.reaches("pause", "crash", "skew"):
            timed = [t.who[0] for t in faults.timed if t.kind not in LINK_KINDS]
            for target in dict.fromkeys((*faults.targets, *timed)):
                timed_only = target not in faults.targets
                yield ActorFaults(self.actors[target], self.inboxes[target], timed_only)

    def _linked(self) -> Iterable[tuple[str, str]]:
        """Yield what the budget may cut where the faults name no links: each link between a target and an address."""
        for target in self.faults.targets:
            for address in self.addresses:
                if address != target and self.routes.links(target, address):
                    yield target, address

    def initial_states(self) -> tuple[State, ...]:
        """Return every initial state, network and environment slots included."""
        return tuple({**self._environment_slots(), **initial} for initial in self.initial)

    def _environment_slots(self) -> dict[str, Value]:
        slots: dict[str, Value] = {}
        for address in self.addresses:
            slots |= {inbox.slot: inbox.network.empty for inbox in self.inboxes[address]}
            if self.history_variables:
                slots[slot("discarded", address)] = frozenset()
            if self.faulty:
                slots[slot("held", address)] = ()
                slots[slot("gate", address)] = OPEN
        for actor in self.actors.values():
            slots.update(actor.layout.start())
            for message in actor.sent_at_first:
                inbox = self.routes.of(message)
                slots[inbox.slot] = inbox.network.put(slots[inbox.slot], message)
        for variable in self.auxiliary:
            slots[variable.name] = variable.initial
            for actor in self.actors.values():
                slots |= variable.write(View(slots), Step("Start", (actor.name,), sent=actor.sent_at_first))
        if self.faulty:
            slots[BUDGET] = self.faults.budget
            slots[RULE_COUNTS] = (0,) * len(self.faults.rules)
        return slots

    def slots_of(self, name: str) -> tuple[str, ...]:
        """Return the slots that hold the local state of an actor; only actors have any."""
        actor = self.actors.get(name)
        return actor.layout.slots if actor is not None else ()

    def disks_of(self, name: str) -> Mapping[str, str]:
        """Return the slots of an actor's disks, by the slot whose value is flushed there."""
        actor = self.actors.get(name)
        return actor.layout.disks if actor is not None else {}

    def everyone(self) -> tuple[Process, ...]:
        """Return the processes of the protocol, then those of the environment."""
        return (*self.processes, *self.environment)

    def choices(self, state: State) -> list[Choice]:
        """Return every step that is possible in a state, in the canonical order: by process, its own steps first."""
        found = []
        for process in self.everyone():
            found += self.own_choices(process, View(state))
            for message in self.arrivals(process, View(state)):
                found += self.delivery_choices(process, View(state), message)
        return found

    def is_inside(self, state: State) -> bool:
        """Say whether a state is within the constraint, if there is one."""
        return self.constraint is None or self.constraint(View(state))

    def own_choices(self, process: Process, view: View) -> list[Choice]:
        """Return the steps a process may take of its own accord."""
        return [Choice(process.name, step, step.label) for step in self.own_steps(process, view)]

    def own_steps(self, process: Process, view: View) -> Iterable[Step]:
        """Return the same without labels."""
        if self.faulty and process.has_inbox and view.at("gate", process.name).status != "up":
            return ()
        return self._with_auxiliary(view, process.steps(view))

    def _with_auxiliary(self, view: View, steps: Iterable[Step]) -> Iterable[Step]:
        """Return steps that write the auxiliary variables, too."""
        if not self.auxiliary:
            return steps
        return [
            attrs.evolve(step, writes=(*step.writes, *writes))
            if (writes := [write for variable in self.auxiliary for write in variable.write(view, step)]) else step
            for step in steps
        ]

    def arrivals(self, process: Process, view: View) -> tuple[Message, ...]:
        """Return the messages that may arrive at a process now."""
        if not process.has_inbox:
            return ()
        deaf_to: frozenset[str] = frozenset()
        if self.faulty:
            gate = view.at("gate", process.name)
            if gate.status != "up":
                return ()
            deaf_to = gate.deaf_to
        found: tuple[Message, ...] = ()
        for inbox in self.inboxes[process.name]:
            found += inbox.network.deliverable(view[inbox.slot])
        return tuple(message for message in found if message.source not in deaf_to) if deaf_to else found

    def delivery_choices(self, process: Process, view: View, message: Message) -> list[Choice]:
        """Return the ways a process may consume a message that can arrive."""
        return [Choice(process.name, step, step.label) for step in self.delivery_steps(process, view, message)]

    def delivery_steps(self, process: Process, view: View, message: Message) -> list[Step]:
        """Return the same without labels."""
        steps = [
            step if step.consumed is message and step.detail
            else attrs.evolve(step, consumed=message, detail=step.detail or message.brief())
            for step in process.receive(view, message)
        ]
        return list(self._with_auxiliary(view, steps))

    def input_choices(self, process: Process, view: View, value: Value) -> list[Choice]:
        """Return the ways a process may take a value that comes from outside the model; none if it is down."""
        if self.faulty and process.has_inbox and view.at("gate", process.name).status != "up":
            return []
        came, brief = Input(process.name, value), brief_input(value)
        steps = self._with_auxiliary(view, [
            attrs.evolve(step, kind=Kind.INPUT, input=came, detail=step.detail or brief)
            for step in process.outside(view, value)
        ])
        return [Choice(process.name, step, step.label) for step in steps]

    def apply(self, state: State, choice: Choice) -> State:
        """Return the state after a choice is taken."""
        return {**state, **dict(self.effects(View(state), choice.step).writes)}

    def effects(self, view: View, step: Step, writing: Callable[..., SlotWrites] = SlotWrites) -> Effects:
        """Return what a step does to the slots: its own writes, then what it takes from and gives to the network."""
        after = writing(view, step.writes)
        lost: list[Message] = []
        held: list[Message] = []
        if step.consumed is not None:
            after.take(self.routes.of(step.consumed), step.consumed)
            if self.history_variables:
                after.discard(step.consumed)
        for message in step.sent:
            try:
                self._send(view, after, message, lost, held, by_fault=step.kind is Kind.FAULT)
            except TypeError as error:
                raise blamed(error, [(message.type, message)]) from None
        return Effects(tuple(after.items()), tuple(lost), tuple(held))

    def _send(
        self, view: View, after: SlotWrites, message: Message, lost: list[Message], held: list[Message],
        by_fault: bool,
    ) -> None:
        inbox = self.routes.of(message)
        network = inbox.network
        hit: set[str] = set()
        if self.faulty:
            gate: Gate = after.get(slot("gate", message.dest)) or view.at("gate", message.dest)
            if gate.status == "down" or (message.source in gate.deaf_to and not network.is_reliable):
                lost.append(message)
                return
            if self.faults.rules and not network.is_reliable and not by_fault:
                hit = self._rules_for(view, after, message)
        if "drop" in hit:
            lost.append(message)
        elif "delay" in hit:
            held.append(message)
            waiting = slot("held", message.dest)
            now: tuple[Message, ...] = after[waiting] if waiting in after else view[waiting]
            after[waiting] = tuple(canonical_sort([*now, message]))
        else:
            if "reorder" in hit and network is FIFO:
                after.reconnect(inbox, message.source)
            for _ in range(2 if "duplicate" in hit else 1):
                after.put(inbox, message)

    def _rules_for(self, view: View, after: SlotWrites, message: Message) -> set[str]:
        """Return the kinds of the rules that hit this message, and count its occurrence for each rule that fits it."""
        counts: list[int] = list(after[RULE_COUNTS] if RULE_COUNTS in after else view[RULE_COUNTS])
        hit: set[str] = set()
        for n, rule in enumerate(self.faults.rules):
            if rule.fits(message):
                counts[n] += 1
                if rule.nth in (0, counts[n]):
                    hit.add(rule.kind)
        after[RULE_COUNTS] = tuple(counts)
        return hit

    def why_not(self, prop: Property, view: View) -> Reason:
        """Return why a property's state predicate does not hold, or None; message checks look at what is in flight."""
        return next((why for check in self.split(prop) if (why := check(view)) is not None), None)

    def split(self, prop: Property) -> tuple[Callable[[View], Reason], ...]:
        """Return the checks that a property consists of, one per index or inbox, so that each depends on little."""
        if prop.on == "message":
            return tuple(partial(_why_not_in, prop, inbox) for mine in self.inboxes.values() for inbox in mine)
        if prop.over is None:
            return (prop.check,)
        return tuple(partial(_why_not_at, prop, index) for index in prop.over)

    def variables(self, state: State) -> dict[str, Value]:
        """Return a state as the spec's variables: slots gathered into nested maps, messages into sets."""
        return self.spec_variables(self, state) if self.spec_variables is not None else self.gathered(state)

    def gathered(self, state: State) -> dict[str, Value]:
        """Return a state as nested maps, one per slot variable, with the messages under way."""
        return gather(
            state, self.inboxes, delayed=self.faulty, discarded=self.history_variables
        )

    def property(self, name: str) -> Property:
        """Return the property of that name. Raises KeyError."""
        return {p.name: p for p in self.properties}[name]


def _why_not_in(prop: Property, inbox: Inbox, view: View) -> Reason:
    messages = inbox.network.contents(view[inbox.slot])
    return next((why for message in messages if (why := prop.check(message)) is not None), None)


def _why_not_at(prop: Property, index: Any, view: View) -> Reason:
    why: Reason = prop.check(view, index)
    return why
