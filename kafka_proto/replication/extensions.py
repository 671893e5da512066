"""What running replicas do beyond the modules: named extension actions beside the specs' own, with reasons.

They are switched on by `--set extend=...`. With all of them on, what a version promises is still
proved at small sizes; with none, the state graph is the published one. What is fenced by the leader epoch is so in
the extensions of `kip-320` only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations

from harness.model import View, slot
from harness.model.spec import Action, Change, Index, Next, Writes, action, each
from kafka_proto.replication import high_watermark as hw
from kafka_proto.replication import truncation
from kafka_proto.replication.records import NIL, first_disagreement, last_epoch, members, record_at
from kafka_proto.replication.specs import kafka_replication as base
from kafka_proto.replication.specs import kip_320_first_try
from kafka_proto.replication.specs.async_isr import AsyncIsrNames, high_watermark, leader_request, offset_of
from kafka_proto.replication.specs.by_version import offset_for_leader_epoch
from kafka_proto.replication.specs.kip_320 import is_following_leader_epoch
from kafka_proto.replication.specs.names import (
    ReplicationNames,
    end_of,
    follower_leader_epoch,
    hw_of,
    isr_of,
    leader_of,
    log_of,
    two_replicas,
)

Following = Callable[[View, str, str], bool]
"""Whether a follower follows a leader, in the terms of a version."""


def empty_fetch(following: Following) -> Action:
    """Make the action of a version."""

    @action(
        "EmptyFetch", exists=two_replicas,
        reason="a fetch that finds no record brings the leader's newer high watermark all the same",
    )
    def changes(k: ReplicationNames, view: View, follower: str, leader: str) -> Iterable[Change]:
        """A follower that holds the whole log, or is not sent more yet, learns the leader's high watermark."""
        if not following(view, leader, follower):
            return
        known = hw.after_fetch(hw_of(view, leader), end_of(view, follower))
        if known > hw_of(view, follower):
            yield Change(((slot("replicaState", follower, "hw"), known),), f"{follower} from {leader} to {known}")

    return changes


@action(
    "FollowEmptyLog", exists=follower_leader_epoch,
    reason="a replica without records has nothing to truncate, and follows before its leader leads",
)
def follow_empty_log(k: ReplicationNames, view: View, replica: str, leader: str, epoch: str) -> Iterable[Change]:
    """A replica without records obeys a request, whether or not its leader has."""
    request = base.newer_request(view, replica, leader, epoch)
    if request is not None and request.leader is not None and end_of(view, replica) == 0:
        yield base.follow_from(view, replica, request, 0)


@action(
    "DeposedLeaderIncHighWatermark", exists=each("replicas"),
    reason="a leader that has not heard of its successor counts the fetches that it heard",
)
def deposed_leader_inc_high_watermark(k: ReplicationNames, view: View, leader: str) -> Iterable[Change]:
    """A deposed leader's high watermark passes a record that every member of the ISR it knows holds, as it does."""
    if not base.presumes_leadership(view, leader) or base.is_true_leader(view, leader):
        return
    offset = hw_of(view, leader)
    if offset >= end_of(view, leader):
        return
    record = log_of(view, leader)[offset]
    if all(record_at(log_of(view, member), offset) == record for member in sorted(isr_of(view, leader))):
        yield base.increased(leader, offset)


@action(
    "ForgetHighWatermark", exists=each("replicas"),
    reason="a high watermark is on disk as of its last checkpoint, and a crash takes it back there",
)
def forget_high_watermark(k: ReplicationNames, view: View, replica: str) -> Iterable[Change]:
    """A replica crashes, and comes back with the high watermark of some checkpoint.

    One that leads is deposed before it acts on that: it is forgotten then.
    """
    if base.is_true_leader(view, replica):
        return
    for known in range(hw_of(view, replica)):
        yield Change(((slot("replicaState", replica, "hw"), known),), f"{replica} to {known}")


def late_shrink_isr(following: Following) -> Action:
    """Make the action of a version."""

    @action(
        "LateShrinkIsr", exists=two_replicas,
        reason="who lagged when its leader proposed to go on without it has caught up when the controller agrees",
    )
    def changes(k: ReplicationNames, view: View, leader: str, follower: str) -> Iterable[Change]:
        """The true leader takes a follower out that is in step with it by now."""
        if not base.is_true_leader(view, leader) or follower not in isr_of(view, leader):
            return
        if following(view, leader, follower) and end_of(view, follower) >= end_of(view, leader):
            yield base.shrink_to(leader, isr_of(view, leader), follower)

    return changes


@action(
    "LateExpandIsr", exists=two_replicas,
    reason="who was caught up when it fetched has moved on when the controller agrees",
)
def late_expand_isr(k: ReplicationNames, view: View, leader: str, follower: str) -> Iterable[Change]:
    """The true leader lets a replica in that follows another leader, or does not hold all that is committed, by now."""
    if not base.is_true_leader(view, leader) or follower in isr_of(view, leader):
        return
    behind = first_disagreement(log_of(view, leader), log_of(view, follower), hw_of(view, leader)) is not None
    if behind or not base.is_following(view, follower, leader):
        yield base.expand_to(leader, isr_of(view, leader), follower)


@action(
    "StaleIncHighWatermark", exists=each("replicas"),
    reason="a leader counts the fetches that it heard, whatever became of who sent them",
)
def stale_inc_high_watermark(k: ReplicationNames, view: View, leader: str) -> Iterable[Change]:
    """A presumed leader's high watermark passes a record that some member of the ISR it knows does not hold now."""
    if not base.presumes_leadership(view, leader):
        return
    offset, entries = hw_of(view, leader), log_of(view, leader)
    record = record_at(entries, offset)
    if record is not None and any(
        leader_of(view, member) != leader or record_at(log_of(view, member), offset) != record
        for member in sorted(isr_of(view, leader))
    ):
        yield base.increased(leader, offset)


@action(
    "FollowShorterLog", exists=follower_leader_epoch,
    reason="a replica that would truncate beyond its end offset has nothing to truncate, and follows",
)
def follow_shorter_log(k: ReplicationNames, view: View, replica: str, leader: str, epoch: str) -> Iterable[Change]:
    """A replica whose log ends below where the leader leaves the epoch of its last record keeps all of it (KIP-101)."""
    request = base.newer_request(view, replica, leader, epoch)
    if request is None or request.leader is None:
        return
    end = end_of(view, replica)
    if offset_for_leader_epoch(view, leader, replica) > end:
        yield base.follow_from(view, replica, request, end)


@action(
    "TruncateOnce", exists=two_replicas,
    reason="a follower truncates by one answer at a time, and may have to ask again",
)
def truncate_once(k: ReplicationNames, view: View, follower: str, leader: str) -> Iterable[Change]:
    """A follower that cannot fetch cuts by what the leader has of its last epoch, which need not be enough."""
    if not kip_320_first_try.is_following(view, leader, follower):
        return
    leads, follows = log_of(view, leader), log_of(view, follower)
    if truncation.is_needed(leads, follows):
        offset, _ = truncation.narrowed(follows, truncation.largest_epoch(leads, last_epoch(follows)))
        yield Change(base.truncated(view, follower, offset), f"{follower} of {leader} from {offset}")




def several_followers(k: AsyncIsrNames) -> Iterable[Index]:
    """Yield the sets of two or more followers."""
    for size in range(2, len(k.followers) + 1):
        yield from combinations(k.followers, size)


@action(
    "EarlyExpandIsr", exists=each("followers"),
    reason="a leader's high watermark rises by steps of its own, so it may be behind what it lets rise",
)
def early_expand_isr(k: AsyncIsrNames, view: View, replica: str) -> Iterable[Change]:
    """The leader proposes a replica that is below where its high watermark could be, but not yet is."""
    isr = view.at("leaderState", "isr")
    if replica not in isr and offset_of(view, replica) < high_watermark(k, view):
        yield Change(leader_request(view, isr | {replica}), replica)


@action(
    "ShrinkIsrByMany", exists=several_followers,
    reason="a leader proposes to go on without all who lag, in one proposal",
)
def shrink_isr_by_many(k: AsyncIsrNames, view: View, *lagging: str) -> Iterable[Change]:
    """The leader proposes to take several followers out."""
    isr, out = view.at("leaderState", "isr"), frozenset(lagging)
    if out <= isr:
        yield Change(leader_request(view, isr - out), members(out))


@action(
    "LapseRequests", exists=each("followers"),
    reason="who was started again is not meant by what is proposed for it as it was before (KIP-903)",
)
def lapse_requests(k: AsyncIsrNames, view: View, replica: str) -> Iterable[Change]:
    """A replica that is not in sync was started again: the controller will refuse what proposes it as it was."""
    version, isr = view.at("controllerState", "version"), view.at("controllerState", "isr")
    lapsed = frozenset(r for r in view["requests"] if r.version == version and replica in r.isr)
    if replica not in isr and lapsed:
        yield Change((("requests", view["requests"] - lapsed),), replica)


@action(
    "ForgetPendingIsr",
    reason="a leader that is refused forgets its proposal, and those whom it proposed do not count",
)
def forget_pending_isr(k: AsyncIsrNames, view: View) -> Iterable[Change]:
    """The leader hears that what it has proposed for the version that it knows will not be."""
    pending = view.at("leaderState", "pendingVersion")
    if pending != NIL and all(request.version != pending for request in view["requests"]):
        writes: Writes = (
            (slot("leaderState", "pendingIsr"), frozenset()), (slot("leaderState", "pendingVersion"), NIL),
        )
        yield Change(writes, f"of version {pending}")


UNFENCED = (
    empty_fetch(kip_320_first_try.is_following), deposed_leader_inc_high_watermark, forget_high_watermark,
    late_shrink_isr(kip_320_first_try.is_following), late_expand_isr, stale_inc_high_watermark,
)
ACTIONS: Mapping[str, Next] = {
    "truncate-to-high-watermark": UNFENCED,
    "kip-101": (*UNFENCED, follow_shorter_log),
    "kip-279": UNFENCED,
    "kip-320-first-try": (*UNFENCED, truncate_once),
    "kip-320": (
        empty_fetch(is_following_leader_epoch), follow_empty_log, deposed_leader_inc_high_watermark,
        forget_high_watermark, late_shrink_isr(is_following_leader_epoch),
    ),
    "async-isr": (early_expand_isr, shrink_isr_by_many, lapse_requests, forget_pending_isr),
}
"""The extension actions of each version."""
