"""A recorded Produce on the wire, with what is odd about the bytes of its batch: what no producer would write.

`bytes` of a record's Produce says it: fields of the `header`, with the checksum made right; `wrong_checksum`; the least
`value_size`; a time that is `ahead_ms`; `offset_deltas`; the `codec`, or one that has the records `stored`; how many
`times` the batch is there, with its last bytes `cut` or its first ones alone `keep`t; and how many `zeros` come behind
it. With `control` it is a control batch, whose one record says COMMIT or ABORT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kafka_proto.gateway import records
from kafka_proto.gateway.records import AFTER_LENGTH, HEADER, WireRecord, read_header, with_checksum, write_batch

LZ4_FRAME, ZSTD_FRAME = b"\x04\x22\x4d\x18\x60\x40\x82", b"\x28\xb5\x2f\xfd\x20"
STORED: Mapping[str, Callable[[bytes], bytes]] = {
    "snappy": lambda data: bytes([len(data), (len(data) - 1) << 2]) + data,
    "lz4": lambda data: LZ4_FRAME + (len(data) | 1 << 31).to_bytes(4, "little") + data + bytes(4),
    "zstd": lambda data: ZSTD_FRAME + bytes([len(data)]) + (len(data) << 3 | 1).to_bytes(3, "little") + data,
}
"""Few bytes, up to 60, as a codec has them that it could not make fewer: a literal, a raw block."""


def batch_of(produce: Mapping[str, Any], owner: Mapping[str, Any], now_ms: int) -> bytes:
    """Return what a Produce has for a partition, of the producer that owns it."""
    odd: dict[str, Any] = produce["bytes"]
    values = [value.encode().ljust(odd.get("value_size", 0), b"x") for value in produce["records"]]
    is_control = produce.get("control", False)
    keys = [records.MARKER_KEY.pack(0, int(value == "COMMIT")) if is_control else None for value in produce["records"]]
    data = write_batch(
        list(map(WireRecord, keys, values)), base_timestamp=now_ms + odd.get("ahead_ms", 0),
        producer_id=owner["producer_id"], producer_epoch=owner["producer_epoch"],
        base_sequence=produce.get("base_sequence", -1), is_transactional=produce.get("transactional", False),
        is_control=is_control, codec=odd.get("codec", "none"), offset_deltas=odd.get("offset_deltas"),
    )
    packed = data[HEADER.size :]
    if "stored" in odd:
        packed = STORED[odd["stored"]](packed)
    length = HEADER.size - AFTER_LENGTH + len(packed)
    header = attrs.evolve(read_header(data), **{"batch_length": length, **odd.get("header", {})})
    data = with_checksum(HEADER.pack(*attrs.astuple(header)) + packed)
    if odd.get("wrong_checksum"):
        data = data[:-1] + bytes([data[-1] ^ 1])
    end: int = odd.get("keep", len(data) - odd.get("cut", 0))
    return data[:end] * int(odd.get("times", 1)) + bytes(int(odd.get("zeros", 0)))
