"""Kip101: a new follower truncates by the leader epoch of its last record, as the leader's log knows it."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import View
from harness.model.spec import Change, Next, action
from kafka_proto.replication import truncation
from kafka_proto.replication.specs import kafka_replication as base
from kafka_proto.replication.specs.names import ReplicationNames, end_of, follower_leader_epoch, hw_of, log_of


def offset_for_leader_epoch(view: View, leader: str, follower: str) -> int:
    """Look up where to truncate (`LookupOffsetForEpoch`); a follower with an empty log need not ask."""
    if end_of(view, follower) == 0:
        return 0
    return truncation.by_leader_epoch(log_of(view, leader), log_of(view, follower), hw_of(view, follower))


@action("BecomeFollowerTruncateKip101", exists=follower_leader_epoch)
def become_follower_truncate_kip101(
    k: ReplicationNames, view: View, replica: str, leader: str, epoch: str
) -> Iterable[Change]:
    """A new follower drops what the leader does not have of its last epoch; the leader may be of any epoch."""
    yield from base.become_follower_and_truncate_to(view, replica, leader, epoch, offset_for_leader_epoch)


NEXT: Next = (
    base.controller_elect_leader,
    base.controller_shrink_isr,
    base.become_leader,
    base.leader_expand_isr,
    base.leader_shrink_isr,
    base.leader_write,
    base.leader_inc_high_watermark,
    become_follower_truncate_kip101,
    base.follower_replicate,
)
"""The next-state relation: a step of any of these."""

FAIRNESS = {
    "LeaderIncHighWatermark": "strong",
    "LeaderExpandIsr": "strong",
    "LeaderWrite": "strong",
    "BecomeFollowerTruncateKip101": "weak",
    "BecomeLeader": "weak",
}
