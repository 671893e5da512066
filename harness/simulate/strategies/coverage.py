"""What a campaign of runs reached: actions, guards and their outcomes, states of the spec.

Where a model names a refinement, a visited state counts as the state of the spec that it stands for (responses count
when they are applied); else as itself. Guards are those that were evaluated in the visited states, to find out which
steps are possible there, whether or not the steps were taken: they are collected by the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import attrs

from harness.memo.interning import Ids, IdView
from harness.model import State, Value, canonical_text, refinement_of
from harness.record import Trail
from harness.simulate.states.abstraction import Abstraction
from harness.simulate.states.guards import Guard, guards_of
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import Strategy, Wrapped

KEY_BYTES = 8
"""Of a state's digest. Among 10 million states two are taken for one with a probability of 1 in 400,000."""
MOST_KEYS = 100_000
"""The most states to remember a digest of."""
UNMAPPED = bytes(KEY_BYTES)
"""The digest of all states that the mapping cannot translate to the spec's."""


@attrs.frozen(eq=False)
class KnownStates:
    """The reachable states of a spec at bounds for which a search has found them all."""

    count: int
    has: Callable[[State], bool]
    sizes: Mapping[str, int]


@attrs.define
class Gain:
    """What a run reached first: the steps after which there was a new state, or a new turn; the new guard outcomes."""

    states: list[int]
    turns: list[int]
    guards: int = 0

    def __bool__(self) -> bool:
        return bool(self.states or self.turns or self.guards)


class Coverage:
    """What the runs on some tables reached so far."""

    def __init__(self, tables: Tables, known: KnownStates | None = None) -> None:
        self.tables = tables
        self.known = known
        self.runs = 0
        self.steps = 0
        self.taken: dict[str, int] = {}
        """How often each action was taken."""
        self.offered: set[str] = set()
        """Actions that were possible in a visited state."""
        self.within = 0
        """Reached states that are among the known ones."""
        self.turns: dict[tuple[str, str, bytes], int] = {}
        """How often each turn was taken: process, action, and what any process may do after it (local states are of no
        use here: with all that is noted in them, every second step of a run at random leads to one that is new)."""
        model = tables.model
        self.refinement = refinement_of(model)
        self.unmapped = 0
        """Visited states that the mapping could not translate to the spec's; all count as one."""
        self._abstraction: Abstraction[bytes] | None = None
        if self.refinement is not None:
            self._abstraction = Abstraction(tables, self.refinement, _digest_of, MOST_KEYS)
        self.first: dict[bytes, int] = {}
        """The digest of each state that was reached, and the number of the run, from 1, that reached it first."""
        self._keys: dict[Ids, bytes] = {}
        """The same for states of a model that is no refinement, by their ids."""
        self._visited: set[object] = set()
        self._footprint: tuple[int, ...] = ()
        """What the mapping had read when the visited states were noted."""
        self._guards = 0
        self._renewals = tables.renewals
        self._at = self._ghost = 0
        self._gain = Gain([], [])

    @property
    def states(self) -> int:
        """How many distinct states were reached."""
        return len(self.first)

    def begin(self, start: Node) -> None:
        """Count a run, which begins in some state."""
        self.runs += 1
        self._at = 0
        self._gain = Gain([], [])
        self._ghost = self._abstraction.first_ghost() if self._abstraction is not None else 0
        if self._is_new(start):
            self._gain.states.append(0)

    def took(self, option: Option, node: Node) -> bool:
        """Count a step of the run, and the state after it; say whether there is anything new in it."""
        self.steps += 1
        self._at += 1
        self.taken[option.action] = self.taken.get(option.action, 0) + 1
        turn = (option.process, option.action, _possible(node))
        times = self.turns.get(turn, 0)
        self.turns[turn] = times + 1
        if not times:
            self._gain.turns.append(self._at)
        is_new = self._is_new(node)
        if is_new:
            self._gain.states.append(self._at)
        return is_new or not times

    def over(self) -> Gain:
        """Return what the run reached first."""
        guards = len(self.tables.guards.seen) if self.tables.guards is not None else 0
        self._gain.guards, self._guards = guards - self._guards, guards
        return self._gain

    def _is_new(self, node: Node) -> bool:
        """Note a visited state; say whether it is new."""
        key, ghost = self._key(node.state, self._ghost)
        place = self._place(node.state, self._ghost)
        if place not in self._visited:
            self._visited.add(place)
            self.offered.update(option.action for option in node.options)
            self.unmapped += key == UNMAPPED
        before, self._ghost = self._ghost, ghost
        if key in self.first:
            return False
        self.first[key] = self.runs
        if self.known is not None and key != UNMAPPED:
            self.within += self.known.has(self._values(node.state, before))
        return True

    def is_new_ahead(self, node: Node, option: Option) -> bool:
        """Say whether an option of the run's state leads to a state that was not reached yet.

        The run need not go there: what is possible in that state is not asked for, and no guard evaluated.
        """
        try:
            after = option.after(node.state)
        except Exception:  # no run went there, or it would have ended there; a run that does gets an error
            return True
        return self._key(after, self._ghost)[0] not in self.first

    def _place(self, state: Ids, ghost: int) -> object:
        """Return what a state's key depends on."""
        abstraction = self._abstraction
        if abstraction is None:
            return state
        if abstraction.footprint != self._footprint:  # the mapping has read slots that it did not read before
            self._footprint = abstraction.footprint
            self._visited.clear()
        return abstraction.key(state, ghost)

    def _key(self, state: Ids, ghost: int) -> tuple[bytes, int]:
        """Return the digest of what a state stands for after some ghost, and the ghost then."""
        if self.tables.renewals != self._renewals:
            self._forget()  # their ids mean something else now
        if self._abstraction is not None:
            try:
                return self._abstraction.at(state, ghost)
            except Exception:
                return UNMAPPED, ghost
        found = self._keys.get(state)
        if found is None:
            if len(self._keys) >= MOST_KEYS:
                self._keys.clear()
            found = self._keys[state] = _digest(self.tables.texts[slot][value] for slot, value in enumerate(state))
        return found, ghost

    def _forget(self) -> None:
        self._renewals = self.tables.renewals
        self._keys.clear()
        self._visited.clear()
        if self._abstraction is not None:
            self._abstraction.clear()

    def _values(self, state: Ids, ghost: int) -> State:
        """Return the state of the spec, or the model's own, that was reached."""
        if self._abstraction is None:
            return IdView(self.tables, state)
        return self._abstraction.mapped(self.tables.view(state), ghost)[0]

    def to_json(self) -> dict[str, Any]:
        """Return what was reached as a JSON object."""
        guards = self.tables.guards
        seen = guards.seen if guards is not None else set()
        one_way = guards.one_way() if guards is not None else ()
        known = self.known
        return {
            "runs": self.runs, "steps": self.steps,
            "actions": dict(sorted(self.taken.items())), "actions_never_taken": sorted(self.offered - set(self.taken)),
            "guards": len({guard for guard, _ in seen}), "guards_both_ways": len(seen) - len({g for g, _ in seen}),
            "guards_one_way": [
                {"file": guard.file, "line": guard.line, "guard": guard.text, "always": outcome}
                for guard, outcome in one_way
            ],
            "guards_not_evaluated": [str(guard) for guard in self.unseen()],
            "spec": self.refinement.spec.name if self.refinement is not None else self.tables.model.name,
            "refined": self.refinement is not None, "states": self.states,
            "unmapped": self.unmapped,
            "reachable": None if known is None else {
                "states": known.count, "reached": self.within, "sizes": dict(known.sizes),
                "percent": round(100 * self.within / known.count, 2),
            },
        }

    def unseen(self) -> tuple[Guard, ...]:
        """Return the guards that were not evaluated, in the files that hold guards that were."""
        if self.tables.guards is None:
            return ()
        seen = {guard for guard, _ in self.tables.guards.seen}
        return tuple(guard for guard in guards_of({guard.module for guard in seen}) if guard not in seen)


class Covered(Wrapped):
    """Another strategy, whose runs are counted."""

    def __init__(self, strategy: Strategy, coverage: Coverage) -> None:
        super().__init__(strategy)
        self._coverage = coverage

    def begin(self, tables: Tables, start: Node) -> None:
        super().begin(tables, start)
        self._coverage.begin(start)

    def took(self, option: Option, after: Node) -> None:
        super().took(option, after)
        self._coverage.took(option, after)

    def over(self, trail: Trail) -> None:
        super().over(trail)
        self._coverage.over()


def _digest(texts: Iterable[str]) -> bytes:
    return blake2b("\n".join(texts).encode(), digest_size=KEY_BYTES).digest()


def _possible(node: Node) -> bytes:
    """Return the digest of the actions that are possible in a state, by process."""
    return _digest(sorted({f"{option.process} {option.action}" for option in node.options}))


def _digest_of(slots: Mapping[str, Value]) -> bytes:
    return _digest(canonical_text(slots[name]) for name in sorted(slots))
