"""Checks that have not answered yet: asked once per combination of the values they read, looked up for no state."""

from __future__ import annotations

from collections.abc import Sequence

from harness.explore.packed.look_ups import Stage

SAMPLED = 1_000
"""States by which it is decided which checks are asked together."""
FEW = 0.8
"""How many combinations of values, out of that many states, are few enough to do so."""


class Silent:
    """A check that has not answered yet, the fields that it reads, and the combinations that it said nothing of."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.mask = 0
        for inner in stage.everything():
            self.mask |= inner.mask
        self.heard: set[int] = set()

    def listen(self, states: Sequence[int]) -> bool:
        """Ask about what is new in some states; say whether there is an answer to any of them."""
        mask, heard = self.mask, self.heard
        fresh = {key: state for state in states if (key := state & mask) not in heard}
        loud = any([self._answers(state) for state in fresh.values()])
        if self.mask != mask:
            heard.clear()
            return self.listen(states)
        heard.update(fresh)
        return loud

    def _answers(self, state: int) -> bool:
        found = self.stage.at(state)
        while found.children:
            (inner,) = found.children
            self.mask |= inner.mask
            found = inner.at(state)
        return bool(found.answers)


class Silence:
    """Checks that have few combinations of values between them, and the combinations that none has an answer to."""

    def __init__(self, mask: int, members: list[Silent]) -> None:
        self.mask = mask
        self.members = members
        self.heard: set[int] = set()

    def listen(self, states: Sequence[int]) -> list[Stage]:
        """Ask about what is new in some states; return the checks that answer to any of them, and forget those."""
        mask, heard = self.mask, self.heard
        fresh = {key: state for state in states if (key := state & mask) not in heard}
        new = list(fresh.values())
        loud = [member for member in self.members if member.listen(new)]
        for member in self.members:
            self.mask |= member.mask
        self.members = [member for member in self.members if member not in loud]
        told = [member.stage for member in loud]
        if self.mask != mask:
            heard.clear()
            return [*told, *self.listen(states)]
        heard.update(fresh)
        return told


def silences(stages: Sequence[Stage], states: Sequence[int]) -> list[Silence]:
    """Put checks together that have few combinations of values between them in some states."""
    sample = states[:: max(1, len(states) // SAMPLED)]
    found: list[Silence] = []
    for member in sorted(map(Silent, stages), key=lambda member: -member.mask.bit_count()):
        into = next((silence for silence in found if not member.mask & ~silence.mask), None)
        into = into or next((silence for silence in found if _are_few(silence.mask | member.mask, sample)), None)
        if into is None:
            found.append(Silence(member.mask, [member]))
        else:
            into.mask |= member.mask
            into.members.append(member)
    return found


def _are_few(mask: int, states: Sequence[int]) -> bool:
    return len({state & mask for state in states}) <= FEW * len(states)
