"""Kafka's replication protocol as the modules KafkaReplication and AsyncIsr specify it, one model per version.

Rooms: `records`; decisions in `log`, `truncation`, `leadership`, `isr` and `high_watermark`; the spec composition in
`spec` and `kafka_replication`; one module per version, from `truncate_to_high_watermark` to `kip_320`, and `async_isr`;
`variants`; `properties`; `models`.
"""

from __future__ import annotations

from harness.model import System


def system() -> System:
    """Return the models of the replication protocol."""
    from kafka_proto.replication.models import MODELS

    return System("replication", MODELS)
