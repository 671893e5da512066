"""Brokers as Kafka 3.6 to 3.9: the leader asks the coordinator before a transaction's first batch (KIP-890 part 1).

3.8 and 3.9 are one version. 3.7 has other codes; 3.6 does not ask about offsets.
"""

from functools import partial

import attrs

from kafka_proto.broker.coordinator.add_partitions import add_partitions, verify_partitions
from kafka_proto.broker.coordinator.coordinator import CoordinatorDecisions
from kafka_proto.broker.coordinator.end_txn import abort_fenced, end_txn
from kafka_proto.broker.coordinator.init_producer_id import init_producer_id
from kafka_proto.broker.coordinator.loading import recovered_without_ids
from kafka_proto.broker.group.coordinator import (
    GroupDecisions,
    refused_commit,
    refused_commit_as_few_replicas,
    with_group,
    without_unused,
)
from kafka_proto.broker.group.membership import check_group
from kafka_proto.broker.leader.admission import LeaderDecisions
from kafka_proto.broker.leader.appending import (
    check_open_or_guard,
    check_open_or_guard_of_clients,
    check_sequence_verified,
)
from kafka_proto.broker.leader.marking import check_marker
from kafka_proto.broker.leader.state import has_open_transaction
from kafka_proto.broker.leader.verification import (
    start,
    unverified,
    unverified_produce,
    unverified_produce_but_unreached,
    verify_operation,
    verify_produce_operation,
)
from kafka_proto.broker.versions.broker_version import BrokerVersion
from kafka_proto.log import open_from_start
from kafka_proto.requests.error import Error

KIP_890_PART_1 = BrokerVersion(
    "kip-890-part-1", "transactions as Kafka 3.8 and 3.9 have them",
    CoordinatorDecisions(
        init_producer_id=init_producer_id,
        add_partitions=add_partitions,
        verify_partitions=partial(verify_partitions, absent=Error.TRANSACTION_ABORTABLE),
        end_txn=end_txn,
        end_txn_bumping=end_txn,
        abort_fenced=abort_fenced,
        recovered=recovered_without_ids,
    ),
    LeaderDecisions(
        operation=verify_operation,
        has_open=has_open_transaction,
        start_verification=start,
        check_verified=check_open_or_guard,
        check_sequence=check_sequence_verified,
        check_marker=check_marker,
        unverified=unverified,
        unverified_produce=unverified_produce,
        after_deletion=open_from_start,
    ),
    GroupDecisions(
        check_group=check_group, refused_commit=refused_commit, before_check=with_group,
        after_deletion=without_unused,
    ),
)
KIP_890_PART_1_3_7 = attrs.evolve(
    KIP_890_PART_1, name="kip-890-part-1/3.7", title="transactions as Kafka 3.7 has them",
    coordinator=attrs.evolve(
        KIP_890_PART_1.coordinator, verify_partitions=partial(verify_partitions, absent=Error.INVALID_TXN_STATE),
    ),
    group=attrs.evolve(KIP_890_PART_1.group, refused_commit=refused_commit_as_few_replicas),
)
KIP_890_PART_1_3_6 = attrs.evolve(
    KIP_890_PART_1, name="kip-890-part-1/3.6", title="transactions as Kafka 3.6 has them",
    coordinator=KIP_890_PART_1_3_7.coordinator,
    leader=attrs.evolve(
        KIP_890_PART_1.leader, operation=verify_produce_operation, check_verified=check_open_or_guard_of_clients,
        unverified_produce=unverified_produce_but_unreached,
    ),
)
