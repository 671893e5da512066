"""The model `cluster`: coordinators of diary 02 on a replicated transaction log, clients and a controller.

`model` composes it of `kafka_proto.broker`; `properties`, `scenarios`, `refinement`. `atomic_log` is the log on which
these coordinators are searched. What they decide is in `kafka_proto.transactions`.
"""

from __future__ import annotations

from harness.model import System


def system() -> System:
    """Return the model `cluster`, `exactly-once/*` with scenarios and tours, and the recorded model `gateway`."""
    from kafka_proto.cluster import models, scenarios, tours
    from kafka_proto.gateway.recorded import RECORDED
    from kafka_proto.stack.model import MODELS
    from kafka_proto.stack.scenarios import SCENARIOS

    return System(
        "cluster", (*MODELS, *models.MODELS), (*SCENARIOS, *scenarios.SCENARIOS), tours.TOURS, RECORDED, __name__
    )
