"""Why a step of a run is no step of the spec: what changed, the nearest action, and the guard that keeps it away."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import attrs

from harness.memo.interning import Ids, differences
from harness.model import brief_value
from harness.simulate.states.nodes import Node, Option
from harness.verify.enabling import MANY, Asking, Attempt
from harness.verify.refinement import Failure, Refiner

FEW = 2
"""Steps of a way that an action of the actors may not be; longer ones would take long to look for."""
TRIED = 40
"""Instances of actions that are tried in the state where a run left the spec."""


@attrs.frozen
class Explanation:
    """The first step that the spec does not allow, and the nearest thing that it does."""

    step: int
    label: str
    changes: Mapping[str, tuple[str, str]]
    """The slots of the spec that the step changes: from what, to what."""
    nearest: str | None
    """The nearest action of the spec: its label."""
    why: tuple[str, ...]
    """Why that action is not this step, as sentences."""

    def lines(self, width: int = 100) -> list[str]:
        """Return the explanation as lines of text, none longer than `width` columns where words allow it."""
        said = [(0, f"step {self.step} is not a step of the spec: {self.label}")]
        said += [(4, f"{name}: {was} -> {now}") for name, (was, now) in self.changes.items()]
        if self.nearest is not None:
            said.append((2, f"nearest in the spec: {self.nearest}"))
        said += [(4, sentence) for sentence in self.why]
        return [line for indent, text in said for line in textwrap.wrap(
            text, width, initial_indent=" " * indent, subsequent_indent=" " * (indent + 4),
            break_on_hyphens=False, break_long_words=True,
        )]

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as a JSON object."""
        return {
            "step": self.step, "label": self.label, "nearest": self.nearest, "why": list(self.why),
            "changes": {name: {"from": was, "to": now} for name, (was, now) in self.changes.items()},
        }


def explain(refiner: Refiner, failure: Failure) -> Explanation:
    """Explain a failure that the refiner found."""
    if failure.after is None:
        return Explanation(failure.step, failure.label, {}, None, (failure.problem or "",))
    explainer = _Explainer(refiner)
    if failure.before is None:
        changes = explainer.changes(refiner.spec_tables.start(0).state, failure.after)
        return Explanation(failure.step, failure.label, changes, None, ("the spec does not start in this state",))
    changes = explainer.changes(failure.before, failure.after)
    way = refiner.way(failure.before, failure.after, most=FEW)
    if way is not None:
        why = explainer.barred(way, failure.action)
        return Explanation(failure.step, failure.label, changes, " and ".join(way), why)
    nearest, why = explainer.nearest(failure.before, failure.after, refiner.refinement.steps)
    return Explanation(failure.step, failure.label, changes, nearest, why)


class _Explainer:
    def __init__(self, refiner: Refiner) -> None:
        self.refiner = refiner
        self.tables = refiner.spec_tables
        self._asking = Asking(
            refiner.spec, refiner.spec_tables, lambda: refiner.ways.left(MANY), refiner.refinement.extensions
        )

    def changes(self, before: Ids, after: Ids) -> dict[str, tuple[str, str]]:
        """Return the slots in which two states differ, with both values as text."""
        return {
            self.tables.slots[slot]: (self._text(before, slot), self._text(after, slot))
            for slot in sorted(differences(before, after))
        }

    def _value(self, state: Ids, slot: int) -> Any:
        return self.tables.values[slot][state[slot]]

    def _text(self, state: Ids, slot: int) -> str:
        return brief_value(self._value(state, slot))

    def barred(self, way: tuple[str, ...], action: str) -> tuple[str, ...]:
        """Return which steps of a way this action of the actors may not be."""
        by = self.refiner.refinement.by
        return tuple(
            f"only {' or '.join(by[name])} may be {name}, and this step is {action}"
            for name in dict.fromkeys(way) if name in self.refiner.barred(action)
        )

    def nearest(self, before: Ids, after: Ids, steps: int) -> tuple[str | None, tuple[str, ...]]:
        """Return the nearest action of the spec, and why it does not lead from one state to the other."""
        wanted = differences(before, after)
        node = self.tables.node(before)
        writing = [(option, differences(before, option.after(before))) for option in node.options]
        same = self._closest([option for option, slots in writing if slots == wanted], before, after)
        if same is not None:
            sentences = self._differs(same, before, after)
            with_values = self._attempt(before, after, exact=True)
            if with_values is not None and all(self._value(after, slot) in with_values.given for slot in wanted):
                sentences = (*sentences, f"for {with_values.instance} {with_values.sentence}")
            return same.label, sentences
        part = self._part(node, after)
        if part is not None and steps > 1:
            between = part.after(before)
            rest, why = self.nearest(between, after, steps - 1)
            left = ", ".join(self.tables.slots[slot] for slot in sorted(differences(between, after)))
            both = f"{part.label} and {rest}" if rest else part.label
            return both, (f"{part.label} is part of it, but does not do this: {left}", *why)
        attempt = self._attempt(before, after, exact=True)
        if attempt is None:
            near = self._closest([option for option, slots in writing if slots & wanted], before, after)
            if near is not None and len(differences(near.after(before), after)) < len(wanted):
                return near.label, self._differs(near, before, after)
            attempt = self._attempt(before, after, exact=False)
        if attempt is None:
            return None, ("no known action of the spec writes these slots",)
        return attempt.instance, (attempt.sentence,)

    def _closest(self, options: list[Option], before: Ids, after: Ids) -> Option | None:
        """Return the first of the options that leave the fewest slots wrong."""
        return min(options, key=lambda o: len(differences(o.after(before), after)), default=None)

    def _part(self, node: Node, after: Ids) -> Option | None:
        """Return the possible option that does most of a step and nothing else."""
        wanted = differences(node.state, after)
        parts = []
        for option in node.options:
            reached = option.after(node.state)
            right = differences(node.state, reached)
            if right and right < wanted and all(reached[slot] == after[slot] for slot in right):
                parts.append((len(right), option))
        return max(parts, key=lambda found: found[0])[1] if parts else None

    def _differs(self, option: Option, before: Ids, after: Ids) -> tuple[str, ...]:
        reached = option.after(before)
        sentences = []
        for slot in sorted(differences(reached, after)):
            here, there = self._text(after, slot), self._text(reached, slot)
            sentences.append(f"it would leave {self.tables.slots[slot]} at {there}, this step leaves {here}")
        return tuple(sentences)

    def _attempt(self, before: Ids, after: Ids, exact: bool) -> Attempt | None:
        """Return the action that usually writes the slots that differ, in the instance that passes the most guards.

        Of those that pass equally many, the instance that is given the most of the values that are to be written.
        """
        wanted = differences(before, after)
        values = [self._value(after, slot) for slot in sorted(wanted)]
        scored = []
        for number, known in enumerate(self._asking.instances(before)):
            common = len(known.slots & wanted)
            if known.slots == wanted if exact else common:
                scored.append((-common / len(known.slots | wanted), number, known))
        scored.sort(key=lambda item: item[:2])
        best = [known for score, _, known in scored if score == scored[0][0]][:TRIED]
        attempts = [attempt for known in best for attempt in self._asking.attempts(known, before)]
        return max(attempts, key=lambda a: (a.passed, sum(value in a.given for value in values)), default=None)
