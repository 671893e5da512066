"""All reachable states of a spec, as something that states can be looked up in."""

from __future__ import annotations

from harness.explore.packed.search import Search
from harness.model import Model, State

MOST = {"kernel": 2_000_000, "python": 200_000}
"""States after which a search is given up, by engine: what is reachable is then not known."""


class Reachable:
    """The states that a finished search has met."""

    def __init__(self, search: Search) -> None:
        loop = search.loop
        self._fields = search.space.layout.fields
        self._packed = {state for level in range(len(loop.sizes())) for state in loop.level(level)}

    def __len__(self) -> int:
        return len(self._packed)

    def has(self, state: State) -> bool:
        """Say whether a state, given by every slot, is reachable."""
        packed = 0
        for field in self._fields:
            value = field.known(tuple(state[name] for name in field.slots))
            if value is None:
                return False
            packed |= value << field.shift
        return packed in self._packed


def reachable(model: Model, engine: str = "auto", most: int | None = None) -> Reachable | None:
    """Return the reachable states of a spec model, or None if there are more than can be looked at."""
    search = Search(model, (), engine=engine)
    limit = MOST[search.engine] if most is None else most

    def look(distinct: int, generated: int, depth: int, queue: int) -> None:
        search.wants_stop = distinct > limit

    search.progress = look
    search.run()
    return None if search.interrupted or search.wants_stop else Reachable(search)
