"""The invariants of KafkaReplication, as written and in the readings that can hold, and witnesses against vacuity.

Every reason is a sentence that names who and what.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from harness.model import Property, Reason, Step, Value, View, always, parts, slot, sometimes
from kafka_proto.replication.records import NIL, LeaderAndIsrRequest, Record, first_disagreement, members
from kafka_proto.replication.specs.names import ReplicationNames, epoch_of, hw_of, initial, isr_of, leader_of, log_of

CHECKED = ("MCTypeOk", "WeakIsr", "StrongIsr", "LeaderInIsrOrNone")
"""The invariants that a sound version keeps: what is checked if nothing else is asked for."""
SOURCE = "KafkaReplication"


def properties(k: ReplicationNames) -> tuple[Property, ...]:
    """Return every invariant and witness of a version at the given constants."""
    pairs = tuple(product(k.replicas, repeat=2))
    return (
        always("MCTypeOk", type_check(k), over=tuple(initial(k)), source=f"{SOURCE}, TypeOk in an evaluable form (S9)"),
        always("WeakIsr", weak_isr, over=pairs, source=SOURCE),
        always("StrongIsr", strong_isr, over=pairs, source=SOURCE),
        always("LeaderInIsr", leader_in_isr, source=f"{SOURCE}, false in the initial state (S7)"),
        always("LeaderInIsrOrNone", leader_in_isr_or_none, source="ours: LeaderInIsr as it can hold"),
        always("IsrNonEmpty", isr_non_empty, source="ours: a partition keeps a replica to elect (S8)"),
        always("NoneRequestNeverApplied", none_request_never_applied, over=k.replicas, source="ours: states S10"),
        sometimes("HighWatermarkRises", lambda view: any(hw_of(view, replica) > 0 for replica in k.replicas)),
        sometimes("RecordTruncated", record_truncated, on="step"),
    )


def weak_isr(view: View, pair: tuple[str, str]) -> Reason:
    """`WeakIsr`: a presumed leader and each member of the ISR it knows agree below its high watermark."""
    leader, replica = pair
    if leader_of(view, leader) != leader or replica not in isr_of(view, leader):
        return None
    return disagreement(view, leader, replica, f"in {leader}'s own ISR")


def strong_isr(view: View, pair: tuple[str, str]) -> Reason:
    """`StrongIsr`: a presumed leader and each member of the quorum's ISR agree below the leader's high watermark."""
    leader, replica = pair
    if leader_of(view, leader) != leader or replica not in view.at("quorumState", "isr"):
        return None
    return disagreement(view, leader, replica, "in the quorum's ISR")


def disagreement(view: View, leader: str, replica: str, where: str) -> Reason:
    """Say at which offset below a leader's high watermark a member of the ISR does not hold the leader's record."""
    high_watermark = hw_of(view, leader)
    if high_watermark == 0:
        return None
    offset = first_disagreement(log_of(view, leader), log_of(view, replica), high_watermark)
    if offset is None:
        return None
    return (
        f"{replica} is {where} but does not hold {leader}'s record at offset {offset}, "
        f"while {leader} presumes to lead epoch {epoch_of(view, leader)} with the high watermark {high_watermark}"
    )


def leader_in_isr(view: View) -> Reason:
    """`LeaderInIsr` as written: there is a leader, and it is in the quorum's ISR."""
    if view.at("quorumState", "leader") is None:
        return f"nobody leads, so the leader is not in the quorum's ISR {members(view.at('quorumState', 'isr'))}"
    return leader_in_isr_or_none(view)


def leader_in_isr_or_none(view: View) -> Reason:
    """`LeaderInIsrOrNone`: the leader, if any, is in the quorum's ISR."""
    leader, isr = view.at("quorumState", "leader"), view.at("quorumState", "isr")
    return None if leader is None or leader in isr else f"{leader} leads the quorum but its ISR is {members(isr)}"


def isr_non_empty(view: View) -> Reason:
    """`IsrNonEmpty`: the quorum's ISR has a member."""
    if view.at("quorumState", "isr"):
        return None
    return f"the quorum's ISR is empty in epoch {view.at('quorumState', 'leaderEpoch')}, so nobody can be elected"


def none_request_never_applied(view: View, replica: str) -> Reason:
    """`NoneRequestNeverApplied`: a replica that knows a leader epoch knows a leader."""
    epoch = epoch_of(view, replica)
    return None if epoch == NIL or leader_of(view, replica) else f"{replica} knows epoch {epoch} but no leader"


def record_truncated(view: View, step: Step) -> bool:
    """Some follower drops a record."""
    return any(name.endswith("[records]") and len(value) < len(view[name]) for name, value in step.writes)


def type_check(k: ReplicationNames) -> Callable[[View, str], Reason]:
    """Return `MCTypeOk`, one slot at a time: what is not of its type, as a sentence."""

    def number(low: int, high: int) -> Callable[[Value], bool]:
        return lambda value: isinstance(value, int) and low <= value <= high

    offset, epoch, id_ = number(0, k.log_size), number(0, k.max_leader_epoch), number(0, k.max_records - 1)
    fields: dict[str, Callable[[Value], bool]] = {
        "leader": lambda value: value is None or value in k.replicas,
        "isr": lambda value: isinstance(value, frozenset) and value <= set(k.replicas),
        "leaderEpoch": number(NIL, k.max_leader_epoch), "hw": offset, "endOffset": offset,
        "nextLeaderEpoch": number(0, k.max_leader_epoch + 1), "nextRecordId": number(0, k.max_records),
    }

    def is_request(value: Value) -> bool:
        if not isinstance(value, LeaderAndIsrRequest):
            return False
        return fields["leader"](value.leader) and fields["leaderEpoch"](value.leader_epoch) and fields["isr"](value.isr)

    def is_log(value: Value) -> bool:
        return isinstance(value, tuple) and all(
            isinstance(record, Record) and id_(record.id) and epoch(record.epoch) for record in value
        )

    def check(view: View, name: str) -> Reason:
        variable, *index = parts(name)
        field = index[-1] if index else variable
        value: Value = view[name]
        if variable == "leaderAndIsrRequests":
            good = value is None or is_request(value)
        elif field == "records":
            good = is_log(value) and len(value) == view[slot(variable, index[0], "endOffset")]
        else:
            good = fields[field](value)
        return None if good else f"{name} holds {value!r}, which is not of its type"

    return check
