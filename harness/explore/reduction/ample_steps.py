"""Which steps of each state a search takes that leaves out orders of steps which make no difference.

`Order` says which steps are enough by what was seen so far. Here is what a search remembers of that: the actors whose
steps it took, so that the others can be taken after all where they were left out wrongly, and that it goes round in no
circle without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from harness.explore.model_memo import Way
from harness.explore.reduction.order import Order
from harness.memo.interning import Ids


class AmpleSteps:
    """The steps that one search takes, given the numbers of the states that it met.

    `stands_for` gives the state that stands for the class of one.
    """

    def __init__(self, order: Order, numbers: Mapping[Ids, int], stands_for: Callable[[Ids], Ids]) -> None:
        self._order = order
        self._numbers = numbers
        self._stands_for = stands_for
        self._inside: dict[int, int] = {}
        """By state, if steps were left out there: the actors whose steps were taken, as a mask."""
        self._next: dict[int, int] = {}
        """Of each such state: another one, to which a run without any of the steps taken can be moved. No circles."""
        self._chosen: tuple[int, Ids] | None = None
        """A state and the one that is next to it, until that one has a number."""
        self._version = -1

    def update(self) -> None:
        """Look anew at what properties read, before a level."""
        self._order.update()

    def dismiss(self, names: Iterable[str]) -> None:
        """Keep no more what some properties look at."""
        self._order.dismiss(names)

    def of(self, n: int, state: Ids, ways: list[Way]) -> list[Way]:
        """Return those of the steps from state n that are to be taken; `took` says that they were."""
        self._order.learn(state, ways)
        for choice in self._order.enough(state, ways):
            ahead = self._ahead(n, state, choice.keys)
            if ahead is not None:
                self._inside[n], self._chosen = choice.inside, (n, ahead)
                return choice.ways
        return ways

    def took(self) -> None:
        """Take note that the steps chosen last were taken: the states after them have numbers."""
        if self._chosen is not None:
            n, ahead = self._chosen
            self._next[n], self._chosen = self._numbers[ahead], None

    def left_out(self, visited: list[Ids], ways_from: Callable[[Ids], list[Way]]) -> Iterator[tuple[int, list[Way]]]:
        """Yield states, each with the steps from it that were left out wrongly by what is known now."""
        order = self._order
        order.update()
        if order.futures.version == self._version:
            return
        self._version = order.futures.version
        for n, inside in list(self._inside.items()):
            state = visited[n]
            ways = ways_from(state)
            del self._next[n]
            ahead = self._ahead(n, state, order.holds(state, ways, inside))
            if ahead is not None:
                self._next[n] = self._numbers[ahead]
            else:
                del self._inside[n]
                yield n, [way for way in ways if not order.takes(way, inside)]

    def _ahead(self, n: int, state: Ids, keys: list[Way]) -> Ids | None:
        """Return a state that one of some steps leads to, and from which the chosen steps do not lead back here."""
        for way in keys:
            after = self._stands_for(way.follow(state))
            at = self._numbers.get(after, n + 1)
            while at in self._next:
                at = self._next[at]
            if at != n:
                return after
        return None
