"""Kip279: a new follower truncates to the last record that it shares with the leader's log."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import View
from harness.model.spec import Change, Next, action
from kafka_proto.replication import truncation
from kafka_proto.replication.specs import kafka_replication as base
from kafka_proto.replication.specs.names import ReplicationNames, end_of, follower_leader_epoch, log_of


def first_non_matching_offset(view: View, leader: str, follower: str) -> int:
    """Look up where to truncate (`FirstNonMatchingOffsetFromTail`); a follower with an empty log need not."""
    if end_of(view, follower) == 0:
        return 0
    return truncation.by_matching_records(log_of(view, leader), log_of(view, follower))


@action("BecomeFollowerTruncateKip279", exists=follower_leader_epoch)
def become_follower_truncate_kip279(
    k: ReplicationNames, view: View, replica: str, leader: str, epoch: str
) -> Iterable[Change]:
    """A new follower drops what it does not share with the leader, which may be of any epoch.

    For an empty log both arms of the spec's disjunction are true: there are two ways then.
    """
    for change in base.become_follower_and_truncate_to(view, replica, leader, epoch, first_non_matching_offset):
        yield attrs.evolve(change, ways=2) if end_of(view, replica) == 0 else change


NEXT: Next = (
    base.controller_elect_leader,
    base.controller_shrink_isr,
    base.become_leader,
    base.leader_expand_isr,
    base.leader_shrink_isr,
    base.leader_write,
    base.leader_inc_high_watermark,
    become_follower_truncate_kip279,
    base.follower_replicate,
)
"""The next-state relation: a step of any of these."""

FAIRNESS = {
    "LeaderIncHighWatermark": "strong",
    "LeaderExpandIsr": "strong",
    "LeaderWrite": "strong",
    "BecomeFollowerTruncateKip279": "weak",
    "BecomeLeader": "weak",
}
