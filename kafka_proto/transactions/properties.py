"""The properties of the transaction protocol: the specs' own, and those found by checking the specs.

Each is written once over explicit values; a `ProtocolState` says where a composition keeps them. Every reason is a
sentence that names who and what.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Protocol

from harness.model import Message, Property, Reason, Step, View, always, eventually, slot, sometimes
from kafka_proto.replication.known import NOBODY, LeaderAndEpoch
from kafka_proto.transactions.messages import (
    ActorMessage,
    Error,
    InitProducerIdResponse,
    MessageType,
    Response,
)
from kafka_proto.transactions.records import ClientRecord, ClientState, Entry, TransactionMetadata
from kafka_proto.transactions.specs.names import Names

INVARIANTS = (
    "TypeOK", "NoBadStateResponse", "ClientsHaveDifferentProducerEpochs", "TCsHaveDifferentEpochs",
    "LogsAgreeUpToHwm", "FollowersHoldNoUncommitted", "CommittedTidKnown", "OnePidPerTid",
)
ACTOR_INVARIANTS = (*INVARIANTS, "AckedIsLogged", "ServiceTypeOK")
"""Those of `transactions/*/actors`; the last two are in `actor_properties`."""
LIVENESS = ("EventuallyAllClientsGetPid", "EventuallyOneClientAddsAllPartitions")
CODES = frozenset((Error.OK, Error.CONCURRENT_TRANSACTIONS, Error.NOT_COORDINATOR))
"""What an InitProducerIdResponse may carry. Diary 01 has other codes; actors have one more."""
WITNESSES = ("ProducerFenced", "PartialTxnCompleted", "NotCoordinatorRetrySucceeds")


class Logged(Protocol):
    """An entry of a log, as far as properties look at it."""

    @property
    def transactional_id(self) -> str: ...
    @property
    def transition(self) -> TransactionMetadata: ...


class ProtocolState(Protocol):
    """Where a composition keeps what the properties speak of."""

    actors: bool

    def client(self, view: View, c: str) -> ClientRecord: ...
    def log(self, view: View, b: str, p: str) -> Sequence[Logged]: ...
    def hwm(self, view: View, b: str, p: str) -> int: ...
    def believes(self, view: View, b: str, p: str) -> LeaderAndEpoch: ...
    def serves(self, view: View, b: str, p: str) -> bool: ...
    def metadata(self, view: View, b: str, tid: str) -> TransactionMetadata | None: ...


class SpecState:
    """The variables of diary 02 and the gist."""

    actors = False

    def client(self, view: View, c: str) -> ClientRecord:
        record: ClientRecord = view[slot("client", c)]
        return record

    def log(self, view: View, b: str, p: str) -> tuple[Entry, ...]:
        log: tuple[Entry, ...] = view[slot("tc_log", b, p)]
        return log

    def hwm(self, view: View, b: str, p: str) -> int:
        hwm: int = view[slot("tc_log_hwm", b, p)]
        return hwm

    def believes(self, view: View, b: str, p: str) -> LeaderAndEpoch:
        metadata: LeaderAndEpoch = view[slot("tc_log_metadata", b, p)]
        return metadata

    def serves(self, view: View, b: str, p: str) -> bool:
        return bool(view[slot("txn_log_leader", p)] == b)

    def metadata(self, view: View, b: str, tid: str) -> TransactionMetadata | None:
        metadata: TransactionMetadata | None = view[slot("tc_tid_metadata", b, tid)]
        return metadata


def message_type(constants: Names, codes: frozenset[Error]) -> MessageType:
    """Return the type of all messages at the given constants; `codes` are those of an InitProducerIdResponse."""
    return MessageType(
        frozenset(constants.clients), frozenset(constants.brokers), frozenset(constants.transactional_ids),
        frozenset(constants.topic_partitions), codes,
    )


def actor_message_type(constants: Names) -> MessageType:
    """Return the type of the messages between clients and brokers that are actors, or a spec's with extensions."""
    return message_type(constants, CODES | {Error.COORDINATOR_LOAD_IN_PROGRESS})


def properties(constants: Names, state: ProtocolState, loads: bool = False) -> tuple[Property, ...]:
    """Return every property of a composition of diary 02, the gist or their repairs, at the given constants.

    `loads` says whether a coordinator of a spec may load its log; one that is an actor may.
    """
    brokers, partitions = constants.brokers, constants.txn_log_partitions
    replicas = tuple((b, p) for p in partitions for b in brokers)
    pairs = tuple((b, c, p) for p in partitions for b, c in combinations(brokers, 2))

    typed = actor_message_type(constants) if state.actors or loads else message_type(constants, CODES)

    def type_ok(message: Message) -> Reason:
        if message in typed or (state.actors and isinstance(message, ActorMessage)):
            return None
        return f"no message of the protocol: {message.brief()}"

    def clients_differ(view: View, pair: tuple[str, str]) -> Reason:
        one, other = (state.client(view, c) for c in pair)
        if one.producer_id == -1 or (one.producer_id, one.producer_epoch) != (other.producer_id, other.producer_epoch):
            return None
        return f"{pair[0]} and {pair[1]} both hold producer id {one.producer_id} with epoch {one.producer_epoch}"

    def tcs_differ(view: View, index: tuple[str, str, str]) -> Reason:
        b, c, p = index
        one, other = state.believes(view, b, p), state.believes(view, c, p)
        if one.leader != b or other.leader != c or one.leader_epoch != other.leader_epoch:
            return None
        return f"{b} and {c} both believe to lead {p} in epoch {one.leader_epoch}"

    def logs_agree(view: View, index: tuple[str, str, str]) -> Reason:
        b, c, p = index
        upto = min(state.hwm(view, b, p), state.hwm(view, c, p))
        one, other = state.log(view, b, p)[:upto], state.log(view, c, p)[:upto]
        if one == other:
            return None
        at = next(n for n in range(upto) if one[n : n + 1] != other[n : n + 1])
        return f"{b} and {c} hold different entries of {p} at offset {at}, below their high watermarks"

    def no_uncommitted(view: View, index: tuple[str, str]) -> Reason:
        b, p = index
        extra = len(state.log(view, b, p)) - state.hwm(view, b, p)
        believed = state.believes(view, b, p)
        if extra <= 0 or believed.leader == b or believed == NOBODY:
            return None
        return f"{b} follows {p} but holds {extra} {'entry' if extra == 1 else 'entries'} above its high watermark"

    def committed_known(view: View, index: tuple[str, str]) -> Reason:
        b, p = index
        if not state.serves(view, b, p):
            return None
        log = state.log(view, b, p)[: state.hwm(view, b, p)]
        last = {entry.transactional_id: entry.transition.producer_id for entry in log}
        for tid, pid in sorted(last.items()):
            known = state.metadata(view, b, tid)
            if known is None:
                return f"{b} leads {p}, whose log has {tid} with producer id {pid}, but has no metadata of {tid}"
            if known.producer_id != pid:
                return f"{b} leads {p}, whose log has {tid} with producer id {pid}, but knows {known.producer_id}"
        return None

    def one_pid(view: View, index: tuple[str, str]) -> Reason:
        b, p = index
        first: dict[str, int] = {}
        for entry in state.log(view, b, p):
            tid, now = entry.transactional_id, entry.transition.producer_id
            pid = first.setdefault(tid, now)
            if pid != now:
                return f"in {b}'s log of {p}, {tid} has the producer ids {pid} and {now}"
        return None

    def all_have_pid(view: View) -> Reason:
        waiting = [c for c in constants.clients if state.client(view, c).producer_id == -1]
        return f"{', '.join(waiting)} still without a producer id" if waiting else None

    def one_adds_all(view: View) -> Reason:
        for c in constants.clients:
            client = state.client(view, c)
            if client.state is ClientState.BEGUN_TXN and client.partitions.issuperset(constants.topic_partitions):
                return None
        return "no client has added every topic partition"

    def fenced(view: View) -> bool:
        return any(state.client(view, c).last_error is Error.PRODUCER_FENCED for c in constants.clients)

    def retried(view: View, step: Step) -> bool:
        message = step.consumed
        if not isinstance(message, Response) or message.error is not Error.OK:
            return False
        return step.op is not None and state.client(view, message.dest).last_error is Error.NOT_COORDINATOR

    return (
        always("TypeOK", type_ok, on="message", source="diary 02, TypeOK"),
        always("NoBadStateResponse", no_bad_state, on="message", source="diary 02, NoBadStateResponse"),
        always("ClientsHaveDifferentProducerEpochs", clients_differ, over=tuple(combinations(constants.clients, 2)),
               source="diary 02"),
        always("TCsHaveDifferentEpochs", tcs_differ, over=pairs, source="diary 02"),
        always("LogsAgreeUpToHwm", logs_agree, over=pairs, source="ours: replication"),
        always("FollowersHoldNoUncommitted", no_uncommitted, over=replicas, source="ours: replication"),
        always("CommittedTidKnown", committed_known, over=replicas, source="ours: what a coordinator loads"),
        always("OnePidPerTid", one_pid, over=replicas, source="ours: an id keeps its producer id"),
        eventually("EventuallyAllClientsGetPid", all_have_pid, source="diary 02"),
        eventually("EventuallyOneClientAddsAllPartitions", one_adds_all, source="diary 02"),
        sometimes("ProducerFenced", fenced),
        sometimes("PartialTxnCompleted", lambda view, step: step.action == "CompletePartialTxn", on="step"),
        sometimes("NotCoordinatorRetrySucceeds", retried, on="step"),
    )


def no_bad_state(message: Message) -> Reason:
    """`NoBadStateResponse`: an answer to InitProducerId never carries IllegalState or InvalidTransition."""
    if isinstance(message, InitProducerIdResponse) and message.error in (Error.ILLEGAL_STATE, Error.INVALID_TRANSITION):
        return f"an {message.type} carries {message.error}: {message.brief()}"
    return None
