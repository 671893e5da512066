"""Shrinking: from a failing trail to a short one that violates the same property.

Choices are dropped in ever smaller chunks (delta debugging), those of faults and of single processes first as a whole.
A violated invariant is then looked for breadth-first: among the steps that the trail has, in any order, and among all
steps; where that search is complete below the length found, the trail is proved shortest. Last, sizes are reduced where
the choices still fit. A fair ending is made afresh for each candidate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import attrs

from harness.model import Model, Refusal
from harness.record import Chosen, Trail
from harness.simulate.runs.protocol_errors import RAISED, is_same
from harness.simulate.runs.run import Run
from harness.simulate.states.nodes import Node
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import try_choices

T = TypeVar("T")
Choices = tuple[Chosen, ...]
SEARCHED = 20_000
"""States that the search for a shorter violation looks at before it gives up."""
PAIRED = 40
"""Choices of a trail from which pairs are dropped, where only a replay can tell whether they may be."""


@attrs.frozen
class Shrunk:
    """The result of shrinking: the shorter trail, and how many steps (before a fair ending) it had and has."""

    trail: Trail
    had: int
    has: int
    tried: int
    proved: bool = False
    """Whether a complete search at these sizes found no shorter one."""


def perturbing_part(trail: Trail) -> tuple[Chosen, ...]:
    """Return the choices of a trail without its fair ending."""
    return tuple(trail.choices[: trail.fair_from])


def shrink(
    trail: Trail, violates: str | None = None, tables: Tables | None = None, *, keep_sizes: bool = False,
    most_steps: float = math.inf,
) -> Shrunk:
    """Return a minimal trail that violates the same property. Raises Refusal if the trail violates nothing.

    Sizes are reduced, too, unless they are to be kept. Where tries have come to `most_steps` steps, the shortest trail
    so far is returned.
    """
    given = tables
    tables = tables or Tables(trail.build())
    target = violates or trail.violates
    if target is None:
        raise Refusal("the trail violates nothing, so there is nothing to shrink")
    judged = trail if target == RAISED else attrs.evolve(trail, claims=(target,))
    search = _Search(tables, judged, target, most_steps)
    first = search.attempt(perturbing_part(trail))
    if first is None:
        raise Refusal(f"the trail does not violate {target} when it is replayed, so it cannot be shrunk")
    best, tried = first, 0
    proved = False
    while True:
        best = search.minimize(best)
        smaller = best if keep_sizes else _smaller_sizes(best, target)
        if smaller is best:  # searched for at the smallest size, where there are the fewest states
            minimal = best
            best, proved = search.shortest(best)
            smaller = best if keep_sizes or best is minimal else _smaller_sizes(best, target)
            if smaller is best:
                break
        best, tried = smaller, tried + search.tried
        if search.tables is not given:
            search.tables.close()
        search = _Search(Tables(best.trail.build()), best.trail, target, search.left)
    if search.tables is not given:
        search.tables.close()
    claims = trail.claims if target in (*trail.claims, RAISED) else (*trail.claims, target)
    had, has = len(perturbing_part(trail)), len(perturbing_part(best.trail))
    return Shrunk(attrs.evolve(best.trail, claims=claims, violates=target), had, has, tried + search.tried, proved)


class _Search:
    """Candidates that were tried on one model."""

    def __init__(self, tables: Tables, trail: Trail, target: str, left: float) -> None:
        self.left = left
        """Steps that may still be tried."""
        self.tables = tables
        self.trail = trail
        self.target = target
        self.tried = 0
        self._raised: str | None = None
        """The exception that the first run ended with: another one is another finding."""

    def attempt(self, choices: tuple[Chosen, ...]) -> Run | None:
        """Return the run of the choices that fit, if it violates the property."""
        if self.left <= 0:
            return None
        self.tried += 1
        self.left -= len(choices)
        run = try_choices(self.tables, self.trail, choices)
        if run.verdict.violated != self.target:
            return None
        if self.target == RAISED:
            self._raised = self._raised or run.verdict.reason
            return run if is_same(run.verdict.reason, self._raised) else None
        return run

    def minimize(self, run: Run) -> Run:
        """Drop kinds, then processes, then ever smaller chunks, then again while anything got shorter."""
        while True:
            size = len(perturbing_part(run.trail))
            run = self._without_groups(run)
            run = _without_chunks(run, _choices_of, self.attempt)
            run = _without_pairs(run, _choices_of, self.attempt)
            if len(perturbing_part(run.trail)) == size:
                return run

    def _without_groups(self, run: Run) -> Run:
        groups = _groups(self.tables.model)
        for belongs in groups:
            choices = perturbing_part(run.trail)
            kept = tuple(chosen for chosen in choices if not belongs(chosen.label))
            if len(kept) < len(choices) and (found := self.attempt(kept)) is not None:
                run = _shorter(run, found)
        return run

    def shortest(self, run: Run) -> tuple[Run, bool]:
        """Look breadth-first for a shorter violation of an invariant; say whether the result is proved shortest.

        What could be given from outside is without bound, so nothing is proved where the run needs input.
        """
        has_input = any(chosen.input is not None for chosen in run.trail.choices)
        if run.trail.fair_from is not None or run.verdict.kind != "safety" or has_input:
            return run, False
        names = {chosen.label.split(" ")[0] for chosen in run.trail.choices}
        for allowed in (names, None):
            found, complete = self._breadth_first(run.trail.initial, len(run.trail.choices), allowed)
            if found is not None and (shorter := self.attempt(found)) is not None:
                run = _shorter(run, shorter)
            if allowed is None and complete:
                return run, True
            if not complete:  # among more steps it would come less far
                break
        return run, False

    def _breadth_first(
        self, initial: int, limit: int, allowed: set[str] | None
    ) -> tuple[tuple[Chosen, ...] | None, bool]:
        """Return the choices to the nearest violation in fewer than `limit` steps, and whether the search got there.

        `allowed` keeps to steps of these names; None allows all. At most `SEARCHED` states are looked at: a level that
        would not fit, as the levels have grown so far, is not begun.
        """
        start = self.tables.start(initial)
        came: dict[tuple[int, ...], tuple[tuple[int, ...], Chosen] | None] = {start.state: None}
        before, level = 1, [start]
        for _ in range(limit - 1):
            if len(came) + len(level) * len(level) // before > SEARCHED:
                return None, False
            before, following = len(level), list[Node]()
            for node in level:
                for n, option in enumerate(node.options):
                    if allowed is not None and option.label.split(" ")[0] not in allowed:
                        continue
                    try:
                        after = self.tables.follow(node, n)
                    except Exception:  # protocol code fails there, which is another finding
                        continue
                    if after.state in came:
                        continue
                    came[after.state] = (node.state, option.chosen)
                    if after.failing is not None and self.target in after.failing:
                        return _labels_to(after.state, came), True
                    following.append(after)
                    if len(came) > SEARCHED:
                        return None, False
            if not following:
                break
            level = following
        return None, True


def shrink_while(tables: Tables, trail: Trail, still: Callable[[Trail], Trail | None]) -> Trail:
    """Return a short trail on which `still` holds: it gets a candidate and returns the trail that fits, or None.

    Candidates claim no liveness, so that they end where their choices do, unless it takes a fair ending for `still`.
    """
    safety = tuple(name for name in trail.claims if tables.model.property(name).is_safety)
    best: Trail | None = None
    for claims in dict.fromkeys((safety, trail.claims)):
        if best is None:
            best = still(_candidate(attrs.evolve(trail, claims=claims), perturbing_part(trail)))
    if best is None:
        return trail
    begun = best

    def attempt(choices: Choices) -> Trail | None:
        return still(_candidate(begun, choices))

    before = None
    while before is None or len(best.choices) < len(before.choices):
        before = best
        best = _without_chunks(best, perturbing_part, attempt)
        best = _without_pairs(best, perturbing_part, attempt, PAIRED)
    return attrs.evolve(best, claims=trail.claims)


def _choices_of(run: Run) -> Choices:
    return perturbing_part(run.trail)


def _without_chunks(best: T, choices_of: Callable[[T], Choices], attempt: Callable[[Choices], T | None]) -> T:
    """Drop ever smaller chunks of choices; `attempt` returns the result of those that are kept, or None."""
    size = max(1, len(choices_of(best)) // 2)
    while size:
        at = 0
        while at < len(choices := choices_of(best)):
            found = attempt(choices[:at] + choices[at + size :])
            if found is not None and len(choices_of(found)) < len(choices):
                best = found
            else:
                at += size
        size //= 2
    return best


def _without_pairs(
    best: T, choices_of: Callable[[T], Choices], attempt: Callable[[Choices], T | None], most: float = math.inf
) -> T:
    """Drop pairs, of `most` choices or fewer: a request and its answer are only dispensable as two."""
    at = 0
    while at < len(choices := choices_of(best)) <= most:
        for other in range(at + 1, len(choices)):
            found = attempt(choices[:at] + choices[at + 1 : other] + choices[other + 1 :])
            if found is not None and len(choices_of(found)) < len(choices):
                best = found
                break
        else:
            at += 1
    return best


def _candidate(trail: Trail, choices: tuple[Chosen, ...]) -> Trail:
    return attrs.evolve(trail, choices=choices, fair_from=None, back_to=None)


def _labels_to(
    state: tuple[int, ...], came: dict[tuple[int, ...], tuple[tuple[int, ...], Chosen] | None]
) -> tuple[Chosen, ...]:
    labels: list[Chosen] = []
    while (step := came[state]) is not None:
        state, chosen = step
        labels.append(chosen)
    return tuple(reversed(labels))


def _shorter(one: Run, other: Run) -> Run:
    return other if len(perturbing_part(other.trail)) < len(perturbing_part(one.trail)) else one


def _is_alike(one: Run, other: Run) -> bool:
    """Say whether two runs end with the same exception, or both with none."""
    if one.error is None or other.error is None:
        return one.error is other.error
    return is_same(one.verdict.reason, other.verdict.reason)


def _groups(model: Model) -> list[Callable[[str], bool]]:
    """Return tests for groups of choices worth dropping as a whole: each fault and mending kind, each process."""
    actions = ("Drop", "Duplicate", "Delay", "Release", "Reconnect", "Partition", "Cut", "Heal", "Pause", "Resume",
               "Crash", "Restart", "SkewClock", "SetClock")

    def action(name: str) -> Callable[[str], bool]:
        return lambda label: label.startswith((f"{name}(", f"{name} "))

    def actor(name: str) -> Callable[[str], bool]:
        return lambda label: any(name == arg for arg in label.split(" ")[0].partition("(")[2].rstrip(")").split(","))

    return [action(name) for name in actions] + [actor(name) for name in model.addresses]


def _smaller_sizes(run: Run, target: str) -> Run:
    """Reduce each size as far as the same choices still fit and violate the property."""
    trail = run.trail
    for name in sorted(trail.sizes):
        while trail.sizes[name] > 0:
            sizes = {**trail.sizes, name: trail.sizes[name] - 1}
            candidate = attrs.evolve(trail, sizes=sizes)
            try:
                tables = Tables(candidate.build())
            except Exception:  # a Refusal, or a protocol that cannot be of this size
                break
            if candidate.initial >= tables.initial_count:
                break
            found = try_choices(tables, candidate, perturbing_part(candidate))
            tables.close()
            kept = len(perturbing_part(found.trail)) == len(perturbing_part(candidate))
            if found.verdict.violated != target or not kept or not _is_alike(run, found):
                break
            run, trail = found, found.trail
    return run
