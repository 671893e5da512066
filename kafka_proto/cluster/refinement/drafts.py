"""The constants of the spec of coordinators, and how what is decided is carried out, once departures have changed it.

A step of a broker says which request, or which answer to markers, it took (`event`), and what it answered (`owes`): an
action takes the one and accounts for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import View, slot
from harness.model.spec import Change, Writes
from kafka_proto.broker.parts import LeaderAndEpoch
from kafka_proto.cluster.refinement.decided import (
    NOBODY,
    AppendUnderWay,
    DecidedEntry,
    DecidedOn,
    KnownTransaction,
    SaidCode,
)
from kafka_proto.cluster.refinement.departures import EVERY


@attrs.frozen
class CoordinatorNames:
    """The constants: the actors, the partition of each id, and the departures that are expected, in their order."""

    brokers: tuple[str, ...]
    txn_log_partitions: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    home: Mapping[str, str]
    departures: tuple[str, ...]

    def ids_of(self, p: str) -> list[str]:
        return [tid for tid in self.transactional_ids if self.home[tid] == p]


@attrs.frozen
class LoggedEntries:
    """Of a transactional id: the last entry in a broker's log, and the last one that is committed."""

    last: KnownTransaction
    committed: KnownTransaction | None


@attrs.frozen
class Draft:
    """What is decided, and which departures have yet to change it."""

    broker: str
    transactional_id: str
    to: str
    at: DecidedOn
    decided: DecidedEntry
    due: tuple[str, ...]
    failed_fence: bool


def at_rest(view: View) -> bool:
    """GUARD of all but departures: nothing is decided that is not carried out."""
    return not view["decided"]


def leads(view: View, b: str, p: str) -> bool:
    believed: LeaderAndEpoch = view.at("tc_log_metadata", b, p)
    return believed.leader == b


def serves(view: View, b: str, p: str) -> bool:
    """Say whether a broker leads a partition of the log, and has loaded it."""
    return leads(view, b, p) and view.at("serving", b, p)


def paid(view: View, *said: tuple[str, SaidCode]) -> Writes | None:
    """Return the write that takes answers off those to be accounted for, or None if one was not given."""
    owes = list(view["owes"])
    for one in said:
        if one not in owes:
            return None
        owes.remove(one)
    return (("owes", tuple(owes)),)


def settled(view: View, *answers: tuple[str, SaidCode], writes: Writes = ()) -> Iterable[Change]:
    """Yield the change that takes the event and accounts for answers, if they were given."""
    rest = paid(view, *answers)
    if rest is not None:
        yield Change((*writes, *rest, ("event", None)))


def drafted(
    k: CoordinatorNames, view: View, b: str, tid: str, at: DecidedOn, decided: DecidedEntry, to: str = NOBODY,
    failed_fence: bool | None = None,
) -> Iterable[Change]:
    """Yield the change that carries a decision out, or leaves it to the first departure that applies to it."""
    kept = view.at("failed_fence", b, tid) if failed_fence is None else failed_fence
    draft = Draft(b, tid, to, at, decided, due(k, at, decided), kept)
    if draft.due:
        yield Change((("decided", (draft,)),))
    else:
        carried = carried_out(view, draft)
        if carried is not None:
            yield Change(carried)


def due(k: CoordinatorNames, at: DecidedOn, decided: DecidedEntry) -> tuple[str, ...]:
    """Return the departures that change a decision, one after the other."""
    found: tuple[str, ...] = ()
    for name_ in k.departures:
        instead = EVERY[name_].instead(at, decided)
        found = found if instead == decided else (*found, name_)
        decided = instead
    return found


def carried_out(view: View, draft: Draft) -> Writes | None:
    """Return what a decision writes; None if it answers what was not answered."""
    b, tid, decided = draft.broker, draft.transactional_id, draft.decided
    rest = paid(view, (draft.to, decided.answered)) if decided.answered is not None else ()
    if rest is None:
        return None
    writes: Writes = ((slot("tc_tid_metadata", b, tid), decided.known),
                      (slot("failed_fence", b, tid), draft.failed_fence))
    if decided.entry is not None and decided.known is not None:
        before = decided.known.previous_producer_id if decided.repeats else decided.known.pid
        entry = attrs.evolve(decided.entry, previous_producer_id=before)
        to = draft.to if decided.then is not None else NOBODY
        writes += ((slot("tc_tid_transition", b, tid), entry),
                   (slot("append", b, tid), AppendUnderWay(to, decided.then, decided.fences)))
    elif draft.at.event not in ("request", "time-out"):
        becomes = None
        if decided.known is not None and decided.pending is not None:
            becomes = attrs.evolve(decided.known, state=decided.pending)
        writes += (slot("tc_tid_transition", b, tid), becomes), (slot("append", b, tid), None)
    return (*writes, *rest, ("event", None))


def depart(departure: str, k: CoordinatorNames, view: View, b: str) -> Iterable[Change]:
    """Change what is decided first, and carry it out when no other departure changes it."""
    drafts: tuple[Draft, ...] = view["decided"]
    if not drafts or drafts[0].broker != b or drafts[0].due[0] != departure:
        return
    first, *others = drafts
    instead = EVERY[departure].instead(first.at, first.decided)
    first = attrs.evolve(first, decided=instead, due=first.due[1:])
    if first.due:
        yield Change((("decided", (first, *others)),))
        return
    carried = carried_out(view, first)
    if carried is not None:
        yield Change((*carried, ("decided", tuple(others))))


def forgotten(b: str, tid: str) -> Writes:
    """Nothing is known of an id at a broker."""
    kept = ("tc_tid_metadata", None), ("tc_tid_transition", None), ("append", None), ("failed_fence", False)
    return tuple((slot(variable, b, tid), value) for variable, value in kept)
