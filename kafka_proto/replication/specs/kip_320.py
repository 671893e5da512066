"""Kip320: every exchange between leader and follower is fenced by the leader epoch of both."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import View
from harness.model.spec import Change, action, each
from kafka_proto.replication import high_watermark as hw
from kafka_proto.replication.specs import kafka_replication as base
from kafka_proto.replication.specs.kafka_replication import first_non_matching_offset
from kafka_proto.replication.specs.names import (
    ReplicationNames,
    end_of,
    epoch_of,
    follower_leader_epoch,
    hw_of,
    isr_of,
    log_of,
    two_replicas,
)


def is_following_leader_epoch(view: View, leader: str, follower: str) -> bool:
    """Say whether a follower follows a presumed leader in the epoch of that leader (`IsFollowingLeaderEpoch`)."""
    return (
        base.presumes_leadership(view, leader)
        and base.is_following(view, follower, leader)
        and epoch_of(view, leader) == epoch_of(view, follower)
    )


def followed_end(view: View, leader: str, follower: str) -> int | None:
    """Return the end offset of a follower that follows the leader's epoch, None of any other."""
    return end_of(view, follower) if is_following_leader_epoch(view, leader, follower) else None


@action("FencedLeaderExpandIsr", exists=two_replicas)
def fenced_leader_expand_isr(k: ReplicationNames, view: View, leader: str, follower: str) -> Iterable[Change]:
    """The true leader lets a follower in that has reached its high watermark, when that is in the current epoch."""
    if not base.is_true_leader(view, leader) or follower in isr_of(view, leader):
        return
    end = followed_end(view, leader, follower)
    if end is None:
        return
    if k.version.may_expand(end, hw_of(view, leader), log_of(view, leader), epoch_of(view, leader)):
        yield base.expand_to(leader, isr_of(view, leader), follower)


@action("FencedLeaderShrinkIsr", exists=two_replicas)
def fenced_leader_shrink_isr(k: ReplicationNames, view: View, leader: str, follower: str) -> Iterable[Change]:
    """The true leader takes a follower out that is of another epoch or lags behind: both are ways to allow it."""
    if not base.is_true_leader(view, leader):
        return
    members = isr_of(view, leader)
    if follower not in members:
        return
    fenced = not is_following_leader_epoch(view, leader, follower)
    lags = end_of(view, follower) < end_of(view, leader)
    if fenced or lags:
        yield base.shrink_to(leader, members, follower, ways=fenced + lags)


@action("FencedLeaderIncHighWatermark", exists=each("replicas"))
def fenced_leader_inc_high_watermark(k: ReplicationNames, view: View, leader: str) -> Iterable[Change]:
    """A leader's high watermark passes a record that every member of its ISR holds, following its epoch.

    That it presumes to lead is a guard about each member of its ISR, in the spec: without members there is none.
    """
    if not base.presumes_leadership(view, leader) and isr_of(view, leader):
        return
    offset = hw_of(view, leader)
    if offset >= end_of(view, leader):
        return
    if hw.may_pass(offset, (followed_end(view, leader, follower) for follower in sorted(isr_of(view, leader)))):
        yield base.increased(leader, offset)


@action("FencedBecomeFollowerAndTruncate", exists=follower_leader_epoch)
def fenced_become_follower_and_truncate(
    k: ReplicationNames, view: View, replica: str, leader: str, epoch: str
) -> Iterable[Change]:
    """A replica becomes a follower once its leader is in the epoch of the request, and truncates by that one's log."""
    request = base.newer_request(view, replica, leader, epoch)
    if request is None:
        return
    if request.leader is None:
        yield base.without_leader(replica, request)
        return
    if not base.presumes_leadership(view, leader):
        return
    if k.version.fences_look_ups and epoch_of(view, leader) != request.leader_epoch:
        return
    yield base.follow_from(view, replica, request, first_non_matching_offset(view, leader, replica))


@action("FencedFollowerFetch", exists=two_replicas)
def fenced_follower_fetch(k: ReplicationNames, view: View, follower: str, leader: str) -> Iterable[Change]:
    """A follower copies the next record from the leader whose epoch it follows."""
    if is_following_leader_epoch(view, leader, follower):
        yield from base.replicate_to(k, view, leader, follower)


NEXT = base.next_state(
    fenced_leader_expand_isr, fenced_leader_shrink_isr, fenced_leader_inc_high_watermark,
    fenced_become_follower_and_truncate, fenced_follower_fetch,
)
