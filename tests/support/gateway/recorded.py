"""Clients without sockets whose session is recorded as a trail."""

from __future__ import annotations

from typing import Any

from harness.model import FrozenMap
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Settings, Started
from kafka_proto.gateway.recording import Recording
from support.gateway.wire import Talk


class Recorded(Talk):
    """Clients of a host whose session is recorded."""

    def __init__(self, **settings: Any) -> None:
        started = Started(Settings(**settings), FrozenMap({"t": 2}), 1_000_000)
        super().__init__(Host(started.settings, started.topics, started.now))
        self.recording = Recording(self.host, started)

    def give(self, given: Any) -> list[Any]:
        outputs = super().give(given)
        self.recording.see(given, outputs)
        return outputs
