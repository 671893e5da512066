"""Changes of a release: published flaws that no release has any more, or never had, and mends that none has yet.

A change replaces decisions of a version. Each says from which release's version it is meant to depart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.coordinator import end_txn
from kafka_proto.broker.coordinator.init_producer_id import Fenced, fence
from kafka_proto.broker.coordinator.transaction import PREPARED, CachedTransaction, Outcome, refuse
from kafka_proto.broker.group.coordinator import replay
from kafka_proto.broker.leader import appending, verification
from kafka_proto.broker.leader.fetching import COMMITTED, fetch
from kafka_proto.broker.versions import SAME, BrokerVersion, Decisions
from kafka_proto.errors import Error
from kafka_proto.log import PartitionLog, ProducerState, RecordBatch, batches_between
from kafka_proto.requests import ConsumerFetchRequest, ConsumerFetchResponse, EndTxnRequest


@attrs.frozen
class BrokerChange:
    """Decisions of the coordinator, of leaders and of groups in place of a version's own."""

    title: str
    coordinator: Decisions = SAME
    leader: Decisions = SAME
    group: Decisions = SAME
    arguments: Mapping[str, Mapping[str, Any]] = FrozenMap()
    """What the version's own decisions of the coordinator are given besides, by their names."""

    def of(self, version: BrokerVersion, name: str) -> BrokerVersion:
        """Return a version with the change in it."""
        own = {field: partial(getattr(version.coordinator, field), **given) for field, given in self.arguments.items()}
        return version.changed(f"{version.name}/{name}", {**own, **self.coordinator}, self.leader, self.group)


def check_marker_once(known: ProducerState, marker: RecordBatch, transaction_version: int) -> Error:
    """Refuse each marker that is not above the producer's epoch, one that is sent again, too."""
    if transaction_version >= 2 and marker.producer_epoch == known.producer_epoch:
        return Error.INVALID_PRODUCER_EPOCH
    return appending.check_marker_strictly(known, marker, transaction_version)


def end_txn_fenced_first(request: EndTxnRequest, cached: CachedTransaction | None, **rest: Any) -> Outcome:
    """Look at the epoch before what is pending: that of the next transaction is not the one whose end is prepared."""
    is_prepared = cached is not None and cached.metadata.state in PREPARED
    if cached is not None and is_prepared and not end_txn.is_valid_epoch(request, cached.metadata):
        return refuse(Error.PRODUCER_FENCED)
    return end_txn.end_txn_bumping(request, cached, **rest)


def fence_again(cached: CachedTransaction) -> Fenced:
    """Take another epoch even if the log has refused the last fence."""
    return fence(attrs.evolve(cached, has_failed_epoch_fence=False))


def fetch_unlisted(log: PartitionLog, request: ConsumerFetchRequest) -> ConsumerFetchResponse:
    """Leave the list of aborted transactions out."""
    found = fetch(log, request)
    return found if found.aborted_transactions is None else attrs.evolve(found, aborted_transactions=())


def fetch_with_old_bound(log: PartitionLog, request: ConsumerFetchRequest) -> ConsumerFetchResponse:
    """Read up to the high watermark if no transaction was open before the last batch."""
    found = fetch(log, request)
    reads_committed = request.isolation_level is COMMITTED and request.replica_id < 0
    if not (found.batches and reads_committed and log.last_stable_offset == log.batches[-1].base_offset):
        return found
    stop = log.high_watermark
    batches = batches_between(log, request.fetch_offset, stop, request.max_batches)
    return attrs.evolve(found, last_stable_offset=stop, batches=batches)


CHANGES: Mapping[str, BrokerChange] = FrozenMap({
    "no-guard": BrokerChange(
        "the answer to a verification counts even if the transaction has ended since (KAFKA-14884, before 3.5.0)",
        leader={"check_verified": appending.take_unverified},
    ),
    "any-open": BrokerChange(
        "an open transaction of an older epoch is taken for the one of a batch (KAFKA-18575, before 4.0.0)",
        leader={"has_open": verification.has_open_transaction, "check_verified": appending.check_open_or_guard},
    ),
    "checked-refusals": BrokerChange(
        "a refusal that a producer does not survive waits until the log has taken an entry: a mend of KAFKA-21181 that "
        "no release has",
        {"checks_refusals": True},
    ),
    "told-fenced": BrokerChange(
        "EndTxn after a time-out is told PRODUCER_FENCED: a mend of KAFKA-20785 that no release has",
        arguments={"end_txn_bumping": {"other_end": Error.PRODUCER_FENCED}},
    ),
    "fenced-first": BrokerChange(
        "EndTxn of an empty transaction is told PRODUCER_FENCED while markers of the one before are under way "
        "(KAFKA-18464, before 4.0.0)",
        {"end_txn_bumping": end_txn_fenced_first},
    ),
    "marker-once": BrokerChange(
        "a marker that is sent again is refused: the first mend of KAFKA-19446, without KAFKA-19999's",
        leader={"check_marker": check_marker_once},
    ),
    "any-first": BrokerChange(
        "of a transaction's first batches any may be appended first (KAFKA-14904, before KAFKA-14920)",
        leader={"check_sequence": appending.check_sequence},
    ),
    "by-marker": BrokerChange(
        "offsets count in the order of the markers, not of their records (KAFKA-5247, before 0.11.0.0)",
        group={"replay": partial(replay, by_record=False)},
    ),
    "completes-twice": BrokerChange(
        "Complete* is appended twice, the second time at any later moment (KAFKA-10080: since KAFKA-9777, before 2.6)",
        {"completes_twice": True},
    ),
    "fences-again": BrokerChange(
        "each try of a fence that the log refused takes another epoch (KAFKA-9666, before 2.6.0)",
        {"fence": fence_again, "fence_timed_out": fence_again},
    ),
    "answers-first": BrokerChange(
        "a coordinator answers when an entry is in its own log, before it is replicated (Redpanda #6018)",
        {"waits": False},
    ),
    "unlisted": BrokerChange(
        "readers are not told which transactions are aborted (KAFKA-5376, where a fetch had waited)",
        leader={"fetch": fetch_unlisted},
    ),
    "old-bound": BrokerChange(
        "a reader's last stable offset is one of before the last batch, its records are not (KAFKA-9807, before 2.5)",
        leader={"fetch": fetch_with_old_bound},
    ),
})
"""By the value of the setting `change`."""
