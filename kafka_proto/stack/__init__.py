"""The whole stack: coordinators on a replicated transaction log. See `kafka_proto.cluster` for the model.

Rooms: `state` (what a broker keeps), `broker`, `controller`, `properties`, `scenarios`. The decisions are those of
`kafka_proto.transactions` and `kafka_proto.replication`.
"""

from __future__ import annotations

from harness.model import System


def system() -> System:
    """Return the model `cluster` and its scenarios."""
    from kafka_proto.cluster import MODELS
    from kafka_proto.stack.scenarios import SCENARIOS

    return System("cluster", MODELS, SCENARIOS)
