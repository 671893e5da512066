"""The rejected first try at KIP-320: a follower truncates when a fetch fails."""

from __future__ import annotations

from kafka_proto.replication.following import keep_log, truncate_or_ask_again
from kafka_proto.replication.high_watermark import counted
from kafka_proto.replication.isr import may_expand_in_epoch
from kafka_proto.replication.leading import answer_fetch_unless_diverging, answer_largest_epoch
from kafka_proto.replication.replica_state import ReplicaVersion

KIP_320_FIRST_TRY = ReplicaVersion(
    name="kip-320-first-try",
    title="truncation when a fetch fails",
    follow=keep_log,
    learn_end_offset=truncate_or_ask_again,
    answer_look_up=answer_largest_epoch,
    answer_fetch=answer_fetch_unless_diverging,
    may_expand=may_expand_in_epoch,
    counted=counted,
)
