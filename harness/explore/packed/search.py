"""Exhaustive breadth-first search with exact counts: every reachable state once, level by level.

Counts are the TLA+ model checker's: `generated` is initial states plus one successor per way of every step, `depth` the
number of levels. A violation is found on the first level that has one, so its path is a shortest one. A search is a
number of attempts: `Search._attempt` says why one ended before the search was done, and `Search.run` what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from harness.explore.bounded import without_bounds
from harness.explore.checkpoint import Checkpoint, Saved, asked_of, fields_of
from harness.explore.machine import is_beyond
from harness.explore.packed import kernel, kernel_loop
from harness.explore.packed.footprints import Answer
from harness.explore.packed.layout import SLACK, Overflow
from harness.explore.packed.loop import DEADLOCK, Loop, LoopOptions
from harness.explore.packed.python_loop import PythonLoop
from harness.explore.packed.result import Progress, Result, Violation, first_path, ranked
from harness.explore.packed.space import Space
from harness.explore.reduction.symmetry import Symmetry
from harness.memo.interning import long_lived
from harness.model import Model, Refusal, State, parts

SCOUTED = 2_000
"""States after which the widths of the fields are chosen anew from what was met."""
RESERVE = 8
"""Bits that a kernel's states must have left while it is early, or else variables share fields at once."""
SAMPLED = 20_000
"""States of each level by which it is decided which variables share fields."""
ENGINES = ("auto", "python", "kernel")
FINGERPRINTS = 2**64


@attrs.frozen
class Restart:
    """Why an attempt ended before the search was done: a field met more values than its width has numbers."""

    slots: tuple[str, ...]
    """The slots of the field."""
    bits: int
    """How wide it was."""


@attrs.define
class Hit:
    """A property that answered: on which level first, and in which states of it."""

    kind: str
    depth: int
    states: list[int]


class Search:
    """One search; `run` does it. What it keeps serves to rebuild paths, and as a graph for temporal properties."""

    worker_cpu = 0.0
    """Seconds of other processes than this one."""

    def __init__(
        self, model: Model, invariants: tuple[str, ...], *, stop: bool = True, deadlock: bool = False,
        symmetry: bool = False, view: bool = False, witnesses: bool = False, fingerprints: bool = False,
        engine: str = "auto", threads: int = 1, states: int = 0, memory: int = 0,
        progress: Progress = lambda distinct, generated, depth, queue: None,
        checkpoint: Checkpoint | None = None, due: Callable[[], bool] = lambda: False,
    ) -> None:
        if symmetry and not model.symmetric:
            raise Refusal(f"{model.name} has no interchangeable names; leave --symmetry out")
        if symmetry and model.actors:
            raise Refusal(f"{model.name} has actors; only --engine plain reduces them by symmetry; give that engine")
        self.model = model
        chosen = [model.property(name) for name in invariants]
        if witnesses:
            chosen += [prop for prop in model.properties if prop.form == "sometimes"]
        self.kinds = {prop.name: "sometimes" if prop.form == "sometimes" else "invariant" for prop in chosen}
        self.chosen = tuple(chosen)
        self.together: tuple[tuple[str, ...], ...] = ()
        """Variables that share fields, see `PackedLayout`."""
        self.space = Space(model, self.chosen)
        self.symmetric = symmetry
        self.hides = _hides(model) if view else ()
        self.stop = stop
        self.deadlock = deadlock
        self.fingerprints = fingerprints
        self.threads = threads
        self.states = states
        """How many states are enough; 0: all."""
        self.memory = memory
        self.asked = asked_of(model, tuple(self.kinds), {
            "stop": stop, "deadlock": deadlock, "symmetry": symmetry, "view": view, "fingerprints": fingerprints
        })
        self.checkpoint = checkpoint
        self.saved = None if checkpoint is None else checkpoint.read(self.asked)
        self.due = due
        """Says when it is time for a checkpoint."""
        self.engine = self._engine(engine)
        self.progress = progress
        self.loop: Loop = PythonLoop(self.space, LoopOptions())
        self.starts: list[int] = []
        self.restarts: list[Restart] = []
        """Why the search was begun again, in order; empty if the first attempt was the last one."""
        self.hits: dict[str, Hit] = {}
        self.fresh: dict[str, Hit] = {}
        self.options = LoopOptions()
        self.reserve = RESERVE
        self.wants_stop = False
        """Set from outside, by a signal: the search stops where it can go on later."""
        self.interrupted = False
        self.limit: str | None = None
        """What ended the search early: `states` or `memory`, or the reason of the caller that set `wants_stop`."""

    def _engine(self, engine: str) -> str:
        if self.saved is not None:
            if engine not in ("auto", self.saved.engine):
                raise Refusal(f"the checkpoint was made by --engine {self.saved.engine}; go on with that")
            engine = self.saved.engine
        if engine == "python" or (engine == "auto" and (self.hides or not kernel.is_available())):
            return "python"
        if self.hides:
            raise Refusal("the kernel cannot search with a view that hides more than history; use --engine python")
        kernel.library()
        return "kernel"

    @long_lived()
    def run(self) -> Result:
        """Search until done, violated, interrupted, or at a limit."""
        if self.saved is None:
            self._scout()
            self._fit()
            restart = self._attempt(self._search)
        else:
            restart = self._attempt(partial(self._resume, self.saved))
        while restart is not None:
            self.restarts.append(restart)
            self._fit()
            restart = self._attempt(self._search)
        return self._result()

    def _attempt(self, work: Callable[[], None]) -> Restart | None:
        """Do some work on packed states; return why it has to be begun again with wider fields, None if it is done.

        This is the one place of the search where `Overflow` ends. Nothing of the work may be used after it; what is
        known about values stays, see docs/inside/search.md.
        """
        try:
            work()
        except Overflow as overflow:
            return Restart(overflow.field.slots, overflow.field.bits)
        return None

    def _scout(self) -> None:
        """Search a little, from the start, to learn how many values the fields have."""
        layout = self.space.layout
        self.space.sees_all_states = self.engine == "python"
        states = self.model.initial_states()

        def search() -> None:
            if not self.space.bases:
                self.space.start(layout.pack(states[0]))
            loop = PythonLoop(self.space, LoopOptions())
            loop.start([layout.pack(state) for state in states])
            while loop.levels[-1] and len(loop.seen) < SCOUTED:
                for _ in loop.expand(lambda answers, states: None):
                    pass
            self.loop = loop

        while self._attempt(search) is not None:
            layout.fit(SLACK)
            self.space.repack()

    def _fit(self) -> None:
        """Choose the widths of the fields; where a state does not fit the kernel's widest words, go on in Python.

        States of two words are the fastest, so that the variables of a spec share fields for it. Actors have few that
        could, and what a step does would have to be asked anew of all of them.
        """
        if self.engine == "kernel":
            widths = kernel_loop.BITS.values()
            enough = max(widths) if self.model.actors else min(widths)
            while self.space.layout.needed() > enough - self.reserve and self._share_fields():
                self._scout()
            if not self._fits():
                self.reserve = 0
                if not self._fits():
                    self.engine = "python"
        if self.engine == "python":
            self.space.layout.fit_digits()
        self.space.repack()

    def _fits(self) -> bool:
        """Fit the fields into the fewest of the kernel's words that leave the reserve; say whether any do."""
        layout, widths = self.space.layout, kernel_loop.BITS.values()
        wanted = layout.expected() if self.reserve else layout.needed()
        return any(wanted <= bits - self.reserve and layout.fit_into(bits) for bits in widths)

    def _share_fields(self) -> bool:
        """Let variables share fields, so that states get narrower; say whether any can."""
        loop = self.loop
        states = [state for number in range(len(loop.sizes())) for state in loop.sample(number, SAMPLED)]
        pair = self.space.layout.wasteful(states)
        if pair is None:
            return False
        joined = [group for group in self.together if not set(group) & set(pair)]
        merged = set(pair).union(*(group for group in self.together if set(group) & set(pair)))
        self.together = (*joined, tuple(sorted(merged)))
        self.space = Space(self.model, self.chosen, self.together)
        return True

    def _begin(self, orbits: Sequence[tuple[list[int], bool]] = ()) -> None:
        """Make the tables and the loop anew."""
        space = self.space
        self.hits.clear()
        self.fresh.clear()
        space.actions.clear()
        space.most = 0
        space.dismissed.clear()
        space.sees_all_states = self.engine == "python"
        space.arrange()
        symmetry = Symmetry(space.layout, self.model.symmetric, orbits) if self.symmetric else None
        hidden = sum(field.mask for field in space.layout.fields if parts(field.slots[0])[0] in self.hides)
        self.options = LoopOptions(
            symmetry, hidden, self.fingerprints, self.deadlock, self.threads, lambda: is_beyond(self.memory))
        if self.engine == "kernel":
            words = next(words for words, bits in kernel_loop.BITS.items() if space.layout.bits <= bits)
            self.loop = kernel_loop.KernelLoop(space, self.options, self._moved, self.reserve, words)
        else:
            self.loop = PythonLoop(space, self.options)
        self.starts = [space.layout.pack(state) for state in self.model.initial_states()]

    def _search(self) -> None:
        """Search from the start. Raises Overflow."""
        self._begin()
        self.loop.start(self.starts)
        self._levels()

    def _resume(self, saved: Saved) -> None:
        """Go on from a checkpoint. Raises Overflow if that needs wider fields than it has."""
        from harness.record.history import all_types

        assert self.checkpoint is not None
        self.together = tuple(tuple(group) for group in saved.together)
        self.space = Space(self.model, self.chosen, self.together)
        layout = self.space.layout
        self.checkpoint.restore_layout(saved, layout, {cls.__name__: cls for cls in all_types(self.model)})
        self.space.start(layout.pack(self.model.initial_states()[0]))
        self._begin(saved.orbits)
        self.loop.restore(self.checkpoint.levels(saved), saved.position, saved.generated)
        self.space.actions.update(saved.actions)
        for entry in saved.hits:
            group = self.hits if entry["settled"] else self.fresh
            group[entry["name"]] = Hit(entry["kind"], entry["depth"], entry["states"])
        self._settle()
        self._levels()

    def save(self) -> None:
        """Write a checkpoint of what is done so far."""
        if self.checkpoint is None:
            return
        layout = self.space.layout
        self.loop.count()
        hits: list[Mapping[str, Any]] = [
            {"name": name, "kind": hit.kind, "depth": hit.depth, "states": hit.states, "settled": settled}
            for settled, group in ((True, self.hits), (False, self.fresh)) for name, hit in group.items()
        ]
        saved = Saved(
            self.asked, self.loop.name, self.loop.generated, self.loop.position, dict(self.space.actions), hits,
            self.together, fields_of(layout), [], self.loop.width,
            [] if self.options.symmetry is None else self.options.symmetry.ordered(),
        )
        self.checkpoint.write(saved, layout, self.loop.sizes(), self.loop.words)

    def _moved(self, remap: Callable[[int], int]) -> None:
        """States are packed anew: those that were noted, too."""
        self.starts = [remap(state) for state in self.starts]
        for hit in [*self.hits.values(), *self.fresh.values()]:
            hit.states = [remap(state) for state in hit.states]

    def _is_decided(self) -> bool:
        return self.stop and any(hit.kind != "sometimes" for hit in self.hits.values())

    def _levels(self) -> None:
        loop = self.loop
        while (loop.position or loop.size(-1)) and not self._is_decided():
            self._rearrange(loop)
            depth = loop.depth - (loop.position > 0)
            size = loop.size(depth - 1)
            for done in loop.expand(partial(self._answered, depth)):
                for state in loop.outside():
                    self._answered(depth + 1, self.space.answers(state), [state])
                self.progress(loop.distinct, loop.generated, depth, size - done + loop.size(-1))
                if done < size and self._ends_early():
                    return self.save()
            self.hits.update(self.fresh)
            self.fresh.clear()
            self._settle()
            if loop.size(-1) and self._ends_early():
                return self.save()
            if self.due():
                self.save()
        self.save()

    def _ends_early(self) -> bool:
        """Say whether the search ends here, with states that are not expanded, and note why."""
        if self.states and self.loop.distinct >= self.states:
            self.limit = "states"
        elif is_beyond(self.memory, self.loop.soon()):
            self.limit = "memory"
        elif self.wants_stop:
            self.interrupted = self.limit is None
        return self.wants_stop or self.limit is not None

    def _settle(self) -> None:
        """Ask no more about what is found."""
        self.loop.settled.update(self.hits)
        self.space.dismiss(self.hits)

    def _rearrange(self, loop: Loop) -> None:
        """Allow contexts more entries as the search gets longer, so that fewer look-ups are left."""
        most = max((most for states, most in loop.contexts.items() if states < loop.distinct), default=0)
        if most > self.space.most:
            self.space.most = most
            self.space.arrange()
            loop.rearranged()

    def _answered(self, depth: int, answers: Sequence[Answer], states: Sequence[int]) -> None:
        if answers is DEADLOCK:
            states = self._really_dead(states)
        for name, _ in answers if states else ():
            if name not in self.hits:
                hit = self.fresh.get(name)
                if hit is None or depth < hit.depth:
                    self.fresh[name] = Hit(self.kinds.get(name, "deadlock"), depth, list(states))
                elif hit.depth == depth:
                    hit.states += states

    def _really_dead(self, states: Sequence[int]) -> Sequence[int]:
        """Leave out the states in which a timer that is used up could fire."""
        model = without_bounds(self.model)
        if model is self.model or "Deadlock" in self.hits:
            return states
        return [state for state in states if not model.choices(self.space.layout.unpack(state))]

    def _result(self) -> Result:
        loop = self.loop
        for name, hit in self.fresh.items():
            self.hits.setdefault(name, hit)
        sizes = [size for size in loop.sizes() if size]
        loop.count()
        found = [self._violation(name, hit) for name, hit in self.hits.items()]
        violations, witnesses = ranked(found, tuple(self.kinds))
        complete = not self.interrupted and self.limit is None and not (violations and self.stop)
        return Result(
            len(self.starts), sum(sizes), loop.generated, len(sizes), complete, violations, witnesses,
            dict(sorted(self.space.actions.items())), self.space.layout.bits, loop.name,
            FINGERPRINTS if self.fingerprints else 0,
        )

    def close(self) -> None:
        """Let go of the states, which take most of the memory: nothing can be asked of the search afterwards."""
        self.loop.close()

    def frontier(self, most: int) -> list[State]:
        """Return some states of the last level that has any."""
        last = max((level for level, size in enumerate(self.loop.sizes()) if size), default=0)
        return [self.space.layout.unpack(state) for state in self.loop.sample(last, most)]

    def _violation(self, name: str, hit: Hit) -> tuple[Violation, list[int]]:
        """Return a shortest path to one of the states of a hit: of all, the first in the order of the model."""
        key = self.options.key
        ways = [{key(state) for state in hit.states}]
        for level in range(hit.depth - 2, -1, -1):
            ways.append({key(state) for state in self.loop.sources(level, ways[-1])})
        ways.reverse()
        return first_path(self.space, self.chosen, name, hit.kind, self.starts, key, ways)


def _hides(model: Model) -> tuple[str, ...]:
    if not model.view_hides:
        raise Refusal(f"{model.name} has no view; leave --view out")
    return tuple(name for name in model.view_hides if name != "messages_discard")
