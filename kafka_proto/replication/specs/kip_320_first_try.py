"""Kip320FirstTry: truncation when a fetch fails, by the epoch of the last record; the rejected first design of KIP-320.

Followers do not tell their leader epoch, so the leader counts one of an older epoch that may still truncate what it
counted for.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import View
from harness.model.spec import Change, action, each
from kafka_proto.replication import isr, truncation
from kafka_proto.replication.records import record_at
from kafka_proto.replication.specs import kafka_replication as base
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


def is_following(view: View, leader: str, follower: str) -> bool:
    """Say whether a follower believes in a replica that presumes to lead, in whatever epochs they are."""
    return base.presumes_leadership(view, leader) and base.is_following(view, follower, leader)


def is_caught_up(view: View, leader: str, follower: str, end_offset: int) -> bool:
    """Say whether the records below an offset have one epoch (`IsFollowerCaughtUpToLeaderEpoch`)."""
    if end_offset == 0:
        return True
    below = record_at(log_of(view, follower), end_offset - 1)
    return below is not None and isr.has_epoch_below(log_of(view, leader), end_offset, below.epoch)


@action("LeaderExpandIsrBetterFencing", exists=two_replicas)
def leader_expand_isr_better_fencing(k: ReplicationNames, view: View, leader: str, follower: str) -> Iterable[Change]:
    """The true leader lets a follower in that has reached its high watermark, when that is in the current epoch."""
    if not base.is_true_leader(view, leader):
        return
    members = isr_of(view, leader)
    if follower in members or not is_following(view, leader, follower):
        return
    high_watermark = hw_of(view, leader)
    if not is_caught_up(view, leader, follower, high_watermark):
        return
    if isr.is_in_current_epoch(high_watermark, log_of(view, leader), epoch_of(view, leader)):
        yield base.expand_to(leader, members, follower)


@action("LeaderShrinkIsrBetterFencing", exists=two_replicas)
def leader_shrink_isr_better_fencing(k: ReplicationNames, view: View, leader: str, follower: str) -> Iterable[Change]:
    """The true leader takes a follower out whose last record is not of the same epoch as its own."""
    if not base.is_true_leader(view, leader):
        return
    members = isr_of(view, leader)
    if follower not in members:
        return
    if not (is_following(view, leader, follower) and is_caught_up(view, leader, follower, end_of(view, leader))):
        yield base.shrink_to(leader, members, follower)


@action("ImprovedLeaderIncHighWatermark", exists=each("replicas"))
def improved_leader_inc_high_watermark(k: ReplicationNames, view: View, leader: str) -> Iterable[Change]:
    """A presumed leader's high watermark passes a record that every member of its ISR holds in the same epoch."""
    if not base.presumes_leadership(view, leader):
        return
    offset = hw_of(view, leader)
    if offset >= end_of(view, leader):
        return
    for follower in sorted(isr_of(view, leader)):
        if not (is_following(view, leader, follower) and is_caught_up(view, leader, follower, offset + 1)):
            return
    yield base.increased(leader, offset)


@action("BecomeFollower", exists=follower_leader_epoch)
def become_follower(k: ReplicationNames, view: View, replica: str, leader: str, epoch: str) -> Iterable[Change]:
    """A replica obeys a LeaderAndIsr request that makes another one leader, and keeps its log as it is."""
    request = base.newer_request(view, replica, leader, epoch)
    if request is not None:
        yield Change(base.obeyed(replica, request), f"{replica} of {request.leader or 'nobody'} epoch {epoch}")


@action("FollowerFetch", exists=two_replicas)
def follower_fetch(k: ReplicationNames, view: View, follower: str, leader: str) -> Iterable[Change]:
    """A follower copies the next record if its last one has the epoch that the leader has at that offset."""
    if is_following(view, leader, follower) and is_caught_up(view, leader, follower, end_of(view, follower)):
        yield from base.replicate_to(k, view, leader, follower)


@action("FollowerTruncate", exists=two_replicas)
def follower_truncate(k: ReplicationNames, view: View, follower: str, leader: str) -> Iterable[Change]:
    """A follower that cannot fetch truncates to the last record that it shares with the leader."""
    if not is_following(view, leader, follower):
        return
    if truncation.is_needed(log_of(view, leader), log_of(view, follower)):
        offset = base.first_non_matching_offset(view, leader, follower)
        yield Change(base.truncated(view, follower, offset), f"{follower} of {leader} from {offset}")


NEXT = base.next_state(
    leader_expand_isr_better_fencing, leader_shrink_isr_better_fencing, improved_leader_inc_high_watermark,
    become_follower, follower_fetch, follower_truncate,
)
