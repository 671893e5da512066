"""States up to names and numbers that do not matter: one state stands for all that a renaming makes of it.

Numbers that a protocol declares as only compared (`harness.model.fresh`) are closed up: within a namespace the least of
them becomes 1, the next one 2, and so on. Order is kept, and with it equality, so that a state and the one that stands
for it take the same steps to states that a renaming leads to each other; what is new is greater than all either way.
Interchangeable names are exchanged in every way; of the images, closed up, the least stands for all. The state that
stands for a class is the same whichever of the class is asked about: the quotient is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.explore.reduction.symmetry import Renaming, rename, renamed_slot, renamings
from harness.memo.interning import Ids, SlotValues
from harness.model import Model, Value
from harness.model.fresh import Namespace, NumberSlots, in_order, networks

Numbers = tuple[tuple[Namespace, int], ...]
"""The declared numbers of a value that are not special, in order."""


class Quotient:
    """Finds the state that stands for a state's class; `numbers` and `names` say what is renamed."""

    def __init__(self, model: Model, of: SlotValues, *, numbers: bool, names: bool) -> None:
        if numbers and model.auxiliary:
            raise ValueError("what an auxiliary variable holds is not declared, so that numbers in it are not renamed")
        self._closed = ClosedNumbers(model, of) if numbers else None
        self.images = name_images(model, of) if names else []

    def least(self, state: Ids) -> Ids:
        """Return the state that stands for the class of a state."""
        close = self._closed.close if self._closed is not None else _same
        best = close(state)
        for image in self.images:
            other = close(image.of(state))
            if other < best:
                best = other
        return best


def _same(state: Ids) -> Ids:
    return state


def ranks(numbers: Iterable[int]) -> dict[int, int]:
    """Return for each of some numbers of a namespace which takes its place: from 1, without gaps, in their order."""
    return {number: rank for rank, number in enumerate(sorted(numbers), 1)}


class ClosedNumbers:
    """Closes the gaps between declared numbers of states."""

    def __init__(self, model: Model, of: SlotValues) -> None:
        self._of = of
        self._slots = NumberSlots(model)
        self._signs: list[dict[int, int]] = [{} for _ in of.slots]
        """Of each slot's values, by id: the number of what declared numbers it has."""
        self._numbers: list[Numbers] = []
        self._known: dict[Numbers, int] = {}
        self._plans: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        """By the signs of all slots: which slots change, and by which renaming."""
        self._renamings: list[dict[tuple[Namespace, int], int]] = []
        self._by_items: dict[tuple[tuple[tuple[Namespace, int], int], ...], int] = {}
        self._images: dict[tuple[int, int, int], int] = {}

    def close(self, state: Ids) -> Ids:
        """Return a state with its numbers closed up."""
        signs = tuple([
            known[value] if value in known else self._sign(n, value)
            for n, (known, value) in enumerate(zip(self._signs, state, strict=True))
        ])
        plan = self._plans.get(signs)
        if plan is None:
            plan = self._plan(signs)
        if not plan:
            return state
        after = list(state)
        for n, renaming in plan:
            image = self._images.get((n, renaming, state[n]))
            after[n] = self._image(n, renaming, state[n]) if image is None else image
        return tuple(after)

    def _sign(self, n: int, value: int) -> int:
        found: set[tuple[Namespace, int]] = set()

        def note(where: Namespace, number: int) -> int:
            found.add((where, number))
            return number

        self._slots.renamed(self._of.slots[n], self._of.values[n][value], note)
        numbers = tuple(sorted(found))
        if numbers not in self._known:
            self._known[numbers] = len(self._numbers)
            self._numbers.append(numbers)
        sign = self._signs[n][value] = self._known[numbers]
        return sign

    def _plan(self, signs: tuple[int, ...]) -> list[tuple[int, int]]:
        """Work out what closing up does to states with these numbers."""
        there: dict[Namespace, set[int]] = {}
        for sign in signs:
            for where, number in self._numbers[sign]:
                there.setdefault(where, set()).add(number)
        places = {
            (where, number): place
            for where, numbers in there.items() if min(numbers) > 0  # negative ones are compared with those that stay
            for number, place in ranks(numbers).items()
        }
        plan = []
        for n, sign in enumerate(signs):
            changes = {key: place for key in self._numbers[sign] if (place := places.get(key, key[1])) != key[1]}
            if changes:
                plan.append((n, self._renaming(changes)))
        self._plans[signs] = plan
        return plan

    def _renaming(self, changes: dict[tuple[Namespace, int], int]) -> int:
        items = tuple(changes.items())
        if items not in self._by_items:
            self._by_items[items] = len(self._renamings)
            self._renamings.append(changes)
        return self._by_items[items]

    def _image(self, n: int, renaming: int, value: int) -> int:
        of, changes = self._of, self._renamings[renaming]
        after = self._slots.renamed(
            of.slots[n], of.values[n][value], lambda where, number: changes.get((where, number), number)
        )
        found = self._images[n, renaming, value] = of.number(n, after)
        return found


class NameImage:
    """What one renaming of interchangeable names makes of states."""

    def __init__(self, model: Model, of: SlotValues, names: Renaming) -> None:
        self._of = of
        self.names = names
        self._networks = networks(model)
        self.targets = [of.index[renamed_slot(name, names)] for name in of.slots]
        """The slot that each slot becomes."""
        self._ids: list[dict[int, int]] = [{} for _ in of.slots]

    def of(self, state: Ids) -> Ids:
        """Return the image of a state."""
        after = list(state)
        for n, (known, value) in enumerate(zip(self._ids, state, strict=True)):
            image = known.get(value)
            after[self.targets[n]] = self._image(n, value) if image is None else image
        return tuple(after)

    def _image(self, n: int, value: int) -> int:
        found = self._ids[n][value] = self._of.number(self.targets[n], self.renamed(n, self._of.values[n][value]))
        return found

    def renamed(self, n: int, value: Value) -> Value:
        """Return what a value of a slot becomes, in the slot that this one becomes."""
        slots = self._of.slots
        return in_order(slots[self.targets[n]], rename(value, self.names), self._networks.get(slots[n]))


def name_images(model: Model, of: SlotValues) -> list[NameImage]:
    """Return all renamings of interchangeable names and their companions, but for the one that changes nothing."""
    return [NameImage(model, of, with_companions(model, names)) for names in renamings(interchangeable(model)) if names]


def with_companions(model: Model, names: Renaming) -> Renaming:
    """Return a renaming that renames what goes with a name, too."""
    found = dict(names)
    for one, other in names.items():
        found |= dict(zip(model.companions.get(one, ()), model.companions.get(other, ()), strict=True))
    return found


def interchangeable(model: Model) -> tuple[tuple[str, ...], ...]:
    """Return the sets of names that a model declares interchangeable, as far as its faults and links treat them alike.
    """
    faults = model.faults
    singled = {name for pair in faults.links for name in pair} | {name for timed in faults.timed for name in timed.who}
    singled |= {name for rule in faults.rules for name in (rule.source, rule.dest)}
    found = []
    for group in model.symmetric:
        for targeted in (True, False):
            same = tuple(name for name in group if (name in faults.targets) is targeted and name not in singled)
            if len(same) > 1 and _links_alike(model, same):
                found.append(same)
    return tuple(found)


def _links_alike(model: Model, names: Sequence[str]) -> bool:
    links = _linked(model, {})
    return all(_linked(model, {one: names[0], names[0]: one}) == links for one in names[1:])


def _linked(model: Model, names: Renaming) -> frozenset[tuple[str, str, str]]:
    kinds: Iterable[tuple[str, str, str]] = (
        (names.get(link.source, link.source), names.get(link.dest, link.dest),
         link.network.name if link.network is not None else "")
        for link in model.links
    )
    return frozenset(kinds)
