"""Leaders and followers, as each side believes, and what the controller may do about it."""

from __future__ import annotations

from kafka_proto.replication.records import Isr


def may_elect(candidate: str, leader: str | None, isr: Isr) -> bool:
    """Say whether the controller may make this replica the leader: it is in sync and does not lead already."""
    return candidate in isr and candidate != leader


def is_true_leader(
    replica: str, leader: str | None, leader_epoch: int, quorum_leader: str | None, quorum_epoch: int
) -> bool:
    """Say whether a replica that believes in (`leader`, `leader_epoch`) leads in the quorum's eyes (`IsTrueLeader`)."""
    return quorum_leader == replica and leader == replica and leader_epoch == quorum_epoch
