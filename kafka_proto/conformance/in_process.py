"""Records played by frames, without sockets and without a clock, at brokers in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.conformance.player import ClusterMarkers
from kafka_proto.conformance.situations import MOST_PAUSES, PAUSE_MS, Situation
from kafka_proto.gateway.client import is_unanswered, read_response, request_bytes
from kafka_proto.gateway.frames import SIZE
from kafka_proto.gateway.host import Arrived, Close, Host, Opened, Passed, Write
from kafka_proto.gateway.inputs import Output, Settings

FIRST_MS = 1_000_000
"""When a broker begins that no clock counts for."""


def play_here(record: dict[str, Any], version: BrokerVersion) -> list[dict[str, Any]]:
    """Return the steps of a record as brokers of its release and level answer them, asked by frames in process.

    They decide as a version does. Nothing waits for a clock.
    """
    host = Host(Settings(record["broker_version"], record["transaction_version"]), {}, FIRST_MS, version)
    frames = Frames(host)
    return Situation(frames.ask, frames.wait, "run1-0", FIRST_MS, ClusterMarkers(host.cluster)).play(record)


class Frames:
    """A client of a host without sockets, with a time of its own."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._now = FIRST_MS
        self._pauses = MOST_PAUSES
        self._connection = -1
        self._is_open = False

    def ask(self, api: int, version: int, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request, and return its response; time passes until it comes.

        Raises ConnectionError where the connection is closed instead.
        """
        if not self._is_open:
            self._connection, self._is_open = self._connection + 1, True
            self._host.take(Opened(self._connection, self._now))
        outputs = self._host.take(Arrived(self._connection, request_bytes(api, version, message), self._now))
        while not outputs and not is_unanswered(api, message) and self._host.deadline is not None:
            outputs = self._pass(self._host.deadline)
        written = b"".join(output.data for output in outputs if isinstance(output, Write))
        for output in outputs:
            if isinstance(output, Close):
                self._is_open = False
                raise ConnectionError(f"the broker closed the connection: {output.reason}")
        return {} if is_unanswered(api, message) else read_response(written[SIZE:], api, version)[1]

    def wait(self) -> bool:
        """Let a little time pass, so many times."""
        self._pass(self._now + PAUSE_MS)
        self._pauses -= 1
        return self._pauses > 0

    def _pass(self, until: int) -> list[Output]:
        self._now = until
        return self._host.take(Passed(until))
