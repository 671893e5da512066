"""The codecs by which producers pack the records of a batch: gzip, snappy as Java or plain, lz4 and zstd in frames."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping

import cramjam

from harness.model import FrozenMap

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LONGEST_UNPACKED = 16 * 1024 * 1024
FIRST_GUESS = 64 * 1024
XERIAL = b"\x82SNAPPY\x00"
"""What the stream of snappy-java begins with, before two versions of four bytes each."""
XERIAL_HEADER = len(XERIAL) + 8
FRAMED = {"lz4": cramjam.lz4, "zstd": cramjam.zstd}
IS_FULL = "whole buffer"
"""What is said of an output that is too short."""


class BadBatch(ValueError):
    """A batch that a leader refuses; `error` is Kafka's name of the code, `records` what is wrong with which of them.
    """

    def __init__(self, error: str, reason: str, records: Mapping[int, str] = FrozenMap()) -> None:
        super().__init__(reason)
        self.error, self.records = error, records


def unpacked(data: bytes, codec: str) -> bytes:
    """Return what is packed, as long as it is not too long. Raises BadBatch."""
    if codec == "none":
        return data
    try:
        if codec == "gzip":
            return _gunzipped(data)
        if codec == "snappy":
            return _unsnapped(data)
        if codec in FRAMED:
            return _unframed(data, codec)
    except (zlib.error, cramjam.DecompressionError) as reason:
        raise BadBatch("UNKNOWN_SERVER_ERROR", f"no {codec}: {reason}") from None
    raise BadBatch("UNKNOWN_SERVER_ERROR", f"there is no compression {codec}")


def _gunzipped(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    plain = unpacker.decompress(data, LONGEST_UNPACKED)
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise _too_long()
    return plain


def _unsnapped(data: bytes) -> bytes:
    if not data.startswith(XERIAL):
        return _unsnapped_block(data, LONGEST_UNPACKED)
    found, at = bytearray(), XERIAL_HEADER
    while at < len(data):
        start = at + 4
        at = start + int.from_bytes(data[at:start], "big")
        found += _unsnapped_block(data[start:at], LONGEST_UNPACKED - len(found))
    return bytes(found)


def _unsnapped_block(data: bytes, longest: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(data) > longest:
        raise _too_long()
    return bytes(cramjam.snappy.decompress_raw(data))


def _unframed(data: bytes, codec: str) -> bytes:
    length = min(max(FIRST_GUESS, 8 * len(data)), LONGEST_UNPACKED)
    while True:
        found = bytearray(length)
        try:
            return bytes(memoryview(found)[:FRAMED[codec].decompress_into(data, found)])
        except cramjam.DecompressionError as reason:
            if IS_FULL not in str(reason):
                raise
        if length == LONGEST_UNPACKED:
            raise _too_long()
        length = min(8 * length, LONGEST_UNPACKED)


def _too_long() -> BadBatch:
    return BadBatch("MESSAGE_TOO_LARGE", f"not whole, or more than {LONGEST_UNPACKED} bytes when unpacked")


def packed(data: bytes, codec: str) -> bytes:
    """Pack records. The same data is the same bytes."""
    match codec:
        case "gzip":
            return gzip.compress(data, mtime=0)
        case "snappy":
            return bytes(cramjam.snappy.compress_raw(data))
        case "lz4" | "zstd":
            return bytes(FRAMED[codec].compress(data))
    return data
