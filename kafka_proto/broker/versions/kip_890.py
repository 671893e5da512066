"""Brokers as Kafka 4: each end bumps the epoch, leaders add partitions (KIP-890 part 2); and what changed since.

Old clients get the old semantics by the versions of their requests, at any level of transaction.version. What the level
changes is what the coordinator does of itself (and which versions of requests clients are offered).
"""

from functools import partial

import attrs

from kafka_proto.broker.coordinator.add_partitions import add_partitions_pending_first, verify_partitions
from kafka_proto.broker.coordinator.coordinator import CoordinatorDecisions
from kafka_proto.broker.coordinator.end_txn import abort_fenced, end_txn
from kafka_proto.broker.coordinator.end_txn_bumping import (
    abort_fenced_once,
    abort_fenced_rotating,
    abort_fenced_twice,
    end_txn_bumping,
)
from kafka_proto.broker.coordinator.init_producer_id import fence_at_last, init_producer_id
from kafka_proto.broker.coordinator.loading import recovered_whole, recovered_without_ids
from kafka_proto.broker.coordinator.log_format import can_log_old_clients
from kafka_proto.broker.group.coordinator import GroupDecisions, as_it_is, refused_commit
from kafka_proto.broker.group.membership import check_known_group
from kafka_proto.broker.leader.admission import LeaderDecisions
from kafka_proto.broker.leader.appending import (
    check_epoch_before_guard,
    check_open_in_epoch_or_guard,
    check_sequence_from_zero,
    check_sequence_verified,
)
from kafka_proto.broker.leader.fetching import forget_nothing
from kafka_proto.broker.leader.marking import check_marker, check_marker_strictly, check_marker_up_to_last
from kafka_proto.broker.leader.state import has_open_transaction_of_epoch
from kafka_proto.broker.leader.verification import (
    add_or_verify_operation,
    start,
    start_unless_stale,
    unverified,
    unverified_produce_retriable,
)
from kafka_proto.broker.versions.broker_version import BrokerVersion
from kafka_proto.requests.error import Error

KIP_890 = BrokerVersion(
    "kip-890", "transactions as Kafka 4.0 has them",
    CoordinatorDecisions(
        init_producer_id=init_producer_id,
        add_partitions=add_partitions_pending_first,
        verify_partitions=partial(verify_partitions, absent=Error.TRANSACTION_ABORTABLE),
        end_txn=end_txn,
        end_txn_bumping=end_txn_bumping,
        abort_fenced=abort_fenced_twice,
        recovered=recovered_without_ids,
    ),
    LeaderDecisions(
        operation=add_or_verify_operation,
        has_open=has_open_transaction_of_epoch,
        start_verification=start,
        check_verified=check_open_in_epoch_or_guard,
        check_sequence=check_sequence_verified,
        check_marker=check_marker,
        unverified=unverified,
        unverified_produce=unverified_produce_retriable,
        after_deletion=forget_nothing,
        timestamp_after_max_ms=3_600_000,
    ),
    GroupDecisions(check_group=check_known_group, refused_commit=refused_commit, before_check=as_it_is),
)
KIP_890_4_1 = attrs.evolve(
    KIP_890, name="kip-890/4.1", title="transactions as Kafka 4.1 has them",
    coordinator=attrs.evolve(KIP_890.coordinator, abort_fenced=abort_fenced_once),
    leader=attrs.evolve(
        KIP_890.leader, start_verification=start_unless_stale, check_sequence=check_sequence_from_zero,
    ),
)
KIP_890_4_2 = attrs.evolve(
    KIP_890_4_1, name="kip-890/4.2", title="transactions as Kafka 4.2 has them",
    coordinator=attrs.evolve(KIP_890_4_1.coordinator, marker_version=2),
    leader=attrs.evolve(
        KIP_890_4_1.leader, check_verified=check_epoch_before_guard, check_marker=check_marker_strictly,
    ),
)
KIP_890_4_4 = attrs.evolve(
    KIP_890_4_2, name="kip-890/4.4", title="transactions as Kafka 4.3 and 4.4 have them",
    coordinator=attrs.evolve(
        KIP_890_4_2.coordinator, abort_fenced=abort_fenced_rotating, recovered=recovered_whole,
        end_txn_bumping=partial(end_txn_bumping, keeps_last=True), fence=fence_at_last, fence_timed_out=fence_at_last,
    ),
    leader=attrs.evolve(KIP_890_4_2.leader, check_marker=check_marker_up_to_last),
)


def at_level(level: int, version: BrokerVersion) -> BrokerVersion:
    """Return a version as it is at a lower level of `transaction.version`.

    At 1 a coordinator's own abort is that of 3.x. At 0 the transaction log has its old format besides.
    """
    coordinator = attrs.evolve(version.coordinator, abort_fenced=abort_fenced)
    if level == 0:
        coordinator = attrs.evolve(coordinator, can_log=can_log_old_clients)
    return attrs.evolve(
        version, name=f"{version.name}/level-{level}", title=f"{version.title} at transaction.version {level}",
        coordinator=coordinator,
    )
