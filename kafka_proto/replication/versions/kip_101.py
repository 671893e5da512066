"""KIP-101: a follower truncates by the leader epoch of its last record."""

from __future__ import annotations

from kafka_proto.replication.following import ask_where_to_truncate, truncate_to_end_offset
from kafka_proto.replication.high_watermark import counted
from kafka_proto.replication.isr import may_expand
from kafka_proto.replication.leading import answer_end_offset, answer_fetch
from kafka_proto.replication.replica_state import ReplicaVersion

KIP_101 = ReplicaVersion(
    name="kip-101",
    title="truncation by leader epoch",
    follow=ask_where_to_truncate,
    learn_end_offset=truncate_to_end_offset,
    answer_look_up=answer_end_offset,
    answer_fetch=answer_fetch,
    may_expand=may_expand,
    counted=counted,
)
