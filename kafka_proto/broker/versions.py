"""The versions of Kafka's broker, as far as transactions go, and which of them a release is at which level.

What a version changes in the one before it is all that it lists. No decision asks which version it is in; what depends
on a request's own version is in the decision: so old clients get the old semantics of every version.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.coordinator import (
    add_partitions,
    end_txn,
    init_producer_id,
    keep_prepared,
    loading,
    transaction,
)
from kafka_proto.broker.coordinator.coordinator import CoordinatorDecisions
from kafka_proto.broker.group import coordinator as group
from kafka_proto.broker.leader import appending, fetching, verification
from kafka_proto.broker.leader.admission import LeaderDecisions
from kafka_proto.errors import Error
from kafka_proto.log import forget_deleted_producers, open_from_start

Decisions = Mapping[str, Any]
"""Decisions by the names of their fields."""
SAME: Decisions = FrozenMap()


@attrs.frozen
class BrokerVersion:
    """What a version of a broker is: the decisions of each of its roles."""

    name: str
    coordinator: CoordinatorDecisions
    leader: LeaderDecisions
    group: group.GroupDecisions
    keeps_eligible_leaders: bool = False
    """KIP-966, as new clusters have it: who left the ISR as it became too small may be elected."""
    skips_leaderless: bool = False
    """KAFKA-20734: a transaction ends without the markers of partitions that have no leader at that moment."""

    def changed(
        self, name: str, coordinator: Decisions = SAME, leader: Decisions = SAME, group: Decisions = SAME
    ) -> BrokerVersion:
        """Return the version of other releases, with some decisions changed."""
        return attrs.evolve(
            self, name=name, coordinator=attrs.evolve(self.coordinator, **coordinator),
            leader=attrs.evolve(self.leader, **leader), group=attrs.evolve(self.group, **group),
        )

    def at_level(self, level: int) -> BrokerVersion:
        """Return the version as it is at a lower level of `transaction.version`.

        At 1 a coordinator's own abort is that of 3.x. At 0 the transaction log has its old format besides. The level
        also says which versions of requests clients are offered.
        """
        coordinator = attrs.evolve(self.coordinator, abort_fenced=end_txn.abort_fenced)
        if level == 0:
            coordinator = attrs.evolve(coordinator, can_log=transaction.can_log_old_clients)
        return attrs.evolve(self, name=f"{self.name}/level-{level}", coordinator=coordinator)


KIP_360 = BrokerVersion(
    "kip-360",
    CoordinatorDecisions(
        init_producer_id=init_producer_id.init_producer_id,
        add_partitions=add_partitions.add_partitions,
        verify_partitions=partial(add_partitions.verify_partitions, absent=Error.INVALID_TXN_STATE),
        end_txn=end_txn.end_txn,
        end_txn_bumping=end_txn.end_txn,
        abort_fenced=end_txn.abort_fenced,
        recovered=loading.recovered_without_ids,
    ),
    LeaderDecisions(
        operation=verification.no_operation,
        has_open=verification.has_open_transaction,
        start_verification=verification.start,
        check_verified=appending.take_unverified,
        check_sequence=appending.check_sequence,
        check_marker=appending.check_marker,
        unverified_produce=verification.unverified_produce,
        after_deletion=open_from_start,
        takes_append_time=False,
        check_time=fetching.any_time,
    ),
    group.GroupDecisions(
        check_group=group.check_group,
        refused_commit=group.refused_commit,
        before_check=group.with_group,
        after_deletion=group.without_unused,
    ),
)
"""Kafka 2.5 to 3.5: a producer goes on after an error with a new epoch (KIP-360), groups fence (KIP-447)."""
KIP_98 = KIP_360.changed(
    "kip-98", leader={"check_sequence": appending.check_sequence_known, "after_deletion": forget_deleted_producers},
)
"""Kafka 1.0 to 2.3: what KIP-360 and KIP-447 brought is in requests that these do not take.

A producer whose records were deleted is unknown, and so is its next batch (what KIP-360 mends). Not checked against a
real broker.
"""
KIP_98_0_11 = KIP_98.changed("kip-98/0.11", {"fence_timed_out": init_producer_id.keep_epoch})
"""Kafka 0.11: a time-out does not fence with a new epoch, as it does in all later ones (KAFKA-6119)."""
KIP_890_PART_1 = KIP_360.changed(
    "kip-890-part-1",
    {"verify_partitions": partial(add_partitions.verify_partitions, absent=Error.TRANSACTION_ABORTABLE)},
    {
        "operation": verification.verify_operation,
        "check_verified": appending.check_open_or_guard,
        "check_sequence": appending.check_sequence_verified,
        "takes_append_time": True,
        "check_time": fetching.known_time,
    },
)
"""Kafka 3.8 and 3.9: the leader asks the coordinator before a transaction's first batch (KIP-890 part 1)."""
KIP_890_PART_1_3_7 = KIP_890_PART_1.changed(
    "kip-890-part-1/3.7", {"verify_partitions": KIP_360.coordinator.verify_partitions},
    group={"refused_commit": group.refused_commit_as_few_replicas},
)
"""Kafka 3.7 has other codes."""
KIP_890_PART_1_3_6 = KIP_890_PART_1.changed(
    "kip-890-part-1/3.6", {"verify_partitions": KIP_360.coordinator.verify_partitions},
    {
        "operation": verification.verify_produce_operation,
        "check_verified": appending.check_open_or_guard_of_clients,
        "unverified_produce": verification.unverified_produce_but_unreached,
    },
)
"""Kafka 3.6 does not ask about offsets."""
KIP_890 = KIP_890_PART_1.changed(
    "kip-890",
    {
        "add_partitions": add_partitions.add_partitions_pending_first,
        "end_txn_bumping": end_txn.end_txn_bumping,
        "abort_fenced": end_txn.abort_fenced_twice,
    },
    {
        "operation": verification.add_or_verify_operation,
        "has_open": verification.has_open_transaction_of_epoch,
        "check_verified": appending.check_open_in_epoch_or_guard,
        "unverified_produce": verification.unverified_produce_retriable,
        "after_deletion": fetching.forget_nothing,
        "timestamp_after_max_ms": 3_600_000,
    },
    {"check_group": group.check_known_group, "before_check": group.as_it_is, "after_deletion": group.with_unused,
     "stores_new": True},
)
"""Kafka 4.0: each end bumps the epoch, leaders add partitions (KIP-890 part 2)."""
KIP_890_4_1 = attrs.evolve(KIP_890.changed(
    "kip-890/4.1", {"abort_fenced": end_txn.abort_fenced_once},
    {"start_verification": verification.start_unless_stale, "check_sequence": appending.check_sequence_from_zero},
), keeps_eligible_leaders=True)
KIP_890_4_2 = KIP_890_4_1.changed(
    "kip-890/4.2", {"marker_version": 2},
    {"check_verified": appending.check_epoch_before_guard, "check_marker": appending.check_marker_strictly},
)
KIP_890_4_4 = attrs.evolve(KIP_890_4_2.changed(
    "kip-890/4.4",
    {
        "abort_fenced": end_txn.abort_fenced_rotating,
        "recovered": loading.recovered_without_last_epoch,
        "end_txn_bumping": partial(end_txn.end_txn_bumping, keeps_last=True),
        "fence": init_producer_id.fence_at_last,
        "fence_timed_out": init_producer_id.fence_at_last,
    },
    {"check_marker": appending.check_marker_up_to_last},
    {"joins_by_policy": True},
), skips_leaderless=True)
KIP_939 = KIP_890_4_4.changed(
    "kip-939",
    {
        "init_producer_id": keep_prepared.init_producer_id,
        "add_partitions": keep_prepared.add_partitions,
        "end_txn_bumping": keep_prepared.end_txn_bumping,
        "abort_fenced": keep_prepared.abort_fenced,
        "times_out": keep_prepared.times_out,
    },
)
"""Proposed over 4.4: a producer takes part in two-phase commits (KIP-939, as in apache/kafka#21735)."""


def _every_level(version: BrokerVersion) -> tuple[BrokerVersion, ...]:
    return version.at_level(0), version.at_level(1), version


RELEASES: Mapping[str, tuple[BrokerVersion, ...]] = {
    "3.5.2": (KIP_360,),
    "3.6.2": (KIP_890_PART_1_3_6,),
    "3.7.2": (KIP_890_PART_1_3_7,),
    "3.8.1": (KIP_890_PART_1,),
    "3.9.2": (KIP_890_PART_1, KIP_890_PART_1),
    "4.0.0": _every_level(KIP_890),
    "4.1.1": _every_level(KIP_890_4_1),
    "4.2.0": _every_level(KIP_890_4_2),
    "4.3.1": _every_level(KIP_890_4_4),
    "4.4.0": _every_level(KIP_890_4_4),
}
"""By release, of those that were recorded on real brokers: the version that it is at each level, from 0 on."""


def version_of(release: str, level: int) -> BrokerVersion:
    """Return the version that a release is at a level. Raises ValueError, with those that there are, for another."""
    versions = RELEASES.get(release, ())
    if level not in range(len(versions)):
        there = ", ".join(f"{name} at {_levels(len(versions))}" for name, versions in RELEASES.items())
        raise ValueError(f"no version stands for Kafka {release} at transaction.version {level}; there are {there}")
    return versions[level]


def _levels(count: int) -> str:
    return "0" if count == 1 else f"0 to {count - 1}"
