"""What a client makes of a partition of a fetch: its batches, and their records as text."""

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
