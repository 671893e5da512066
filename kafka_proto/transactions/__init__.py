"""Kafka's transaction protocol as Vanlightly's diaries 01 and 02 and gist specify it, and as running actors.

Rooms: `messages`, `records`; `decisions`, a file per request, and `versions`, which list them; spec compositions in
`specs`, wrapped by `extensions`; `actors`; `properties`; `scenarios`; `tours`.
"""

from __future__ import annotations

from harness.model import System


def system() -> System:
    """Return the models, scenarios and tours of the transaction protocol."""
    from kafka_proto.transactions.models import MODELS
    from kafka_proto.transactions.scenarios import SCENARIOS
    from kafka_proto.transactions.tours import TOURS

    return System("transactions", MODELS, SCENARIOS, TOURS, package=__name__)
