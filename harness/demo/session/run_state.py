"""All that an interactive run is, as one value, and what can be read of the present one.

What outlives a change of what is shown (versions, sessions that were left) is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from harness.demo.session import as_json
from harness.demo.session.branches import LeftSession, Memento, RunBranch, StepRecord
from harness.demo.session.explanations import Explainer
from harness.demo.session.opened_model import OpenedModel
from harness.demo.session.spec_steps import StepJudge
from harness.demo.session.step_records import StepRecorder
from harness.demo.session.strategy_runner import StrategyRunner
from harness.model import Model, Refusal, Tour, Value
from harness.render.in_flight import MessagesInFlight
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Verdict
from harness.simulate.states.nodes import Node
from harness.simulate.states.tables import Tables


@attrs.define(eq=False)
class RunState:
    """An interactive run: what was opened, its branches and where it is in them, its decider, what can be undone."""

    opened: OpenedModel
    tables: Tables
    runner: StrategyRunner
    node: Node
    """The state of the run, in its tables."""
    lanes: tuple[str, ...]
    in_flight: MessagesInFlight
    claimed: frozenset[str]
    recorder: StepRecorder
    branch: RunBranch
    branches: dict[str, RunBranch]
    explainer: Explainer
    judge: StepJudge | None = None
    """Checks the steps against the spec, once asked for."""
    at: int = 0
    number: int = 1
    """Which of the sessions this is, from 1."""
    toured: Tour | None = None
    """The tour that was opened, if one was."""
    toured_on: RunBranch | None = None
    """The branch that the tour goes along."""
    mementos: list[Memento | LeftSession] = attrs.field(factory=list)


def start_of(opened: OpenedModel) -> RunState:
    """Return the run that is at the start of what was opened. Raises Refusal."""
    model, plan, tables = opened.model, opened.plan, Tables(opened.model)
    if not 0 <= opened.initial < tables.initial_count:
        raise Refusal(f"expected an initial state from 0 to {tables.initial_count - 1}, found {opened.initial}")
    node, lanes, in_flight = tables.start(opened.initial), as_json.lifelines(model), MessagesInFlight(model)
    runner = StrategyRunner(tables, plan, opened.budget == "generous")
    claimed = frozenset(plan.claims) & frozenset(p.name for p in tables.invariants)
    recorder = StepRecorder(model, tables, in_flight, lanes, claimed)
    branch = RunBranch("main", [recorder.first(node, 0 if plan.mode == "timed" else None)])
    runner.resume(0, ())
    return RunState(
        opened, tables, runner, node, lanes, in_flight, claimed, recorder, branch, {branch.name: branch},
        Explainer(model),
    )


class RunReader:
    """What there is to read of the run that is held."""

    def __init__(self, held: RunState) -> None:
        self._held = held

    @property
    def opened(self) -> OpenedModel:
        return self._held.opened

    @property
    def model(self) -> Model:
        return self._held.opened.model

    @property
    def plan(self) -> Plan:
        return self._held.opened.plan

    @property
    def timed(self) -> bool:
        return self.plan.mode == "timed"

    @property
    def tables(self) -> Tables:
        return self._held.tables

    @property
    def runner(self) -> StrategyRunner:
        return self._held.runner

    @property
    def node(self) -> Node:
        return self._held.node

    @property
    def lanes(self) -> tuple[str, ...]:
        return self._held.lanes

    @property
    def in_flight(self) -> MessagesInFlight:
        return self._held.in_flight

    @property
    def claimed(self) -> frozenset[str]:
        return self._held.claimed

    @property
    def branch(self) -> RunBranch:
        return self._held.branch

    @property
    def branches(self) -> Mapping[str, RunBranch]:
        return self._held.branches

    @property
    def at(self) -> int:
        return self._held.at

    @property
    def number(self) -> int:
        return self._held.number

    @property
    def toured(self) -> Tour | None:
        return self._held.toured

    @property
    def toured_on(self) -> RunBranch | None:
        return self._held.toured_on

    @property
    def explainer(self) -> Explainer:
        return self._held.explainer

    @property
    def can_undo(self) -> bool:
        return bool(self._held.mementos)

    @property
    def record(self) -> StepRecord:
        """The step that the run is at."""
        return self.branch.records[self.at]

    def state(self, step: int) -> Mapping[str, Value]:
        """Return the state after a step of this branch. Raises Refusal."""
        return dict(zip(self.tables.slots, self.record_of(step).state, strict=True))

    def shown_state(self, step: int) -> Mapping[str, Value]:
        """Return the state after a step as far as it is shown: nothing where steps tell what they show."""
        return self.state(step) if not self.model.tells else {}

    def record_of(self, step: int) -> StepRecord:
        """Return a step of this branch. Raises Refusal."""
        if not 0 <= step < len(self.branch.records):
            raise Refusal(f"expected a step from 0 to {len(self.branch.records) - 1}, found {step}")
        return self.branch.records[step]

    @property
    def violation(self) -> Verdict | None:
        """What is violated on the way to the present: an invariant that is claimed, or liveness, at a trail's end."""
        ending = self.branch.ending
        at_end = ending is not None and self.at == ending.steps
        return self.record.violation or (ending.verdict if ending is not None and at_end else None)
