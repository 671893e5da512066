"""Holding runs of actors against their spec: is each step a step of the spec, a stutter, or neither?

A `Refiner` is made once for a model and judges many runs of it: what the mapping and the spec say is remembered as in
`harness.simulate.states.tables`, so that a step met before costs a look-up. A state here is a tuple of ids, one per
slot, valid within the refiner. `harness.model.refinement` says what a mapping is, `spec_ways` which actions lead from
one state of the spec to another one, `explanation` why a step is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

import attrs

from harness.memo.interning import Ids, written
from harness.model import Exchange, Message, Model, Refusal, Step, Value, parts, refinement_of
from harness.record import Event, History
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import Session
from harness.simulate.states.abstraction import Abstraction
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import Strategy
from harness.verify.linearization import Overlays, Taken
from harness.verify.spec_ways import MAX_REMEMBERED, SpecWays, Unmapped, where

MAX_GHOSTS = 50_000
"""Ghosts that are remembered; beyond, they start over between two runs."""
ROOM = 250_000_000
"""Bytes, by the estimate of the tables, after which those of the actors or of the spec start over, between two runs."""
WIDTH = 8
"""Bytes of a fingerprint."""


@attrs.frozen
class Failure:
    """The first step of a run that the spec does not allow."""

    step: int
    """Number of the step; 0 is the initial state."""
    action: str
    label: str
    """The actors' action, and the label of their step."""
    before: Ids | None
    """The abstract state before the step, as ids of the spec's tables; None for the initial state."""
    after: Ids | None
    """The abstract state after it; None if the mapping gave none."""
    problem: str | None = None
    """Why there is no abstract state."""


@attrs.frozen
class Refined:
    """What a run is in terms of the spec, up to the first step that is nothing there."""

    taken: tuple[tuple[str, ...], ...]
    """The spec's actions that each step of the run is; none for a stutter."""
    actions: Mapping[str, int]
    """How often each action of the spec was taken."""
    extensions: Mapping[str, int]
    """The same for the extension actions, each of which is there, used or not."""
    pairs: Mapping[tuple[str, str], int]
    """How often an action of the actors was which of the spec (`A and B` for two), the empty text for a stutter."""
    reached: frozenset[int]
    """Fingerprints of the spec's states that the run went through; the same in every process."""
    failure: Failure | None = None

    @property
    def steps(self) -> int:
        return len(self.taken)

    @property
    def stutters(self) -> int:
        return self.taken.count(())


@attrs.frozen
class Trace:
    """A run as a refiner takes it: the states, the first one included, and what led from each to the next."""

    states: Sequence[Ids]
    steps: Sequence[Taken]


class Refiner:
    """Judges runs of one model of actors. Raises Refusal if the model has no refinement."""

    def __init__(self, model: Model, tables: Tables | None = None, is_hasty: bool = False) -> None:
        refinement = refinement_of(model)
        if refinement is None:
            raise Refusal(f"{model.name} has no refinement: nothing says which spec its steps should follow")
        self.model = model
        self.tables = tables or Tables(model)
        """The tables of the actors. States of runs are their ids, so they start over between runs only."""
        self.tables.pinned = True
        self.refinement = refinement
        self.spec = attrs.evolve(self.refinement.spec, properties=())
        self.spec_tables = Tables(self.spec)
        self._served = self.refinement.served
        slots = enumerate(self.spec_tables.slots)
        self._given = [slot for slot, name in slots if parts(name)[0] in self.refinement.given]
        self._overlays = Overlays(self.tables)
        self._abstraction = Abstraction(self.tables, refinement, self._intern, MAX_REMEMBERED)
        self.ways = SpecWays(self.spec_tables, refinement, is_hasty)
        self._barred: dict[str, frozenset[str]] = {}
        self._prints: list[list[int]] = [[] for _ in self.spec_tables.slots]

    def make_room(self) -> None:
        """Forget what was learned where it takes too much memory. Ids and failures from before mean nothing then."""
        if self.tables.used >= ROOM:
            self.tables.start_over()
            self._overlays = Overlays(self.tables)
            self._abstraction.clear()
        if self.spec_tables.used >= ROOM:
            self.spec_tables.start_over()
            self.ways.forget()
            self._abstraction.clear()
            self._prints = [[] for _ in self.spec_tables.slots]
        if len(self._abstraction.ghosts) >= MAX_GHOSTS:
            self._abstraction.forget_ghosts()

    def close(self) -> None:
        """Let go of what was learned at once: nothing can be judged any more."""
        self.tables.close()
        self.spec_tables.close()
        self.ways.forget()
        self._abstraction.clear()

    def check(self, run: History | Iterable[Event]) -> Refined:
        """Judge a run given as a history read with its model, or as its events."""
        self.make_room()
        states: list[Ids] = []
        steps: list[Taken] = []
        for event in run.events if isinstance(run, History) else run:
            if states:
                steps.append(self.taken(event))
            states.append(state_after(self.tables, states[-1] if states else None, event))
        return self.judge(Trace(states, steps))

    def taken(self, event: Event) -> Taken:
        """Return an event as a step of a run."""
        return self._taken(event.process, event.action, event.label, event.received, event.sent, event.lost)

    def follow(self, session: Session) -> tuple[Run, Trace]:
        """Make a run with a session over this refiner's own tables; return it and what it was."""
        states, steps = [session.node.state], []
        while (n := session.decide()) >= 0:
            node = session.node
            after = session.follow(n)
            if after is None:
                break
            steps.append(self._taken_option(node, node.options[n]))
            states.append(after.state)
            session.took(n, after)
        return session.finish(), Trace(states, steps)

    def simulate(self, plan: Plan, strategy: Strategy) -> tuple[Run, Refined]:
        """Make one run on the plain runtime and judge it."""
        self.make_room()
        run, trace = self.follow(Session(self.tables, plan, strategy))
        return run, self.judge(trace)

    def _taken_option(self, node: Node, option: Option) -> Taken:
        if not self._served and self.refinement.told is None:
            return Taken(option.action, option.label)
        step = option.choice.step
        return self.taken_step(option.process, step, option.edge(node.state).effects.lost if step.sent else ())

    def taken_step(self, process: str, step: Step, lost: tuple[Message, ...]) -> Taken:
        """Return a step of the actors as a step of a run; `lost` is what it sent in vain."""
        return self._taken(process, step.action, step.label, step.consumed, step.sent, lost)

    def first_ghost(self) -> int:
        """Return the ghost before the first state."""
        return self._abstraction.first_ghost()

    def _taken(
        self, process: str, action: str, label: str, consumed: Message | None, sent: tuple[Message, ...],
        lost: tuple[Message, ...],
    ) -> Taken:
        """Return a step with those of its messages that are served responses, the one that it consumed if it got it."""
        served = self._served
        got = consumed if consumed is not None and consumed.dest == process else None
        exchange = Exchange(process, action, got, sent) if self.refinement.told is not None else None
        if not served:
            return Taken(action, label, exchange=exchange)
        return Taken(
            action, label, got if isinstance(got, served) else None,
            tuple(message for message in sent if isinstance(message, served) and message not in lost), exchange,
        )

    def judge(self, trace: Trace) -> Refined:
        """Say what each step of a run is in the spec, up to the first that is nothing."""
        states = self._overlays.seen(trace.states, trace.steps) if self._served else trace.states
        taken: list[tuple[str, ...]] = []
        reached: set[int] = set()
        failure = None
        before: Ids | None = None
        ghost = self.first_ghost()
        for n, state in enumerate(states):
            action, label = (trace.steps[n - 1].action, trace.steps[n - 1].label) if n else ("", "the initial state")
            try:
                after, ghost = self.abstract(state, ghost)
                start = before
                if before is not None:
                    start = self.begun(before, after, states[n - 1], trace.steps[n - 1])
                way = () if after == start else self.way(start, after, self.barred(action))
            except Unmapped as error:
                failure = Failure(n, action, label, before, None, str(error))
                break
            if way is None:
                failure = Failure(n, action, label, start, after)
                break
            if after != before:
                reached.add(self.fingerprint(after))
                before = after
            taken.append(way)
        return self._refined(trace, taken[1:], reached, failure)

    def begun(self, before: Ids, after: Ids, state: Ids, taken: Taken) -> Ids:
        """Return from where the spec takes a step: the state before it, with what its environment changed and says.

        `state` is the actors' state before the step. Raises Unmapped.
        """
        start = written(before, [(slot, after[slot]) for slot in self._given]) if self._given else before
        if taken.exchange is None or self.refinement.told is None:
            return start
        try:
            said = self.refinement.told(self.tables.view(state), taken.exchange)
            return written(start, [(self.spec_tables.index[name], self._number(name, said[name])) for name in said])
        except Exception as error:
            raise Unmapped(f"what the spec is told of this step fails with {where(error)}") from error

    def _number(self, name: str, value: Value) -> int:
        return self.spec_tables.number(self.spec_tables.index[name], value)

    def _refined(
        self, trace: Trace, taken: list[tuple[str, ...]], reached: set[int], failure: Failure | None
    ) -> Refined:
        judged = zip(trace.steps, taken, strict=False)
        pairs = Counter((step.action, " and ".join(way)) for step, way in judged)
        counts = Counter(action for way in taken for action in way)
        extensions = {name: counts.pop(name, 0) for name in sorted(self.refinement.extensions)}
        counted = dict(sorted(counts.items()))
        return Refined(tuple(taken), counted, extensions, dict(sorted(pairs.items())), frozenset(reached), failure)

    def abstract(self, state: Ids, ghost: int) -> tuple[Ids, int]:
        """Return the state of the spec that a state of the actors stands for, and the ghost after it. Unmapped."""
        try:
            return self._abstraction.at(state, ghost)
        except Unmapped:
            raise
        except Exception as error:
            raise Unmapped(f"the mapping fails on this state with {where(error)}") from error

    def _intern(self, slots: Mapping[str, Value]) -> Ids:
        tables = self.spec_tables
        if len(slots) != len(tables.slots) or any(name not in tables.index for name in slots):
            missing, odd = sorted(set(tables.slots) - set(slots)), sorted(set(slots) - set(tables.slots))
            said = [f"without {', '.join(missing[:4])}"] if missing else []
            said += [f"with {', '.join(odd[:4])}, which the spec has not"] if odd else []
            raise Unmapped(f"the mapping gives a state {' and '.join(said)}")
        ids = []
        try:
            for slot, name in enumerate(tables.slots):
                ids.append(tables.number(slot, slots[name]))
        except TypeError as error:
            raise Unmapped(f"the mapping gives something that is no value: {error}") from error
        return tuple(ids)

    def barred(self, action: str) -> frozenset[str]:
        """Return the actions of the spec that a step of the actors with this action may not be."""
        found = self._barred.get(action)
        if found is None:
            by = self.refinement.by
            found = self._barred[action] = frozenset(name for name, actions in by.items() if action not in actions)
        return found

    @property
    def possible(self) -> frozenset[str]:
        """The actions that the spec could take in the states that were left by judged steps."""
        return frozenset(self.ways.possible)

    def way(
        self, before: Ids | None, after: Ids, barred: frozenset[str] = frozenset(), most: int | None = None
    ) -> tuple[str, ...] | None:
        """Return the spec's actions that lead from one of its states to another one, as `SpecWays.between` does."""
        return self.ways.between(before, after, barred, most)

    def fingerprint(self, state: Ids) -> int:
        """Return a number that stands for a state of the spec, in every process the same."""
        total = 0
        for slot, value in enumerate(state):
            known = self._prints[slot]
            while len(known) <= value:
                known.append(self._print(slot, len(known)))
            total += known[value]
        return total % (1 << 8 * WIDTH)

    def _print(self, slot: int, value: int) -> int:
        text = f"{self.spec_tables.slots[slot]}={self.spec_tables.texts[slot][value]}"
        return int.from_bytes(blake2b(text.encode(), digest_size=WIDTH).digest(), "big")


def state_after(tables: Tables, before: Ids | None, event: Event) -> Ids:
    """Return the state after an event as ids of tables; before the initial one there is none."""
    state = list(before) if before is not None else [0] * len(tables.slots)
    for name, value in event.writes.items():
        slot = tables.index[name]
        state[slot] = tables.intern_value(slot, value)
    return tuple(state)
