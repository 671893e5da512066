"""A toy: as diary 02 repaired, but a producer that is one epoch behind may add partitions."""

from __future__ import annotations

import attrs

from kafka_proto.transactions.decisions.coordinator import DiaryOutcome, add_partitions
from kafka_proto.transactions.records import AddPartitionsToTxnRequest, TxnMetadata
from kafka_proto.transactions.versions import REPAIRED


def lenient(
    request: AddPartitionsToTxnRequest, *, leads: bool, metadata: TxnMetadata | None,
    pending: TxnMetadata | None, loading: bool = False,
) -> DiaryOutcome:
    """Take the epoch before the current one for the current one."""
    if metadata is not None and request.pepoch == metadata.pepoch - 1:
        request = attrs.evolve(request, pepoch=metadata.pepoch)
    return add_partitions(request, leads=leads, metadata=metadata, pending=pending, loading=loading)


LENIENT = attrs.evolve(REPAIRED, name="lenient", add_partitions=lenient)
