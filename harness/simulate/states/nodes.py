"""Visited states as nodes, the options that each has, and what taking an option does; `tables` makes and links them."""

from __future__ import annotations

from collections.abc import Callable

from harness.memo.interning import Ids, SlotValues, written
from harness.memo.read_memo import Leaf, ReadMemo
from harness.model import Choice, Effects, Kind, View
from harness.record.choices import Chosen
from harness.record.events import Happening


class Option:
    """A choice as the tables know it: its label, and the memo of what it does."""

    __slots__ = (
        "_at", "_edge", "_edges", "action", "choice", "chosen", "is_timer", "key", "kind", "label", "message", "name",
        "process", "witnesses",
    )

    def __init__(self, of: SlotValues, choice: Choice, does: Callable[[View], Edge]) -> None:
        self.choice = choice
        self.label = choice.label
        self.process = choice.process
        self.name = choice.step.name
        self.action = choice.step.action
        self.kind = choice.step.kind
        self.is_timer = choice.step.kind is Kind.TIMER
        self.chosen = Chosen.of(choice.label, choice.step)
        """The choice as a trail keeps it, without a time."""
        self.message = message = choice.step.consumed
        self.key = f"{message.source}->{message.dest}" if message is not None else choice.process
        self._edges = ReadMemo(of, does)
        self._at: Ids | None = None
        self._edge: Edge
        """What it does in the state that was asked of last: a run that follows an option records it next."""
        self.witnesses: ReadMemo | None = None
        """The names of the witnesses on steps that taking it is, once asked for."""

    def edge(self, state: Ids) -> Edge:
        """Return what taking this choice does in a state."""
        if state is not self._at:
            self._edge, self._at = self._edges.at(state).result, state
        return self._edge

    def after(self, state: Ids) -> Ids:
        """Return the state that this choice leads to, without going there."""
        return written(state, self.edge(state).writes)


class Edge:
    """What a choice does, as ids, and as a history says it, once asked for."""

    __slots__ = ("effects", "happening", "writes")

    def __init__(self, writes: tuple[tuple[int, int], ...], effects: Effects) -> None:
        self.writes = writes
        self.effects = effects
        self.happening: Happening | None = None


class Questions:
    """A process as the tables ask it: for its own steps, for what may arrive, and how it takes each of that."""

    __slots__ = ("arrivals", "own")

    def __init__(self, own: ReadMemo, arrivals: ReadMemo | None) -> None:
        self.own = own
        self.arrivals = arrivals
        """Gives a memo of options per message; None if a process has no inbox."""

    def at(self, state: Ids) -> ProcessOptions:
        """Return what the process may do in a state."""
        own = self.own.at(state)
        if self.arrivals is None:
            return ProcessOptions(own, None, [])
        arrivals = self.arrivals.at(state)
        return ProcessOptions(own, arrivals, [delivery.at(state) for delivery in arrivals.result])

    def after(self, before: ProcessOptions, state: Ids, written: int) -> ProcessOptions:
        """Return the same, given what it may do in a state that differs from this one in a bit mask only."""
        own = self.own.at(state) if before.own.exact & written else before.own
        if before.arrivals is None or self.arrivals is None:
            return ProcessOptions(own, None, [])
        arrivals = self.arrivals.at(state) if before.arrivals.exact & written else before.arrivals
        known = dict(zip(before.arrivals.result, before.deliveries, strict=True))
        deliveries = []
        for delivery in arrivals.result:
            leaf = known.get(delivery)
            deliveries.append(delivery.at(state) if leaf is None or leaf.exact & written else leaf)
        return ProcessOptions(own, arrivals, deliveries)


class ProcessOptions:
    """What a process may do in a state: its options, and, as a bit mask, what they depend on."""

    __slots__ = ("arrivals", "deliveries", "mask", "options", "own")

    def __init__(self, own: Leaf, arrivals: Leaf | None, deliveries: list[Leaf]) -> None:
        self.own = own
        self.arrivals = arrivals
        self.deliveries = deliveries
        """In the order of what arrives."""
        mask = own.exact if arrivals is None else own.exact | arrivals.exact
        options: list[Option] = own.result
        for leaf in deliveries:
            mask |= leaf.exact
            options = options + leaf.result
        self.mask = mask
        self.options = options


class Node:
    """A visited state: its options, where they lead (as far as known), and which properties fail."""

    __slots__ = (
        "checks", "failing", "failing_text", "happenings", "options", "reached", "state", "succ", "units", "untimed",
        "untimed_options", "witnesses",
    )

    def __init__(
        self, state: Ids, options: list[Option], units: list[ProcessOptions], checks: list[Leaf],
        failing: dict[str, str] | None,
    ) -> None:
        self.state = state
        self.units = units
        """What each process may do, in the order of the model."""
        self.checks = checks
        """What each check of the invariants says."""
        self.witnesses: list[Leaf] | None = None
        """What each witness on states says, once asked for, of this state or of one before."""
        self.options = options
        self.succ: list[Node | None] = [None] * len(options)
        self.happenings: list[Happening | None] = [None] * len(options)
        """What taking each option does, as a history says it, once asked for."""
        self.reached: list[tuple[str, ...] | None] = [None] * len(options)
        """The witnesses that taking each option reaches, once known."""
        self.untimed: list[int] | None = None
        """The places of the options without timers, where both kinds are there."""
        self.untimed_options: list[Option] = []
        untimed = [n for n, option in enumerate(options) if not option.is_timer]
        if 0 < len(untimed) < len(options):
            self.untimed = untimed
            self.untimed_options = [options[n] for n in untimed]
        self.failing = failing
        self.failing_text: str | None = None

    def find(self, label: str) -> int | None:
        """Return the index of the option with a label, or None."""
        return next((n for n, option in enumerate(self.options) if option.label == label), None)

    def with_options(self, options: list[Option]) -> Node:
        """Return a node of the same state, with nothing kept yet, with other options."""
        other = Node(self.state, options, self.units, self.checks, self.failing)
        other.failing_text, other.witnesses = self.failing_text, self.witnesses
        return other
