"""Answers to a WriteTxnMarkers of several partitions, gathered until each has its marker or refused it.

`KafkaApis.handleWriteTxnMarkersRequest`: the partitions are written each by its own role, and answered for at once.
"""

from __future__ import annotations

import attrs

from harness.model import FrozenMap, Local
from kafka_proto.broker.messages import Request, asker_of
from kafka_proto.broker.parts import MARKINGS, Marking, Markings
from kafka_proto.broker.roles import Role
from kafka_proto.requests import Error


class MarkerAnswers(Role):
    """What the partitions of one broker answered. A request of one partition leaves nothing here."""

    parts = (MARKINGS,)

    def begun(self, local: Local, message: Request) -> Local:
        """Return the state in which the answers to a request are waited for."""
        partitions = len(message.request.partitions)
        if partitions == 1:
            return local
        waits = (*local[MARKINGS].under_way, Marking(asker_of(message), partitions))
        return local.put(MARKINGS, Markings(waits))

    def answered(
        self, local: Local, message: Request, errors: FrozenMap[str, Error]
    ) -> tuple[Local, FrozenMap[str, Error] | None]:
        """Take what a partition answers, and return what all did, or None while some have not."""
        under_way, asker = local[MARKINGS].under_way, asker_of(message)
        place = next((n for n, each in enumerate(under_way) if each.asker == asker), None)
        if place is None:
            return local, errors
        known, rest = under_way[place], under_way[place + 1:]
        errors = known.errors.update(errors)
        if len(errors) == known.partitions:
            return local.put(MARKINGS, Markings(under_way[:place] + rest)), errors
        waits = attrs.evolve(known, errors=errors)
        return local.put(MARKINGS, Markings((*under_way[:place], waits, *rest))), None
