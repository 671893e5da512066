"""What each API of the wire asks of a broker, and its answer as fields.

A message about several partitions becomes requests of one. `TABLE` has every API that is served; what is not in it is
not offered.
"""

from __future__ import annotations

from kafka_proto.gateway import offer
from kafka_proto.gateway.apis import admin, groups, records, replicas, security, settings, topics, transactions
from kafka_proto.gateway.context import Api

TABLE: dict[int, Api] = {
    offer.PRODUCE: records.produce,
    offer.FETCH: records.fetch,
    offer.LIST_OFFSETS: records.list_offsets,
    offer.DELETE_RECORDS: records.delete_records,
    offer.OFFSET_FOR_LEADER_EPOCH: records.offset_for_leader_epoch,
    offer.METADATA: topics.metadata,
    offer.CREATE_TOPICS: topics.create_topics,
    offer.DELETE_TOPICS: topics.delete_topics,
    offer.DESCRIBE_TOPIC_PARTITIONS: topics.describe_topic_partitions,
    offer.DESCRIBE_CLUSTER: topics.describe_cluster,
    offer.DESCRIBE_QUORUM: topics.describe_quorum,
    offer.DESCRIBE_CONFIGS: settings.describe_configs,
    offer.ALTER_CONFIGS: settings.alter_configs,
    offer.INCREMENTAL_ALTER_CONFIGS: settings.incremental_alter_configs,
    offer.LIST_CONFIG_RESOURCES: settings.list_config_resources,
    offer.CREATE_PARTITIONS: admin.create_partitions,
    offer.DESCRIBE_LOG_DIRS: admin.describe_log_dirs,
    offer.ELECT_LEADERS: admin.elect_leaders,
    offer.ALTER_REPLICA_LOG_DIRS: replicas.alter_replica_log_dirs,
    offer.ALTER_PARTITION_REASSIGNMENTS: replicas.alter_partition_reassignments,
    offer.LIST_PARTITION_REASSIGNMENTS: replicas.list_partition_reassignments,
    offer.CREATE_ACLS: security.create_acls,
    offer.DELETE_ACLS: security.delete_acls,
    offer.ALTER_CLIENT_QUOTAS: security.alter_client_quotas,
    offer.ALTER_USER_SCRAM_CREDENTIALS: security.alter_user_scram_credentials,
    offer.SASL_HANDSHAKE: security.sasl_handshake,
    offer.SASL_AUTHENTICATE: security.sasl_authenticate,
    offer.DESCRIBE_ACLS: security.describe_acls,
    offer.DESCRIBE_CLIENT_QUOTAS: security.describe_client_quotas,
    offer.DESCRIBE_USER_SCRAM_CREDENTIALS: security.describe_user_scram_credentials,
    offer.LIST_GROUPS: admin.list_groups,
    offer.DESCRIBE_GROUPS: admin.describe_groups,
    offer.CONSUMER_GROUP_DESCRIBE: admin.consumer_group_describe,
    offer.DELETE_GROUPS: admin.delete_groups,
    offer.OFFSET_DELETE: admin.offset_delete,
    offer.FIND_COORDINATOR: topics.find_coordinator,
    offer.OFFSET_COMMIT: groups.offset_commit,
    offer.OFFSET_FETCH: groups.offset_fetch,
    offer.JOIN_GROUP: groups.join_group,
    offer.SYNC_GROUP: groups.sync_group,
    offer.HEARTBEAT: groups.heartbeat,
    offer.LEAVE_GROUP: groups.leave_group,
    offer.CONSUMER_GROUP_HEARTBEAT: groups.consumer_group_heartbeat,
    offer.INIT_PRODUCER_ID: transactions.init_producer_id,
    offer.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn,
    offer.ADD_OFFSETS_TO_TXN: transactions.add_offsets_to_txn,
    offer.END_TXN: transactions.end_txn,
    offer.TXN_OFFSET_COMMIT: groups.txn_offset_commit,
    offer.WRITE_TXN_MARKERS: transactions.write_txn_markers,
    offer.DESCRIBE_PRODUCERS: transactions.describe_producers,
    offer.DESCRIBE_TRANSACTIONS: transactions.describe_transactions,
    offer.LIST_TRANSACTIONS: transactions.list_transactions,
}
