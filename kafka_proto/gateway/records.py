"""Record batches of message format 2 (KIP-98) as bytes: what a broker checks and reads, and how they are written.

A leader keeps a batch as the bytes that its producer sent, and only sets the offset and the leader epoch in them, which
are outside the checksum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from struct import Struct

import attrs
from crc32c import crc32c

from kafka_proto.gateway import compression
from kafka_proto.gateway.codec import Malformed, Source, write_varint
from kafka_proto.gateway.compression import BadBatch as BadBatch

HEADER = Struct(">qiibIhiqqqhii")
AFTER_LENGTH = 12
"""Bytes of base offset and length, which the length does not count."""
CHECKED_FROM = 21
"""Where the bytes begin that the checksum covers."""
SHORTEST = 14
"""The least length of a batch, of message format 0."""
MAGIC_AT = 16
MAGIC = 2
ATTRIBUTES_AT = 22
"""The place of the attributes' lower byte, which carries the information."""
CODECS = compression.CODECS
COMPRESSION, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
MARKER_KEY, MARKER_VALUE = Struct(">hh"), Struct(">hi")
NO_TIMESTAMP = -1


class ShortBatch(BadBatch):
    """A batch that is shorter than its header: to look at its producer throws in a broker."""


@attrs.frozen
class WireRecord:
    """A record; its offset and time stamp are relative to those of its batch."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_delta: int = 0
    offset_delta: int = 0


RecordFields = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int, int]
"""The fields of a `WireRecord`."""


@attrs.frozen
class BatchHeader:
    """The header of a batch, field by field."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def codec(self) -> str:
        """Return the name of the compression; an unknown compression has its number."""
        number = self.attributes & COMPRESSION
        return CODECS[number] if number < len(CODECS) else str(number)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def size(self) -> int:
        return self.batch_length + AFTER_LENGTH


def split(data: bytes) -> Iterator[bytes]:
    """Yield the batches of what a Produce request or a Fetch response has for a partition (`ByteBufferLogInputStream`).

    A rest at the end that is no whole batch is left out. Raises BadBatch.
    """
    at = 0
    while len(data) - at >= AFTER_LENGTH:
        length = int.from_bytes(data[at + 8 : at + AFTER_LENGTH], "big", signed=True)
        if length < SHORTEST:
            raise BadBatch("CORRUPT_MESSAGE", f"a batch of length {length}, where {SHORTEST} is the least")
        if len(data) - at <= MAGIC_AT:
            return
        if data[at + MAGIC_AT] > MAGIC:
            raise BadBatch("CORRUPT_MESSAGE", f"a batch of message format {data[at + MAGIC_AT]}")
        if len(data) - at < AFTER_LENGTH + length:
            return
        yield data[at : at + AFTER_LENGTH + length]
        at += AFTER_LENGTH + length


def read_header(batch: bytes) -> BatchHeader:
    """Return the header of one whole batch, its checksum not looked at. Raises BadBatch."""
    if batch[MAGIC_AT] != MAGIC:
        raise BadBatch("INVALID_RECORD", f"a batch of message format {batch[MAGIC_AT]}, where 2 is expected")
    if len(batch) < HEADER.size:
        raise ShortBatch("CORRUPT_MESSAGE", f"a batch of {len(batch)} bytes, which is shorter than its header")
    return BatchHeader(*HEADER.unpack_from(batch))


def is_transactional(data: bytes | None) -> bool:
    """Say whether the first batch for a partition is of a transaction (`hasTransactionalRecords`). Raises BadBatch."""
    first = next(split(data or b""), None)
    return first is not None and first[MAGIC_AT] == MAGIC and bool(first[ATTRIBUTES_AT] & TRANSACTIONAL)


def check_request(data: bytes | None, version: int) -> tuple[bytes, BatchHeader]:
    """Return the one batch that a Produce request may have for a partition (`ProduceRequest.validateRecords`).

    What is wrong here is said before any coordinator is asked about a transaction. Raises BadBatch.
    """
    batches = list(split(data or b""))
    if not batches:
        raise BadBatch("INVALID_RECORD", "no batch, where one is expected")
    header = read_header(batches[0])
    if header.codec == "zstd" and version < 7:
        raise BadBatch("UNSUPPORTED_COMPRESSION_TYPE", f"zstd in a request of version {version}")
    if len(batches) > 1:
        raise BadBatch("INVALID_RECORD", f"{len(batches)} batches, where one is expected")
    return batches[0], header


def check_batch(
    batch: bytes, header: BatchHeader, longest: int, latest: int | None, takes_append_time: bool = True,
    is_keyed: bool = False, earliest: int | None = None,
) -> int:
    """Look at a batch as a log does before it looks at its producer; no record may be later than `latest`.

    Return the time of the newest record. Where `takes_append_time` is not set, a client may not say that times are
    those of the log; where `is_keyed` is, records have keys. Checks stand in Kafka's order:
    `UnifiedLog.analyzeAndValidateRecords`, then `LogValidator`. Raises BadBatch.
    """
    if header.base_offset != 0:
        raise BadBatch("INVALID_RECORD", f"a batch at offset {header.base_offset}, where 0 is expected")
    if header.size > longest:
        raise BadBatch("MESSAGE_TOO_LARGE", f"a batch of {header.size} bytes, where {longest} are the most")
    if crc32c(memoryview(batch)[CHECKED_FROM:]) != header.crc:
        raise BadBatch("CORRUPT_MESSAGE", "the checksum of a batch is another one")
    if header.is_control:
        raise BadBatch("INVALID_RECORD", "a control batch, which only brokers write")
    _check_counts(header)
    found = [(key is None, time, offset) for key, _, _, time, offset in _read(batch, header)]
    if header.codec != "none" and [offset for _, _, offset in found] != list(range(header.count)):
        raise BadBatch("UNKNOWN_SERVER_ERROR", "packed records at offsets that are not consecutive")
    if header.attributes & LOG_APPEND_TIME and not takes_append_time:
        raise BadBatch("INVALID_TIMESTAMP", "times that only the log gives")
    keyless = {at: "a compacted topic takes no record without key" for at, (no_key, _, _) in enumerate(found)
               if no_key and is_keyed}
    late = {at: f"a record of the time {header.base_timestamp + time}, where {latest} is the latest"
            for at, (_, time, _) in enumerate(found)
            if latest is not None and header.base_timestamp + time > latest and at not in keyless}
    early = {at: f"a record of the time {header.base_timestamp + time}, where {earliest} is the earliest"
             for at, (_, time, _) in enumerate(found) if earliest is not None and at not in keyless
             and NO_TIMESTAMP != header.base_timestamp + time < earliest}
    if wrong := {**keyless, **early, **late}:
        error = "INVALID_TIMESTAMP" if early or late else "INVALID_RECORD"
        raise BadBatch(error, f"{len(wrong)} of {header.count} records are refused: {min(wrong.items())[1]}", wrong)
    return header.base_timestamp + max(time for _, time, _ in found)


def with_times(batch: bytes, header: BatchHeader, newest: int, append_time: int | None) -> bytes:
    """Return a batch as a log keeps it: with the time of its newest record, or with that of the log for all of them."""
    attributes = header.attributes & ~LOG_APPEND_TIME
    if append_time is not None:
        attributes, newest = attributes | LOG_APPEND_TIME, append_time
    if (attributes, newest) == (header.attributes, header.max_timestamp):
        return batch
    kept = attrs.evolve(header, attributes=attributes, max_timestamp=newest)
    return with_checksum(HEADER.pack(*attrs.astuple(kept)) + batch[HEADER.size:])


def _check_counts(header: BatchHeader) -> None:
    if header.count <= 0 or header.last_offset_delta != header.count - 1:
        raise BadBatch("INVALID_RECORD", f"{header.count} records up to offset delta {header.last_offset_delta}")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise BadBatch("INVALID_RECORD", f"sequence {header.base_sequence} of a producer")


def read_records(batch: bytes, header: BatchHeader) -> Iterator[WireRecord]:
    """Yield the records of a batch, as many as it says. Raises BadBatch."""
    return (WireRecord(*fields) for fields in _read(batch, header))


def _read(batch: bytes, header: BatchHeader) -> Iterator[RecordFields]:
    """Yield the fields of each record of a batch. Raises BadBatch."""
    source = Source(compression.unpacked(batch[HEADER.size :], header.codec))
    try:
        for _ in range(header.count):
            yield _fields(source)
    except Malformed as reason:
        raise BadBatch("INVALID_RECORD", str(reason)) from None
    if source.left:
        raise BadBatch("INVALID_RECORD", f"{source.left} bytes after the last record")


def _fields(source: Source) -> RecordFields:
    length = read_zigzag(source)
    end = source.at + length
    source.at += 1  # of attributes, which mean nothing
    timestamp_delta, offset_delta = read_zigzag(source, 10), read_zigzag(source)
    key, value = _bytes(source), _bytes(source)
    count = read_zigzag(source)
    if not 0 <= count <= source.left:
        raise Malformed(f"{count} headers, and {source.left} bytes left")
    headers = tuple(_header(source) for _ in range(count)) if count else ()
    if source.at != end:
        raise Malformed(f"a record has not the {length} bytes that it says")
    return key, value, headers, timestamp_delta, offset_delta


def _header(source: Source) -> tuple[str, bytes | None]:
    key = _bytes(source)
    if key is None:
        raise Malformed("a header without key")
    try:
        return key.decode(), _bytes(source)
    except UnicodeDecodeError:
        raise Malformed("the key of a header is not UTF-8") from None


def _bytes(source: Source) -> bytes | None:
    length = read_zigzag(source)
    if length < -1:
        raise Malformed(f"bytes of length {length}")
    if length < 0:
        return None
    data, at, end = source.data, source.at, source.at + length
    if end > len(data):
        return source.take(length)  # which says what is wrong
    source.at = end
    return data[at:end]


def read_zigzag(source: Source, most_bytes: int = 5) -> int:
    """Return a signed number of variable length: small ones of either sign are short. Raises Malformed."""
    data, at, value, shift = source.data, source.at, 0, 0
    if at < len(data) and (byte := data[at]) < 0x80:  # as nearly all are
        source.at = at + 1
        return (byte >> 1) ^ -(byte & 1)
    for byte in data[at : at + most_bytes]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            source.at += shift // 7
            return (value >> 1) ^ -(value & 1)
    raise Malformed("a number of variable length does not end")


def write_zigzag(out: bytearray, value: int) -> None:
    """Append a signed number of variable length."""
    write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def write_batch(
    records: Iterable[WireRecord], *, base_offset: int = 0, base_timestamp: int = NO_TIMESTAMP, producer_id: int = -1,
    producer_epoch: int = -1, base_sequence: int = -1, is_transactional: bool = False, is_control: bool = False,
    codec: str = "none", partition_leader_epoch: int = -1, offset_deltas: Sequence[int] | None = None,
) -> bytes:
    """Return the bytes of a batch with some records; offset deltas are their places, if no others are given."""
    written, kept = bytearray(), list(records)
    deltas = range(len(kept)) if offset_deltas is None else offset_deltas
    for delta, record in zip(deltas, kept, strict=True):
        _write_record(written, record, delta)
    payload = compression.packed(bytes(written), codec)
    attributes = CODECS.index(codec) | TRANSACTIONAL * is_transactional | CONTROL * is_control
    newest = base_timestamp + max((record.timestamp_delta for record in kept), default=0)
    header = HEADER.pack(
        base_offset, HEADER.size - AFTER_LENGTH + len(payload), partition_leader_epoch, MAGIC, 0, attributes,
        len(kept) - 1, base_timestamp, newest, producer_id, producer_epoch, base_sequence, len(kept),
    )
    return with_checksum(header + payload)


def time_of(header: BatchHeader, record: WireRecord) -> int:
    """Return the time of a record of a batch."""
    of_log = header.attributes & LOG_APPEND_TIME
    return header.max_timestamp if of_log else header.base_timestamp + record.timestamp_delta


def rewritten(batch: bytes, kept: Collection[int], horizon: int | None) -> bytes:
    """Return a batch as compaction leaves it: with the records at some offset deltas, or none (`MemoryRecords`).

    Offsets, sequences and times stay; the horizon, until when tombstones stay, is in the place of the first time.
    """
    header = read_header(batch)
    records = [record for record in read_records(batch, header) if record.offset_delta in kept]
    times = [time_of(header, record) for record in records]
    written, base = bytearray(), next(iter(times), NO_TIMESTAMP) if horizon is None else horizon
    for record, time in zip(records, times, strict=True):
        _write_record(written, attrs.evolve(record, timestamp_delta=time - base), record.offset_delta)
    payload = compression.packed(bytes(written), header.codec) if records else b""
    attributes = header.attributes & ~DELETE_HORIZON | DELETE_HORIZON * (horizon is not None)
    after = attrs.evolve(
        header, batch_length=HEADER.size - AFTER_LENGTH + len(payload), base_timestamp=base, count=len(records),
        attributes=attributes if records else attributes & ~COMPRESSION,
        max_timestamp=max(times, default=header.max_timestamp))
    return with_checksum(HEADER.pack(*attrs.astuple(after)) + payload)


def with_checksum(batch: bytes) -> bytes:
    """Return a batch whose checksum is that of its bytes."""
    covered = batch[CHECKED_FROM:]
    checksum: int = crc32c(covered)
    return batch[: CHECKED_FROM - 4] + checksum.to_bytes(4, "big") + covered


def _write_record(out: bytearray, record: WireRecord, offset_delta: int) -> None:
    body = bytearray(1)
    write_zigzag(body, record.timestamp_delta)
    write_zigzag(body, offset_delta)
    for part in (record.key, record.value):
        _write_bytes(body, part)
    write_zigzag(body, len(record.headers))
    for key, value in record.headers:
        _write_bytes(body, key.encode())
        _write_bytes(body, value)
    write_zigzag(out, len(body))
    out += body


def _write_bytes(out: bytearray, data: bytes | None) -> None:
    write_zigzag(out, -1 if data is None else len(data))
    out += data or b""


def at_offset(batch: bytes, base_offset: int, partition_leader_epoch: int) -> bytes:
    """Return a batch as it is in a log: its offset and leader epoch set, all else as its producer wrote it."""
    return (base_offset.to_bytes(8, "big") + batch[8:AFTER_LENGTH]
            + partition_leader_epoch.to_bytes(4, "big", signed=True) + batch[MAGIC_AT:])


def write_marker(
    committed: bool, producer_id: int, producer_epoch: int, coordinator_epoch: int, base_offset: int, timestamp: int,
    partition_leader_epoch: int,
) -> bytes:
    """Return the control batch that ends a transaction (`EndTransactionMarker`): version 0, type 1 for a commit."""
    marker = WireRecord(MARKER_KEY.pack(0, int(committed)), MARKER_VALUE.pack(0, coordinator_epoch))
    return write_batch([marker], base_offset=base_offset, base_timestamp=timestamp, producer_id=producer_id,
                       producer_epoch=producer_epoch, is_transactional=True, is_control=True,
                       partition_leader_epoch=partition_leader_epoch)


def read_marker(batch: bytes, header: BatchHeader) -> tuple[int, int]:
    """Return the type of a control batch, 1 for a commit and 0 for an abort, and its coordinator's epoch.

    Control batches of other types end nothing, and have no such epoch. Raises BadBatch.
    """
    record = next(iter(read_records(batch, header)), WireRecord(None, None))
    if len(record.key or b"") < MARKER_KEY.size:
        raise BadBatch("INVALID_RECORD", "a control batch without a type")
    _, kind = MARKER_KEY.unpack_from(record.key or b"")
    has_epoch = kind in (0, 1) and len(record.value or b"") >= MARKER_VALUE.size
    return kind, MARKER_VALUE.unpack_from(record.value or b"")[1] if has_epoch else -1
