"""Flaws as departures: those of the spec are mended in one place, and one that KIP-497 warns of is built in."""

from __future__ import annotations

from harness.model import Departure
from kafka_proto.replication.high_watermark import counted_without_pending
from kafka_proto.replication.isr import shrink_by_controller
from kafka_proto.replication.leadership import leaders_or_nobody

DEPARTURES = (
    Departure("S8", "removing a replica that does not lead can leave the ISR empty",
              {"shrink_by_controller": shrink_by_controller}),
    Departure("S10", "a request without a leader is never applied by anybody", {"leaders": leaders_or_nobody}),
    Departure("RP-10", "a proposed member does not count yet", {"counted": counted_without_pending}),
)
"""By the ids of docs/models.md. S7 and S9 are about properties: they stand in `properties`, as written and as meant."""
COUNTS = {"potential-isr": "", "isr": "RP-10"}
"""The values of the setting `counts` by the departure that each is."""
