"""The timeline of an interactive run, step by step: the lines that `harness.render.text` has for a recorded one."""

from __future__ import annotations

import json
from typing import Any
from weakref import WeakKeyDictionary

from harness.demo.session.branches import StepRecord
from harness.demo.session.live_session import LiveSession
from harness.model import DELIVERED
from harness.record import Event
from harness.render.in_flight import Fate, SentMessage
from harness.render.text import Page, failing
from harness.render.timeline import ENDS, ENVIRONMENT, RECEIVED, UNDER_WAY, Flight, Row

STEPS = 9_999
"""Digits of a step's number are kept for so many; a longer run moves to the right."""
TIME = len("999999.999 ms")


class TimelineLines:
    """Lines of steps at a width, each made once."""

    def __init__(self, session: LiveSession) -> None:
        self.session = session
        self._for: tuple[Any, ...] = ()
        self._known: WeakKeyDictionary[StepRecord, list[str]] = WeakKeyDictionary()

    def page(self, width: int) -> Page:
        """Return the page of the session at a width."""
        session = self.session
        key = (session.epoch, width, session.branch.length > STEPS, session.lanes)
        if key != self._for:
            properties = tuple(prop.name for prop in session.model.properties if prop.is_safety)
            steps, time = (STEPS * 10 if key[2] else STEPS), (TIME if session.timed else 0)
            lanes = session.lanes if session.model.actors else (*session.lanes, ENVIRONMENT)
            self._page = Page(lanes, properties, width, steps, time)
            self._for, self._known = key, WeakKeyDictionary()
        return self._page

    def names(self, width: int) -> list[str]:
        """Return the lines with the names of the lifelines."""
        text = self.session.record.text
        return [line.rstrip() for line in self.page(width).names(json.loads(text)["status"] if text else {})]

    def lines(self, record: StepRecord, width: int) -> list[str]:
        """Return the lines of a step, and those of invariants that fail after it."""
        page = self.page(width)
        known = self._known.get(record)
        if known is None:
            row = row_of(self.session, record)
            found = [*(page.step(row) if row.n else ()), *failing(page.properties, row, width)]
            known = self._known[record] = [line.rstrip() for line in found]
        return known


def row_of(session: LiveSession, record: StepRecord) -> Row:
    """Return a step of a session as a row of a timeline."""
    step = record.step
    if step is None:
        event = Event(0, record.chosen.at_us, "", "initial", "", (), "", None, (), (), (), None, {}, record.failing)
        return Row(event, ENVIRONMENT, (), tuple(record.failing), {}, None, (), ())
    shown = json.loads(record.text)
    event = Event(
        record.n, record.chosen.at_us, record.process, str(step.kind), step.action, step.args, step.detail,
        step.consumed, step.sent, record.lost, (), shown["op"], {}, record.failing,
    )
    moved, telling = record.moved, record.telling
    fates = {fate.sent: fate for fate in moved.taken}
    sent = tuple(_flight(one, record.n, fates.pop(one, None)) for one in moved.sent)
    taken = tuple(_flight(one, record.n, fate) for one, fate in fates.items() if fate.how != "released")
    received = _flight(moved.received, record.n, None) if moved.received is not None else None
    began = tuple(name for name in record.failing if record.since[name] == record.n)
    arrived: tuple[Flight, ...] = ()
    if telling is not None:
        sent = tuple(flight for flight, one in zip(sent, moved.sent, strict=True) if not one.is_minor)
        arrived = tuple(flight for flight in taken if flight.end == RECEIVED)
        taken = tuple(flight for flight in taken if flight.end != RECEIVED)
    return Row(event, shown["process"], tuple(shown["changed"]), began, shown["status"], received, sent, taken, arrived,
               telling)


def _flight(sent: SentMessage, n: int, fate: Fate | None) -> Flight:
    """Return a message as a timeline has it, with what befell it in step n."""
    held = n if fate is not None and fate.how == "held" else None
    end = UNDER_WAY
    if fate is not None:
        end = fate.how if fate.how in ENDS else RECEIVED if fate.how == DELIVERED else UNDER_WAY
    ended = n if end != UNDER_WAY else None
    return Flight(sent.message, sent.message.source, sent.sent_at, end, ended, held, 0 if sent.copy_of else None)

