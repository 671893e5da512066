"""Extension actions of brokers and of the log behind them: coordinators refuse, crash, resign, and load."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import BAG, View, slot
from harness.model.spec import Change, action, each
from kafka_proto.transactions.correspondence import (
    AddPartitionsToTxnRequest,
    InitPidRequest,
    LogMetadata,
    Request,
    in_spec,
)
from kafka_proto.transactions.decisions import election
from kafka_proto.transactions.extensions.serving import (
    ExtendedNames,
    committed_log,
    given_up,
    has_stopped,
    has_to_load,
    home,
    now_serving,
    serves,
    stopped,
)
from kafka_proto.transactions.messages import Error, answer
from kafka_proto.transactions.specs.diary_02 import committed, find_coordinator, next_to_commit


@action(
    "RefuseRequest", each("brokers", "clients"), receives=(InitPidRequest, AddPartitionsToTxnRequest),
    reason="a broker that is elected and has not loaded, waits for producer ids, has stopped serving, or is deposed "
           "and has not heard of a commit refuses with a retriable error and changes nothing",
)
def refuse_request(k: ExtendedNames, view: View, b: str, c: str, request: Request) -> Iterable[Change]:
    """A retriable error, for one of the reasons that `excuses` gives."""
    p = home(view, request.tid)
    paid = k.paid(view)
    if paid is None:
        return
    loading = has_to_load(view, b, p)
    for code in (Error.COORDINATOR_LOAD_IN_PROGRESS,) if loading else excuses(view, b, p, request):
        yield Change(paid, code, sent=(in_spec(answer(request, code)),))


def excuses(view: View, b: str, p: str, request: Request) -> Iterable[Error]:
    """What a broker may say that does not load: the log has not heard of its election; it waits for producer ids;
    it has stopped serving; it is deposed, and of a commit of this id has not heard."""
    serving = serves(view, b, p)
    needs_pid = isinstance(request, InitPidRequest) and view.at("tc_tid_metadata", b, request.tid) is None
    if not serving or needs_pid:
        yield Error.COORDINATOR_LOAD_IN_PROGRESS
    if has_stopped(view, b, p):
        yield Error.NOT_COORDINATOR
    elif serving and find_coordinator(view, request.tid) != b and any(
        entry.tid == request.tid for entry in committed_log(view, b, p)
    ):
        yield Error.CONCURRENT_TRANSACTIONS


@action(
    "ResignEarly", each("brokers", "txn_log_partitions"),
    reason="a leader learns that it is deposed before the log fences it: what it appended may still commit",
)
def resign_early(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """Fail what is not committed and stop serving; the log keeps the entries for now."""
    paid = k.paid(view)
    if paid is None or view.at("txn_log_leader", p) != b or not serves(view, b, p):
        return
    pending = election.uncommitted(view.at("tc_log", b, p), view.at("tc_log_hwm", b, p))
    yield Change((*stopped(k, view, b, p), *paid), sent=election.failed_responses(pending))


@action("Crash", each("brokers"), reason="a broker forgets what is not on disk, and the messages to it are lost")
def crash(k: ExtendedNames, view: View, b: str) -> Iterable[Change]:
    """Whatever it leads it no longer serves, and nothing is on its way to it."""
    paid = k.paid(view)
    if paid is None:
        return
    writes = ((slot("inbox", b), BAG.empty), (slot("aux_crashes", b), view.at("aux_crashes", b) + 1), *paid)
    for p in k.txn_log_partitions:
        if serves(view, b, p):
            writes += stopped(k, view, b, p)
    yield Change(writes)


@action(
    "CommitUnanswered", each("brokers", "txn_log_partitions"),
    reason="an entry commits whose leader crashed or resigned: nobody runs its callback",
)
def commit_unanswered(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """As CommitTxnLogAppend, of a leader that has stopped serving; no callback."""
    entry = next_to_commit(k, view, b, p)
    if entry is not None and has_stopped(view, b, p):
        yield Change(committed(k, view, b, p, entry))


@action(
    "DropUncommitted", each("brokers", "txn_log_partitions"),
    reason="the log gives up the entries of a leader that has stopped serving",
)
def drop_uncommitted(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """A leader that has stopped serving has nothing under way any more."""
    if has_stopped(view, b, p) and len(view.at("tc_log", b, p)) > view.at("tc_log_hwm", b, p):
        yield Change(given_up(k, view, b, p))


@action(
    "LoadTxnLog", each("brokers", "txn_log_partitions"),
    reason="a leader that crashed joins its own epoch again, over or not: what was not committed is given up",
)
def load_txn_log(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """A leader that has stopped serving starts over in its epoch."""
    if has_stopped(view, b, p):
        yield Change((*given_up(k, view, b, p), *now_serving(k, b, p, True)))


@action(
    "FinishLoading", each("brokers", "txn_log_partitions"),
    reason="an elected broker does nothing but refuse before it has loaded its log",
)
def finish_loading(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """From now on it answers as coordinator."""
    if has_to_load(view, b, p):
        yield Change(((slot("loading", b, p), False),))


@action(
    "FailCommitted", each("brokers", "txn_log_partitions"),
    reason="a deposed leader fails a request whose entry is committed, before it hears of that",
)
def fail_committed(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """The answer on its way says NotCoordinator although the entry is committed."""
    believed: LogMetadata = view.at("tc_log_metadata", b, p)
    if believed.leader != b or view.at("txn_log_leader", p) == b or not serves(view, b, p):
        return
    for n, entry in enumerate(committed_log(view, b, p)):
        said, instead = entry.callback.response, entry.callback.err
        if said is not None and instead is not None and said in view.at("inbox", said.dest):
            yield Change((), str(n), sent=(instead,), consumed=said)
