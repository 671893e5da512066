"""The actions of the base module KafkaReplication, on which every version builds.

The controller is no process with a state of its own: it changes the quorum's state and sends LeaderAndIsr requests.
They stay for ever and may be obeyed late, never, or in any order. A follower copies one record in one step.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import Kind, View, slot
from harness.model.spec import Action, Change, Next, Writes, action, each
from kafka_proto.replication import high_watermark as hw
from kafka_proto.replication import isr, leadership, truncation
from kafka_proto.replication.records import Isr, LeaderAndIsrRequest, Record
from kafka_proto.replication.specs.names import (
    NOBODY,
    ReplicationNames,
    end_of,
    epoch_of,
    hw_of,
    isr_of,
    leader_of,
    log_of,
    request_of,
    two_replicas,
)


@action("ControllerElectLeader", exists=each("replicas"), kind=Kind.PERTURBATION)
def controller_elect_leader(k: ReplicationNames, view: View, new_leader: str) -> Iterable[Change]:
    """Another member of the ISR becomes leader; the choice is the controller's."""
    members = view.at("quorumState", "isr")
    if not leadership.may_elect(new_leader, view.at("quorumState", "leader"), members):
        return
    if (writes := controller_update_isr(k, view, new_leader, members)) is not None:
        yield Change(writes, new_leader)


@action("ControllerShrinkIsr", exists=each("replicas"), kind=Kind.PERTURBATION)
def controller_shrink_isr(k: ReplicationNames, view: View, replica: str) -> Iterable[Change]:
    """The controller takes a failed replica out of the ISR, and out of office."""
    members = view.at("quorumState", "isr")
    shrunk = k.version.shrink_by_controller(replica, view.at("quorumState", "leader"), members)
    if shrunk is None:
        return
    if (writes := controller_update_isr(k, view, *shrunk)) is not None:
        yield Change(writes, replica)


def controller_update_isr(k: ReplicationNames, view: View, leader: str | None, members: Isr) -> Writes | None:
    """Change the quorum's state in a new leader epoch and announce it (`ControllerUpdateIsr`)."""
    epoch = view["nextLeaderEpoch"]
    if epoch > k.max_leader_epoch:
        return None
    return (
        ("nextLeaderEpoch", epoch + 1),
        (slot("quorumState", "leader"), leader),
        (slot("quorumState", "leaderEpoch"), epoch),
        (slot("quorumState", "isr"), members),
        (slot("leaderAndIsrRequests", str(epoch)), LeaderAndIsrRequest(leader, epoch, members)),
    )


@action("BecomeLeader", exists=each("epochs"))
def become_leader(k: ReplicationNames, view: View, epoch: str) -> Iterable[Change]:
    """The replica that a LeaderAndIsr request names leads from now on, with the high watermark it has."""
    request = request_of(view, epoch)
    if request is None or request.leader is None:
        return
    if request.leader_epoch > epoch_of(view, request.leader):
        yield Change(obeyed(request.leader, request), f"{request.leader} epoch {epoch}")


def obeyed(replica: str, request: LeaderAndIsrRequest) -> Writes:
    """What a replica believes from a LeaderAndIsr request on."""
    return (
        (slot("replicaState", replica, "leaderEpoch"), request.leader_epoch),
        (slot("replicaState", replica, "leader"), request.leader),
        (slot("replicaState", replica, "isr"), request.isr),
    )


@action("LeaderWrite", exists=each("replicas"))
def leader_write(k: ReplicationNames, view: View, replica: str) -> Iterable[Change]:
    """A presumed leader appends the next record, in the epoch it knows."""
    if not presumes_leadership(view, replica):
        return
    record_id = view["nextRecordId"]
    if record_id >= k.max_records or end_of(view, replica) == k.log_size:
        return
    record = Record(record_id, epoch_of(view, replica))
    yield Change((*appended(view, replica, record), ("nextRecordId", record_id + 1)), f"{replica} record {record_id}")


def appended(view: View, replica: str, record: Record) -> Writes:
    """A log with one record more (`Append`)."""
    return (
        (slot("replicaLog", replica, "records"), (*log_of(view, replica), record)),
        (slot("replicaLog", replica, "endOffset"), end_of(view, replica) + 1),
    )


def presumes_leadership(view: View, replica: str) -> bool:
    """Say whether a replica believes that it leads, and so accepts writes (`ReplicaPresumesLeadership`)."""
    return leader_of(view, replica) == replica


def is_following(view: View, follower: str, leader: str) -> bool:
    """Say whether a replica believes in this leader, in whatever epoch (`ReplicaIsFollowing`); a leader does."""
    return leader_of(view, follower) == leader


def is_true_leader(view: View, leader: str) -> bool:
    """Say whether a replica leads in its own and the quorum's eyes (`IsTrueLeader`).

    It is the spec's last guard of an ISR change. Here it comes first, as it needs the least to be known.
    """
    return leadership.is_true_leader(
        leader, leader_of(view, leader), epoch_of(view, leader),
        view.at("quorumState", "leader"), view.at("quorumState", "leaderEpoch"),
    )


def quorum_update(leader: str, members: Isr) -> Writes:
    """The true leader changes the ISR, in the quorum and for itself at once (`QuorumUpdateLeaderAndIsr`)."""
    return (slot("quorumState", "isr"), members), (slot("replicaState", leader, "isr"), members)


def shrink_to(leader: str, members: Isr, follower: str, ways: int = 1) -> Change:
    """The true leader takes a follower out of the ISR."""
    return Change(quorum_update(leader, members - {follower}), f"{leader} without {follower}", ways)


def expand_to(leader: str, members: Isr, follower: str) -> Change:
    """The true leader lets a follower into the ISR."""
    return Change(quorum_update(leader, members | {follower}), f"{leader} with {follower}")


@action("LeaderShrinkIsr", exists=two_replicas)
def leader_shrink_isr(k: ReplicationNames, view: View, leader: str, follower: str) -> Iterable[Change]:
    """The true leader takes a follower out that does not follow it, or not up to its end offset."""
    if not is_true_leader(view, leader):
        return
    members = isr_of(view, leader)
    if follower not in members:
        return
    end = followed_end(view, leader, follower)
    if end is None or end < end_of(view, leader):
        yield shrink_to(leader, members, follower)


@action("LeaderExpandIsr", exists=two_replicas)
def leader_expand_isr(k: ReplicationNames, view: View, leader: str, follower: str) -> Iterable[Change]:
    """The true leader lets a follower in that has reached its high watermark."""
    if not is_true_leader(view, leader) or follower in isr_of(view, leader):
        return
    end = followed_end(view, leader, follower)
    if end is not None and isr.is_caught_up(hw_of(view, leader), end_of(view, leader), end):
        yield expand_to(leader, isr_of(view, leader), follower)


def followed_end(view: View, leader: str, follower: str) -> int | None:
    """Return the end offset of a follower that follows a leader, None of any other."""
    return end_of(view, follower) if is_following(view, follower, leader) else None


@action("LeaderIncHighWatermark", exists=each("replicas"))
def leader_inc_high_watermark(k: ReplicationNames, view: View, leader: str) -> Iterable[Change]:
    """A presumed leader's high watermark passes a record that every member of its ISR holds, in whatever epoch."""
    if not presumes_leadership(view, leader):
        return
    offset = hw_of(view, leader)
    if offset >= k.log_size:
        return
    if hw.may_pass(offset, (followed_end(view, leader, follower) for follower in sorted(isr_of(view, leader)))):
        yield increased(leader, offset)


def increased(leader: str, high_watermark: int) -> Change:
    """A leader's high watermark moves by one."""
    return Change(((slot("replicaState", leader, "hw"), high_watermark + 1),), f"{leader} to {high_watermark + 1}")


def newer_request(view: View, replica: str, leader: str, epoch: str) -> LeaderAndIsrRequest | None:
    """Return the request of an epoch if it names this leader (perhaps `NOBODY`) and the replica is behind it."""
    request = request_of(view, epoch)
    if request is None or request.leader != (None if leader == NOBODY else leader):
        return None
    return request if request.leader_epoch > epoch_of(view, replica) else None


def follow_from(view: View, replica: str, request: LeaderAndIsrRequest, offset: int) -> Change:
    """A replica becomes a follower and cuts its log to an offset."""
    detail = f"{replica} of {request.leader} epoch {request.leader_epoch} from {offset}"
    return Change((*obeyed(replica, request), *truncated(view, replica, offset)), detail)


def without_leader(replica: str, request: LeaderAndIsrRequest) -> Change:
    """A replica obeys a request that names no leader; its log and high watermark stay (S10 repaired)."""
    return Change(obeyed(replica, request), f"{replica} of nobody epoch {request.leader_epoch}")


def truncated(view: View, replica: str, offset: int) -> Writes:
    """A log cut to an offset, and a high watermark that is not above it (`TruncateTo`)."""
    high_watermark = (slot("replicaState", replica, "hw"), hw.after_truncation(hw_of(view, replica), offset))
    if end_of(view, replica) == offset:
        return (high_watermark,)
    return (
        high_watermark,
        (slot("replicaLog", replica, "records"), log_of(view, replica)[:offset]),
        (slot("replicaLog", replica, "endOffset"), offset),
    )


@action("FollowerReplicate", exists=two_replicas)
def follower_replicate(k: ReplicationNames, view: View, follower: str, leader: str) -> Iterable[Change]:
    """A follower copies the next record from whoever it believes to lead and presumes so, in whatever epoch."""
    if presumes_leadership(view, leader) and is_following(view, follower, leader):
        yield from replicate_to(k, view, leader, follower)


def replicate_to(k: ReplicationNames, view: View, leader: str, follower: str) -> Iterable[Change]:
    """The next record of the leader's log and its high watermark reach the follower (`ReplicateTo`)."""
    end = end_of(view, follower)
    if end >= end_of(view, leader) or end == k.log_size:
        return
    record = log_of(view, leader)[end]
    high_watermark = hw.after_fetch(hw_of(view, leader), end + 1)
    writes = (*appended(view, follower, record), (slot("replicaState", follower, "hw"), high_watermark))
    yield Change(writes, f"{follower} from {leader} record {record.id}")


def first_non_matching_offset(view: View, leader: str, follower: str) -> int:
    """Look up where to truncate (`FirstNonMatchingOffsetFromTail`); a follower with an empty log need not."""
    if end_of(view, follower) == 0:
        return 0
    return truncation.by_matching_records(log_of(view, leader), log_of(view, follower))


def next_state(expand: Action, shrink: Action, increase: Action, follow: Action, *fetch: Action) -> Next:
    """The next-state relation of a version, a step of any of these, from the actions that differ between versions."""
    return (
        controller_elect_leader, controller_shrink_isr, become_leader, expand, shrink, leader_write, increase, follow,
        *fetch,
    )
