"""The record of a step: what it did, told once, when it is taken for the first time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.demo.session import as_json as told
from harness.demo.session.branches import Record, mine_after
from harness.model import Effects
from harness.record import Chosen, Recorder
from harness.render.changes import changes
from harness.simulate.session import Verdict
from harness.simulate.tables import Node

if TYPE_CHECKING:
    from harness.demo.session.walk import Walk


def first(session: Walk) -> Record:
    """Return the record of the initial state, in which a session is."""
    tables, node = session.tables, session.node
    state, failing = tables.state(node), node.failing or {}
    at_us = 0 if session.timed else None
    recorder = Recorder(keep=False)
    recorder.event(0, at_us, tables.beginning(node), tables.failing_text(node))
    return Record(
        0, Chosen("", at_us), "", None, tuple(state.values()), session.flights.start(state), (), failing,
        dict.fromkeys(failing, 0), frozenset(), _verdict(session, failing, 0), 0, recorder, "",
    )


def recorded(session: Walk, n: int, after: Node, ahead: Chosen | None, by_hand: bool) -> Record:
    """Return the record of taking option n of a session's state; `ahead` is the choice of a trail that this is."""
    tables, node, before = session.tables, session.node, session.record
    option = node.options[n]
    step, number = option.choice.step, session.at + 1
    effects: Effects = option.edge(node.state).effects
    was, now = tables.state(node), tables.state(after)
    moved = session.flights.follow(number, step, effects, now)
    failing = after.failing or {}
    at_us = _time(session, ahead)
    recorder = before.recorder.fork()
    recorder.event(number, at_us, tables.happening(node, n), tables.failing_text(after))
    shown = told.step_json(
        number, at_us, session.lanes, option.process, step, option.label, moved, failing,
        changes(was, dict(effects.writes)), told.statuses(session.model, now),
    )
    reached = tables.reach(node, n, after)
    return Record(
        number, Chosen.of(option.label, step, at_us), option.process, step, tuple(now.values()), moved, effects.lost,
        failing, {name: before.since.get(name, number) for name in failing},
        before.witnessed.union(reached) if reached else before.witnessed,
        before.violation or _verdict(session, failing, number), before.timers + option.is_timer, recorder,
        told.text_of(shown), by_hand, mine_after(before.mine, step, by_hand),
    )


def _time(session: Walk, ahead: Chosen | None) -> int | None:
    """Return the virtual time of the step being taken: that of the trail it comes from, or the timetable's."""
    if not session.timed:
        return None
    if ahead is not None:
        return ahead.at_us or 0
    assert session.runner.timetable is not None
    return session.runner.timetable.now_us


def _verdict(session: Walk, failing: Mapping[str, str], step: int) -> Verdict | None:
    found = next((name for name in failing if name in session.claimed), None)
    return Verdict(found, failing[found], step, "safety") if found is not None else None
