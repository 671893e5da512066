"""A model as tables: interned slot values, memoised steps, and the states visited so far as linked nodes.

Protocol code runs once per distinct set of values that it read; after that a step is a table look-up. What is computed
here equals the reference semantics of `harness.model.Model` (a test compares them). Ids are local to one process.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from harness.memo.interning import IdView, SlotValues
from harness.memo.memo_group import ManyMemos
from harness.memo.read_memo import Leaf, ReadMemo
from harness.model import (
    Choice,
    FrozenMap,
    Message,
    Model,
    Process,
    Property,
    Refusal,
    State,
    Step,
    Value,
    View,
    canonical_text,
    unknown,
)
from harness.record.changes import change
from harness.record.choices import ChosenInput
from harness.record.events import Happening, LongHappening
from harness.record.history import all_types
from harness.simulate.states.guards import Guards
from harness.simulate.states.nodes import Edge, Node, Option, Questions

T = TypeVar("T")

MAX_NODES = 60_000
"""Visited states that are kept; beyond, the tables start over with the nodes (not with the memos)."""
MAX_LEAVES = 2_000_000
"""Memoised results that are kept, in all memos together."""
BUDGET = 150_000_000
"""Bytes, by the estimates below, after which tables are full and start over between two steps of a run."""
BYTES_PER_OPTION = 1_500
BYTES_PER_EDGE, BYTES_PER_NODE, BYTES_PER_SLOT, BYTES_PER_TURN = 400, 900, 16, 1_000
BYTES_PER_HAPPENING = 700
"""What else is kept, on CPython 3.11 and rounded up; a node grows with the slots and options of its state."""


class Tables(SlotValues):
    """The tables of one model, shared by all runs of a process, one run at a time.

    They grow with what was seen. A run of any length looks between its steps whether they are full, that is whether
    what they hold comes to `budget` bytes, and lets them start over. Only time depends on it.
    """

    def __init__(self, model: Model, guards: Guards | None = None, budget: int = BUDGET) -> None:
        starts = model.initial_states()
        super().__init__(tuple(starts[0]), model.tells)
        self.model = model
        self.guards = guards
        """Where given: the collector of the guards that processes evaluate when they are asked for their steps."""
        self.budget = budget
        self.pinned = False
        """Set by users that keep ids beyond a run, as a refiner does: nothing is forgotten, whatever the budget."""
        self.renewals = 0
        """How often the tables started over with everything."""
        self._starts = tuple(self.intern(start) for start in starts)
        self._initial: dict[tuple[int, ...], Happening] = {}
        self._messages: dict[tuple[str, str], ReadMemo] = {}
        self._inputs: dict[ChosenInput, ReadMemo] = {}
        self.turns: dict[str, dict[Any, Any]] = {}
        """Where the trio runtime remembers the turns of its tasks, by actor."""
        self._nodes: dict[tuple[int, ...], Node] = {}
        self.invariants = tuple(p for p in model.properties if p.is_safety)
        self.temporal = tuple(p for p in model.properties if p.is_temporal)
        self.witnesses = tuple(p for p in model.properties if p.form == "sometimes")
        self._build()

    def _build(self) -> None:
        """Make empty memos, one per process and per check."""
        self.leaves = 0
        self._messages.clear()
        self._inputs.clear()
        self._units = [self._unit(process) for process in self.model.everyone()]
        checks = [(prop.name, check) for prop in self.invariants for check in self.model.split(prop)]
        self._names = tuple([name for name, _ in checks])
        self._checks = ManyMemos([ReadMemo(self, check) for _, check in checks])
        self._predicates: dict[str, ReadMemo] = {}
        self._on_states = ManyMemos([self._predicate(prop) for prop in self.witnesses if prop.on != "step"])

    def _unit(self, process: Process) -> Questions:
        own = ReadMemo(self, self._watched(lambda view: self._options(self.model.own_choices(process, view))))
        if not process.has_inbox:
            return Questions(own, None)
        arrive = self.model.arrivals
        return Questions(own, ReadMemo(self, lambda view: [self._delivery(process, m) for m in arrive(process, view)]))

    def _delivery(self, process: Process, message: Message) -> ReadMemo:
        key = (process.name, canonical_text(message))
        if key not in self._messages:
            deliver = self._watched(lambda view: self._options(self.model.delivery_choices(process, view, message)))
            self._messages[key] = ReadMemo(self, deliver)
        return self._messages[key]

    def _watched(self, compute: Callable[[View], T]) -> Callable[[View], T]:
        guards = self.guards
        return compute if guards is None else lambda view: guards.watch(lambda: compute(view))

    def _options(self, choices: list[Choice]) -> list[Option]:
        self.used += BYTES_PER_OPTION * len(choices)
        return [Option(self, choice, partial(self._edge, choice.step)) for choice in choices]

    def _edge(self, step: Step, view: View) -> Edge:
        self.used += BYTES_PER_EDGE
        effects = self.model.effects(view, step)
        return Edge(tuple((self.index[n], self.intern_value(self.index[n], v)) for n, v in effects.writes), effects)

    def with_input(self, node: Node, came: ChosenInput) -> Node:
        """Return a node of the same state whose only options are what input from outside makes possible there.

        Raises Refusal if the model has no such process or no such value, and whatever protocol code raises.
        """
        memo = self._inputs.get(came)
        if memo is None:
            memo = self._inputs[came] = self._input_memo(came)
        offered = memo.at(node.state).result
        if self.model.constraint is not None:
            offered = [option for option in offered if self._inside(node.state, option)]
        return node.with_options(offered)

    def offering(self, node: Node, choice: Choice) -> Node:
        """Return a node of the same state whose only option is a choice that was taken there before."""
        return node.with_options(self._options([choice]))

    def _input_memo(self, came: ChosenInput) -> ReadMemo:
        model = self.model
        process = next((process for process in model.processes if process.name == came.process), None)
        if process is None:
            known = [process.name for process in model.processes]
            said = f"{model.name} has no process {came.process!r} that could be given something"
            raise Refusal(unknown(said, came.process, known, "its processes are"))
        value = came.decoded({cls.__name__: cls for cls in all_types(model)})
        self.used += BYTES_PER_OPTION + len(came.text)
        return ReadMemo(self, self._watched(lambda view: self._options(model.input_choices(process, view, value))))

    @property
    def is_full(self) -> bool:
        """Say whether the tables should start over as soon as no step is under way."""
        return self.used >= self.budget and not self.pinned

    def renewed(self, node: Node) -> Node:
        """Start over, and return the new node of a node's state."""
        node.succ.clear()
        return self.node(self.renewed_state(node.state))

    def renewed_state(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """Start over, and return the new ids of a state."""
        values = dict(IdView(self, state))
        self.start_over()
        return self.intern(values)

    def start_over(self) -> None:
        """Forget everything: nodes and ids that were given before mean nothing any more."""
        self._forget_states()
        self.renewals += 1
        self._build()
        gc.collect()
        self._starts = tuple(self.intern(start) for start in self.model.initial_states())

    def close(self) -> None:
        """Let go of everything at once, without the garbage collector's help: the tables are of no use afterwards."""
        self._forget_states()
        for kept in (self._messages, self._inputs, self._units, self._predicates):
            kept.clear()
        self._checks = self._on_states = ManyMemos([])

    def _forget_states(self) -> None:
        for node in self._nodes.values():
            node.succ.clear()  # nodes lead to each other in circles, which nothing else would break
        self._nodes.clear()
        self._initial.clear()
        for turns in self.turns.values():
            turns.clear()
        self.forget_values()

    def start(self, n: int = 0) -> Node:
        """Return the node of initial state n."""
        return self.node(self._starts[n])

    def bare(self, n: int = 0) -> Node:
        """Return a node of initial state n from which nothing leads: where asking what does has failed."""
        return Node(self._starts[n], [], [], [], None)

    @property
    def initial_count(self) -> int:
        return len(self._starts)

    def starts_in(self, state: tuple[int, ...]) -> bool:
        """Say whether a state, given as ids, is an initial one."""
        if not self.tells:
            return state in self._starts
        return any(dict(IdView(self, state)) == dict(IdView(self, start)) for start in self._starts)

    def checked(
        self, state: tuple[int, ...], before: list[Leaf] | None = None, written: int = 0
    ) -> list[Leaf]:
        """Return what each check of the invariants says of a state; `before` is what was said of another state.

        That one differs from this one in the slots of the bit mask `written` only. A check that reads of a slot only
        what is derived from it counts as one that reads the slot.
        """
        if before is None:
            return self._checks.at(state)
        return [leaf if not leaf.mask & written else memo.at(state)
                for leaf, memo in zip(before, self._checks.memos, strict=True)]

    def said(self, checked: list[Leaf]) -> dict[str, str]:
        """Return the invariants that fail, and why, by what their checks say."""
        found: dict[str, str] = {}
        for name, leaf in zip(self._names, checked, strict=True):
            if leaf.result is not None:
                found.setdefault(name, leaf.result)
        return found

    def options(self, n: int, state: tuple[int, ...]) -> list[Option]:
        """Return the options of the nth process of the model in a state."""
        return self._units[n].at(state).options

    def follow(self, node: Node, n: int) -> Node:
        """Return the node that option n of a node leads to."""
        known = node.succ[n]
        if known is not None:
            return known
        state = node.state
        after = list(state)
        written = 0
        for slot, value in node.options[n].edge(state).writes:
            was = after[slot]
            if was != value:
                after[slot] = value
                written |= 1 << slot
                for made in self.derived_of[slot].values() if slot in self.derived_of else ():
                    if made.number(was) != made.number(value):
                        written |= made.bit
        found = self.node(tuple(after), node, written)
        node.succ[n] = found
        return found

    def node(self, state: tuple[int, ...], parent: Node | None = None, written: int = 0) -> Node:
        """Return the node of a state given as ids, which differs from its parent's in the slots of a bit mask only."""
        found = self._nodes.get(state)
        if found is not None:
            return found
        if len(self._nodes) >= MAX_NODES:
            self._nodes.clear()
            gc.collect()
            if self.leaves >= MAX_LEAVES:
                self._build()
                parent = None
        witnesses = None
        if parent is None:
            units = [unit.at(state) for unit in self._units]
            checks = self._checks.at(state)
        else:
            units = [
                unit.after(before, state, written) if before.mask & written else before
                for before, unit in zip(parent.units, self._units, strict=True)
            ]
            checks = self._checks.after(parent.checks, state, written)
            if parent.witnesses is not None:
                witnesses = self._on_states.after(parent.witnesses, state, written)
        options: list[Option] = []
        for asked in units:
            options += asked.options
        if self.model.constraint is not None:
            options = [option for option in options if self._inside(state, option)]
        failing = self.said(checks) if [leaf for leaf in checks if leaf.result is not None] else None
        node = self._nodes[state] = Node(state, options, units, checks, failing)
        node.witnesses = witnesses
        self.used += BYTES_PER_NODE + BYTES_PER_SLOT * (len(state) + 5 * len(options))
        return node

    def _inside(self, state: tuple[int, ...], option: Option) -> bool:
        """Say whether an option leads to a state within the model's constraint."""
        return self.model.is_inside(IdView(self, option.after(state)))

    def value(self, node: Node, name: str) -> Value:
        """Return the value of a slot in a node's state."""
        slot = self.index[name]
        return self.values[slot][node.state[slot]]

    def view_of(self, node: Node) -> View:
        """Return a view of a node's state."""
        return self.view(node.state)

    def state(self, node: Node) -> State:
        """Return a node's state as values."""
        return {name: self.value(node, name) for name in self.slots}

    def waits(self, node: Node) -> list[str]:
        """Return which actors wait for which in a node's state, as the model says it, or else the untaken messages."""
        model = self.model
        if model.waits_for is not None:
            return list(model.waits_for(self.view_of(node)))
        state = self.state(node)
        return [
            f"{message.brief()} is never received"
            for address in model.addresses
            for inbox in model.inboxes[address]
            for message in inbox.network.contents(state[inbox.slot])
        ]

    def predicate(self, prop: Property, node: Node) -> Any:
        """Return what a property's check says of a node's state (why a temporal one is still pending; a witness)."""
        return self._predicate(prop).at(node.state).result

    def _predicate(self, prop: Property) -> ReadMemo:
        memo = self._predicates.get(prop.name)
        if memo is None:
            memo = self._predicates[prop.name] = ReadMemo(self, prop.leads_to or prop.reason)
        return memo

    def reach(self, node: Node, n: int, after: Node) -> tuple[str, ...]:
        """Return the witnesses that taking option n of a node reaches, and remember them."""
        option = node.options[n]
        if option.witnesses is None:
            option.witnesses = ReadMemo(self, partial(self._on_step, option.choice.step))
        names: frozenset[str] = option.witnesses.at(node.state).result
        if after.witnesses is None:
            after.witnesses = self._on_states.at(after.state)
        held = iter(after.witnesses)
        found = tuple([
            p.name for p in self.witnesses if (p.name in names if p.on == "step" else next(held).result)
        ])
        node.reached[n] = found
        return found

    def _on_step(self, step: Step, view: View) -> frozenset[str]:
        """Return the witnesses that a step is, after a state."""
        return frozenset([p.name for p in self.witnesses if p.on == "step" and p.check(view, step)])

    def happening(self, node: Node, n: int) -> Happening:
        """Return what option n of a node does, as a history says it."""
        option = node.options[n]
        edge = option.edge(node.state)
        if edge.happening is None:
            edge.happening = self._happened(option, edge, node)
        node.happenings[n] = edge.happening
        return edge.happening

    def _happened(self, option: Option, edge: Edge, node: Node) -> Happening:
        self.used += BYTES_PER_HAPPENING
        about = option.process, option.choice.step, edge.effects
        if self.tells:
            pairs = [(self.slots[slot], self.values[slot][node.state[slot]], self.values[slot][value])
                     for slot, value in edge.writes]
            return LongHappening(*about, lambda: {
                name: canonical_text(change(before, after)) for name, before, after in pairs})
        writes = {self.slots[slot]: self.texts[slot][value] for slot, value in edge.writes}
        self.used += sum(map(len, writes.values()))
        return Happening(*about, writes)

    def beginning(self, node: Node) -> Happening:
        """Return the first event of a history: every slot of an initial state."""
        known = self._initial.get(node.state)
        if known is None:
            writes = {name: canonical_text(self.value(node, name)) for name in self.slots}
            known = self._initial[node.state] = Happening(None, None, None, writes)
        return known

    def failing_text(self, node: Node) -> str:
        """Return the text of a history event that names the properties that fail in a node, and why."""
        if node.failing_text is None:
            node.failing_text = f',"violated":{canonical_text(FrozenMap(node.failing))}' if node.failing else ""
        return node.failing_text
