"""The properties of the transaction protocol: the specs' own, and those found by checking the specs.

Every reason is a sentence that names who and what.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import attrs

from harness.model import Message, Property, Reason, Step, View, always, eventually, sometimes
from kafka_proto.transactions.records import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ClientPhase,
    ClientRecord,
    Entry,
    InitPidRequest,
    InitPidResponse,
    LogMetadata,
    Response,
    SpecError,
    TxnMetadata,
)
from kafka_proto.transactions.specs.names import Names

INVARIANTS = (
    "TypeOK", "NoBadStateResponse", "ClientsHaveDifferentProducerEpochs", "TCsHaveDifferentEpochs",
    "LogsAgreeUpToHwm", "FollowersHoldNoUncommitted", "EffectiveHwmIsMonotonic", "CommittedTidKnown", "OnePidPerTid",
)
LIVENESS = ("EventuallyAllClientsGetPid", "EventuallyOneClientAddsAllPartitions")
CODES = frozenset((SpecError.OK, SpecError.CONCURRENT_TRANSACTIONS, SpecError.NOT_COORDINATOR))
"""What an InitPidResponse may carry. Diary 01 has other codes."""
WITNESSES = ("ProducerFenced", "PartialTxnCompleted", "NotCoordinatorRetrySucceeds")


def variable(name: str) -> Callable[..., Any]:
    """Return what reads a variable at an index."""
    return lambda view, *index: view.at(name, *index)


client_of: Callable[[View, str], ClientRecord] = variable("client")
log_of: Callable[[View, str, str], tuple[Entry, ...]] = variable("tc_log")
hwm_of: Callable[[View, str, str], int] = variable("tc_log_hwm")
believed_of: Callable[[View, str, str], LogMetadata] = variable("tc_log_metadata")


PARTITION_ERRORS = frozenset((SpecError.PRODUCER_FENCED, SpecError.INVALID_PRODUCER_ID_MAPPING))
"""What the answer to an AddPartitionsToTxnRequest may carry besides the codes of an InitPidResponse."""


@attrs.frozen
class MessageType:
    """The specs' `MessageType`: what a message may carry, and between which actors.

    Diary 01's has no topic partitions, hence none of the messages about them.
    """

    k: Names
    codes: frozenset[SpecError]
    """What an InitPidResponse may carry."""

    def __call__(self, message: Message) -> Reason:
        return None if message in self else f"no message of the protocol: {message.brief()}"

    def __contains__(self, message: Message) -> bool:
        match message:
            case InitPidRequest(tid=asks_for):
                return self._asks(message) and asks_for in self.k.transactional_ids
            case InitPidResponse(code=error, pid=pid, pepoch=epoch):
                return self._answers(message) and error in self.codes and pid >= -1 and epoch >= -1
            case AddPartitionsToTxnRequest(pid=pid, pepoch=epoch, partitions=partitions):
                known = message.tid in self.k.transactional_ids and self._has(partitions)
                return self._asks(message) and known and pid >= 0 and epoch >= 0
            case AddPartitionsToTxnResponse(code=error, partitions=partitions):
                known = error in self.codes or error in PARTITION_ERRORS
                return self._answers(message) and known and self._has(partitions)
        return False

    def _asks(self, message: Message) -> bool:
        return message.source in self.k.clients and message.dest in self.k.brokers

    def _answers(self, message: Message) -> bool:
        return message.source in self.k.brokers and message.dest in self.k.clients

    def _has(self, partitions: frozenset[str]) -> bool:
        return bool(self.k.topic_partitions) and partitions.issubset(self.k.topic_partitions)


def properties(constants: Names) -> tuple[Property, ...]:
    """Return every property of diary 02, the gist or their repairs, at the given constants."""
    brokers, partitions = constants.brokers, constants.txn_log_partitions
    replicas = tuple((b, p) for p in partitions for b in brokers)
    pairs = tuple((b, c, p) for p in partitions for b, c in combinations(brokers, 2))

    def clients_differ(view: View, pair: tuple[str, str]) -> Reason:
        one, other = (client_of(view, c) for c in pair)
        if one.pid == -1 or (one.pid, one.epoch) != (other.pid, other.epoch):
            return None
        return f"{pair[0]} and {pair[1]} both hold producer id {one.pid} with epoch {one.epoch}"

    def tcs_differ(view: View, index: tuple[str, str, str]) -> Reason:
        b, c, p = index
        one, other = believed_of(view, b, p), believed_of(view, c, p)
        if one.leader != b or other.leader != c or one.cepoch != other.cepoch:
            return None
        return f"{b} and {c} both believe to lead {p} in epoch {one.cepoch}"

    def logs_agree(view: View, index: tuple[str, str, str]) -> Reason:
        b, c, p = index
        upto = min(hwm_of(view, b, p), hwm_of(view, c, p))
        one, other = log_of(view, b, p)[:upto], log_of(view, c, p)[:upto]
        if one == other:
            return None
        at = next(n for n in range(upto) if one[n : n + 1] != other[n : n + 1])
        return f"{b} and {c} hold different entries of {p} at offset {at}, below their high watermarks"

    def no_uncommitted(view: View, index: tuple[str, str]) -> Reason:
        b, p = index
        extra = len(log_of(view, b, p)) - hwm_of(view, b, p)
        if extra <= 0 or believed_of(view, b, p).leader == b:
            return None
        return f"{b} follows {p} but holds {extra} {'entry' if extra == 1 else 'entries'} above its high watermark"

    def hwm_is_monotonic(view: View, p: str) -> Reason:
        """A high watermark only rises, so the leader's can be less than before only as another replica's still is."""
        leader: str = view.at("txn_log_leader", p)
        reached = {b: hwm_of(view, b, p) for b in brokers}
        highest = max(brokers, key=lambda b: reached[b])
        if reached[leader] == reached[highest]:
            return None
        return f"{leader} leads {p} with high watermark {reached[leader]}, below {highest}'s {reached[highest]}"

    def committed_known(view: View, index: tuple[str, str]) -> Reason:
        b, p = index
        if view.at("txn_log_leader", p) != b:
            return None
        log = log_of(view, b, p)[: hwm_of(view, b, p)]
        last = {entry.tid: entry.transition.pid for entry in log}
        for tid, pid in sorted(last.items()):
            known: TxnMetadata | None = view.at("tc_tid_metadata", b, tid)
            if known is None:
                return f"{b} leads {p}, whose log has {tid} with producer id {pid}, but has no metadata of {tid}"
            if known.pid != pid:
                return f"{b} leads {p}, whose log has {tid} with producer id {pid}, but knows {known.pid}"
        return None

    def one_pid(view: View, index: tuple[str, str]) -> Reason:
        b, p = index
        first: dict[str, int] = {}
        for entry in log_of(view, b, p):
            tid, now = entry.tid, entry.transition.pid
            pid = first.setdefault(tid, now)
            if pid != now:
                return f"in {b}'s log of {p}, {tid} has the producer ids {pid} and {now}"
        return None

    def all_have_pid(view: View) -> Reason:
        waiting = [c for c in constants.clients if client_of(view, c).pid == -1]
        return f"{', '.join(waiting)} still without a producer id" if waiting else None

    def one_adds_all(view: View) -> Reason:
        for c in constants.clients:
            client = client_of(view, c)
            if client.state is ClientPhase.BEGUN_TXN and client.partitions.issuperset(constants.topic_partitions):
                return None
        return "no client has added every topic partition"

    def fenced(view: View) -> bool:
        return any(client_of(view, c).last_error is SpecError.PRODUCER_FENCED for c in constants.clients)

    def retried(view: View, step: Step) -> bool:
        message = step.consumed
        if not isinstance(message, Response) or message.code is not SpecError.OK:
            return False
        return step.op is not None and client_of(view, message.dest).last_error is SpecError.NOT_COORDINATOR

    return (
        always("TypeOK", MessageType(constants, CODES), on="message", source="diary 02, TypeOK"),
        always("NoBadStateResponse", no_bad_state, on="message", source="diary 02, NoBadStateResponse"),
        always("ClientsHaveDifferentProducerEpochs", clients_differ, over=tuple(combinations(constants.clients, 2)),
               source="diary 02"),
        always("TCsHaveDifferentEpochs", tcs_differ, over=pairs, source="diary 02"),
        always("LogsAgreeUpToHwm", logs_agree, over=pairs, source="ours: replication"),
        always("FollowersHoldNoUncommitted", no_uncommitted, over=replicas, source="ours: replication"),
        always("EffectiveHwmIsMonotonic", hwm_is_monotonic, over=partitions, source="diary entry 5, of the log"),
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
    if isinstance(message, InitPidResponse) and message.code in (SpecError.ILLEGAL_STATE, SpecError.INVALID_TRANSITION):
        return f"an {message.type} carries {message.code}: {message.brief()}"
    return None
