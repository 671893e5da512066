"""The record of a step: what it did, worked out once, when it is taken for the first time."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from harness.demo.session import as_json
from harness.demo.session.branches import StepRecord, own_faults_after
from harness.model import Effects, Model
from harness.record import Chosen, Recorder
from harness.render.changes import changes
from harness.render.in_flight import MessagesInFlight
from harness.simulate.runs.run import Verdict
from harness.simulate.states.nodes import Node
from harness.simulate.states.tables import Tables


@attrs.frozen(eq=False)
class StepRecorder:
    """Makes the records of one run. `in_flight` are the messages under way in the state before the next step."""

    model: Model
    tables: Tables
    in_flight: MessagesInFlight
    lanes: tuple[str, ...]
    claimed: frozenset[str]

    def first(self, node: Node, at_us: int | None) -> StepRecord:
        """Return the record of an initial state."""
        tables = self.tables
        state, failing = tables.state(node), node.failing or {}
        recorder = Recorder(keep=False)
        recorder.event((0, at_us, tables.beginning(node), tables.failing_text(node)))
        return StepRecord(
            0, Chosen("", at_us), "", None, tuple(state.values()), self.in_flight.start(state), (), failing,
            dict.fromkeys(failing, 0), frozenset(), self._verdict(failing, 0), 0, recorder, "",
        )

    def following(
        self, before: StepRecord, node: Node, n: int, after: Node, at_us: int | None, by_hand: bool
    ) -> StepRecord:
        """Return the record of taking option n of the state after `before`, which led to `after`."""
        tables, option, number = self.tables, node.options[n], before.n + 1
        step = option.choice.step
        effects: Effects = option.edge(node.state).effects
        was, now = tables.state(node), tables.state(after)
        telling = step.told() if step.told is not None else None
        moved = self.in_flight.follow(number, step, effects, now) if telling is None else self.in_flight.tell(
            number, telling)
        failing = after.failing or {}
        recorder = before.recorder.fork()
        recorder.event((number, at_us, tables.happening(node, n), tables.failing_text(after)))
        shown = as_json.told_json(number, at_us, step, telling, moved, failing) if telling is not None else (
            as_json.step_json(
                number, at_us, self.lanes, option.process, step, option.label, moved, failing,
                changes(was, dict(effects.writes)), as_json.statuses(self.model, now)))
        reached = tables.reach(node, n, after)
        return StepRecord(
            number, Chosen.of(option.label, step, at_us), option.process, step, tuple(now.values()), moved,
            effects.lost, failing, {name: before.since.get(name, number) for name in failing},
            before.witnessed.union(reached) if reached else before.witnessed,
            before.violation or self._verdict(failing, number), before.timers + option.is_timer, recorder,
            as_json.text_of(shown), by_hand, own_faults_after(before.own_faults, step, by_hand), telling,
        )

    def _verdict(self, failing: Mapping[str, str], step: int) -> Verdict | None:
        found = next((name for name in failing if name in self.claimed), None)
        return Verdict(found, failing[found], step, "safety") if found is not None else None
