"""The properties of the stack: those of the transaction protocol, and what its replicated log owes to them.

Which of the transaction protocol's properties cannot be meant the same way is said in docs/gaps.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import attrs

from harness.model import Message, Property, Reason, Step, View, always, sometimes
from kafka_proto.broker.controller import PARTITION
from kafka_proto.broker.logs.replicated import REPLICA, log_of
from kafka_proto.broker.state import METADATA
from kafka_proto.replication.log import first_disagreement
from kafka_proto.replication.messages import LeaderAndIsrRequest, PartitionMessage
from kafka_proto.replication.partition import ReplicaState
from kafka_proto.replication.records import Entry as LogEntry
from kafka_proto.transactions import properties as transactions
from kafka_proto.transactions.actor_properties import is_of
from kafka_proto.transactions.actors import ActorState, record_of
from kafka_proto.transactions.controller import CONTROLLER
from kafka_proto.transactions.coordinator_role import COORDINATOR
from kafka_proto.transactions.messages import Error, Response
from kafka_proto.transactions.properties import Logged
from kafka_proto.transactions.specs.names import Names

NOT_MEANT_HERE = ("FollowersHoldNoUncommitted",)
"""A follower of a replicated log holds what is not committed: that is how it gets committed."""
OF_TRANSACTIONS = tuple(name for name in transactions.INVARIANTS if name not in NOT_MEANT_HERE)
OF_THE_LOG = ("LogMatching", "StrongIsr", "AckedTransactionsSurvive")
INVARIANTS = (*OF_TRANSACTIONS, *OF_THE_LOG)
LIVENESS = transactions.LIVENESS
WITNESSES = (
    "LoadInProgressAnswered", "PartialTxnCompleted", "CoordinatorResigned", "LogTruncated", "RefusedEntrySurvives",
    "FollowerRejoinsIsr", "ProducerFenced", "NotCoordinatorRetrySucceeds",
)


def records_of(state: ReplicaState) -> tuple[LogEntry, ...]:
    """Return the log of a replica, records with their leader epochs."""
    return state.log


def high_watermark_of(state: ReplicaState) -> int:
    return state.high_watermark


class StackState(ActorState):
    """Where the stack keeps what the transaction protocol's properties speak of."""

    def __init__(self, hosts: Mapping[str, tuple[str, ...]]) -> None:
        self.hosts = hosts

    def log(self, view: View, b: str, p: str) -> Sequence[Logged]:
        return REPLICA[p].derived(view, b, log_of) if b in self.hosts[p] else ()

    def hwm(self, view: View, b: str, p: str) -> int:
        return REPLICA[p].derived(view, b, high_watermark_of) if b in self.hosts[p] else 0


def properties(
    constants: Names, hosts: Mapping[str, tuple[str, ...]], home: Mapping[str, str]
) -> tuple[Property, ...]:
    """Return every property of the stack; `hosts` are the replicas of each partition, `home` that of each id."""
    state = StackState(hosts)
    found = [p for p in transactions.properties(constants, state) if p.name not in NOT_MEANT_HERE]
    shared = [of_the_stack(p) if p.name == "TypeOK" else p for p in found]
    pairs = tuple((b, c, p) for p, brokers in hosts.items() for b, c in combinations(brokers, 2))
    led = tuple((b, c, p) for p, brokers in hosts.items() for b in brokers for c in brokers if b != c)
    kept = tuple((c, b) for c in constants.clients for b in constants.brokers)

    def survives(view: View, index: tuple[str, str]) -> Reason:
        return acked_survives(view, index, home)

    return (
        *shared,
        always("LogMatching", log_matching, over=pairs, source="ours: R3"),
        always("StrongIsr", strong_isr, over=led, source="KafkaReplication, for each log partition: R1"),
        always("AckedTransactionsSurvive", survives, over=kept, source="ours: R4"),
        sometimes("LoadInProgressAnswered", load_in_progress, on="step"),
        sometimes("CoordinatorResigned", resigned, on="step"),
        sometimes("LogTruncated", truncated, on="step"),
        sometimes("FollowerRejoinsIsr", lambda view, step: step.action == "ProposeExpandIsr", on="step"),
        sometimes("RefusedEntrySurvives", lambda view, step: refused_survives(constants, hosts, view, step), on="step"),
    )


def of_the_stack(type_ok: Property) -> Property:
    """Return TypeOK with the replication protocol's messages among those that may travel."""

    def check(message: Message) -> Reason:
        return None if isinstance(message, PartitionMessage) else type_ok.check(message)

    return attrs.evolve(type_ok, check=check)


def entries(view: View, b: str, p: str) -> tuple[LogEntry, ...]:
    """Return the log of a broker's replica, records with their leader epochs."""
    return REPLICA[p].derived(view, b, records_of)


def log_matching(view: View, index: tuple[str, str, str]) -> Reason:
    """Two logs that hold a record of one epoch at one offset are equal up to it."""
    b, c, p = index
    one, other = entries(view, b, p), entries(view, c, p)
    for offset in reversed(range(min(len(one), len(other)))):
        if one[offset].epoch == other[offset].epoch:
            wrong = first_disagreement(one, other, offset + 1)
            if wrong is not None:
                same = f"a record of epoch {one[offset].epoch} at offset {offset} of {p}"
                return f"{b} and {c} hold {same}, but differ at offset {wrong}"
            return None
    return None


def strong_isr(view: View, index: tuple[str, str, str]) -> Reason:
    """`StrongIsr`: a presumed leader and each member of the controller's ISR agree below its high watermark."""
    leader, replica, p = index
    presumed = METADATA.of(view, leader).known[p]
    if presumed.leader != leader:
        return None
    quorum = PARTITION[p].of(view, CONTROLLER).quorum
    if replica not in quorum.isr:
        return None
    high_watermark = REPLICA[p].derived(view, leader, high_watermark_of)
    offset = first_disagreement(entries(view, leader, p), entries(view, replica, p), high_watermark)
    if offset is None:
        return None
    return (
        f"{replica} is in the controller's ISR of {p} but does not hold {leader}'s record at offset {offset}, below "
        f"the high watermark {high_watermark} of {leader}, which presumes to lead epoch {presumed.leader_epoch}"
    )


def acked_survives(view: View, index: tuple[str, str], home: Mapping[str, str]) -> Reason:
    """What was acknowledged to a client is in the log of whoever leads in the controller's eyes and its own."""
    c, b = index
    known = METADATA.of(view, b).known
    if all(presumed.leader != b for presumed in known.values()):
        return None
    record = view.derived(c, record_of)
    if record.producer_id == -1 or record.transactional_id is None:
        return None
    p = home[record.transactional_id]
    presumed = known[p]
    if presumed.leader != b:
        return None
    quorum = PARTITION[p].of(view, CONTROLLER).quorum
    if (quorum.leader, quorum.leader_epoch) != (b, presumed.leader_epoch):
        return None
    mine = [
        entry.transition for entry in REPLICA[p].derived(view, b, log_of)
        if is_of(entry, record)
    ]
    what = f"{b} leads {p} in epoch {quorum.leader_epoch}, but its log lacks what {c} was told to be done:"
    if not mine:
        held = f"producer id {record.producer_id} and epoch {record.producer_epoch}"
        return f"{what} {record.transactional_id} with {held}"
    if not any(record.partitions <= transition.partitions for transition in mine):
        return f"{what} {', '.join(sorted(record.partitions))} in the transaction of {record.transactional_id}"
    return None


def load_in_progress(view: View, step: Step) -> bool:
    """A client is answered that its coordinator has not loaded its log."""
    return any(getattr(message, "error", None) is Error.COORDINATOR_LOAD_IN_PROGRESS for message in step.sent)


def resigned(view: View, step: Step) -> bool:
    """A coordinator that served a partition hears that another broker leads."""
    announced = step.consumed
    if not isinstance(announced, LeaderAndIsrRequest) or announced.leader == announced.dest:
        return False
    after = COORDINATOR.written(step, announced.dest)
    return (
        after is not None and announced.partition not in after.loaded
        and announced.partition in COORDINATOR.of(view, announced.dest).loaded
    )


def truncated(view: View, step: Step) -> bool:
    """A running broker cuts its log."""
    about = step.consumed
    if not isinstance(about, PartitionMessage) or about.partition is None or about.dest == CONTROLLER:
        return False
    part = REPLICA[about.partition]
    after = part.written(step, about.dest)
    return after is not None and len(after.log) < len(part.of(view, about.dest).log)


def refused_survives(
    constants: Names, hosts: Mapping[str, tuple[str, ...]], view: View, step: Step
) -> bool:
    """A coordinator that resigns answers a client NotCoordinator, but the new leader holds the entry."""
    announced = step.consumed
    if not isinstance(announced, LeaderAndIsrRequest):
        return False
    if announced.leader not in constants.brokers or announced.leader == announced.dest:
        return False
    p = announced.partition
    if p not in constants.txn_log_partitions or announced.dest not in hosts[p]:
        return False
    refused = {message for message in step.sent if is_refusal(message)}
    log, leaders = entries(view, announced.dest, p), entries(view, announced.leader, p)
    waiting = REPLICA[p].of(view, announced.dest).callbacks
    return any(
        callback.err in refused and leaders[at : at + 1] == log[at : at + 1] != () for at, callback in waiting
    )


def is_refusal(message: Message) -> bool:
    """Say whether a response tells a client to look for another coordinator."""
    return isinstance(message, Response) and message.error is Error.NOT_COORDINATOR
