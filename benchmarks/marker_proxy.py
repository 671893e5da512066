"""A proxy that a real broker sends its own requests through: the markers of its coordinator are held there, if asked.

The broker announces the proxy's address as its own (`real_broker.py --advertised PORT`), so that what one part of it
sends to another comes by. Everything is forwarded as it is; of one connection nothing overtakes anything.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from kafka_proto.errors import NAMES
from kafka_proto.gateway.codec import FrameReader, framed
from kafka_proto.gateway.connection import read_response
from kafka_proto.gateway.offer import WRITE_TXN_MARKERS

LOOPBACK = "127.0.0.1"
PIECE = 65_536
LONGEST_FRAME = 2**30
PATIENCE_SECONDS = 10.0
"""How long to wait for markers that should come, and for answers to those that were delivered."""


class MarkerProxy:
    """Forwards connections to the port that `broker` is set to; ends with its context."""

    def __init__(self) -> None:
        self.broker = 0
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self._changed = threading.Condition()
        self._holds = False
        self._held = 0
        self._versions: list[int] = []
        self._errors: dict[str, str] = {}

    def __enter__(self) -> MarkerProxy:
        self._thread(self._accept)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._listener.close()

    def hold(self) -> None:
        """Hold all markers that come from now on."""
        with self._changed:
            self._holds = True

    def is_holding(self) -> bool:
        """Say whether markers are held, after they had time to come."""
        with self._changed:
            return self._changed.wait_for(lambda: self._held > 0, PATIENCE_SECONDS)

    def deliver(self) -> None:
        """Let go of what is held, and hold nothing from now on."""
        with self._changed:
            self._versions, self._errors, self._holds = [], {}, False
            self._changed.notify_all()

    def answered(self) -> tuple[int | None, dict[str, str]]:
        """Return the version of WriteTxnMarkers of what was let go, and the partitions' answers."""
        with self._changed:
            self._changed.wait_for(lambda: self._held == 0, PATIENCE_SECONDS)
            return max(self._versions, default=None), dict(sorted(self._errors.items()))

    @staticmethod
    def _thread(target: Any, *given: Any) -> None:
        threading.Thread(target=target, args=given, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                ours, _ = self._listener.accept()
                theirs = socket.create_connection((LOOPBACK, self.broker))
            except OSError:
                return
            ahead: queue.SimpleQueue[bytes] = queue.SimpleQueue()
            waiting: dict[int, int] = {}
            self._thread(self._read, ours, ahead)
            self._thread(self._send, ahead, theirs, waiting)
            self._thread(self._answer, theirs, ours, waiting)

    def _read(self, source: socket.socket, ahead: queue.SimpleQueue[bytes]) -> None:
        for frame in _frames(source):
            if _api(frame) == WRITE_TXN_MARKERS:
                with self._changed:
                    self._held += 1  # until it is answered, held or not
                    self._changed.notify_all()
            ahead.put(frame)
        ahead.put(b"")

    def _send(self, ahead: queue.SimpleQueue[bytes], broker: socket.socket, waiting: dict[int, int]) -> None:
        while frame := ahead.get():
            if _api(frame) == WRITE_TXN_MARKERS:
                with self._changed:
                    self._changed.wait_for(lambda: not self._holds)
                waiting[int.from_bytes(frame[4:8], "big", signed=True)] = int.from_bytes(frame[2:4], "big")
            broker.sendall(framed(frame))
        broker.close()

    def _answer(self, broker: socket.socket, client: socket.socket, waiting: dict[int, int]) -> None:
        for frame in _frames(broker):
            version = waiting.pop(int.from_bytes(frame[:4], "big", signed=True), None)
            if version is not None:
                self._answered(version, frame)
            client.sendall(framed(frame))
        client.close()

    def _answered(self, version: int, frame: bytes) -> None:
        answer = read_response(frame, WRITE_TXN_MARKERS, version)[1]
        with self._changed:
            self._versions.append(version)
            self._errors |= {str(row["partition_index"]): NAMES[row["error_code"]]
                             for marker in answer["markers"] for topic in marker["topics"]
                             for row in topic["partitions"]}
            self._held -= 1
            self._changed.notify_all()


def _api(frame: bytes) -> int:
    return int.from_bytes(frame[:2], "big", signed=True)


def _frames(source: socket.socket) -> Iterator[bytes]:
    reader = FrameReader(longest=LONGEST_FRAME)
    try:
        while data := source.recv(PIECE):
            yield from reader.receive(data)
    except OSError:
        pass
