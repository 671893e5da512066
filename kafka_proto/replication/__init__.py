"""Kafka's replication protocol as the modules KafkaReplication and AsyncIsr specify it, one model per version.

Rooms: `records`; decisions in `truncation`, `leadership`, `isr` and `high_watermark`; the spec composition in `specs`:
`kafka_replication`, what versions make of it by their names in `by_version`, and `async_isr`; `versions`; `properties`;
`models`. The actor composition: `messages`; one replica of one partition as pure functions in `partition`
(`replica_state`, `leading`, `following`), what the controller decides in `quorum`; the actors `replica`, `controller`
and `clients`, composed in `actors`; `actor_properties`; `scenarios`; `tours`. Between the two: `refinement`, the
mappings, and `extensions`, what specs are extended by.
"""

from __future__ import annotations

from harness.model import System


def system() -> System:
    """Return the models, scenarios and tours of the replication protocol."""
    from kafka_proto.replication.models import MODELS
    from kafka_proto.replication.scenarios import SCENARIOS
    from kafka_proto.replication.tours import TOURS

    return System("replication", MODELS, SCENARIOS, TOURS, package=__name__)
