"""KafkaTruncateToHighWatermark: a new follower truncates to its own high watermark, and may lose committed records."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import View
from harness.model.spec import Change, Next, action
from kafka_proto.replication import truncation
from kafka_proto.replication.specs import kafka_replication as base
from kafka_proto.replication.specs.names import ReplicationNames, follower_leader_epoch, hw_of


def own_high_watermark(view: View, leader: str, follower: str) -> int:
    """Look up where to truncate, without asking the leader."""
    return truncation.by_high_watermark(hw_of(view, follower))


@action("BecomeFollowerTruncateToHighWatermark", exists=follower_leader_epoch)
def become_follower_truncate_to_high_watermark(
    k: ReplicationNames, view: View, replica: str, leader: str, epoch: str
) -> Iterable[Change]:
    """A new follower drops all that it does not know to be committed."""
    yield from base.become_follower_and_truncate_to(view, replica, leader, epoch, own_high_watermark)


NEXT: Next = (
    base.controller_elect_leader,
    base.controller_shrink_isr,
    base.become_leader,
    base.leader_expand_isr,
    base.leader_shrink_isr,
    base.leader_write,
    base.leader_inc_high_watermark,
    become_follower_truncate_to_high_watermark,
    base.follower_replicate,
)
"""The next-state relation: a step of any of these."""

FAIRNESS = {
    "LeaderIncHighWatermark": "strong",
    "LeaderExpandIsr": "strong",
    "LeaderWrite": "strong",
    "BecomeFollowerTruncateToHighWatermark": "weak",
    "BecomeLeader": "weak",
}
