"""Checks that have not answered yet: asked once per combination of the values they read, looked up for no state."""

from __future__ import annotations

from collections.abc import Sequence

from harness.explore.packed.look_ups import LookUp

SAMPLED = 1_000
"""States by which it is decided which checks are asked together."""
FEW = 0.8
"""How many combinations of values, out of that many states, are few enough to do so."""


class SilentCheck:
    """A check that has not answered yet, the fields that it reads, and the combinations that it said nothing of."""

    def __init__(self, look_up: LookUp) -> None:
        self.look_up = look_up
        self.mask = 0
        for inner in look_up.everything():
            self.mask |= inner.mask
        self.asked: set[int] = set()

    def ask(self, states: Sequence[int]) -> bool:
        """Ask about what is new in some states; say whether there is an answer to any of them."""
        mask, asked = self.mask, self.asked
        fresh = {key: state for state in states if (key := state & mask) not in asked}
        answering = any([self._answers(state) for state in fresh.values()])
        if self.mask != mask:
            asked.clear()
            return self.ask(states)
        asked.update(fresh)
        return answering

    def _answers(self, state: int) -> bool:
        found = self.look_up.at(state)
        while found.children:
            (inner,) = found.children
            self.mask |= inner.mask
            found = inner.at(state)
        return bool(found.answers)


class SilentGroup:
    """Checks that have few combinations of values between them, and the combinations that none has an answer to."""

    def __init__(self, mask: int, members: list[SilentCheck]) -> None:
        self.mask = mask
        self.members = members
        self.asked: set[int] = set()

    def ask(self, states: Sequence[int]) -> list[LookUp]:
        """Ask about what is new in some states; return the checks that answer to any of them, and forget those."""
        mask, asked = self.mask, self.asked
        fresh = {key: state for state in states if (key := state & mask) not in asked}
        new = list(fresh.values())
        answering = [member for member in self.members if member.ask(new)]
        for member in self.members:
            self.mask |= member.mask
        self.members = [member for member in self.members if member not in answering]
        found = [member.look_up for member in answering]
        if self.mask != mask:
            asked.clear()
            return [*found, *self.ask(states)]
        asked.update(fresh)
        return found


def silent_groups(look_ups: Sequence[LookUp], states: Sequence[int]) -> list[SilentGroup]:
    """Put checks together that have few combinations of values between them in some states."""
    sample = states[:: max(1, len(states) // SAMPLED)]
    found: list[SilentGroup] = []
    for member in sorted(map(SilentCheck, look_ups), key=lambda member: -member.mask.bit_count()):
        into = next((group for group in found if not member.mask & ~group.mask), None)
        into = into or next((group for group in found if _are_few(group.mask | member.mask, sample)), None)
        if into is None:
            found.append(SilentGroup(member.mask, [member]))
        else:
            into.mask |= member.mask
            into.members.append(member)
    return found


def _are_few(mask: int, states: Sequence[int]) -> bool:
    return len({state & mask for state in states}) <= FEW * len(states)
