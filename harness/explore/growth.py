"""Which parts of a model's states keep growing: what makes a search endless, found on a few long walks.

A walk takes one step after the other in a fixed order, without chance. A number of a field that goes on taking new
values, or a collection that goes on getting longer, all the way through a long walk, has no bound that the model knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from harness.explore.model_memo import Remembered, Way
from harness.memo.interning import Ids
from harness.model import FrozenMap, Kind, Model, State, Value, parts
from harness.model.fresh import Number

STEPS = 1_000
WALKS = 24
QUARTERS = 4
NETWORK = ("inbox", "held", "discarded")
"""Variables whose slots hold messages: what grows in there does so since it grows where it was sent from."""
KNOWN = ("disk", *NETWORK)


@attrs.frozen
class Growing:
    """A part of a state that kept growing throughout a walk."""

    slot: str
    path: str
    """The slot with the fields that lead to it: `c1.next_correlation_id`; `[*]` is for the items of a collection."""
    what: str
    """`value` (a number), `size` (of a collection), or `values` (how many different ones)."""
    reached: int
    """The greatest value or size, or the number of values, at the end of the walk."""
    by: tuple[str, ...]
    """The actions that did it, the most frequent first."""
    sort: str = ""
    """For a number that the protocol declares as only compared: its sort."""


@attrs.define
class _GrowingPart:
    """A part of a state, as a walk sees it."""

    slot: str
    what: str
    sort: str = ""
    seen: set[Value] = attrs.Factory(set)
    news: list[int] = attrs.Factory(lambda: [0] * QUARTERS)
    """How many values, or greatest sizes, were new in each quarter of the walk."""
    by: dict[str, int] = attrs.Factory(dict)

    def note(self, value: int | str, quarter: int, action: str) -> None:
        """Take note of a value, or of a size, after a step."""
        if self.what == "size" and any(value <= greatest for greatest in self.seen):
            return
        if value not in self.seen:
            if self.what == "size":
                self.seen.clear()
            self.seen.add(value)
            self.news[quarter] += 1
            self.by[action] = self.by.get(action, 0) + 1


@attrs.frozen
class Growth:
    """What some walks saw: the parts that kept growing, and the timers that fired all the way through them."""

    parts: tuple[Growing, ...]
    timers: tuple[str, ...]


def growth(
    model: Model, frontier: Sequence[State] = (), gives_up: Callable[[], bool] = lambda: False
) -> Growth:
    """Walk through a model; return which parts of its states keep growing, those of messages only if no others do.

    Walks begin in an initial state, and in those of the `frontier`: which a search met and did not go on from. The
    first walk on which anything but messages grows is the last one; so is a walk after which the caller gives up.
    """
    found: dict[str, _GrowingPart] = {}
    timers: set[str] = set()
    begins = [None, *frontier]
    for number, begin in enumerate(begin for _ in range(WALKS // len(begins) + 1) for begin in begins):
        known = Remembered(model)  # of one walk: what keeps growing would fill the memory with all of them
        seen, fired = _walk(known, number, known.starts[0] if begin is None else known.intern(begin))
        grown = {path: part for path, part in seen.items() if all(part.news)}
        found |= grown
        timers |= fired if grown else set()
        if any(_is_cause(part) for part in grown.values()) or gives_up():
            break
    causes = {path: part for path, part in found.items() if _is_cause(part)}
    growing = [_growing(path, part) for path, part in (causes or found).items()]
    growing.sort(key=lambda each: (each.path.count(".") + each.path.count("["), -each.reached, each.path))
    return Growth(tuple(growing), tuple(sorted(timers)))


def _is_cause(part: _GrowingPart) -> bool:
    return parts(part.slot)[0] not in KNOWN


def _growing(path: str, part: _GrowingPart) -> Growing:
    numbers = [value for value in part.seen if isinstance(value, int)]
    reached = max(numbers) if numbers and part.what != "values" else len(part.seen)
    by = sorted((action for action in part.by if action), key=lambda action: (-part.by[action], action))
    return Growing(part.slot, path, part.what, reached, tuple(by), part.sort if part.what == "value" else "")


def _walk(known: Remembered, number: int, state: Ids) -> tuple[dict[str, _GrowingPart], set[str]]:
    """Take one walk; return what it saw of each part, and the timers that fired in its last quarter."""
    seen: dict[str, _GrowingPart] = {}
    taken: dict[str, int] = {}
    fired: set[str] = set()
    noted = [set[int]() for _ in known.slots]
    """The values of each slot that were met, by id: their parts are known."""
    changed = list(range(len(known.slots)))
    action = ""
    for step in range(STEPS):
        quarter = step * QUARTERS // STEPS
        for slot in changed:
            if state[slot] in noted[slot]:
                continue
            noted[slot].add(state[slot])
            for path, what, value, sort in parts_of(known.slots[slot], known.values[slot][state[slot]]):
                if (part := seen.get(path)) is None:
                    part = seen[path] = _GrowingPart(known.slots[slot], what, sort)
                part.note(value, quarter, action)
        in_turns = _in_turns(tuple(known.ways(state)), taken, number, step)
        ways = ((way, after) for way in in_turns if known.is_inside(after := way.follow(state)))
        way, after = next(ways, (None, state))
        if way is None:
            break
        taken[way.step.name] = step + 1
        action = way.step.action
        if way.step.kind is Kind.TIMER and quarter == QUARTERS - 1:
            fired.add(action)
        changed = [n for n in range(len(after)) if after[n] != state[n]]
        state = after
    return seen, fired


def _in_turns(ways: tuple[Way, ...], taken: dict[str, int], number: int, step: int) -> Iterable[Way]:
    """Return the steps, that to be taken first: the one not taken for the longest time; any, in turns; or one that was
    taken before.

    The third kind of walk stays in a circle that others leave, where one can go round for ever but need not.
    """
    kind, first = number % 3, number // 3
    if kind == 1:
        first = step * (2 * number + 5)
    first %= max(1, len(ways))
    in_turns = ways[first:] + ways[:first]
    if kind == 1:
        return in_turns
    return sorted(in_turns, key=lambda way: (kind == 2 and way.step.name not in taken, taken.get(way.step.name, 0)))


def parts_of(path: str, value: Value, sort: str = "") -> Iterator[tuple[str, str, int | str, str]]:
    """Yield the parts of a value that can grow: path, `value`, `size` or `values`, the number or text itself, and
    `sort`: that of the numbers of the field in which it stands, where they are declared as only compared."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        yield path, "value", value, sort
    elif isinstance(value, str):
        yield path, "values", value, sort
    elif isinstance(value, tuple | frozenset):
        yield path, "size", len(value), sort
        for item in value:
            yield from parts_of(f"{path}[*]", item, sort)
    elif isinstance(value, FrozenMap):
        yield path, "size", len(value), sort
        for key, item in value.items():
            if isinstance(key, str):
                yield from parts_of(f"{path}[{key}]", item, sort)
            else:
                yield from parts_of(f"{path}[*]", key, sort)
                yield from parts_of(f"{path}[*]", item, sort)
    elif attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            number: Number | None = field.metadata.get("number")
            yield from parts_of(f"{path}.{field.name}", getattr(value, field.name), number.sort if number else "")
