"""Who leads what: partitions and transactional ids are spread over the brokers in turn, for good.

Leaders that move are those of the stack, whose logs are replicated; here a log is atomic, and a broker that crashes
comes back as the leader of what it led, with a new coordinator epoch.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kafka_proto.requests import OFFSETS_PARTITION, partition_name


@attrs.frozen
class Placement:
    brokers: tuple[str, ...]
    producers: tuple[str, ...]
    consumers: tuple[str, ...]
    partitions: tuple[str, ...]
    """Those of the topic T."""
    transactional_ids: tuple[str, ...]

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Placement:
        """Return the names at some sizes."""
        return cls(
            tuple(f"b{n + 1}" for n in range(sizes["brokers"])),
            tuple(f"c{n + 1}" for n in range(sizes["producers"])),
            tuple(f"r{n + 1}" for n in range(sizes["consumers"])),
            tuple(partition_name("T", n) for n in range(sizes["partitions"])),
            tuple(f"tid{n + 1}" for n in range(sizes["transactional-ids"])),
        )

    def leader(self, partition: str) -> str:
        """Return the broker that leads a partition of the topic, or the offsets partition."""
        if partition == OFFSETS_PARTITION:
            return self.brokers[0]
        return self.brokers[(self.partitions.index(partition) + 1) % len(self.brokers)]

    def led_by(self, broker: str) -> tuple[str, ...]:
        """Return the partitions that a broker leads."""
        return tuple(p for p in (*self.partitions, OFFSETS_PARTITION) if self.leader(p) == broker)

    def coordinator(self, tid: str) -> str:
        """Return the broker that coordinates a transactional id."""
        return self.brokers[self.transactional_ids.index(tid) % len(self.brokers)]

    def tid_of(self, producer: str) -> str:
        """Return the transactional id that a producer is configured with."""
        return self.transactional_ids[self.producers.index(producer) % len(self.transactional_ids)]
