"""What becomes of entries of the transaction log: committed, refused, given up in an election, loaded after one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import Value, View, slot
from harness.model.spec import Change, Writes, action, each
from kafka_proto.broker.parts import LeaderAndEpoch
from kafka_proto.cluster.refinement.decided import (
    COMPLETED,
    NOBODY,
    NONE,
    AppendUnderWay,
    DecidedEntry,
    DecidedOn,
    KnownTransaction,
    SaidCode,
    name,
)
from kafka_proto.cluster.refinement.drafts import (
    CoordinatorNames,
    Draft,
    LoggedEntries,
    at_rest,
    carried_out,
    drafted,
    due,
    forgotten,
    leads,
    paid,
    serves,
    settled,
)
from kafka_proto.transactions import records
from kafka_proto.transactions.decisions import completion
from kafka_proto.transactions.records import FINISHED, PREPARED, Callback, Entry
from kafka_proto.transactions.versions import REPAIRED


@action("CommitTxnLogAppend", each("brokers", "transactional_ids"))
def commit_txn_log_append(k: CoordinatorNames, view: View, b: str, tid: str) -> Iterable[Change]:
    """Diary 02's: an entry is committed, its waiting client is answered, and what is prepared is completed."""
    append: AppendUnderWay | None = view.at("append", b, tid)
    if not at_rest(view) or view["event"] is not None or append is None or not serves(view, b, k.home[tid]):
        return
    entry: KnownTransaction = view.at("tc_tid_transition", b, tid)
    logged: LoggedEntries | None = view.at("tc_log", b, k.home[tid]).get(tid)
    if logged is None or not is_committed(entry, logged.committed):
        return
    done = REPAIRED.entry_committed(Entry(tid, entry, Callback(entry.state.value)))
    then = KnownTransaction.made(done.entry.transition) if done.entry is not None else None
    then = attrs.evolve(then, next_producer_id=NONE) if then is not None else None
    decided = DecidedEntry(append.then, then, None, entry, then.state if then is not None else None)
    failed = view.at("failed_fence", b, tid) and entry.state not in PREPARED
    at = DecidedOn("commit", entry, view.at("tc_tid_metadata", b, tid))
    yield from drafted(k, view, b, tid, at, decided, append.to, failed)


def is_committed(entry: KnownTransaction, committed: KnownTransaction | None) -> bool:
    """Say whether a log has an entry, or already what completes it."""
    if committed is None or committed == entry:
        return committed is not None
    return committed.state is COMPLETED.get(entry.state) and committed.previous_producer_id == entry.pid


@action("RefuseAppend", each("brokers", "transactional_ids"), reason="the log refuses an entry, as the ISR is smaller "
        "than min.insync.replicas (KIP-98): it is given up; Complete* is tried again")
def refuse_append(k: CoordinatorNames, view: View, b: str, tid: str) -> Iterable[Change]:
    append: AppendUnderWay | None = view.at("append", b, tid)
    if not at_rest(view) or view["event"] is not None or append is None or not serves(view, b, k.home[tid]):
        return
    entry: KnownTransaction = view.at("tc_tid_transition", b, tid)
    if append.to == NOBODY and entry.state in FINISHED:
        return
    failed = view.at("failed_fence", b, tid) or append.fences
    writes: Writes = ((slot("tc_tid_transition", b, tid), None), (slot("append", b, tid), None),
                      (slot("failed_fence", b, tid), failed))
    for code in ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"):
        yield from settled(view, *([] if append.to == NOBODY else [(append.to, SaidCode(code))]), writes=writes)


def hears(k: CoordinatorNames, view: View, b: str, p: str) -> Iterable[Change]:
    """Forget the ids of a partition, and tell waiting clients that this is not their coordinator (`BecomeFollower`)."""
    said, writes = [], tuple[tuple[str, Value], ...]()
    for tid in k.ids_of(p):
        append: AppendUnderWay | None = view.at("append", b, tid)
        if append is not None and append.to != NOBODY:
            said.append((append.to, SaidCode(name(records.SpecError.NOT_COORDINATOR))))
        writes += forgotten(b, tid)
    rest = paid(view, *said)
    if rest is not None:
        epoch = view.at("tc_log_metadata", b, p).leader_epoch
        yield Change((*writes, *rest, (slot("followed", b, p), epoch), (slot("serving", b, p), False)))


@action("BecomeFollower", each("brokers", "txn_log_partitions"))
def become_follower(k: CoordinatorNames, view: View, b: str, p: str) -> Iterable[Change]:
    """Diary 02's: a broker learns of a new epoch, in which another broker leads."""
    now: LeaderAndEpoch = view.at("tc_log_metadata", b, p)
    follows = REPAIRED.must_follow(b, "", view.at("followed", b, p), now.leader, now.leader_epoch)
    if at_rest(view) and view["event"] is None and follows:
        yield from hears(k, view, b, p)


@action("ElectLeader", each("brokers", "txn_log_partitions"))
def elect_leader(k: CoordinatorNames, view: View, b: str, p: str) -> Iterable[Change]:
    """Diary 02's, but for what the elected one knows, which it has yet to load: a broker learns that it leads."""
    is_new = view.at("tc_log_metadata", b, p).leader_epoch > view.at("followed", b, p)
    if at_rest(view) and view["event"] is None and leads(view, b, p) and is_new:
        yield from hears(k, view, b, p)


@action("LoadTxnLog", each("brokers", "txn_log_partitions"), reason="an elected broker reads its log, all of which is "
        "committed (KIP-98, onElection), and completes what is prepared; in diary 02 it has its predecessor's memory")
def load_txn_log(k: CoordinatorNames, view: View, b: str, p: str) -> Iterable[Change]:
    """Know of each id what the last entry says."""
    logged: Mapping[str, LoggedEntries] = view.at("tc_log", b, p)
    if not at_rest(view) or view["event"] is not None or not leads(view, b, p) or view.at("serving", b, p):
        return
    if any(one.last != one.committed for one in logged.values()):
        return
    yield Change(loaded(k, view, b, p, logged))


def loaded(k: CoordinatorNames, view: View, b: str, p: str, logged: Mapping[str, LoggedEntries]) -> Writes:
    """A broker serves a partition with what its log has; departures change some of it before anything is known."""
    writes: Writes = ((slot("serving", b, p), True),)
    drafts: list[Draft] = []
    for tid, entries in logged.items():
        done = completion.complete_partial_txn(tid, leads=True, metadata=entries.last, pending=None)
        entry = None
        if done is not None:
            entry = attrs.evolve(KnownTransaction.made(done.transition), next_producer_id=NONE)
        at = DecidedOn("reload", entries.last, None)
        decided = DecidedEntry(None, entry, None, entries.last, entry.state if entry is not None else None)
        draft = Draft(b, tid, NOBODY, at, decided, due(k, at, decided), False)
        if draft.due:
            drafts.append(draft)
        else:
            writes += carried_out(view, draft) or ()
    return (*writes, ("decided", tuple(drafts)))


@action("Crash", each("brokers"), reason="a coordinator forgets all that it knows; what it has is in the log")
def crash(k: CoordinatorNames, view: View, b: str) -> Iterable[Change]:
    if not at_rest(view) or view["event"] is not None:
        return
    if any(view.at("tc_log_metadata", b, p).leader_epoch != NONE for p in k.txn_log_partitions):
        return
    writes: Writes = tuple(one for tid in k.transactional_ids for one in forgotten(b, tid))
    for p in k.txn_log_partitions:
        writes += (slot("followed", b, p), NONE), (slot("serving", b, p), False)
    yield Change(writes)
