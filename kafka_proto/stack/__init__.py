"""The broker of all actors, composed of roles, and the whole stack: coordinators on a replicated transaction log.

The broker: `broker`, `roles`, `state`, and its log, `replicated_log` or `atomic_log`. The stack, whose model is
`kafka_proto.cluster`: `controller`, `properties`, `scenarios`, `refinement`. The decisions are those of
`kafka_proto.transactions` and `kafka_proto.replication`.
"""

from __future__ import annotations

from harness.model import System


def system() -> System:
    """Return the model `cluster`, `exactly-once/*` with scenarios and tours, and the recorded model `gateway`."""
    from kafka_proto.cluster import MODELS
    from kafka_proto.exactly_once import models, scenarios, tours
    from kafka_proto.gateway.recorded import RECORDED
    from kafka_proto.stack.scenarios import SCENARIOS

    return System(
        "cluster", (*MODELS, *models.MODELS), (*SCENARIOS, *scenarios.SCENARIOS), tours.TOURS, RECORDED, __name__
    )
