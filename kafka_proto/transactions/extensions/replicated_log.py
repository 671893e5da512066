"""Extension actions of coordinators on a replicated log, which wrap diary 02 like the others.

In diary 02 an entry is on every broker in the step that commits it, and what a deposed leader has not committed is
gone. In a replicated log followers hold entries before they are committed (see `replicas`). ElectLeader has two halves:
the controller's election, kept in `announced` with the first one, and what it leads to when the log is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import Kind, Model, View, canonical_sort, slot
from harness.model.spec import (
    Around,
    Change,
    Next,
    Writes,
    action,
    chosen,
    each,
    extended,
    flat,
    reasons,
    rows,
    writing,
)
from kafka_proto.transactions.correspondence import (
    AddPartitionsToTxnRequest,
    Entry,
    InitPidRequest,
    LogMetadata,
    Request,
    in_spec,
)
from kafka_proto.transactions.decisions import election
from kafka_proto.transactions.extensions.brokers import crash, refuse_request
from kafka_proto.transactions.extensions.clients import (
    OF_REQUESTS,
    copy_message,
    ignore_response,
    lose_message,
    request_timeout,
    stale_look_up,
)
from kafka_proto.transactions.extensions.replicas import (
    Entries,
    agreed,
    bare,
    caught_up,
    heard,
    is_behind,
    is_up_to_date,
    reaching,
    remembered,
    replicated_initial,
)
from kafka_proto.transactions.extensions.serving import (
    ExtendedNames,
    ends_serving,
    home,
    now_serving,
    serves,
    with_actions,
)
from kafka_proto.transactions.specs import diary_02
from kafka_proto.transactions.specs.diary_02 import (
    committed,
    elect_leader,
    following,
    materialized,
    receive_add_partitions_request,
    receive_init_pid_request,
)
from kafka_proto.transactions.versions.version import Version

GAPS = (1, 2, 3)
"""By how much an epoch is above the last one: the controller passes over epochs in which nobody is elected."""


def next_of(view: View, b: str, p: str) -> Entry | None:
    """Return the first entry above a broker's high watermark."""
    log, hwm = view.at("tc_log", b, p), view.at("tc_log_hwm", b, p)
    return log[hwm] if hwm < len(log) else None


def answered(k: ExtendedNames, view: View, b: str, p: str, entry: Entry) -> Change:
    """An entry commits and its callback runs, as in CommitTxnLogAppend."""
    done = in_spec(k.version.entry_committed(entry))
    return reaching(Change(committed(k, view, b, p, entry, done.entry), sent=done.answers), k, view, b, p)


def refused(k: ExtendedNames, view: View, b: str, p: str, entry: Entry) -> Iterable[Change]:
    """An entry commits, and whoever waits for it is refused; where nobody does, that is not to be seen."""
    if entry.callback.err is not None:
        change = Change(committed(k, view, b, p, entry), "refused", sent=(entry.callback.err,))
        yield reaching(change, k, view, b, p)


@action(
    "CommitByIsr", each("brokers", "txn_log_partitions"),
    reason="an entry commits as the ISR holds it, though a broker that is not in it has not heard of the epoch",
)
def commit_by_isr(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """As CommitTxnLogAppend, where not every broker is in the leader's epoch."""
    entry = next_of(view, b, p)
    if entry is None or view.at("txn_log_leader", p) != b or not is_up_to_date(k, view, b, p):
        return
    cepoch = view.at("tc_log_metadata", b, p).cepoch
    if any(view.at("tc_log_metadata", other, p).cepoch != cepoch for other in k.brokers):
        yield answered(k, view, b, p, entry)


@action(
    "CommitRefused", each("brokers", "txn_log_partitions"),
    reason="an entry commits whose client is answered NotCoordinator, as the ISR is smaller than min.insync.replicas "
           "by now; what was prepared is not completed at once",
)
def commit_refused(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """As CommitTxnLogAppend or CommitByIsr, but its callback fails."""
    entry = next_of(view, b, p)
    if entry is not None and view.at("txn_log_leader", p) == b and is_up_to_date(k, view, b, p):
        yield from refused(k, view, b, p, entry)


@action(
    "CommitAbandoned", each("txn_log_partitions"),
    reason="an entry commits whose leader has stopped, or has not heard of it: a later leader has it in its log",
)
def commit_abandoned(k: ExtendedNames, view: View, p: str) -> Iterable[Change]:
    """Something that was written follows what is committed; nobody's callback runs. Its leader has yet to load it."""
    if view.at("announced", p)[-1].cepoch <= view.at("txn_log_epoch", p):
        return
    firsts = canonical_sort({run[0] for run in view.at("written", p)})
    for n, entry in enumerate(firsts):
        yield Change(heard(k, view, p, (*agreed(k, view, p), entry)), f"{entry.tid} {n}")


@action(
    "HearLate", each("brokers", "txn_log_partitions"),
    reason="a leader hears that its entry is committed when a later leader has seen to it already, and answers",
)
def hear_late(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """As CommitTxnLogAppend or CommitRefused, for this broker alone."""
    entry, hwm = next_of(view, b, p), view.at("tc_log_hwm", b, p)
    if entry is None or not serves(view, b, p) or not is_behind(k, view, b, p):
        return
    if agreed(k, view, p)[hwm] != bare((entry,))[0]:
        return
    own = {slot(name, b, one) for name in ("tc_log", "tc_log_hwm") for one in k.txn_log_partitions}
    own |= {slot(name, b, entry.tid) for name in ("tc_tid_metadata", "tc_tid_transition")}
    for change in (answered(k, view, b, p, entry), *refused(k, view, b, p, entry)):
        yield attrs.evolve(change, writes=tuple(write for write in change.writes if write[0] in own))


@action(
    "RefuseAppend", each("brokers", "clients"), receives=(InitPidRequest, AddPartitionsToTxnRequest),
    reason="the log refuses an entry, as the ISR is smaller than min.insync.replicas: the client is answered "
           "NotCoordinator",
)
def refuse_append(k: ExtendedNames, view: View, b: str, c: str, request: Request) -> Iterable[Change]:
    """As the request would be received, but what it would append is refused."""
    paid = k.paid(view)
    p = home(view, request.tid)
    if paid is None or not serves(view, b, p):
        return
    asked = receive_init_pid_request if isinstance(request, InitPidRequest) else receive_add_partitions_request
    log = slot("tc_log", b, p)
    for change in asked.changes(k, view, b, c, request):
        entry = next((value[-1] for name, value in change.writes if name == log), None)
        if entry is not None:
            left_out = (log, slot("tc_tid_transition", b, request.tid))
            kept = tuple(write for write in change.writes if write[0] not in left_out)
            yield Change((*kept, *paid), sent=(entry.callback.err,))


@action(
    "Resign", each("brokers", "txn_log_partitions"),
    reason="a leader learns of an epoch whose leader does not serve yet: it fails what it has not committed, though "
           "that may yet commit",
)
def resign(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """Stop serving."""
    if serves(view, b, p):
        pending = election.uncommitted(view.at("tc_log", b, p), view.at("tc_log_hwm", b, p))
        writes = (*now_serving(k, b, p, False), *caught_up(k, view, b, p))
        yield Change(writes, sent=election.failed_responses(pending))


@action(
    "AnnounceLeader", each("brokers", "txn_log_partitions"), Kind.PERTURBATION,
    reason="the controller elects a leader, which leads when it has heard of that and has loaded its log",
)
def announce_leader(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """Nobody else knows of it yet."""
    elections = view["aux_coord_ctr"]
    if elections < k.elections:
        announced: tuple[LogMetadata, ...] = view.at("announced", p)
        for gap in GAPS if k.bound is None else GAPS[:1]:
            now = (*announced, LogMetadata(announced[-1].cepoch + gap, b))
            yield Change(((slot("announced", p), now), ("aux_coord_ctr", elections + 1)), str(now[-1].cepoch))


@action(
    "TakeOver", each("brokers", "txn_log_partitions"),
    reason="an elected broker has loaded its log, all of which is committed, not its predecessor's memory",
)
def take_over(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """As ElectLeader, but loading the log: the leader's, who does not know yet, goes on for itself."""
    epoch = view.at("txn_log_epoch", p)
    for term in elected_to(view, b, p):
        if term.cepoch > epoch:
            writes = ((slot("txn_log_leader", p), b), (slot("txn_log_epoch", p), term.cepoch))
            yield Change((*writes, *loading(k, view, b, p, term, agreed(k, view, p))), str(term.cepoch))


@action(
    "TakeOverBehind", each("brokers", "txn_log_partitions"),
    reason="an elected broker has loaded its log when a later leader serves already: of what is committed since it may "
           "lack some",
)
def take_over_behind(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """Serve in an epoch that is over; nothing commits in it."""
    epoch, now = view.at("txn_log_epoch", p), agreed(k, view, p)
    for term in elected_to(view, b, p):
        for n in range(len(now) + 1) if term.cepoch < epoch else ():
            yield Change(loading(k, view, b, p, term, now[:n]), f"{term.cepoch} {n}")


def elected_to(view: View, b: str, p: str) -> list[LogMetadata]:
    """Return the elections of a broker that does not serve, of which it has not made anything yet."""
    known = view.at("tc_log_metadata", b, p).cepoch
    announced: tuple[LogMetadata, ...] = () if serves(view, b, p) else view.at("announced", p)
    return [term for term in announced if term.leader == b and term.cepoch > known]


def loading(k: ExtendedNames, view: View, b: str, p: str, term: LogMetadata, log: Entries) -> Writes:
    """A broker serves in an epoch, with what it has loaded."""
    return (
        (slot("tc_log_metadata", b, p), term), (slot("tc_log", b, p), log), (slot("tc_log_hwm", b, p), len(log)),
        *now_serving(k, b, p, True), *materialized(k, view, b, p, election.replay(log).get),
    )


@action(
    "FollowOlder", each("brokers", "txn_log_partitions"),
    reason="a broker learns of an epoch, and follows, when the leader of a later one serves already",
)
def follow_older(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """As BecomeFollower, in an epoch that is over."""
    known: LogMetadata = view.at("tc_log_metadata", b, p)
    for term in view.at("announced", p):
        late = term.cepoch < view.at("txn_log_epoch", p)
        if late and k.version.must_follow(b, known.leader, known.cepoch, term.leader, term.cepoch):
            change = ends_serving(following(k, view, b, p, term, str(term.cepoch)), k, view, b, p)
            yield attrs.evolve(change, writes=(*change.writes, *caught_up(k, view, b, p)))


ACTIONS: Next = (
    request_timeout, ignore_response, stale_look_up, refuse_request, refuse_append,
    (commit_by_isr, commit_refused, hear_late, resign, announce_leader, take_over, take_over_behind, follow_older),
    commit_abandoned,
    crash,
    (lose_message, copy_message),
)
OF_THE_SPEC: Next = tuple(tuple(one for one in row if one is not elect_leader) for row in rows(diary_02.NEXT))
"""Diary 02 without ElectLeader, whose halves are AnnounceLeader and TakeOver."""
AROUND: Mapping[str, Around] = {
    **OF_REQUESTS,
    "CommitTxnLogAppend": Around((is_up_to_date,), (reaching,)),
    "BecomeFollower": Around((), (ends_serving, writing(caught_up))),
    "Crash": Around((), (writing(caught_up),)),
}
"""What is added to actions where any of these is on; `remembered` is added to all."""
EXTENSIONS: Mapping[str, str] = reasons(ACTIONS)
"""The extension actions of a replicated log, and why the truth has each."""


def relation(on: Iterable[str]) -> Next:
    """Return the next-state relation of diary 02 on a replicated log, with extension actions `on`."""
    bare_relation = (*OF_THE_SPEC, *chosen(ACTIONS, on))
    around = {one.name: AROUND.get(one.name, Around()) for one in flat(bare_relation)}
    wrapped = {name: Around(one.guards, (*one.also, remembered)) for name, one in around.items()}
    return extended(bare_relation, wrapped)


def on_replicas(model: Model, version: Version, on: Iterable[str], bound: int | None = None) -> Model:
    """Put a model of diary 02 on a replicated log, with at most so many spurious steps."""
    k = ExtendedNames.of(model.sizes, version=version, on=frozenset(on), bound=bound)
    return with_actions(model, k, relation(k.on), replicated_initial(k))
