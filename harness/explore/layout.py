"""How a state is packed into one integer: fields of interned values, each with a shift and a width.

A field holds one slot, or the inbox of an address together with what it discarded (they change together). Values are
interned by their canonical text; ids are local to one search. A field that needs more ids than its width allows raises
`Overflow`, and the search starts over with wider fields (what was computed about values is kept).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.model import Model, State, Value, canonical_text, slot


class Overflow(Exception):
    """A field has more values than fit into its width."""


class Field:
    """One field of the packed state: the slots it holds, the values seen so far, where it stands."""

    __slots__ = ("bits", "ids", "low", "mask", "number", "shift", "slots", "values")

    def __init__(self, number: int, slots: tuple[str, ...]) -> None:
        self.number = number
        self.slots = slots
        self.values: list[tuple[Value, ...]] = []
        self.ids: dict[str, int] = {}
        self.bits = 1
        self.shift = 0
        self.low = 1
        """The mask of the field's own bits, before the shift."""
        self.mask = 1
        """The mask of the field in the packed state."""

    def intern(self, values: tuple[Value, ...]) -> int:
        """Return the id of a tuple of slot values. Raises Overflow."""
        text = canonical_text(values)
        found = self.ids.get(text)
        if found is None:
            found = self.ids[text] = len(self.values)
            self.values.append(values)
        if found > self.low:
            raise Overflow
        return found


class Layout:
    """The fields of a model's states."""

    def __init__(self, model: Model) -> None:
        start = model.initial_states()[0]
        grouped: list[tuple[str, ...]] = []
        for address in model.addresses:
            channel = [slot("inbox", address)]
            if model.history_variables:
                channel.append(slot("discarded", address))
            grouped.append(tuple(channel))
        taken = {name for group in grouped for name in group}
        grouped += [(name,) for name in sorted(start) if name not in taken]
        self.fields = tuple(Field(number, group) for number, group in enumerate(grouped))
        self.where = {name: (field, n) for field in self.fields for n, name in enumerate(field.slots)}
        self.channels = {address: self.fields[n] for n, address in enumerate(model.addresses)}
        self.fit(slack=2)

    def fit(self, slack: int) -> None:
        """Give every field the bits that its values need and some more, and stack them; forget no value.

        Fields with many values stand highest: they tell packed states apart soonest.
        """
        shift = 0
        for field in sorted(self.fields, key=lambda field: (len(field.values), field.number)):
            field.bits = max(1, (max(len(field.values), 1) - 1).bit_length() + slack)
            field.low = (1 << field.bits) - 1
            field.shift = shift
            field.mask = field.low << shift
            shift += field.bits
        self.bits = shift

    def pack(self, state: State) -> int:
        """Return a state as one integer."""
        packed = 0
        for field in self.fields:
            packed |= field.intern(tuple(state[name] for name in field.slots)) << field.shift
        return packed

    def unpack(self, packed: int) -> dict[str, Value]:
        """Return a packed state as values."""
        return dict(PackedView(self, packed))

    def at(self, field: Field, packed: int) -> tuple[Value, ...]:
        """Return the slot values of one field of a packed state."""
        return field.values[(packed >> field.shift) & field.low]


class PackedView(Mapping[str, Value]):
    """A packed state looked at as a mapping of slots."""

    __slots__ = ("_layout", "_packed")

    def __init__(self, layout: Layout, packed: int) -> None:
        self._layout = layout
        self._packed = packed

    def __getitem__(self, name: str) -> Value:
        field, n = self._layout.where[name]
        return field.values[(self._packed >> field.shift) & field.low][n]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.where)

    def __len__(self) -> int:
        return len(self._layout.where)
