"""What diary 02 on a replicated log has besides: entries that may yet commit, and leaders that are behind.

`written` has what leaders have appended to a partition and nobody has committed: some replica may hold it. Any of it
may commit, whoever leads, until something else takes its place. Who serves keeps its own log and high watermark, which
may be behind; everybody else has what is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import attrs

from harness.model import Value, View, slot
from harness.model.spec import Change, Writes
from kafka_proto.transactions.correspondence import Entry, LogMetadata
from kafka_proto.transactions.extensions.serving import (
    ExtendedNames,
    committed_log,
    extended_initial,
    serves,
    tids_of,
)
from kafka_proto.transactions.records import Callback
from kafka_proto.transactions.specs.names import Names

Entries = tuple[Entry, ...]
T = TypeVar("T")


def replicated_initial(k: ExtendedNames) -> dict[str, Value]:
    """The initial state of diary 02 with the variables of a replicated log."""
    state = extended_initial(k)
    for p in k.txn_log_partitions:
        state[slot("written", p)] = frozenset()
        state[slot("announced", p)] = (LogMetadata(state[slot("txn_log_epoch", p)], state[slot("txn_log_leader", p)]),)
    return state


def bare(entries: Iterable[Entry]) -> Entries:
    """Return entries without their callbacks: of what is committed nobody is answered any more."""
    return tuple(Entry(entry.tid, entry.transition, Callback("")) for entry in entries)


def agreed(k: Names, view: View, p: str) -> Entries:
    """Return what is committed of a partition: the log of whoever has heard the most, up to its high watermark."""
    most = max(k.brokers, key=lambda b: view.at("tc_log_hwm", b, p))
    return bare(committed_log(view, most, p))


def is_behind(k: Names, view: View, b: str, p: str) -> bool:
    """Say whether more is committed than a broker has heard."""
    hwm = view.at("tc_log_hwm", b, p)
    return any(view.at("tc_log_hwm", other, p) > hwm for other in k.brokers)


def may_yet_commit(
    written: Iterable[tuple[T, ...]], before: tuple[T, ...], now: tuple[T, ...], logs: Iterable[tuple[T, ...]]
) -> frozenset[tuple[T, ...]]:
    """Return what may commit once `now` is committed: what might have above `before`, and what is in `logs`.

    Each is a run of entries that follows what is committed; of runs of which one begins another, the longer one.
    """
    whole = (*((*before, *run) for run in written), *logs)
    runs = {log[len(now) :] for log in whole if log[: len(now)] == now and len(log) > len(now)}
    return frozenset(run for run in runs if not any(len(run) < len(o) and o[: len(run)] == run for o in runs))


class After(View):
    """A state as a change leaves it."""

    __slots__ = ("_before", "_writes")

    def __init__(self, before: View, writes: Mapping[str, Value]) -> None:
        self._before, self._writes = before, writes

    def __getitem__(self, name: str) -> Value:
        return self._writes[name] if name in self._writes else self._before[name]


def remembered(change: Change, k: ExtendedNames, view: View, *args: object) -> Change:
    """CHANGE of whatever writes to logs: what was appended is remembered until it cannot commit any more."""
    writes = dict(change.writes)
    after = After(view, writes)
    for p in k.txn_log_partitions:
        if any(slot("tc_log", b, p) in writes for b in k.brokers):
            logs = [bare(after.at("tc_log", b, p)) for b in k.brokers]
            left = may_yet_commit(view.at("written", p), agreed(k, view, p), agreed(k, after, p), logs)
            writes[slot("written", p)] = left
    return attrs.evolve(change, writes=tuple(writes.items()))


def is_up_to_date(k: ExtendedNames, view: View, b: str, p: str) -> bool:
    """GUARD of CommitTxnLogAppend: a leader that serves, and of whose log nobody has heard more."""
    return serves(view, b, p) and not is_behind(k, view, b, p)


def reaching(change: Change, k: ExtendedNames, view: View, b: str, p: str) -> Change:
    """CHANGE of commits: they reach whoever does not serve, and the callback of what is committed is gone."""
    writes = dict(change.writes)
    hwm = view.at("tc_log_hwm", b, p) + 1
    log: Entries = After(view, writes).at("tc_log", b, p)
    now = bare(log[:hwm])
    for other in k.brokers:
        if other != b:
            writes.pop(slot("tc_log", other, p), None)
            writes.pop(slot("tc_log_hwm", other, p), None)
    writes[slot("tc_log", b, p)] = (*now, *log[hwm:])
    return attrs.evolve(change, writes=(*writes.items(), *heard(k, view, p, now, b)))


def heard(k: Names, view: View, p: str, now: Entries, but: str = "") -> Writes:
    """What is committed, on all brokers that do not serve."""
    writes: Writes = ()
    for b in k.brokers:
        if b != but and not serves(view, b, p):
            writes += ((slot("tc_log", b, p), now), (slot("tc_log_hwm", b, p), len(now)))
    return writes


def caught_up(k: ExtendedNames, view: View, b: str, *p: str) -> Writes:
    """WRITES of who stops serving: it has what is committed, and of its ids it knows nothing more."""
    writes: Writes = ()
    for one in p or [one for one in k.txn_log_partitions if serves(view, b, one)]:
        now = agreed(k, view, one)
        writes += ((slot("tc_log", b, one), now), (slot("tc_log_hwm", b, one), len(now)))
        for tid in tids_of(k, view, one):
            writes += ((slot("tc_tid_metadata", b, tid), None), (slot("tc_tid_transition", b, tid), None))
    return writes
