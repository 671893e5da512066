"""Families of clients: which version of each request a client speaks, which is what brokers decide by."""

from __future__ import annotations

import attrs


@attrs.frozen
class Family:
    """A client by the versions of its requests; who it is in the field is in `title`."""

    name: str
    title: str
    init_producer_id: int
    produce: int
    end_txn: int
    txn_offset_commit: int
    add_partitions: int
    add_offsets: int

    @property
    def adds_partitions(self) -> bool:
        """Whether it adds partitions before it produces; from Produce 12 on their leaders do so (KIP-890)."""
        return self.produce < 12

    @property
    def ends_with_new_epoch(self) -> bool:
        """Whether each end of a transaction brings a new epoch (EndTxn from 5, KIP-890)."""
        return self.end_txn >= 5

    @property
    def bumps_epoch(self) -> bool:
        """Whether it goes on after an error by InitProducerId with its id and epoch (from 3, KIP-360)."""
        return self.init_producer_id >= 3


FAMILIES = {
    family.name: family
    for family in (
        Family("tv2", "Java from 4.0 and franz-go 1.22 on a cluster of transaction.version 2", 5, 12, 5, 5, 3, 4),
        Family("java39", "Java from 3.8 on a cluster of level 0 or 1", 5, 11, 4, 4, 3, 4),
        Family("java35", "Java 2.8 to 3.7, kafka-python 3.0", 4, 9, 3, 3, 3, 3),
        Family("rdkafka", "librdkafka 2.16", 4, 9, 1, 3, 0, 0),
        Family("aiokafka", "aiokafka 0.14", 0, 7, 0, 0, 0, 0),
        Family("java23", "Java 2.1 to 2.3", 1, 7, 1, 2, 1, 1),
    )
}
"""By name. What each speaks was seen on the wire against released brokers; `java23` has the newest versions of 2.3."""
