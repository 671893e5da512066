"""What a client knows of leaders: what it asks now, what it asks after a pause, and what it goes by meanwhile."""

from __future__ import annotations

from kafka_proto.broker.look_ups import UNKNOWN, Leaders
from kafka_proto.broker.messages import LeaderResponse


def test_a_leader_that_nobody_knows_is_asked_for_after_a_pause() -> None:
    """A lost leader is looked up at once; one that a broker does not know either, when the client has rested."""
    lost = Leaders().lost("t-0")
    assert lost.unknown == ("t-0",) and lost.found["t-0"] == UNKNOWN
    nobody = lost.learned(LeaderResponse("t-0", UNKNOWN))
    assert nobody.unknown == () and nobody.resting == {"t-0"} and nobody.found["t-0"] == UNKNOWN
    assert nobody.lost("t-1").unknown == ("t-1",), "the other one is not at rest"
    assert nobody.rested().unknown == ("t-0",)
    found = nobody.rested().learned(LeaderResponse("t-0", "b2"))
    assert found.unknown == () and found.found["t-0"] == "b2"
