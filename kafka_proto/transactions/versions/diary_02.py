"""Diary 02 as published."""

from __future__ import annotations

from kafka_proto.transactions.decisions.add_partitions import add_partitions
from kafka_proto.transactions.decisions.client import add_answered, init_answered
from kafka_proto.transactions.decisions.completion import complete_partial_txn, entry_committed
from kafka_proto.transactions.decisions.election import deposed_leader_follows, materialized_alone, truncated_log
from kafka_proto.transactions.decisions.init_producer_id import init_producer_id
from kafka_proto.transactions.decisions.producer_ids import set_back_to_pid
from kafka_proto.transactions.versions.version import Version

DIARY_02 = Version(
    name="diary-02",
    init_producer_id=init_producer_id,
    pid_source_after=set_back_to_pid,
    add_partitions=add_partitions,
    entry_committed=entry_committed,
    complete_partial_txn=complete_partial_txn,
    must_follow=deposed_leader_follows,
    follower_log=truncated_log,
    materialized=materialized_alone,
    init_answered=init_answered,
    add_answered=add_answered,
)
