"""A newly elected coordinator reads its log, and sends markers for what is prepared (`onElection`)."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.coordinator import coordinator
from kafka_proto.broker.coordinator.transaction import PREPARED, CachedTransaction, ProducerIds, TransactionMetadata
from kafka_proto.log import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


def recovered_without_ids(entry: TransactionMetadata) -> TransactionMetadata:
    """Return an entry as the log has it: without the last epoch and the ids before and after (KAFKA-20310, 20357).

    A retry that spans an election is fenced, and an end that used up the epochs does not switch to the next id.
    """
    return attrs.evolve(entry, last_producer_epoch=NO_PRODUCER_EPOCH, previous_producer_id=NO_PRODUCER_ID,
                        next_producer_id=NO_PRODUCER_ID)


def recovered_without_last_epoch(entry: TransactionMetadata) -> TransactionMetadata:
    """Return an entry as the log has it since 4.3: with these ids, but still without the last epoch (KAFKA-20357)."""
    return attrs.evolve(entry, last_producer_epoch=NO_PRODUCER_EPOCH)


def load(
    decisions: coordinator.CoordinatorDecisions, entries: FrozenMap[str, TransactionMetadata], coordinator_epoch: int,
    ids: ProducerIds, config: coordinator.CoordinatorConfig, *, now: int,
) -> coordinator.Step:
    """Become coordinator with the last entry of each transactional id; what is prepared is completed."""
    cache = FrozenMap((tid, CachedTransaction(decisions.recovered(entry))) for tid, entry in entries.items())
    state = coordinator.Coordinator(cache, FrozenMap(), ids, coordinator_epoch, False, config)
    effects: list[coordinator.Effect] = []
    for tid, entry in entries.items():
        if entry.state in PREPARED:
            state, more = coordinator.send_markers(decisions, state, tid, now=now)
            effects += more
    return state, tuple(effects)
