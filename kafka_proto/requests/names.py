"""The name of a partition is that of its folder in Kafka's log: `T-0`, `__consumer_offsets-12`.

A name rather than a pair, because names sort, hash and compare as text; the number is what follows the last hyphen.
"""

from __future__ import annotations

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
INTERNAL_TOPICS = (GROUP_TOPIC, TRANSACTION_TOPIC)


def partition_name(topic: str, partition: int) -> str:
    """Return a partition's name, as Kafka's `TopicPartition.toString` does."""
    return f"{topic}-{partition}"


OFFSETS_PARTITION = partition_name(GROUP_TOPIC, 0)
"""The partition of the offsets topic that groups have where there is but one (Kafka has 50)."""
TRANSACTION_PARTITION = partition_name(TRANSACTION_TOPIC, 0)
"""The partition of the transaction log where there is but one (Kafka has 50)."""


def is_internal(name: str) -> bool:
    """Say whether a partition is of a topic that clients may not write to (`Topic.isInternal`)."""
    return topic_of(name) in INTERNAL_TOPICS


def topic_of(name: str) -> str:
    """Return the topic of a partition's name."""
    return name.rpartition("-")[0]


def partition_index(name: str) -> int:
    """Return the number of a partition's name. Raises ValueError where it has none."""
    return int(name.rpartition("-")[2])
