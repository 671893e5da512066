"""KIP-320: fetches and look-ups are for one leader epoch only."""

from __future__ import annotations

from kafka_proto.replication.following import ask_where_to_truncate, truncate_or_ask_again
from kafka_proto.replication.high_watermark import counted
from kafka_proto.replication.isr import may_expand_in_epoch
from kafka_proto.replication.leading import answer_fetch_in_epoch, answer_look_up_in_epoch
from kafka_proto.replication.replica_state import ReplicaVersion

KIP_320 = ReplicaVersion(
    name="kip-320",
    title="fencing by leader epoch",
    follow=ask_where_to_truncate,
    learn_end_offset=truncate_or_ask_again,
    answer_look_up=answer_look_up_in_epoch,
    answer_fetch=answer_fetch_in_epoch,
    may_expand=may_expand_in_epoch,
    counted=counted,
)
