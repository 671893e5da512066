"""Brokers as Kafka 1.0 to 2.3: KIP-98. What KIP-360 and KIP-447 brought is in requests that these do not take.

A producer whose records were deleted is unknown, and so is its next batch (what KIP-360 mends). A time-out fences with
a new epoch here as in all later ones; in 0.11 it did not (KAFKA-6119). Not held against a real broker.
"""

import attrs

from kafka_proto.broker.coordinator.init_producer_id import keep_epoch
from kafka_proto.broker.leader.appending import check_sequence_known
from kafka_proto.broker.versions.kip_360 import KIP_360
from kafka_proto.log import forget_deleted_producers

KIP_98 = attrs.evolve(
    KIP_360, name="kip-98", title="transactions as Kafka 1.0 to 2.3 has them",
    leader=attrs.evolve(KIP_360.leader, check_sequence=check_sequence_known, after_deletion=forget_deleted_producers),
)
KIP_98_0_11 = attrs.evolve(
    KIP_98, name="kip-98/0.11", title="transactions as Kafka 0.11 has them",
    coordinator=attrs.evolve(KIP_98.coordinator, fence_timed_out=keep_epoch),
)
