"""Ways in a spec: which of its actions lead from one of its states to another one, remembered for one model.

States are tuples of ids of the spec's tables. What a run of actors is in terms of the spec, `refinement` says.
"""

from __future__ import annotations

from contextlib import suppress
from operator import itemgetter
from traceback import extract_tb
from typing import Any

from harness.memo.interning import Ids, differences
from harness.model import Refinement
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables

MAX_REMEMBERED = 150_000
"""Steps between states of the spec that are remembered; beyond, they start over."""


class Unmapped(Exception):
    """The mapping gives no state of the spec: it failed, or what it gives has other slots, or cannot be."""


class SpecWays:
    """The ways between states of one spec that are met. `is_hasty`: see `between`."""

    def __init__(self, tables: Tables, refinement: Refinement, is_hasty: bool) -> None:
        self.tables = tables
        self.is_hasty = is_hasty
        """Whether a way is first looked for where one was found last, which does not show what else is possible."""
        self._refinement = refinement
        self._known: dict[tuple[Ids, Ids, frozenset[str]], tuple[str, ...] | None] = {}
        self._found: dict[tuple[Any, ...], dict[tuple[int, str], None]] = {}
        """Processes of the spec and actions that were ways, by the slots that changed and the processes excluded."""
        self.possible: set[str] = set()
        """The actions that the spec could take in the states that were left."""
        self._everyone = {process.name: n for n, process in enumerate(refinement.spec.everyone())}

    def forget(self) -> None:
        """Forget every way: the tables of the spec started over."""
        self._known.clear()

    def between(
        self, before: Ids | None, after: Ids, barred: frozenset[str] = frozenset(), most: int | None = None
    ) -> tuple[str, ...] | None:
        """Return the spec's actions that lead from one of its states to another one, or None if none do. Unmapped.

        Those that are barred do not count, nor do ways of more than `most` steps where that is given. From None, the
        state before the first, nothing leads to the initial states.
        """
        if before is None:
            return () if self.tables.starts_in(after) else None
        key = (before, after, barred)
        if key in self._known:
            return self._known[key]
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        if self.is_hasty and self._refinement.spec.constraint is None:
            hasty = self._hasty(before, after, barred)
            if hasty is not None:
                self._known[key] = hasty
                return hasty
        try:
            node = self.tables.node(before)
            self.possible.update([option.action for option in node.options])
            found = self._search(node, after, barred, most or self._refinement.steps)
        except Exception as error:
            raise Unmapped(f"the spec fails on the state before this step with {where(error)}") from error
        if found is not None or most is None:
            self._known[key] = found
        if self.is_hasty and found is not None and len(found) == 1:
            self._note(node, after, barred, found[0])
        return found

    def _hasty(self, before: Ids, after: Ids, barred: frozenset[str]) -> tuple[str, ...] | None:
        """Return a way of one step, if a process that made such a step before has one; None says nothing."""
        changed = differences(before, after)
        with suppress(Exception):  # a spec that fails is for the search to report
            for process, action in self._found.get((changed, barred), ()):
                for option in self.tables.options(process, before):
                    if option.action == action and leads(before, option, after):
                        return (action,)
        return None

    def _note(self, node: Node, after: Ids, barred: frozenset[str], action: str) -> None:
        """Note the spec's process that made a step."""
        before, changed = node.state, differences(node.state, after)
        for option in node.options:
            if option.action == action and leads(before, option, after):
                found = self._found.setdefault((changed, barred), {})
                found[self._everyone[option.process], action] = None
                return

    def left(self, most: int) -> list[Ids]:
        """Return states of the spec that ways led from, the latest last; at most so many."""
        return list(dict.fromkeys(before for before, _, _ in self._known))[-most:]

    def _search(self, node: Node, after: Ids, barred: frozenset[str], most: int) -> tuple[str, ...] | None:
        """Look for the shortest way, first without extension actions."""
        extensions = self._refinement.extensions
        for steps in range(1, most + 1):
            for left_out in (barred | extensions.keys(), barred) if extensions else (barred,):
                found = self._within(node, after, steps, left_out, set())
                if found is not None:
                    return found
        return None

    def _within(
        self, node: Node, after: Ids, steps: int, left_out: frozenset[str], tried: set[tuple[Ids, int]]
    ) -> tuple[str, ...] | None:
        """Return a way of exactly so many steps, the most promising options first; or None.

        `tried` has the states from which so many steps do not lead there: steps of a way may mostly change places.
        """
        options = [(n, option) for n, option in enumerate(node.options) if option.action not in left_out]
        if steps == 1:
            return next(((option.action,) for _, option in options if leads(node.state, option, after)), None)
        if (node.state, steps) in tried:
            return None
        tried.add((node.state, steps))
        near = []
        for n, option in options:
            reached = option.after(node.state)
            if reached != node.state:
                near.append((sum(a != b for a, b in zip(reached, after, strict=True)), n, option))
        for _, n, option in sorted(near, key=itemgetter(0, 1)):
            rest = self._within(self.tables.follow(node, n), after, steps - 1, left_out, tried)
            if rest is not None:
                return (option.action, *rest)
        return None


def leads(state: Ids, option: Option, after: Ids) -> bool:
    """Say whether an option leads from one state to another."""
    writes = option.edge(state).writes
    return all(after[slot] == value for slot, value in writes) and option.after(state) == after


def first_of(tables: Tables, state: Ids, way: tuple[str, ...], after: Ids) -> Option | None:
    """Return the option that begins a way of these actions from one state to another, or None."""
    for option in tables.node(state).options:
        if option.action == way[0]:
            rest = way[1:]
            if first_of(tables, option.after(state), rest, after) is not None if rest else leads(state, option, after):
                return option
    return None


def where(error: Exception) -> str:
    """Return an error in one line, with the place in the code that it comes from."""
    place = ""
    for frame in extract_tb(error.__traceback__)[-1:]:
        name = frame.filename.replace("\\", "/").rpartition("/")[2]
        place = f" ({name}, line {frame.lineno}, in {frame.name})"
    return f"{type(error).__name__}: {error}{place}"
