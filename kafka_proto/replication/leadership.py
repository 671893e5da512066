"""Who leads and who follows whom, as each side believes, and what the controller may do about it."""

from __future__ import annotations

from kafka_proto.replication.records import Isr


def may_elect(candidate: str, leader: str | None, isr: Isr) -> bool:
    """Say whether the controller may make this replica the leader: it is in sync and does not lead already."""
    return candidate in isr and candidate != leader


def supersedes(request_epoch: int, leader_epoch: int) -> bool:
    """Say whether a replica obeys a LeaderAndIsr request: only one of a higher epoch than it knows."""
    return request_epoch > leader_epoch


def presumes_leadership(replica: str, leader: str | None) -> bool:
    """Say whether a replica that believes in this leader accepts writes (`ReplicaPresumesLeadership`)."""
    return leader == replica


def is_following(leader: str, believed: str | None) -> bool:
    """Say whether a replica that believes in `believed` follows this leader, in whatever epoch (`ReplicaIsFollowing`).

    A leader follows itself.
    """
    return believed == leader


def is_same_epoch(one_epoch: int, other_epoch: int) -> bool:
    """Say whether leader and follower are in one epoch: the fence that KIP-320 put on every exchange between them."""
    return one_epoch == other_epoch


def is_true_leader(
    replica: str, leader: str | None, leader_epoch: int, quorum_leader: str | None, quorum_epoch: int
) -> bool:
    """Say whether a replica that believes in (`leader`, `leader_epoch`) leads in the quorum's eyes (`IsTrueLeader`)."""
    return quorum_leader == replica and presumes_leadership(replica, leader) and leader_epoch == quorum_epoch
