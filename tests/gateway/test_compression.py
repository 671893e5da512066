"""Record batches that producers pack: what is read of them, and what is refused."""

from __future__ import annotations

import gzip

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

import cramjam

from kafka_proto.gateway.compression import LONGEST_UNPACKED, XERIAL, BadBatch, packed, unpacked
from kafka_proto.gateway.records import CODECS, WireRecord, check_batch, read_header, read_records, write_batch

TEXT = b"an order, " * 50_000


def xerial(*blocks: bytes) -> bytes:
    """Return blocks as the stream of snappy-java has them."""
    compressed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
    return XERIAL + bytes(8) + b"".join(len(each).to_bytes(4, "big") + each for each in compressed)


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_packed_is_read_again(codec: str) -> None:
    """By every codec, whatever its length; the same records are the same bytes."""
    for text in (b"", b"a", TEXT):
        assert unpacked(packed(text, codec), codec) == text
    records = [WireRecord(b"key", b"one"), WireRecord(None, None)]
    batch = write_batch(records, codec=codec)
    assert batch == write_batch(records, codec=codec)
    header = read_header(batch)
    check_batch(batch, header, 10_000, None)
    assert header.codec == codec and [(each.key, each.value) for each in read_records(batch, header)] == [
        (b"key", b"one"), (None, None)]


def test_snappy_of_java_is_read() -> None:
    """It comes in blocks; librdkafka and others send one block without a header."""
    assert unpacked(xerial(b"one", b"", TEXT[:1_000]), "snappy") == b"one" + TEXT[:1_000]


@pytest.mark.parametrize(("codec", "data"), [
    ("gzip", b"none"), ("snappy", b"\xff\xff"), ("lz4", b"none"), ("zstd", b"none"),
    ("lz4", packed(TEXT, "lz4")[:-9]), ("snappy", xerial(b"one")[:-1]), ("5", b"none"),
])
def test_what_is_no_such_data_is_refused(codec: str, data: bytes) -> None:
    """As brokers do that throw when they read it."""
    with pytest.raises(BadBatch) as caught:
        unpacked(data, codec)
    assert caught.value.error == "UNKNOWN_SERVER_ERROR"


@pytest.mark.parametrize("codec", CODECS[1:])
def test_what_would_be_too_long_is_not_unpacked(codec: str) -> None:
    """A few kilobytes may say that they are gigabytes."""
    bomb = {
        "gzip": gzip.compress(bytes(LONGEST_UNPACKED + 1)), "snappy": b"\xff\xff\xff\xff\x0f",
        "lz4": bytes(cramjam.lz4.compress(bytes(LONGEST_UNPACKED + 1))),
        "zstd": bytes(cramjam.zstd.compress(bytes(LONGEST_UNPACKED + 1))),
    }[codec]
    assert len(bomb) < 100_000
    with pytest.raises(BadBatch) as caught:
        unpacked(bomb, codec)
    assert caught.value.error == "MESSAGE_TOO_LARGE"
    assert len(unpacked(packed(bytes(LONGEST_UNPACKED), codec), codec)) == LONGEST_UNPACKED
