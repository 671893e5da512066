"""What tests of the gateway share."""

from __future__ import annotations

from functools import partial

import pytest
from support.gateway.set_clock import SetClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """The clock of every cluster that the test starts in its own process."""
    from kafka_proto.gateway import cluster
    from kafka_proto.gateway.server import Server, wall_clock_ms

    made = SetClock(wall_clock_ms())
    monkeypatch.setattr(cluster, "wall_clock_ms", made)
    monkeypatch.setattr(cluster, "Server", partial(Server, clock=made))
    return made
