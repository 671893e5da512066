"""The gist as published, an earlier diary 02."""

from __future__ import annotations

from kafka_proto.transactions.decisions.add_partitions import add_partitions
from kafka_proto.transactions.decisions.client import add_answered, init_answered_keeping_error
from kafka_proto.transactions.decisions.completion import entry_committed
from kafka_proto.transactions.decisions.election import every_replica_follows, leaders_log, materialized_alone
from kafka_proto.transactions.decisions.init_producer_id import init_producer_id
from kafka_proto.transactions.decisions.producer_ids import set_back_to_pid
from kafka_proto.transactions.versions.version import Version

GIST = Version(
    name="gist",
    election="BecomeLeader",
    init_producer_id=init_producer_id,
    pid_source_after=set_back_to_pid,
    add_partitions=add_partitions,
    entry_committed=entry_committed,
    complete_partial_txn=None,
    must_follow=every_replica_follows,
    follower_log=leaders_log,
    materialized=materialized_alone,
    init_answered=init_answered_keeping_error,
    add_answered=add_answered,
)
