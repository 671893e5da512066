"""Diary 01: InitPid alone, with an unreplicated transaction log and any broker asked at random.

The published table's initial states range over every mapping of ids to partitions and of partitions to brokers
(`init=published`); the later form chooses one (`init=choose`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import product

import attrs

from harness.model import (
    Faults,
    FrozenMap,
    Model,
    Network,
    Op,
    Property,
    Reason,
    Step,
    Value,
    View,
    always,
    departed,
    eventually,
    slot,
    sometimes,
)
from harness.model.spec import ITSELF, Change, Next, Writes, action, each, processes
from kafka_proto.requests import TxnState
from kafka_proto.transactions.decisions.coordinator import transition
from kafka_proto.transactions.properties import MessageType, no_bad_state
from kafka_proto.transactions.records import (
    ClientPhase,
    InitPidRequest,
    InitPidResponse,
    SpecError,
    TxnMetadata,
    answer,
    fresh_metadata,
)
from kafka_proto.transactions.specs.diary_02 import outcome
from kafka_proto.transactions.specs.names import Names, spread, symmetric
from kafka_proto.transactions.versions import DEPARTURES, DIARY_01, PidVersion

CODES = frozenset((
    SpecError.OK, SpecError.CONCURRENT_TRANSACTIONS, SpecError.NOT_COORDINATOR_FOR_TRANSACTIONAL_ID,
    SpecError.ILLEGAL_STATE,
))
WITNESSES = {
    "NotCoordinatorRetrySucceeds": SpecError.NOT_COORDINATOR_FOR_TRANSACTIONAL_ID,
    "ConcurrentTransactionsRetrySucceeds": SpecError.CONCURRENT_TRANSACTIONS,
}
"""What diary 01 says of the clients: whoever is answered an error asks again, in the end with success."""


@attrs.frozen
class PidClient:
    """A client of diary 01."""

    state: ClientPhase = ClientPhase.READY
    tid: str | None = None
    pid: int = -1
    epoch: int = -1
    last_state: ClientPhase | None = None
    last_error: SpecError | None = None


@attrs.frozen
class PidEntry:
    """An entry of diary 01's transaction log."""

    client_id: str
    tid: str
    transition: TxnMetadata


@attrs.frozen
class PartitionEpoch:
    """What a broker knows of a partition it leads."""

    cepoch: int


@attrs.frozen
class PidNames(Names):
    """The constants of diary 01, and the version that it is of."""

    pid_version: PidVersion = DIARY_01


@action("SendInitPidRequest", each("clients", "brokers"), by=ITSELF)
def send_init_pid_request(k: PidNames, view: View, c: str, b: str) -> Iterable[Change]:
    """A client asks any broker for a producer id, again and again until it has one."""
    client: PidClient = view.at("client", c)
    if client.state is not ClientPhase.READY:
        return
    for tid in k.transactional_ids:
        if client.tid in (None, tid):
            after = attrs.evolve(client, tid=tid, state=ClientPhase.SENT_INIT_PID_REQUEST)
            request = InitPidRequest(tid, source=c, dest=b)
            yield Change(((slot("client", c), after),), tid, sent=(request,), op=Op(c, "init", "invoke", tid))


@action("ReceiveInitPidResponse", each("clients"), receives=InitPidResponse)
def receive_init_pid_response(k: PidNames, view: View, c: str, response: InitPidResponse) -> Iterable[Change]:
    """A client has its producer id, or may ask again."""
    client: PidClient = view.at("client", c)
    if client.state is not ClientPhase.SENT_INIT_PID_REQUEST:
        return
    if response.code is SpecError.OK:
        after = attrs.evolve(client, state=ClientPhase.HAS_PID, pid=response.pid, epoch=response.pepoch)
    else:
        after = attrs.evolve(client, state=ClientPhase.READY, last_state=client.state, last_error=response.code)
    op = outcome(c, "init", response.code, (response.pid, response.pepoch))
    yield Change(((slot("client", c), after),), op=op)


@action("ReceiveInitPidRequest", each("brokers", "clients"), receives=InitPidRequest)
def receive_init_pid_request(k: PidNames, view: View, b: str, c: str, request: InitPidRequest) -> Iterable[Change]:
    """A broker appends what gives the client a producer id if it leads the partition of its id, or refuses."""
    tid = request.tid
    own = slot("tc_txn_metadata", b, tid)
    current: TxnMetadata | None = view[own]
    if current is None:
        if view.at("t_to_p_mapping", tid) not in view.at("tc_part_metadata", b):
            yield Change(sent=(answer(request, SpecError.NOT_COORDINATOR_FOR_TRANSACTIONAL_ID),))
            return
        current = fresh_metadata(view["pid_source"] + 1)
    writes: Writes = (("pid_source", k.pid_version.pid_source_after(view["pid_source"], current.pid)), (own, current))
    result = transition(
        view.at("tc_txn_transition", b, tid), current, TxnState.EMPTY,
        pepoch=current.pepoch + 1, last_pepoch=current.pepoch, partitions=frozenset(),
    )
    if isinstance(result, SpecError):
        yield Change(writes, sent=(answer(request, result),))
        return
    result = attrs.evolve(result, last_pid=current.pid)
    for other, t in product(k.brokers, k.transactional_ids):
        pending = result if (other, t) == (b, tid) else k.pid_version.others_pending(view, other, t)
        writes += ((slot("tc_txn_transition", other, t), pending),)
    log = slot("txn_log", view.at("t_to_p_mapping", tid))
    yield Change((*writes, (log, (*view[log], PidEntry(c, tid, result)))))


@action("CompleteInitPidRequest", each("brokers", "txn_log_partitions"))
def complete_init_pid_request(k: PidNames, view: View, b: str, p: str) -> Iterable[Change]:
    """A log entry commits and its client is answered."""
    if p not in view.at("tc_part_metadata", b):
        return
    log, hwm = view.at("txn_log", p), view.at("txn_log_hwm", p)
    if len(log) <= hwm:
        return
    entry: PidEntry = log[hwm]
    if entry.transition.state is not TxnState.EMPTY:
        return
    done = InitPidResponse(SpecError.OK, entry.transition.pid, entry.transition.pepoch, source=b, dest=entry.client_id)
    writes = (
        (slot("tc_txn_metadata", b, entry.tid), entry.transition),
        (slot("tc_txn_transition", b, entry.tid), None),
        (slot("txn_log_hwm", p), hwm + 1),
    )
    yield Change(writes, sent=(done,))


NEXT: Next = (
    receive_init_pid_response,
    send_init_pid_request,
    receive_init_pid_request,
    complete_init_pid_request,
)
"""The next-state relation: a step of any of these."""

FAIRNESS = {
    "SendInitPidRequest": "strong",
    "ReceiveInitPidRequest": "weak",
    "ReceiveInitPidResponse": "weak",
    "CompleteInitPidRequest": "weak",
}


def initial_states(constants: Names, published: bool) -> Iterable[dict[str, Value]]:
    """The initial states (`Init`): one per mapping of ids and of partitions, or the one that CHOOSE stands for.

    The later form's mapping of partitions to brokers is not balanced, as the condition that says so is in the wrong
    place: the model checker's CHOOSE lets the last broker lead all of them.
    """
    tids, partitions, brokers = constants.transactional_ids, constants.txn_log_partitions, constants.brokers
    if not published:
        yield initial(constants, spread(tids, partitions), dict.fromkeys(partitions, brokers[-1]))
        return
    for homes in product(partitions, repeat=len(tids)):
        for leaders in product(brokers, repeat=len(partitions)):
            yield initial(constants, dict(zip(tids, homes, strict=True)), dict(zip(partitions, leaders, strict=True)))


def initial(constants: Names, home: Mapping[str, str], leader: Mapping[str, str]) -> dict[str, Value]:
    """One initial state: `home` maps ids to partitions, `leader` maps partitions to brokers."""
    state: dict[str, Value] = {slot("client", c): PidClient() for c in constants.clients}
    for b in constants.brokers:
        for tid in constants.transactional_ids:
            state[slot("tc_txn_metadata", b, tid)] = None
            state[slot("tc_txn_transition", b, tid)] = None
        led = {p: PartitionEpoch(1) for p in constants.txn_log_partitions if leader[p] == b}
        state[slot("tc_part_metadata", b)] = FrozenMap(led)
    for p in constants.txn_log_partitions:
        state[slot("txn_log", p)] = ()
        state[slot("txn_log_hwm", p)] = 0
    for tid, p in home.items():
        state[slot("t_to_p_mapping", tid)] = p
    return {**state, "pid_source": 0}


def properties(constants: Names) -> tuple[Property, ...]:
    """The invariants, the liveness property and the witnesses of diary 01."""
    def all_have_pid(view: View) -> Reason:
        waiting = [c for c in constants.clients if view[slot("client", c)].state is not ClientPhase.HAS_PID]
        return f"{', '.join(waiting)} still without a producer id" if waiting else None

    def has_pid_after(view: View, step: Step, error: SpecError) -> bool:
        message = step.consumed
        if not isinstance(message, InitPidResponse) or message.code is not SpecError.OK:
            return False
        return bool(view[slot("client", message.dest)].last_error is error)

    return (
        always("TypeOK", MessageType(constants, CODES), on="message", source="diary 01, TypeOK"),
        always("NoBadStateResponse", no_bad_state, on="message", source="diary 01, NoBadStateResponse"),
        eventually("EventuallyAllClientsGetPid", all_have_pid, source="diary 01"),
        *(sometimes(name, partial(has_pid_after, error=error), on="step") for name, error in WITNESSES.items()),
    )


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
) -> Model:
    """Build diary 01 at a size."""
    k = PidNames.of(sizes, pid_version=departed(DIARY_01, DEPARTURES, settings["repair"]))
    initial_ = tuple(initial_states(k, settings["init"] == "published"))
    types = (InitPidRequest, InitPidResponse, TxnMetadata, PidClient, PidEntry, PartitionEpoch)
    return Model(
        "transactions/diary-01", processes(NEXT, k), initial_, network, faults,
        properties(k), FAIRNESS, history_variables, sizes, settings, symmetric(k), types,
        view_hides=("messages_discard",),
    )
