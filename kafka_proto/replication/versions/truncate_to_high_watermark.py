"""Before KIP-101: nobody looks anything up, so the decisions about look-ups are those of KIP-101."""

from __future__ import annotations

from kafka_proto.replication.following import truncate_to_end_offset, truncate_to_high_watermark
from kafka_proto.replication.high_watermark import counted
from kafka_proto.replication.isr import may_expand
from kafka_proto.replication.leading import answer_end_offset, answer_fetch
from kafka_proto.replication.replica_state import ReplicaVersion

TRUNCATE_TO_HIGH_WATERMARK = ReplicaVersion(
    name="truncate-to-high-watermark",
    title="truncation to the own high watermark",
    follow=truncate_to_high_watermark,
    learn_end_offset=truncate_to_end_offset,
    answer_look_up=answer_end_offset,
    answer_fetch=answer_fetch,
    may_expand=may_expand,
    counted=counted,
)
