"""Kinds of clients, as brokers see them: the versions of their requests. See docs/conformance.md for who is which."""

from __future__ import annotations

import attrs

ADDS_ON_PRODUCE = 12
BUMPS_ON_END = 5


@attrs.frozen
class Family:
    """A kind of client. By its Produce and EndTxn one knows whether it speaks KIP-890 part 2."""

    name: str
    init_producer_id: int
    produce: int
    end_txn: int
    txn_offset_commit: int
    add_partitions: int
    add_offsets: int

    @property
    def adds_partitions(self) -> bool:
        """Say whether the client adds a partition before its first batch; else the leader does."""
        return self.produce < ADDS_ON_PRODUCE

    @property
    def is_bumped_by_end(self) -> bool:
        """Say whether the answer to EndTxn has the next epoch."""
        return self.end_txn >= BUMPS_ON_END

    @property
    def goes_on_after_errors(self) -> bool:
        """Say whether the client asks for a new epoch after an abortable error (KIP-360: InitProducerId from 3)."""
        return self.init_producer_id >= 3


FAMILIES = {family.name: family for family in (
    Family("tv2", 5, 12, 5, 5, 3, 4),
    Family("java39", 5, 11, 4, 4, 3, 4),
    Family("java35", 4, 9, 3, 3, 3, 3),
    Family("rdkafka", 4, 9, 1, 3, 0, 0),
    Family("aiokafka", 0, 7, 0, 0, 0, 0),
)}
