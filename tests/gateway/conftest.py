"""What tests of the gateway share."""

from __future__ import annotations

import pytest
from support.gateway.set_clock import SetClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """The clock of every cluster that the test starts in its own process."""
    from kafka_proto.gateway import server

    made = SetClock(server.wall_clock_ms())
    monkeypatch.setattr(server, "wall_clock_ms", made)
    return made
