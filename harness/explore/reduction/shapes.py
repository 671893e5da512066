"""What actors' states and messages look like up to declared numbers and interchangeable names: small numbers for each.

A shape has the declared numbers of one slot, or of one message, closed up by themselves. States that a renaming leads
to each other have the same shapes, whichever of them stands for the others; where numbers are not renamed, each value
is a shape of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.explore.reduction.quotient import interchangeable, ranks, renamed_slot, with_companions
from harness.explore.reduction.symmetry import rename, renamings
from harness.memo.interning import Ids, SlotValues
from harness.model import Message, Model, Value, canonical_text
from harness.model.fresh import Namespace, NumberSlots, in_order, renamed_value
from harness.model.network import FIFO


class Shapes:
    """The shapes of a model's slots and messages; `numbers` and `names` say what is renamed."""

    def __init__(self, model: Model, of: SlotValues, *, numbers: bool, names: bool) -> None:
        self._of = of
        self._slots = NumberSlots(model) if numbers else None
        groups = interchangeable(model) if names else ()
        self.images = [with_companions(model, names) for names in renamings(groups) if names]
        """The renamings of names, but for the one that changes nothing."""
        self.targets = [[of.index[renamed_slot(name, names)] for name in of.slots] for names in self.images]
        """Of each renaming: the slot that each slot becomes."""
        self._fifo = {inbox.slot for mine in model.inboxes.values() for inbox in mine if inbox.network is FIFO}
        self._known: list[dict[int, int]] = [{} for _ in of.slots]
        self._values: list[list[Value]] = [[] for _ in of.slots]
        self._by_text: list[dict[str, int]] = [{} for _ in of.slots]
        self._image_of: dict[tuple[int, int, int], int] = {}
        self.messages: list[Message] = []
        self._messages: dict[Message, int] = {}
        self._message_texts: dict[str, int] = {}

    def of(self, n: int, value: int) -> int:
        """Return the shape of a slot's value, given by its id."""
        found = self._known[n].get(value)
        if found is None:
            found = self._known[n][value] = self._shape(n, self._of.values[n][value])
        return found

    def _shape(self, n: int, value: Value) -> int:
        if self._slots is not None:
            name, slots, there = self._of.slots[n], self._slots, _Noted()
            slots.renamed(name, value, there)
            value = slots.renamed(name, value, there.closed())
        text = canonical_text(value)
        found = self._by_text[n].get(text)
        if found is None:
            found = self._by_text[n][text] = len(self._values[n])
            self._values[n].append(value)
        return found

    def image(self, k: int, n: int, shape: int) -> int:
        """Return what renaming `k` makes of a shape of a slot: a shape of the slot that this one becomes."""
        key = (k, n, shape)
        found = self._image_of.get(key)
        if found is None:
            target, name = self.targets[k][n], self._of.slots[n]
            value = in_order(self._of.slots[target], rename(self._values[n][shape], self.images[k]), name in self._fifo)
            found = self._image_of[key] = self._shape(target, value)
        return found

    def message(self, message: Message) -> int:
        """Return the shape of a message."""
        found = self._messages.get(message)
        if found is None:
            closed = message
            if self._slots is not None:
                there = _Noted()
                renamed_value(message, there)
                closed = renamed_value(message, there.closed())
            text = canonical_text(closed)
            if text not in self._message_texts:
                self._message_texts[text] = len(self.messages)
                self.messages.append(closed)
            found = self._messages[message] = self._message_texts[text]
        return found

    def message_image(self, k: int, shape: int) -> int:
        """Return what renaming `k` makes of a shape of a message."""
        image: Message = rename(self.messages[shape], self.images[k])
        return self.message(image)


class _Noted:
    """A renaming that changes nothing and notes what there is."""

    def __init__(self) -> None:
        self._there: dict[Namespace, set[int]] = {}

    def __call__(self, where: Namespace, number: int) -> int:
        self._there.setdefault(where, set()).add(number)
        return number

    def closed(self) -> _Closed:
        """Return the renaming that closes up what was noted."""
        return _Closed({where: ranks(numbers) for where, numbers in self._there.items()})


class _Closed:
    def __init__(self, places: dict[Namespace, dict[int, int]]) -> None:
        self._places = places

    def __call__(self, where: Namespace, number: int) -> int:
        return self._places[where][number]


def placed(shapes: Sequence[int], targets: Sequence[int], order: Sequence[int]) -> Ids:
    """Return shapes of slots in another order of slots: `targets` says which slot each is of."""
    by_slot = dict(zip(targets, shapes, strict=True))
    return tuple([by_slot[n] for n in order])
