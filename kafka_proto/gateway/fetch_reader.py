"""What a client makes of a partition of a fetch: its batches, their records as text, and what a consumer shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka_proto.gateway.records import MARKER_KEY, UNREAD, BatchHeader, WireRecord, read_header, read_records, split

Fields = Mapping[str, Any]


def batches(found: Fields) -> list[tuple[BatchHeader, list[WireRecord]]]:
    """Return the batches of a partition of a fetch; records that are packed by a codec that is not read are none."""
    whole = [(batch, read_header(batch)) for batch in split(found["records"] or b"")]
    return [(header, [] if header.codec in UNREAD else list(read_records(batch, header))) for batch, header in whole]


def text(header: BatchHeader, record: WireRecord) -> str:
    """Return a record as its text, a marker as its type."""
    if header.is_control:
        return "COMMIT" if MARKER_KEY.unpack(record.key or b"")[1] else "ABORT"
    return (record.value or b"").decode()


def shown(found: Fields) -> list[str]:
    """Return what a consumer of committed records shows: aborted ones are skipped up to their marker."""
    waiting = sorted((txn["first_offset"], txn["producer_id"]) for txn in found["aborted_transactions"] or ())
    skipped: set[int] = set()
    values: list[str] = []
    for header, records in batches(found):
        while waiting and waiting[0][0] <= header.base_offset + header.last_offset_delta:
            skipped.add(waiting.pop(0)[1])
        if header.is_control:
            skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            values += [text(header, record) for record in records]
    return values
