"""KIP-279: a follower asks until the logs are known to match."""

from __future__ import annotations

from kafka_proto.replication.following import ask_where_to_truncate, truncate_or_ask_again
from kafka_proto.replication.high_watermark import counted
from kafka_proto.replication.isr import may_expand
from kafka_proto.replication.leading import answer_fetch, answer_largest_epoch
from kafka_proto.replication.replica_state import ReplicaVersion

KIP_279 = ReplicaVersion(
    name="kip-279",
    title="truncation to the last shared record",
    follow=ask_where_to_truncate,
    learn_end_offset=truncate_or_ask_again,
    answer_look_up=answer_largest_epoch,
    answer_fetch=answer_fetch,
    may_expand=may_expand,
    counted=counted,
)
