"""The specs that build on KafkaReplication, by the names of their versions.

KafkaTruncateToHighWatermark, Kip101 and Kip279 differ in where a new follower truncates, and are here. Before KIP-320
the leader that it asks may be of any epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from harness.model import View
from harness.model.spec import Change, Next, action, flat
from kafka_proto.replication import truncation
from kafka_proto.replication.specs import kafka_replication as base
from kafka_proto.replication.specs import kip_320, kip_320_first_try
from kafka_proto.replication.specs.names import ReplicationNames, end_of, follower_leader_epoch, hw_of, log_of

LookUp = Callable[[View, str, str], int]
"""To which offset a version truncates, given a view, the leader and the follower."""


@attrs.frozen
class VersionSpec:
    """The spec of a version: the name of its module, and its next-state relation."""

    module: str
    title: str
    next_state: Next
    is_local: bool = False
    """Whether the module's `Next` is LOCAL."""

    @property
    def fairness(self) -> Mapping[str, str]:
        """The fairness of the version.

        Kip320FirstTry's formula names LeaderExpandIsr, which its `Next` does not have. Here is what that implies for
        the action in its place.
        """
        leads, expand, _, write, increase, follow = (one.name for one in flat(self.next_state)[2:8])
        return {increase: "strong", expand: "strong", write: "strong", follow: "weak", leads: "weak"}


def own_high_watermark(view: View, leader: str, follower: str) -> int:
    """Truncate to the own high watermark, without asking the leader; committed records may be lost."""
    return hw_of(view, follower)


def offset_for_leader_epoch(view: View, leader: str, follower: str) -> int:
    """Truncate by the leader epoch of the last record, as the leader's log knows it (`LookupOffsetForEpoch`).

    A follower with an empty log need not ask.
    """
    if end_of(view, follower) == 0:
        return 0
    return truncation.by_leader_epoch(log_of(view, leader), log_of(view, follower), hw_of(view, follower))


def truncating(
    module: str, title: str, follows: str, look_up: LookUp, is_local: bool, empty_log: int = 1
) -> VersionSpec:
    """Return a spec in which a new follower truncates to where it looks up (`BecomeFollowerAndTruncateTo`).

    `follows` names the action, `empty_log` says in how many ways it is possible with an empty log.
    """

    @action(follows, exists=follower_leader_epoch)
    def become_follower(k: ReplicationNames, view: View, replica: str, leader: str, epoch: str) -> Iterable[Change]:
        """A replica obeys a LeaderAndIsr request that makes another one leader."""
        request = base.newer_request(view, replica, leader, epoch)
        if request is None:
            return
        if request.leader is None:
            change = base.without_leader(replica, request)
        elif (offset := look_up(view, leader, replica)) <= end_of(view, replica):
            change = base.follow_from(view, replica, request, offset)
        else:
            return
        yield change if empty_log == 1 or end_of(view, replica) else attrs.evolve(change, ways=empty_log)

    next_state = base.next_state(
        base.leader_expand_isr, base.leader_shrink_isr, base.leader_inc_high_watermark, become_follower,
        base.follower_replicate,
    )
    return VersionSpec(module, title, next_state, is_local)


SPECS: Mapping[str, VersionSpec] = {
    "truncate-to-high-watermark": truncating(
        "KafkaTruncateToHighWatermark", "truncation to the own high watermark (before KIP-101)",
        "BecomeFollowerTruncateToHighWatermark", own_high_watermark, is_local=False,
    ),
    "kip-101": truncating(
        "Kip101", "truncation by leader epoch (KIP-101)", "BecomeFollowerTruncateKip101", offset_for_leader_epoch,
        is_local=True,
    ),
    "kip-279": truncating(
        "Kip279", "truncation to the last shared record (KIP-279)", "BecomeFollowerTruncateKip279",
        base.first_non_matching_offset, is_local=True, empty_log=2,
    ),
    "kip-320-first-try": VersionSpec(
        "Kip320FirstTry", "truncation when a fetch fails (the rejected first try at KIP-320)", kip_320_first_try.NEXT
    ),
    "kip-320": VersionSpec("Kip320", "exchanges fenced by leader epoch (KIP-320)", kip_320.NEXT),
}
"""For an empty log both arms of Kip279's disjunction are true: there are two ways then."""
