"""Clients without sockets whose session is recorded as a trail."""

from __future__ import annotations

from typing import Any

from harness.model import FrozenMap
from kafka_proto.gateway import offer
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Ended, Settings, Started
from kafka_proto.gateway.recording import Recording
from support.gateway.wire import Producer, Talk, inject


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


def late_after_abort(release: str, level: int) -> tuple[Recorded, Producer]:
    """Return a session in which a batch of an abandoned connection comes after its transaction's abort (TX-02)."""
    clients = Recorded(release=release, transaction_version=level)
    inject(clients, 1, "delay", request="Produce", nth=2)
    producer = Producer(clients)
    producer.write(0, b"a")
    assert clients.ask(producer.me, offer.PRODUCE, 9, producer.batch(0, b"late")) == {}
    producer.reconnect()
    assert producer.end(False)[producer.me][0]["error_code"] == 0
    clients.give(Ended(1, clients.now))
    return clients, producer
