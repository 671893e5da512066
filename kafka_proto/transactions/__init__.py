"""Kafka's transaction protocol as Vanlightly's diaries 01 and 02 and gist specify it: specs, and what they are made of.

Rooms: `records`; `decisions`, and `versions`, which list them; spec compositions in `specs`; `properties`; `scenarios`;
`tours`. Whole transactions are checked against diary 02 by `kafka_proto.cluster.refinement`.
"""

from __future__ import annotations

from harness.model import System

GONE = dict.fromkeys(("transactions/diary-02/actors", "transactions/repaired/actors"), "kafka/4.0")


def system() -> System:
    """Return the models and scenarios of the transaction protocol."""
    from kafka_proto.transactions.models import MODELS
    from kafka_proto.transactions.scenarios import SCENARIOS
    from kafka_proto.transactions.tours import TOURS

    return System("transactions", MODELS, SCENARIOS, TOURS, gone=GONE, package=__name__)
