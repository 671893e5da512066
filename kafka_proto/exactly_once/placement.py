"""Names, and who leads what at first: partitions and transactional ids are spread over the brokers in turn.

Where logs are replicated leaders move; else it stays so, and a broker that crashes comes back as the leader of what it
led, with a new coordinator epoch.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kafka_proto.requests import OFFSETS_PARTITION, TRANSACTION_TOPIC, partition_name


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
        )

    @property
    def transaction_partitions(self) -> tuple[str, ...]:
        """The partitions of the transaction log: as many as there are transactional ids and brokers for them."""
        count = min(len(self.brokers), len(self.transactional_ids))
        return tuple(partition_name(TRANSACTION_TOPIC, n) for n in range(count))

    @property
    def all_partitions(self) -> tuple[str, ...]:
        return (*self.partitions, OFFSETS_PARTITION, *self.transaction_partitions)

    def leader(self, partition: str) -> str:
        """Return the broker that leads a partition at first."""
        if partition in self.transaction_partitions:
            return self.brokers[self.transaction_partitions.index(partition)]
        if partition == OFFSETS_PARTITION:
            return self.brokers[0]
        return self.brokers[(self.partitions.index(partition) + 1) % len(self.brokers)]

    def transaction_partition(self, tid: str) -> str:
        """Return the partition of the transaction log that has a transactional id."""
        partitions = self.transaction_partitions
        return partitions[self.transactional_ids.index(tid) % len(partitions)]

    def coordinator(self, tid: str) -> str:
        """Return the broker that coordinates a transactional id at first."""
        return self.leader(self.transaction_partition(tid))

    def tid_of(self, producer: str) -> str:
        """Return the transactional id that a producer is configured with."""
        return self.transactional_ids[self.producers.index(producer) % len(self.transactional_ids)]
