"""Changes of a release: published flaws that no release has any more, or never had, and mends that none has yet.

A change replaces decisions of a version. Each says from which release's version it is meant to depart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.coordinator import end_txn
from kafka_proto.broker.leader import appending, verification
from kafka_proto.broker.versions import SAME, BrokerVersion, Decisions
from kafka_proto.errors import Error


@attrs.frozen
class BrokerChange:
    """Decisions of the coordinator and of leaders in place of a version's own."""

    title: str
    coordinator: Decisions = SAME
    leader: Decisions = SAME

    def of(self, version: BrokerVersion, name: str) -> BrokerVersion:
        return version.changed(f"{version.name}/{name}", self.coordinator, self.leader)


CHANGES: Mapping[str, BrokerChange] = FrozenMap({
    "no-guard": BrokerChange(
        "the answer to a verification counts even if the transaction has ended since (KAFKA-14884, before 3.5.0)",
        leader={"check_verified": appending.take_unverified},
    ),
    "any-open": BrokerChange(
        "an open transaction of an older epoch is taken for the one of a batch (KAFKA-18575, before 4.0.0)",
        leader={"has_open": verification.has_open_transaction, "check_verified": appending.check_open_or_guard},
    ),
    "told-fenced": BrokerChange(
        "EndTxn after a time-out is told PRODUCER_FENCED: a mend of KAFKA-20785 that no release has",
        {"end_txn_bumping": partial(end_txn.end_txn_bumping, keeps_last=True, other_end=Error.PRODUCER_FENCED)},
    ),
})
"""By the value of the setting `change`."""
