"""Names, and the first leaders: partitions and transactional ids are spread over the brokers in turn.

Where logs are replicated leaders move; else it stays so, and a broker that crashes comes back as the leader of what it
led, with a new coordinator epoch.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache

import attrs

from kafka_proto.requests import OFFSETS_PARTITION, TRANSACTION_TOPIC, partition_name


@lru_cache
def hash_code(text: str) -> int:
    """Return Java's hash of a text as a number from 0 on: Kafka finds an id's partition so (`Utils.abs`)."""
    found = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        found = (31 * found + unit) & 0xFFFF_FFFF
    return found & 0x7FFF_FFFF


def transaction_partitions(count: int) -> tuple[str, ...]:
    """Return the names of so many partitions of the transaction log."""
    return tuple(partition_name(TRANSACTION_TOPIC, n) for n in range(count))


@attrs.frozen
class Placement:
    brokers: tuple[str, ...]
    producers: tuple[str, ...]
    """The transactional ones."""
    idempotent_producers: tuple[str, ...]
    consumers: tuple[str, ...]
    partitions: tuple[str, ...]
    """Those of the topic T."""
    transactional_ids: tuple[str, ...]
    transaction_partitions: tuple[str, ...]
    all_partitions: tuple[str, ...] = attrs.field(init=False)
    _leaders: Mapping[str, str] = attrs.field(init=False, eq=False, repr=False)

    @all_partitions.default
    def _all_partitions(self) -> tuple[str, ...]:
        return (*self.partitions, OFFSETS_PARTITION, *self.transaction_partitions)

    @_leaders.default
    def _spread(self) -> Mapping[str, str]:
        of_topic = {p: self.brokers[(n + 1) % len(self.brokers)] for n, p in enumerate(self.partitions)}
        of_log = dict(zip(self.transaction_partitions, self.brokers, strict=False))
        return {**of_topic, OFFSETS_PARTITION: self.brokers[0], **of_log}

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Placement:
        """Return the names at some sizes."""
        return cls(
            tuple(f"b{n + 1}" for n in range(sizes["brokers"])),
            tuple(f"c{n + 1}" for n in range(sizes["producers"])),
            tuple(f"i{n + 1}" for n in range(sizes["idempotent-producers"])),
            tuple(f"r{n + 1}" for n in range(sizes["consumers"])),
            tuple(partition_name("T", n) for n in range(sizes["partitions"])),
            tuple(f"tid{n + 1}" for n in range(sizes["transactional-ids"])),
            transaction_partitions(min(sizes["brokers"], sizes["transactional-ids"])),
        )

    def leader(self, partition: str) -> str:
        """Return the broker that leads a partition at first."""
        return self._leaders[partition]

    def transaction_partition(self, tid: str) -> str:
        """Return the partition of the transaction log that has a transactional id."""
        partitions = self.transaction_partitions
        return partitions[hash_code(tid) % len(partitions)]

    def coordinator(self, tid: str) -> str:
        """Return the broker that coordinates a transactional id at first."""
        return self.leader(self.transaction_partition(tid))

    def tid_of(self, producer: str) -> str:
        """Return the transactional id that a producer is configured with."""
        return self.transactional_ids[self.producers.index(producer) % len(self.transactional_ids)]
