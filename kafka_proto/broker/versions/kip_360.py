"""Brokers as Kafka 2.5 to 3.5: a producer goes on after an error with a new epoch (KIP-360), groups fence (KIP-447)."""

from functools import partial

from kafka_proto.broker.coordinator.add_partitions import add_partitions, verify_partitions
from kafka_proto.broker.coordinator.coordinator import CoordinatorDecisions
from kafka_proto.broker.coordinator.end_txn import abort_fenced, end_txn
from kafka_proto.broker.coordinator.init_producer_id import init_producer_id
from kafka_proto.broker.coordinator.loading import recovered_without_ids
from kafka_proto.broker.group.coordinator import GroupDecisions, refused_commit, with_group, without_unused
from kafka_proto.broker.group.membership import check_group
from kafka_proto.broker.leader.admission import LeaderDecisions
from kafka_proto.broker.leader.appending import check_sequence, take_unverified
from kafka_proto.broker.leader.fetching import any_time
from kafka_proto.broker.leader.marking import check_marker
from kafka_proto.broker.leader.state import has_open_transaction
from kafka_proto.broker.leader.verification import no_operation, start, unverified, unverified_produce
from kafka_proto.broker.versions.broker_version import BrokerVersion
from kafka_proto.log import open_from_start
from kafka_proto.requests.error import Error

KIP_360 = BrokerVersion(
    "kip-360", "transactions as Kafka 2.5 to 3.5 has them",
    CoordinatorDecisions(
        init_producer_id=init_producer_id,
        add_partitions=add_partitions,
        verify_partitions=partial(verify_partitions, absent=Error.INVALID_TXN_STATE),
        end_txn=end_txn,
        end_txn_bumping=end_txn,
        abort_fenced=abort_fenced,
        recovered=recovered_without_ids,
    ),
    LeaderDecisions(
        operation=no_operation,
        has_open=has_open_transaction,
        start_verification=start,
        check_verified=take_unverified,
        check_sequence=check_sequence,
        check_marker=check_marker,
        unverified=unverified,
        unverified_produce=unverified_produce,
        after_deletion=open_from_start,
        takes_append_time=False,
        check_time=any_time,
    ),
    GroupDecisions(
        check_group=check_group, refused_commit=refused_commit, before_check=with_group,
        after_deletion=without_unused,
    ),
)
