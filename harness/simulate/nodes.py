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
        """What it does in the state that was asked of last: whoever follows an option records it next."""
        self.witnesses: ReadMemo | None = None
        """The names of the witnesses on steps that taking it is, once somebody has asked."""

    def edge(self, state: Ids) -> Edge:
        """Return what taking this choice does in a state."""
        if state is not self._at:
            self._edge, self._at = self._edges.at(state).result, state
        return self._edge

    def after(self, state: Ids) -> Ids:
        """Return the state that this choice leads to, without going there."""
        return written(state, self.edge(state).writes)


class Edge:
    """What a choice does, as ids, and as a history says it, once somebody has asked."""

    __slots__ = ("effects", "happening", "writes")

    def __init__(self, writes: tuple[tuple[int, int], ...], effects: Effects) -> None:
        self.writes = writes
        self.effects = effects
        self.happening: Happening | None = None


class Node:
    """A visited state: its options, where they lead (as far as known), and which properties fail."""

    __slots__ = (
        "_checks", "_units", "failing", "failing_text", "happenings", "options", "reached", "state", "succ", "untimed",
        "untimed_options",
    )

    def __init__(
        self, state: Ids, units: list[tuple[list[Option], int]], checks: list[Leaf], failing: dict[str, str] | None
    ) -> None:
        self.state = state
        self._units = units
        self._checks = checks
        options: list[Option] = []
        for found, _ in units:
            options += found
        self.options = options
        self.succ: list[Node | None] = [None] * len(options)
        self.happenings: list[Happening | None] = [None] * len(options)
        """What taking each option does, as a history says it, once somebody has asked."""
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
        """Return a node of the same state, of which nothing is kept, with other options."""
        other = Node(self.state, [(options, 0)], self._checks, self.failing)
        other._units, other.failing_text = self._units, self.failing_text
        return other
