"""Diary 02: InitPid and AddPartitionsToTxn with elections; the gist's actions are these, too.

Who commits does so on every broker at once, elections are one atomic step with the controller's, and the coordinator of
an id is found atomically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from harness.model import Faults, Kind, Model, Network, Op, Value, View, brief_value, departed, slot
from harness.model.spec import ITSELF, Change, Next, Writes, action, each, processes
from kafka_proto.transactions.decisions import client as clients
from kafka_proto.transactions.decisions import completion, election
from kafka_proto.transactions.decisions.coordinator import DiaryOutcome
from kafka_proto.transactions.properties import properties
from kafka_proto.transactions.records import (
    TYPES,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ClientPhase,
    ClientRecord,
    Entry,
    InitPidRequest,
    InitPidResponse,
    LogMetadata,
    Request,
    SpecError,
    TxnMetadata,
)
from kafka_proto.transactions.specs.names import Names, initial, symmetric
from kafka_proto.transactions.versions import DEPARTURES, Version


@action("SendInitPidRequest", each("clients"), by=ITSELF)
def send_init_pid_request(k: Names, view: View, c: str) -> Iterable[Change]:
    """A client asks the current coordinator of an id for a producer id."""
    client: ClientRecord = view.at("client", c)
    for tid in k.transactional_ids:
        if clients.may_init(client, tid):
            yield asks_for_pid(c, client, tid, find_coordinator(view, tid), tid)


def asks_for_pid(c: str, client: ClientRecord, tid: str, broker: str, detail: str) -> Change:
    """A client asks a broker for the producer id of an id."""
    request = InitPidRequest(tid, source=c, dest=broker)
    writes = ((slot("client", c), clients.init_sent(client, tid)),)
    return Change(writes, detail, sent=(request,), op=Op(c, "init", "invoke", tid))


def find_coordinator(view: View, tid: str) -> str:
    """The atomic FindCoordinator of the specs."""
    leader: str = view.at("txn_log_leader", view.at("t_to_p_mapping", tid))
    return leader


@action("ReceiveInitPidRequest", each("brokers", "clients"), receives=InitPidRequest)
def receive_init_pid_request(k: Names, view: View, b: str, c: str, request: InitPidRequest) -> Iterable[Change]:
    """The coordinator appends what gives the client its producer id, or aborts for it, or refuses."""
    known = known_of(view, b, request.tid)
    new_pid = view["pid_source"] + 1 if known["leads"] else -1
    yield carried_out(k, view, b, request, k.version.init_producer_id(request, **known, new_pid=new_pid))


def known_of(view: View, b: str, tid: str) -> dict[str, Any]:
    """Return what a broker decides by: whether it believes to lead the partition of an id, and then what it knows."""
    leads = view.at("tc_log_metadata", b, view.at("t_to_p_mapping", tid)).leader == b
    return {
        "leads": leads, "metadata": view.at("tc_tid_metadata", b, tid) if leads else None,
        "pending": view.at("tc_tid_transition", b, tid) if leads else None,
    }


def carried_out(k: Names, view: View, b: str, request: Request, decided: DiaryOutcome) -> Change:
    """A coordinator remembers, appends and answers what it has decided."""
    writes: Writes = ()
    metadata: TxnMetadata | None = decided.metadata
    if metadata is not None:
        source = k.version.pid_source_after(view["pid_source"], metadata.pid)
        writes = ((slot("tc_tid_metadata", b, request.tid), metadata), ("pid_source", source))
    if decided.entry is not None:
        writes += appended(view, b, decided.entry)
    return Change(writes, sent=decided.answers)


def appended(view: View, b: str, entry: Entry) -> Writes:
    """An entry in a broker's local log, and its transition pending (`LocalTxnLogEntryAppend`)."""
    log = slot("tc_log", b, view.at("t_to_p_mapping", entry.tid))
    return (log, (*view[log], entry)), (slot("tc_tid_transition", b, entry.tid), entry.transition)


@action("ReceiveInitPidResponse", each("clients", "brokers"), receives=InitPidResponse)
def receive_init_pid_response(k: Names, view: View, c: str, b: str, response: InitPidResponse) -> Iterable[Change]:
    """A client has its producer id, or may ask again."""
    client: ClientRecord = view.at("client", c)
    if clients.awaits(client, response):
        op = outcome(c, "init", response.code, (response.pid, response.pepoch))
        yield Change(((slot("client", c), k.version.init_answered(client, response)),), op=op)


def outcome(c: str, name: str, code: SpecError, value: Value) -> Op:
    """Return how an operation ended: every error code here is definite, so it is ok or fail."""
    return Op(c, name, "ok", value) if code is SpecError.OK else Op(c, name, "fail", str(code))


@action("SendAddPartitionsToTxnRequest", each("clients"), by=ITSELF)
def send_add_partitions(k: Names, view: View, c: str) -> Iterable[Change]:
    """A client adds one partition to its transaction."""
    client: ClientRecord = view.at("client", c)
    for tp in k.topic_partitions:
        if clients.may_add(client, tp):
            assert client.tid is not None and client.tc is not None
            request = AddPartitionsToTxnRequest(
                client.tid, client.pid, client.epoch, frozenset((tp,)), source=c, dest=client.tc
            )
            writes = ((slot("client", c), clients.add_sent(client, tp)),)
            yield Change(writes, tp, sent=(request,), op=Op(c, "add_partitions", "invoke", tp))


@action("ReceiveAddPartitionsToTxnRequest", each("brokers", "clients"), receives=AddPartitionsToTxnRequest)
def receive_add_partitions_request(
    k: Names, view: View, b: str, c: str, request: AddPartitionsToTxnRequest
) -> Iterable[Change]:
    """The coordinator appends the partitions to the transaction, or refuses."""
    yield carried_out(k, view, b, request, k.version.add_partitions(request, **known_of(view, b, request.tid)))


@action("ReceiveAddPartitionsToTxnResponse", each("clients", "brokers"), receives=AddPartitionsToTxnResponse)
def receive_add_partitions_response(
    k: Names, view: View, c: str, b: str, response: AddPartitionsToTxnResponse
) -> Iterable[Change]:
    """A client's partitions are in the transaction; or it tries again, elsewhere if need be; or it is fenced."""
    client: ClientRecord = view.at("client", c)
    if not clients.awaits(client, response):
        return
    found = None
    if response.code is SpecError.NOT_COORDINATOR:
        assert client.tid is not None
        found = find_coordinator(view, client.tid)
    op = outcome(c, "add_partitions", response.code, brief_value(response.partitions))
    yield Change(((slot("client", c), k.version.add_answered(client, response, found)),), op=op)


@action("CommitTxnLogAppend", each("brokers", "txn_log_partitions"))
def commit_txn_log_append(k: Names, view: View, b: str, p: str) -> Iterable[Change]:
    """One entry is replicated to every broker, every high watermark passes it, and its callback runs."""
    entry = next_to_commit(k, view, b, p)
    if entry is None:
        return
    done = k.version.entry_committed(entry)
    yield Change(committed(k, view, b, p, entry, done.entry), sent=done.answers)


def next_to_commit(k: Names, view: View, b: str, p: str) -> Entry | None:
    """Return the entry that a broker may commit now, if there is one."""
    hwm = view.at("tc_log_hwm", b, p)
    return completion.next_to_commit(view.at("tc_log", b, p), hwm, can_commit(k, view, b, p))


def can_commit(k: Names, view: View, b: str, p: str) -> Iterator[bool]:
    """Yield whether a broker leads, and whether each broker is in its epoch (`CanCommit`)."""
    yield view.at("txn_log_leader", p) == b
    cepoch = view.at("tc_log_metadata", b, p).cepoch
    for other in k.brokers:
        yield view.at("tc_log_metadata", other, p).cepoch == cepoch


def committed(k: Names, view: View, b: str, p: str, entry: Entry, then: Entry | None = None) -> Writes:
    """A leader's next entry below the high watermark of every broker; `then` is what it appends at once."""
    writes: Writes = ()
    for other in k.brokers:
        writes += ((slot("tc_log_hwm", other, p), view.at("tc_log_hwm", b, p) + 1),)
        if other != b:
            writes += ((slot("tc_log", other, p), (*view.at("tc_log", other, p), entry)),)
    writes += (
        (slot("tc_tid_metadata", b, entry.tid), entry.transition),
        (slot("tc_tid_transition", b, entry.tid), then.transition if then is not None else None),
    )
    return writes if then is None else (*writes, (slot("tc_log", b, p), (*view.at("tc_log", b, p), then)))


@action("ElectLeader", each("brokers", "txn_log_partitions"), Kind.PERTURBATION)
def elect_leader(k: Names, view: View, b: str, p: str) -> Iterable[Change]:
    """Another broker becomes leader, and knows of the partition's ids what its predecessor knows."""
    elections = view["aux_coord_ctr"]
    if elections >= k.elections:
        return
    if view.at("tc_log_metadata", b, p).leader == b:
        return
    deposed = view.at("txn_log_leader", p)
    yield Change(elected(k, view, b, p, lambda tid: view.at("tc_tid_metadata", deposed, tid)))


Loaded = Callable[[str], TxnMetadata | None]
"""What an elected broker loads of an id on its partition."""


def elected(k: Names, view: View, b: str, p: str, loaded: Loaded) -> Writes:
    """A broker leads a partition in a new epoch, in its own and the controller's eyes."""
    cepoch = view.at("txn_log_epoch", p) + 1
    return (
        (slot("txn_log_leader", p), b),
        (slot("txn_log_epoch", p), cepoch),
        (slot("tc_log_metadata", b, p), LogMetadata(cepoch, b)),
        ("aux_coord_ctr", view["aux_coord_ctr"] + 1),
        *materialized(k, view, b, p, loaded),
    )


def materialized(k: Names, view: View, b: str, p: str, loaded: Loaded) -> Writes:
    """What a broker that leads a partition from now on knows of all ids."""
    writes: Writes = ()
    for tid in k.transactional_ids:
        on_partition = view.at("t_to_p_mapping", tid) == p
        own: TxnMetadata | None = view.at("tc_tid_metadata", b, tid)
        now = k.version.materialized(on_partition, loaded(tid) if on_partition else None, own)
        writes += ((slot("tc_tid_metadata", b, tid), now),)
    return writes


@action("BecomeFollower", each("brokers", "txn_log_partitions"))
def become_follower(k: Names, view: View, b: str, p: str) -> Iterable[Change]:
    """A broker truncates, forgets the ids of the partition, and fails what was not committed."""
    known = view.at("tc_log_metadata", b, p)
    leader, epoch = view.at("txn_log_leader", p), view.at("txn_log_epoch", p)
    if k.version.must_follow(b, known.leader, known.cepoch, leader, epoch):
        yield following(k, view, b, p, LogMetadata(epoch, leader))


def following(k: Names, view: View, b: str, p: str, now: LogMetadata, detail: str = "") -> Change:
    """A broker follows a leader from now on."""
    log, hwm = view.at("tc_log", b, p), view.at("tc_log_hwm", b, p)
    follows = k.version.follower_log(log, hwm, lambda: view.at("tc_log", now.leader, p))
    writes: Writes = ((slot("tc_log_metadata", b, p), now), (slot("tc_log", b, p), follows))
    for tid in k.transactional_ids:
        if view.at("t_to_p_mapping", tid) == p:
            writes += ((slot("tc_tid_metadata", b, tid), None), (slot("tc_tid_transition", b, tid), None))
    return Change(writes, detail, sent=election.failed_responses(election.uncommitted(log, hwm)))


@action("CompletePartialTxn", each("brokers", "transactional_ids"))
def complete_partial_txn(k: Names, view: View, b: str, tid: str) -> Iterable[Change]:
    """A new coordinator finishes what its predecessor prepared."""
    p = view.at("t_to_p_mapping", tid)
    assert k.version.complete_partial_txn is not None
    entry = k.version.complete_partial_txn(
        tid,
        leads=view.at("tc_log_metadata", b, p).leader == b,
        metadata=view.at("tc_tid_metadata", b, tid),
        pending=view.at("tc_tid_transition", b, tid),
    )
    if entry is not None:
        yield Change(appended(view, b, entry))


ACTIONS: Next = (
    send_init_pid_request,
    receive_init_pid_request,
    receive_init_pid_response,
    send_add_partitions,
    receive_add_partitions_request,
    receive_add_partitions_response,
    (commit_txn_log_append, elect_leader, become_follower),
)
NEXT: Next = (*ACTIONS, complete_partial_txn)
"""The next-state relation: a step of any of these."""
GIST: Next = (*NEXT[:6], (commit_txn_log_append, attrs.evolve(elect_leader, name="BecomeLeader"), become_follower))
"""The gist's: of CompletePartialTxn it speaks in a comment only (S5), and its followers copy the whole log."""

FAIRNESS = {
    "SendInitPidRequest": "strong",
    "SendAddPartitionsToTxnRequest": "strong",
    "ReceiveInitPidRequest": "weak",
    "ReceiveInitPidResponse": "weak",
    "ReceiveAddPartitionsToTxnRequest": "weak",
    "ReceiveAddPartitionsToTxnResponse": "weak",
    "CommitTxnLogAppend": "weak",
    "BecomeFollower": "weak",
    "CompletePartialTxn": "weak",
}
"""The spec's `Fairness`, per action and its parameters; ElectLeader is not fair."""


def waits_for(k: Names, view: View) -> tuple[str, ...]:
    """Say who waits for whom: clients for answers, partition leaders for replicas that do not know the epoch."""
    found = []
    for c in k.clients:
        client: ClientRecord = view.at("client", c)
        if client.state is ClientPhase.SENT_INIT_PID_REQUEST and client.tid is not None:
            found.append(f"{c} waits for {find_coordinator(view, client.tid)} to answer its InitPidRequest")
        if client.pending_partitions:
            found.append(f"{c} waits for {client.tc} to answer its AddPartitionsToTxnRequest")
    for p in k.txn_log_partitions:
        leader, epoch = view.at("txn_log_leader", p), view.at("txn_log_epoch", p)
        behind = [b for b in k.brokers if view.at("tc_log_metadata", b, p).cepoch != epoch]
        if behind and view.at("tc_log_hwm", leader, p) < len(view.at("tc_log", leader, p)):
            found.append(f"{leader}, leader of {p} in epoch {epoch}, waits for {', '.join(behind)} to learn that epoch")
    return tuple(found)


def build(
    version: Version, sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults,
    history_variables: bool, actions: Next = ACTIONS,
) -> Model:
    """Build a version at a size, with the repairs that the settings name; `actions` are those but CompletePartialTxn.
    """
    k = Names.of(sizes, version=departed(version, DEPARTURES, settings.get("repair", "")))
    next_state = actions if k.version.complete_partial_txn is None else (*actions, complete_partial_txn)
    return Model(
        f"transactions/{k.version.name}", processes(next_state, k), (initial(k),), network, faults,
        properties(k), FAIRNESS, history_variables, sizes, settings, types=TYPES,
        waits_for=lambda view: waits_for(k, view), symmetric=symmetric(k),
        view_hides=("messages_discard", "aux_coord_ctr"),
    )
