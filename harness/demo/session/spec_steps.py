"""What each step of an interactive run is in the spec: a step of it, a stutter, an extension, or outside.

A judge follows the steps on the way to the present, and forgets those that the user went back over. A response that
counts when it is served changes what the steps since then are, as soon as it is applied: these are judged again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

import attrs

from harness.demo.session import as_json
from harness.demo.session.branches import StepRecord
from harness.memo.interning import Ids, IdView
from harness.model import Message, Model, Process, Step, Value
from harness.verify.linearization import Overlays, Taken, changed_of
from harness.verify.refinement import Refiner
from harness.verify.spec_ways import Unmapped, first_of, leads

UNKNOWN = "null"


@attrs.frozen
class Window:
    """A response that was served in one step and applied in another: the receiver's slot, and what that changed."""

    served: int
    applied: int
    slot: int
    before: int
    after: int


@attrs.define(eq=False)
class JudgedStep:
    """A step on the way to the present, as the refiner takes it."""

    record: StepRecord
    state: Ids
    """The state after it, in the refiner's tables."""
    taken: Taken | None
    abstract: Ids | None = None
    """The last known state of the spec; None if the mapping has given none so far."""
    begun: Ids | None = None
    """From where the spec takes the step."""
    ghost: int = 0
    way: tuple[str, ...] = ()
    """The steps of the spec that it is, by their actions."""
    as_json: str = UNKNOWN
    """What it is in the spec, as a JSON object."""


class StepJudge:
    """Checks the steps of a session against the spec of its model. Raises Refusal if it has none."""

    def __init__(self, model: Model) -> None:
        self.refiner = Refiner(model)
        self._overlays = Overlays(self.refiner.tables)
        self._path: list[JudgedStep] = []
        self._windows: list[Window] = []
        """In the order in which they were closed."""
        self._served: dict[Message, int] = {}
        """The responses that were served and may still be applied: in which step first."""
        self._fresh = 0
        """The first step that is not judged yet, as the run is now."""

    def follow(self, records: Sequence[StepRecord], length: int, most: int) -> None:
        """Note at most so many new ones of the first `length` records, the way to the present; `judge` judges them."""
        same = min(len(self._path), length)
        while same and self._path[same - 1].record is not records[same - 1]:
            same -= 1
        if same < len(self._path):
            self._cut(same)
        for n in range(same, min(length, same + most)):
            self._add(records[n])

    def _cut(self, length: int) -> None:
        """Forget the steps from this one on, and the windows that they closed."""
        del self._path[length:]
        self._fresh = min(self._fresh, length, *(w.served for w in self._windows if w.applied >= length))
        self._windows = [window for window in self._windows if window.applied < length]
        self._served = {message: n for message, n in self._served.items() if n < length}

    def _add(self, record: StepRecord) -> None:
        refiner, n = self.refiner, record.n
        if record.step is None or not self._path:
            state = tuple(refiner.tables.intern_value(slot, value) for slot, value in enumerate(record.state))
            self._path.append(JudgedStep(record, state, None))
            return
        last = self._path[-1]
        changed = zip(last.record.state, record.state, last.state, strict=True)
        state = tuple(
            known if was is now else refiner.tables.intern_value(slot, now)
            for slot, (was, now, known) in enumerate(changed)
        )
        taken = refiner.taken_step(record.process, record.step, record.lost)
        message = taken.consumed
        if message is not None and message in self._served:
            served = self._served[message]
            for slot in changed_of(refiner.tables, message.dest, last.state, state):
                self._windows.append(Window(served, n, slot, last.state[slot], state[slot]))
                self._fresh = min(self._fresh, served)
        for message in taken.sent:
            self._served.setdefault(message, n)
        self._path.append(JudgedStep(record, state, taken))

    def is_done(self, length: int) -> bool:
        """Say whether so many steps, the first state among them, are judged."""
        return self._fresh >= length

    def judge(self, most: int) -> int | None:
        """Judge at most so many steps; return the first step whose verdict has changed, or None."""
        first = None
        for n in range(self._fresh, min(self._fresh + most, len(self._path))):
            before = self._path[n].as_json
            self._judge(n)
            if first is None and self._path[n].as_json != before:
                first = n
            self._fresh = n + 1
        return first

    def _judge(self, n: int) -> None:
        refiner, step = self.refiner, self._path[n]
        last = self._path[n - 1] if n else None
        before = last.abstract if last is not None else None
        step.abstract, step.ghost = before, last.ghost if last is not None else refiner.first_ghost()
        step.way, step.begun = (), None
        try:
            after, step.ghost = refiner.abstract(self._seen(n), step.ghost)
            step.abstract = after
            if step.taken is None or last is None:
                step.as_json = UNKNOWN
                return
            start = before
            if before is not None:
                start = step.begun = refiner.begun(before, after, self._seen(n - 1), step.taken)
            way = () if after == start else refiner.way(start, after, refiner.barred(step.taken.action))
        except Unmapped as error:
            step.as_json = as_json.text_of({"kind": "outside", "actions": [], "text": str(error)})
            return
        step.way = way or ()
        step.as_json = as_json.text_of(self._described(start, after, way))

    def _seen(self, n: int) -> Ids:
        """Return a state with the responses that were served and not yet applied in it."""
        state = self._path[n].state
        later = takewhile(lambda window: window.applied > n, reversed(self._windows))
        open_now = (window for window in later if window.served <= n)
        for window in sorted(open_now, key=lambda window: (window.served, window.applied, window.slot)):
            laid = self._overlays.lay(window.slot, state[window.slot], window.before, window.after)
            state = (*state[: window.slot], laid, *state[window.slot + 1 :])
        return state

    def _described(self, before: Ids | None, after: Ids, way: tuple[str, ...] | None) -> as_json.Json:
        if way is None:
            return {"kind": "outside", "actions": [], "text": "no step of the spec leads to the state after it"}
        if not way:
            return {"kind": "stutter", "actions": [], "text": "changes nothing that the spec knows"}
        reasons = self.refiner.refinement.extensions
        beyond = [f"{name}: {reasons[name]}" for name in way if name in reasons]
        labels = list(way)
        if len(way) == 1 and before is not None:
            options = self.refiner.spec_tables.node(before).options
            labels = [next(o.label for o in options if o.action == way[0] and leads(before, o, after))]
        text = "; ".join(beyond) or f"is {' and then '.join(labels)} in the spec"
        return {"kind": "extension" if beyond else "step", "actions": labels, "text": text}

    def as_json(self, n: int) -> str:
        """Return what step n is in the spec as JSON, as far as it is judged."""
        return self._path[n].as_json if n < len(self._path) else UNKNOWN

    def actions(self) -> list[str]:
        """Return the names of the spec's actions, as far as its formulas, the mapping and the runs so far name them."""
        refinement, tables = self.refiner.refinement, self.refiner.spec_tables
        first = {option.action for n in range(min(tables.initial_count, 9)) for option in tables.start(n).options}
        named = {*self.refiner.spec.fairness, *refinement.by, *refinement.extensions}
        return sorted({*named, *first, *self.refiner.possible})

    def values(self, n: int) -> tuple[Value, ...] | None:
        """Return the state of the spec after step n as values, where it is judged and there is one."""
        return self._values(self._path[n].abstract) if n < self._fresh else None

    def values_before(self, n: int) -> tuple[Value, ...] | None:
        """Return the state from which the spec takes step n as values, where it is judged and there is one."""
        return self._values(self._path[n].begun) if n < self._fresh else None

    def _values(self, state: Ids | None) -> tuple[Value, ...] | None:
        values = self.refiner.spec_tables.values
        return None if state is None else tuple(known[value] for known, value in zip(values, state, strict=True))

    def step_of_spec(self, n: int) -> tuple[Process, Mapping[str, Value], Step] | None:
        """Return the first step of the spec that step n is, its process, and the state before it; None for others."""
        if not 0 < n < self._fresh:
            return None
        judged, tables = self._path[n], self.refiner.spec_tables
        if judged.begun is None or judged.abstract is None or not judged.way:
            return None
        option = first_of(tables, judged.begun, judged.way, judged.abstract)
        if option is None:
            return None
        process = next(process for process in self.refiner.spec.everyone() if process.name == option.process)
        return process, IdView(tables, judged.begun), option.choice.step
