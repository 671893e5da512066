"""Record batches: written and read again, and what a leader refuses that no recording has, by its code."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("kio", reason="needs the extra `gateway`")

from kio.records.readers import read_batch

from kafka_proto.gateway.records import (
    HEADER,
    BadBatch,
    BatchHeader,
    WireRecord,
    at_offset,
    check_batch,
    check_request,
    read_header,
    read_records,
    split,
    with_checksum,
    write_batch,
    write_marker,
)

LONGEST = 1_048_588
LATEST = 2**62
some_bytes = st.none() | st.binary(max_size=30)
headers = st.lists(st.tuples(st.text(max_size=5), some_bytes), max_size=2).map(tuple)
records = st.builds(WireRecord, some_bytes, some_bytes, headers, st.integers(-(2**40), 2**40))


def check_produced(data: bytes, version: int = 9) -> BatchHeader:
    """Look at what a Produce request has for a partition as a broker does, all of it."""
    batch, header = check_request(data, version)
    check_batch(batch, header, LONGEST, LATEST)
    return header


@settings(max_examples=60, deadline=None)
@given(st.lists(records, min_size=1, max_size=20), st.sampled_from(("none", "gzip")), st.integers(0, 2**62))
def test_a_batch_is_read_as_it_was_written(wanted: list[WireRecord], codec: str, offset: int) -> None:
    """Records, producer fields and flags come back; a log sets the offset in it, and the checksum still holds."""
    written = write_batch(wanted, base_timestamp=2**41, producer_id=7, producer_epoch=3, base_sequence=11,
                          is_transactional=True, codec=codec)
    header = check_produced(written)
    found = [(r.key, r.value, r.headers, r.timestamp_delta) for r in read_records(written, header)]
    assert found == [(r.key, r.value, r.headers, r.timestamp_delta) for r in wanted]
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
    assert (header.is_transactional, header.is_control, header.codec) == (True, False, codec)
    assert header.max_timestamp == 2**41 + max(r.timestamp_delta for r in wanted)
    placed = read_header(at_offset(written, offset, 5))
    assert (placed.base_offset, placed.partition_leader_epoch, placed.crc) == (offset, 5, header.crc)
    assert check_produced(at_offset(written, 0, 5)).partition_leader_epoch == 5


def test_kio_reads_what_is_written_here() -> None:
    """kio's reader of batches, which checks length and checksum, finds the same records and the marker."""
    written = write_batch([WireRecord(b"k", b"v"), WireRecord(None, None)], base_offset=9, base_timestamp=1000)
    batch, size = read_batch(written, 0)
    assert [(r.offset, r.key, r.value) for r in batch.records] == [(9, b"k", b"v"), (10, None, None)]
    marker, _ = read_batch(write_marker(True, 7, 3, 2, 11, 1000, 4), 0)
    assert (marker.attributes, marker.records[0].key, marker.records[0].value) == (0x30, b"\0\0\0\1", b"\0\0\0\0\0\2")
    assert size == 61 + 2 * 7 + 2


def edited(batch: bytes, **fields: int) -> bytes:
    """Return a batch whose header has other fields, its checksum made anew."""
    header = attrs.evolve(BatchHeader(*HEADER.unpack_from(batch)), **fields)
    return with_checksum(HEADER.pack(*attrs.astuple(header)) + batch[HEADER.size :])


GOOD = write_batch([WireRecord(b"k", b"v"), WireRecord(b"k", b"w")])
REFUSED = {
    "the header of another batch": (GOOD + bytes(12), "CORRUPT_MESSAGE"),
    "another batch of no format": (GOOD + edited(GOOD, magic=3), "CORRUPT_MESSAGE"),
    "no record": (edited(GOOD, count=0, last_offset_delta=-1), "INVALID_RECORD"),
    "too late": (write_batch([WireRecord(b"k", b"v", timestamp_delta=1)], base_timestamp=LATEST), "INVALID_TIMESTAMP"),
    "too much when unpacked": (
        write_batch([WireRecord(None, b"x" * 17 * 1024 * 1024)], codec="gzip"), "MESSAGE_TOO_LARGE",
    ),
}
"""What no recorded situation has: the others are played in tests/protocols/broker/test_conformance.py."""


@pytest.mark.parametrize("case", REFUSED)
def test_a_leader_refuses_a_bad_batch_by_its_code(case: str) -> None:
    """Each check can fail: this batch has one thing wrong, and its twin `GOOD` none."""
    data, error = REFUSED[case]
    with pytest.raises(BadBatch) as refused:
        check_produced(data)
    assert refused.value.error == error
    assert check_produced(GOOD).count == 2
    assert check_produced(write_batch([WireRecord(b"k", b"v")], base_timestamp=LATEST)), "as late as may be"


def test_a_client_of_old_requests_may_not_send_zstd() -> None:
    """Nothing else is wrong with it."""
    assert check_request(GOOD, 6) and check_request(edited(GOOD, attributes=3), 6)
    with pytest.raises(BadBatch) as refused:
        check_request(edited(GOOD, attributes=4), 6)
    assert refused.value.error == "UNSUPPORTED_COMPRESSION_TYPE"


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=8), st.booleans())
def test_mutated_batches_are_refused_or_read(at: int, new: bytes, checksum: bool) -> None:
    """A batch with other bytes, its checksum made right or not, is refused by a code, or is a batch."""
    mutated = GOOD[:at] + new + GOOD[at + len(new) :]
    try:
        header = check_produced(edited(mutated) if checksum else mutated)
        assert len(list(split(mutated))) == 1 and header.count == 2
    except BadBatch as refused:
        assert refused.error in {"CORRUPT_MESSAGE", "INVALID_RECORD", "INVALID_TIMESTAMP", "UNKNOWN_SERVER_ERROR",
                                 "MESSAGE_TOO_LARGE"}


def test_batch_may_be_as_short_as_a_record_of_the_oldest_format() -> None:
    """Of 14 bytes after its length (`LegacyRecord.RECORD_OVERHEAD_V0`) it is one, whatever is in it; of 13, none."""
    batch, short = (bytes(8) + length.to_bytes(4, "big") + bytes(length) for length in (14, 13))
    assert list(split(batch)) == [batch]
    with pytest.raises(BadBatch, match="a batch of length 13, where 14 is the least"):
        list(split(short))
