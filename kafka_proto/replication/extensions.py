"""What running replicas do beyond the module Kip320: named extension actions of its spec composition, with reasons.

They are ordinary actions, switched on by `--set extend=...`. With all of them on, the invariants are still proved at
small sizes; with none, the state graph is the published one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.model import View, slot
from kafka_proto.replication import high_watermark as hw
from kafka_proto.replication import kafka_replication as base
from kafka_proto.replication import leadership, log
from kafka_proto.replication.kip_320 import is_following_leader_epoch
from kafka_proto.replication.spec import (
    Action,
    Change,
    Names,
    action,
    end_of,
    follower_leader_epoch,
    hw_of,
    isr_of,
    leader_of,
    log_of,
    one_replica,
    two_replicas,
)

EXTENSIONS: Mapping[str, str] = {
    "EmptyFetch": "a fetch that finds no record brings the leader's newer high watermark all the same",
    "FollowEmptyLog": "a replica without records has nothing to truncate, and follows before its leader leads",
    "DeposedLeaderIncHighWatermark": "a leader that has not heard of its successor counts the fetches that it heard",
    "ForgetHighWatermark": "a high watermark is on disk as of its last checkpoint, and a crash takes it back there",
    "LateShrinkIsr": "who lagged when its leader proposed to go on without it has caught up when the controller agrees",
}
"""The extension actions, and why the truth has each."""


@action("EmptyFetch", two_replicas)
def empty_fetch(k: Names, view: View, follower: str, leader: str) -> Iterable[Change]:
    """A follower that holds the whole log, or is not sent more yet, learns the leader's high watermark."""
    if not is_following_leader_epoch(view, leader, follower):
        return
    known = hw.after_fetch(hw_of(view, leader), end_of(view, follower))
    if known > hw_of(view, follower):
        yield Change(((slot("replicaState", follower, "hw"), known),), f"{follower} from {leader} to {known}")


@action("FollowEmptyLog", follower_leader_epoch)
def follow_empty_log(k: Names, view: View, replica: str, leader: str, epoch: str) -> Iterable[Change]:
    """A replica without records obeys a request, whether or not its leader has."""
    request = base.newer_request(view, replica, leader, epoch)
    if request is not None and request.leader is not None and end_of(view, replica) == 0:
        yield base.follow_from(view, replica, request, 0)


@action("DeposedLeaderIncHighWatermark", one_replica)
def deposed_leader_inc_high_watermark(k: Names, view: View, leader: str) -> Iterable[Change]:
    """A deposed leader's high watermark passes a record that every member of the ISR it knows holds, as it does."""
    if not leadership.presumes_leadership(leader, leader_of(view, leader)) or base.is_true_leader(view, leader):
        return
    offset = hw_of(view, leader)
    if not log.has_offset(end_of(view, leader), offset):
        return
    record = log_of(view, leader)[offset]
    if all(log.record_at(log_of(view, member), offset) == record for member in sorted(isr_of(view, leader))):
        yield base.increased(leader, offset)


@action("ForgetHighWatermark", one_replica)
def forget_high_watermark(k: Names, view: View, replica: str) -> Iterable[Change]:
    """A replica crashes, and comes back with the high watermark of some checkpoint.

    One that leads is deposed before it acts on that: it is forgotten then.
    """
    if base.is_true_leader(view, replica):
        return
    for known in range(hw_of(view, replica)):
        yield Change(((slot("replicaState", replica, "hw"), known),), f"{replica} to {known}")


@action("LateShrinkIsr", two_replicas)
def late_shrink_isr(k: Names, view: View, leader: str, follower: str) -> Iterable[Change]:
    """The true leader takes a follower out that is in step with it by now."""
    if not base.is_true_leader(view, leader) or follower not in isr_of(view, leader):
        return
    if is_following_leader_epoch(view, leader, follower) and end_of(view, follower) >= end_of(view, leader):
        yield base.shrink_to(leader, isr_of(view, leader), follower)


ACTIONS: tuple[Action, ...] = (
    empty_fetch, follow_empty_log, deposed_leader_inc_high_watermark, forget_high_watermark, late_shrink_isr,
)


def extended(next_state: tuple[Action, ...], names: str) -> tuple[Action, ...]:
    """Return a next-state relation with the extension actions of a comma-separated list."""
    chosen = names.split(",")
    return (*next_state, *(extension for extension in ACTIONS if extension.name in chosen))
