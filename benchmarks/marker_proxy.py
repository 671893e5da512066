"""A proxy that a real broker sends its own requests through: the markers of its coordinator are held there, if asked.

The broker announces the proxy's address as its own (`real_broker.py --advertised PORT`), so that what one part of it
sends to another comes by.
"""

from __future__ import annotations

import threading

from kafka_proto.errors import NAMES
from kafka_proto.gateway.cluster import Fault, KafkaProxy
from kafka_proto.gateway.inputs import Input, Output
from kafka_proto.gateway.offer import WRITE_TXN_MARKERS

PATIENCE_SECONDS = 10.0
"""How long to wait for markers that should come, and for answers to those that were delivered."""


class MarkerProxy(KafkaProxy):
    """Holds the markers of the broker at an address that says it listens at a port."""

    def __init__(self, broker: str, port: int) -> None:
        super().__init__(broker, port=port)
        self._changed = threading.Condition()
        self._asked = 0
        """Until they are answered, held or not."""
        self._versions: list[int] = []
        self._errors: dict[str, str] = {}
        self._held: Fault

    def hold(self) -> None:
        """Hold all markers that come from now on."""
        self._held = self.delay("WriteTxnMarkers", nth=0)

    def is_holding(self) -> bool:
        """Say whether markers are held, after they had time to come."""
        try:
            self._held.wait(PATIENCE_SECONDS)
        except TimeoutError:
            return False
        return True

    def deliver(self) -> None:
        """Let go of what is held, and hold nothing from now on."""
        with self._changed:
            self._versions, self._errors = [], {}
        self._held.end()

    def answered(self) -> tuple[int | None, dict[str, str]]:
        """Return the version of WriteTxnMarkers of what was let go, and the partitions' answers."""
        with self._changed:
            self._changed.wait_for(lambda: self._asked == 0, PATIENCE_SECONDS)
            return max(self._versions, default=None), dict(sorted(self._errors.items()))

    def _see(self, given: Input, outputs: list[Output]) -> None:
        super()._see(given, outputs)
        for each in self._host.exchanged:
            if each.request.api_key == WRITE_TXN_MARKERS:
                with self._changed:
                    self._asked += 1 if each.answer is None else -1
                    self._changed.notify_all()
                    if each.answer is not None:
                        self._versions.append(each.request.version)
                        self._errors |= {str(row["partition_index"]): NAMES[row["error_code"]]
                                         for marker in each.answer["markers"] for topic in marker["topics"]
                                         for row in topic["partitions"]}
