"""Whole transactions on a faulty network: clients, brokers with all their roles, and the controller of their logs.

`composition` says what a broker is made of, `models` the models `kafka/*`; `properties`, `plain_records` and `replicas`
what must hold, `logs` where they see it; `refinement` checks coordinators against diary 02's; `scenarios` and `tours`.
Brokers are those of `kafka_proto.broker`, clients are those of `kafka_proto.clients`.
"""

from __future__ import annotations

from harness.model import System


def system() -> System:
    """Return the models `kafka/*` with their scenarios and tours."""
    from kafka_proto.cluster import kip_939, processing
    from kafka_proto.cluster.models import MODELS
    from kafka_proto.cluster.scenarios import SCENARIOS
    from kafka_proto.cluster.tours import TOURS

    gone = {
        "cluster": "kafka/4.0 with log=replicated", "exactly-once/kip-98": "kafka/2.3 or kafka/0.11",
        "exactly-once/kip-360": "kafka/3.5", "exactly-once/kip-890-part-1": "kafka/3.9, or the release that it was,",
        "exactly-once/kip-890": "kafka/4.0, or the release that it was,",
    }
    models = (*MODELS, kip_939.MODEL, processing.MODEL)
    scenarios = (*SCENARIOS, *kip_939.SCENARIOS, *processing.SCENARIOS)
    return System("cluster", models, scenarios, TOURS, gone=gone, package=__name__)
