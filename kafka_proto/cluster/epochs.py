"""Transactional ids that have been in use for long: what the transaction log holds of them at the start."""

from __future__ import annotations

from collections.abc import Mapping

from harness.model import FrozenMap
from kafka_proto.broker.coordinator.role import block_of
from kafka_proto.broker.coordinator.transaction import LAST_EPOCH, TransactionMetadata
from kafka_proto.broker.coordinator.transaction_log import TransactionRecord
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.producer import TRANSACTION_TIMEOUT_MS


def used_up(placement: Placement, left: int) -> Mapping[str, tuple[TransactionRecord, ...]]:
    """Return by partition an entry of each transactional id with so many epochs left; 0: nobody had an epoch yet."""
    found: dict[str, tuple[TransactionRecord, ...]] = {}
    for tid in placement.transactional_ids if left else ():
        p = placement.transaction_partition(tid)
        before = found.get(p, ())
        producer_id = block_of(placement.leader(p), placement, 0).first + len(before)
        entry = TransactionMetadata(
            producer_id, producer_epoch=LAST_EPOCH - left, timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        found[p] = (*before, TransactionRecord(tid, entry))
    return FrozenMap(found)


def is_on_another_id(entry: TransactionMetadata) -> bool:
    """Say whether a transactional id has just got another producer id, since the epochs of the last one ran out."""
    return entry.previous_producer_id not in (-1, entry.producer_id)
