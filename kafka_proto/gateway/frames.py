"""Where messages end in a stream of bytes: each has its length before it, in four bytes."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_proto.gateway.codec import Malformed

SIZE = 4
LONGEST_FRAME = 16 * 1024 * 1024
"""In bytes. Kafka's default is 100 MiB (`socket.request.max.bytes`)."""


class FrameReader:
    """Bytes as they come, in pieces of any size; at most one frame that is not whole is kept, as far as it is there."""

    def __init__(self, longest: int = LONGEST_FRAME) -> None:
        self._longest = longest
        self._buffer = bytearray()

    @property
    def waiting(self) -> int:
        """Return how many bytes wait for the rest of their frame."""
        return len(self._buffer)

    def receive(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that are whole now. Raises Malformed for a length that no frame may have."""
        self._buffer += data
        at = 0
        try:
            while len(self._buffer) - at >= SIZE:
                size = int.from_bytes(self._buffer[at : at + SIZE], "big", signed=True)
                if not 0 <= size <= self._longest:
                    raise Malformed(f"a frame of {size} bytes, where {self._longest} are the most")
                if len(self._buffer) - at - SIZE < size:
                    return
                at += SIZE + size
                yield bytes(self._buffer[at - size : at])
        finally:
            del self._buffer[:at]


def framed(message: bytes | bytearray) -> bytes:
    """Return a message with its length before it."""
    return len(message).to_bytes(SIZE, "big", signed=True) + message
