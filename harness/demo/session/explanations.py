"""What a person asks about a run: which guards a step passed, why an action is not possible, why a step is outside.

Answers that take long are given from tables of their own, so that they can be worked out in a thread beside the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from threading import Lock

from harness.demo.session.as_json import Json
from harness.memo.interning import Ids
from harness.model import Kind, Model, Process, Step, Value, View
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.chance import Seeded
from harness.verify.conditions import decisions
from harness.verify.enabling import ActionInstance, Asking
from harness.verify.explanation import explain
from harness.verify.guard_trace import watch
from harness.verify.refinement import Failure, Refiner

WALKS, WALKED = 8, 60
"""Random walks without faults, and steps of each, on which it is looked up what actions are possible where."""
NEAR = 100
"""Other states near the one in question, and near the initial ones, in which it is looked up, too."""
MOST_SHOWN = 12
"""How many instances of an action are explained, if they are not possible."""

Values = tuple[Value, ...]
"""A state: the values of the slots in their order."""


def guards(process: Process, state: Mapping[str, Value], step: Step) -> list[Json]:
    """Return the guards that a step came past in the protocol's code, with the values that they read."""
    message = step.consumed
    view = View(state)
    calls = watch(lambda: process.steps(view) if message is None else process.receive(view, message))
    return [
        {"where": f"{guard.file}:{guard.line}", "text": guard.text, "values": list(guard.values), "outcome": outcome,
         "inner": guard.inner.sentence() if guard.inner is not None else None}
        for guard, outcome in decisions(calls, step.action, step.args)
    ]


class Explainer:
    """Answers about one model, and about its spec if it has one; one question at a time."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._lock = Lock()

    def why(self, action: str, passed: Sequence[Values], spec_passed: Sequence[Values]) -> Json:
        """Return why an action is not possible in the last of some states; those before it are where a run was.

        `spec_passed` are the states of the spec that they stand for; empty if there is no spec.
        """
        with self._lock:
            found: Json = {"action": action, "model": self._actors.why(action, passed), "spec": None}
            if spec_passed and self.model.refinement is not None:
                found["spec"] = self._spec.why(self._in_spec(action), spec_passed)
            return found

    def _in_spec(self, action: str) -> str:
        """Return what the spec calls an action: its own name, or that of the spec's action which only it may be."""
        known = self._refiner.refinement
        own = (name for name, actions in known.by.items() if actions == (action,) and name not in known.extensions)
        return action if action in known.by else next(own, action)

    def explain(self, step: int, action: str, label: str, before: Values, after: Values) -> list[str]:
        """Return in lines why a step that leads between two states of the spec is no step of it."""
        with self._lock:
            refiner = self._refiner
            ids = [_intern(refiner.spec_tables, values) for values in (before, after)]
            return explain(refiner, Failure(step, action, label, ids[0], ids[1])).lines()

    @cached_property
    def _refiner(self) -> Refiner:
        return Refiner(self.model)

    @cached_property
    def _actors(self) -> _Level:
        return _Level(self.model, ())

    @cached_property
    def _spec(self) -> _Level:
        return _Level(self._refiner.spec, tuple(self._refiner.refinement.extensions))


class _Level:
    """The actors, or the spec: where their actions are possible, and what they stop at."""

    def __init__(self, model: Model, extensions: tuple[str, ...]) -> None:
        self.model = model
        self.tables = Tables(model)
        self._extensions = extensions
        self._asking: Asking | None = None

    def why(self, action: str, passed: Sequence[Values]) -> Json:
        """Return which instances of an action are possible in the last state, and what the others stop at."""
        states = [_intern(self.tables, values) for values in passed]
        here = states[-1]
        options = self.tables.node(here).options
        known = self._instances(action, states)
        possible = {(option.process, option.choice.step.args) for option in options if option.action == action}
        tried: dict[tuple[str, tuple[str, ...]], tuple[int, Json]] = {}
        for instance in known:
            key = (instance.process, instance.args)
            if key not in possible and (stop := self._attempt(instance, here)) is not None:
                tried[key] = max(tried.get(key, (-1, {})), stop, key=lambda pair: pair[0])
        best = sorted(tried.values(), key=lambda pair: -pair[0])
        return {
            "name": self.model.name, "seen": bool(known) or bool(possible),
            "enabled": [option.label for option in options if option.action == action],
            "not": [stop for _, stop in best[:MOST_SHOWN]], "more": max(0, len(best) - MOST_SHOWN),
        }

    def _instances(self, action: str, states: list[Ids]) -> list[ActionInstance]:
        """Return the instances of an action, from states of the run where nothing else has it."""
        found: list[ActionInstance] = []
        for _ in range(2):
            if self._asking is not None:
                known = self._asking.instances(states[-1])
                found = [instance for instance in known if instance.action == action]
            if found:
                break
            passed = [*states[-2::-1], *self._walked]
            most = len({states[-1], *passed}) + NEAR
            self._asking = Asking(self.model, self.tables, partial(list, passed), self._extensions, most, telling=True)
        return found

    @cached_property
    def _walked(self) -> list[Ids]:
        """Return states that random walks without faults come through."""
        found: dict[Ids, None] = {}
        for seed in range(WALKS):
            chance = Seeded(seed)
            node = self.tables.start(chance.index(self.tables.initial_count, "initial state"))
            for _ in range(WALKED):
                found[node.state] = None
                able = [n for n, option in enumerate(node.options) if option.kind not in (Kind.FAULT, Kind.HEAL)]
                if not able:
                    break
                node = self.tables.follow(node, able[chance.index(len(able), "step")])
        return list(found)

    def _attempt(self, instance: ActionInstance, here: Ids) -> tuple[int, Json] | None:
        """Return how many guards an instance passes, and what it stops at."""
        assert self._asking is not None
        shut = self._shut(instance.process, here)
        name = f"{instance.action}({','.join(instance.args)})" if instance.args else instance.action
        if shut is not None:
            return 0, {"instance": name, "process": instance.process, "why": shut}
        attempts = list(self._asking.attempts(instance, here))
        if not attempts:
            return 0, {"instance": name, "process": instance.process, "why": "nothing offers it in this state"}
        best = max(attempts, key=lambda attempt: attempt.passed)
        return best.passed, {"instance": name, "process": instance.process, "why": best.sentence}

    def _shut(self, process: str, here: Ids) -> str | None:
        """Return why a process takes no steps at all, or None."""
        if not self.model.faulty or process not in self.model.addresses:
            return None
        slot = self.tables.index[f"gate[{process}]"]
        status = self.tables.values[slot][here[slot]].status
        return f"{process} is {status}" if status != "up" else None


def _intern(tables: Tables, values: Values) -> Ids:
    return tuple(tables.intern_value(slot, value) for slot, value in enumerate(values))
