"""How a state is packed into one integer: fields of interned values, each with a shift and a width.

A field holds one slot, or the inboxes of an address together with what it discarded (they change together). Values are
interned by their canonical text; ids are local to one search. A field that needs more ids than its width allows raises
`Overflow`, and the search starts over with wider fields (what was computed about values is kept).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from harness.model import Model, State, Value, View, canonical_text, parts, slot
from harness.model.improper import blamed

DIGITS = re.compile(r"\d+")
DIGIT = 30
"""Bits of a digit of Python's integers."""
ROOM = 1.4
"""How many times the bits that the fields need when they are given widths in pure Python."""
SLACK = 10
"""Bits that each field has for values not met yet while the search is only scouting."""
EACH = 2
"""Bits that each field is given besides, as one value may become four in the end."""


class Overflow(Exception):
    """A field has more values than fit into its width: nothing may be packed with it any more."""

    def __init__(self, field: PackedField) -> None:
        super().__init__(", ".join(field.slots))
        self.field = field


class PackedField:
    """One field of the packed state: the slots it holds, the values seen so far, where it stands."""

    __slots__ = ("bits", "ids", "low", "mask", "number", "shift", "slots", "texts", "values")

    def __init__(self, number: int, slots: tuple[str, ...]) -> None:
        self.number = number
        self.slots = slots
        self.values: list[tuple[Value, ...]] = []
        self.ids: dict[str, int] = {}
        self.texts: list[tuple[str, ...]] = []
        """The canonical texts of the slot values of each of `values`."""
        self.bits = 1
        self.shift = 0
        self.low = 1
        """The mask of the field's own bits, before the shift."""
        self.mask = 1
        """The mask of the field in the packed state."""

    def intern(self, values: tuple[Value, ...]) -> int:
        """Return the id of a tuple of slot values. Raises Overflow."""
        try:
            texts = tuple(map(canonical_text, values))
        except TypeError as error:
            raise blamed(error, zip(self.slots, values, strict=True)) from None
        return self._id(values, texts)

    def replaced(self, at: int, changes: Sequence[tuple[int, Value]]) -> int:
        """Return the id of the values of another id, some of them replaced, given by place. Raises Overflow."""
        values, texts = list(self.values[at]), list(self.texts[at])
        for place, value in changes:
            values[place] = value
            try:
                texts[place] = canonical_text(value)
            except TypeError as error:
                raise blamed(error, [(self.slots[place], value)]) from None
        return self._id(tuple(values), tuple(texts))

    def _id(self, values: tuple[Value, ...], texts: tuple[str, ...]) -> int:
        text = ",".join(texts)
        found = self.ids.get(text)
        if found is None:
            found = self.ids[text] = len(self.values)
            self.values.append(values)
            self.texts.append(texts)
        if found > self.low:
            raise Overflow(self)
        return found

    def known(self, values: tuple[Value, ...]) -> int | None:
        """Return the id of a tuple of slot values if it was met."""
        return self.ids.get(",".join(map(canonical_text, values)))

    def restore(self, values: list[tuple[Value, ...]], bits: int, shift: int) -> None:
        """Take over values with their ids, and a place in the packed state."""
        self.values = values
        self.texts = [tuple(map(canonical_text, each)) for each in values]
        self.ids = {",".join(texts): n for n, texts in enumerate(self.texts)}
        self.place(bits, shift)

    def place(self, bits: int, shift: int) -> None:
        """Give the field a place in the packed state, and a width."""
        self.bits, self.shift = bits, shift
        self.low = (1 << bits) - 1
        self.mask = self.low << shift


def _bits(field: PackedField) -> int:
    return max(len(field.values) - 1, 0).bit_length()


class PackedLayout:
    """The fields of a model's states.

    `together` names variables whose slots of one index share a field, where states would be too wide otherwise.
    """

    def __init__(self, model: Model, together: tuple[tuple[str, ...], ...] = ()) -> None:
        start = model.initial_states()[0]
        grouped: list[tuple[str, ...]] = []
        for address in model.addresses:
            channel = [inbox.slot for inbox in model.inboxes[address]]
            if model.history_variables:
                channel.append(slot("discarded", address))
            grouped.append(tuple(channel))
        taken = {name for group in grouped for name in group}
        of = {variable: group for group in together for variable in group}
        sharing: dict[tuple[str, ...], list[str]] = {}
        for name in sorted(start):
            if name not in taken:
                variable, *index = parts(name)
                sharing.setdefault((*of.get(variable, (variable,)), "", *index), []).append(name)
        grouped += [tuple(names) for names in sharing.values()]
        self.fields = tuple(PackedField(number, group) for number, group in enumerate(grouped))
        self.where = {name: (field, n) for field in self.fields for n, name in enumerate(field.slots)}
        self.channels = {address: self.fields[n] for n, address in enumerate(model.addresses)}
        self.alike: dict[tuple[str, ...], list[PackedField]] = {}
        """Fields of a spec that differ by numbers of names only: they will need as many bits as each other."""
        for field in self.fields:
            names = field.slots if model.actors else [DIGITS.sub("", name) for name in field.slots]
            self.alike.setdefault(tuple(names), []).append(field)
        self.fit(SLACK)

    def fit(self, slack: int) -> None:
        """Give every field the bits that its values need and some more, and stack them; forget no value.

        Fields with many values stand highest: they tell packed states apart soonest.
        """
        for field in self.fields:
            field.bits = max(1, _bits(field) + slack)
        self._stack()

    def _stack(self) -> None:
        shift = 0
        for field in sorted(self.fields, key=lambda field: (len(field.values), field.number)):
            field.place(field.bits, shift)
            shift += field.bits
        self.bits = shift

    def needed(self) -> int:
        """Return the bits that the fields need for the values met so far."""
        return sum(map(_bits, self.fields))

    def expected(self) -> int:
        """Return the bits that they will need once fields that are alike have met as many values as each other."""
        return sum(len(fields) * max(map(_bits, fields)) for fields in self.alike.values())

    def fit_digits(self) -> None:
        """Fit the fields into whole digits of Python's integers, with the room that they turned out to need later on.

        Channels grow most.
        """
        needed = [_bits(field) for field in self.fields]
        spare = -(-int(sum(needed) * ROOM + EACH * len(needed)) // DIGIT) * DIGIT - sum(needed)
        order = sorted(self.fields, key=lambda field: (field.number >= len(self.channels), -needed[field.number]))
        wishes = [*(order * EACH), *(order[: len(self.channels)] * 4)]
        while len(wishes) < spare:
            wishes += order
        for field, bits in zip(self.fields, needed, strict=True):
            field.bits = bits
        for field in wishes[:spare]:
            field.bits += 1
        self._stack()

    def fit_into(self, most: int) -> bool:
        """Fit the fields into so many bits, with as much room for more values as there is; say whether they fit."""
        needed = [_bits(field) for field in self.fields]
        spare = most - sum(needed)
        if spare < 0:
            return False
        bits = needed[:]
        for fields in self.alike.values():
            most_of = max(map(_bits, fields))
            for field in fields:
                more = min(most_of - needed[field.number], spare)
                bits[field.number] += more
                spare -= more
        for slack in (1, 1, 1, 2, 2, 4):
            for n in sorted(range(len(bits)), key=lambda n: (-needed[n], n)):
                more = slack if slack == 1 or needed[n] > 2 else 0
                if more <= spare:
                    bits[n] += more
                    spare -= more
        for field, width in zip(self.fields, bits, strict=True):
            field.bits = width
        self._stack()
        return True

    def wasteful(self, states: Sequence[int]) -> tuple[str, str] | None:
        """Return two variables whose slots of one index take fewer bits together, counted over some states; or None."""
        named = {field.slots: field for field in self.fields if field.number >= len(self.channels)}
        pairs: dict[tuple[str, str], int] = {}
        for one, other in combinations(sorted(named), 2):
            (a, *index), (b, *others) = parts(one[0]), parts(other[0])
            if index and index == others:
                f, g = named[one], named[other]
                seen = len({state & (f.mask | g.mask) for state in states})
                saved = _bits(f) + _bits(g) - (seen - 1).bit_length()
                pairs[a, b] = pairs.get((a, b), 0) + saved
        best = max(sorted(pairs), key=lambda pair: pairs[pair], default=None)
        return best if best is not None and pairs[best] > 0 else None

    def pack(self, state: State) -> int:
        """Return a state as one integer."""
        packed = 0
        for field in self.fields:
            packed |= field.intern(tuple(state[name] for name in field.slots)) << field.shift
        return packed

    def unpack(self, packed: int) -> dict[str, Value]:
        """Return a packed state as values."""
        return dict(PackedView(self, packed))

    def at(self, field: PackedField, packed: int) -> tuple[Value, ...]:
        """Return the slot values of one field of a packed state."""
        return field.values[(packed >> field.shift) & field.low]


class Look(View):
    """A view of a packed state: which slots are read is noted."""

    __slots__ = ("_packed", "_where")

    def __init__(self, layout: PackedLayout, packed: int) -> None:
        self._reads: dict[str, None] = {}
        self._where = layout.where
        self._packed = packed

    def __getitem__(self, name: str) -> Value:
        self._reads[name] = None
        field, n = self._where[name]
        return field.values[(self._packed >> field.shift) & field.low][n]


class PackedView(Mapping[str, Value]):
    """A packed state looked at as a mapping of slots."""

    __slots__ = ("_layout", "_packed")

    def __init__(self, layout: PackedLayout, packed: int) -> None:
        self._layout = layout
        self._packed = packed

    def __getitem__(self, name: str) -> Value:
        field, n = self._layout.where[name]
        return field.values[(self._packed >> field.shift) & field.low][n]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.where)

    def __len__(self) -> int:
        return len(self._layout.where)
