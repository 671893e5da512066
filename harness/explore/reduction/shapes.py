"""What actors' states and messages look like up to declared numbers and interchangeable names: small numbers for each.

A shape has the declared numbers of one slot, or of one message, closed up by themselves. States that a renaming leads
to each other have the same shapes, whichever of them stands for the others; where numbers are not renamed, each value
is a shape of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from harness.explore.reduction.quotient import name_images, ranks
from harness.explore.reduction.symmetry import rename
from harness.memo.interning import Ids, SlotValues
from harness.model import Message, Model, Value, canonical_text
from harness.model.fresh import Namespace, NumberSlots, Rename, renamed_value


class Shapes:
    """The shapes of a model's slots and messages; `numbers` and `names` say what is renamed."""

    def __init__(self, model: Model, of: SlotValues, *, numbers: bool, names: bool) -> None:
        self._of = of
        self._slots = NumberSlots(model) if numbers else None
        self.images = name_images(model, of) if names else []
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
            value = closed(partial(self._slots.renamed, self._of.slots[n], value))
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
            image = self.images[k]
            found = self._image_of[key] = self._shape(image.targets[n], image.renamed(n, self._values[n][shape]))
        return found

    def message(self, message: Message) -> int:
        """Return the shape of a message."""
        found = self._messages.get(message)
        if found is None:
            shape = message if self._slots is None else closed(partial(renamed_value, message))
            text = canonical_text(shape)
            if text not in self._message_texts:
                self._message_texts[text] = len(self.messages)
                self.messages.append(shape)
            found = self._messages[message] = self._message_texts[text]
        return found

    def message_image(self, k: int, shape: int) -> int:
        """Return what renaming `k` makes of a shape of a message."""
        image: Message = rename(self.messages[shape], self.images[k].names)
        return self.message(image)


def closed(renamed: Callable[[Rename], Any]) -> Any:
    """Return something with its declared numbers closed up by themselves; `renamed` renames the numbers in it."""
    there: dict[Namespace, set[int]] = {}

    def note(where: Namespace, number: int) -> int:
        there.setdefault(where, set()).add(number)
        return number

    renamed(note)
    places = {where: ranks(numbers) for where, numbers in there.items()}
    return renamed(lambda where, number: places[where][number])


def placed(shapes: Sequence[int], targets: Sequence[int], order: Sequence[int]) -> Ids:
    """Return shapes of slots in another order of slots: `targets` says which slot each is of."""
    by_slot = dict(zip(targets, shapes, strict=True))
    return tuple([by_slot[n] for n in order])
