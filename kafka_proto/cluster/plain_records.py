"""P6 of records that are written without transactions: once, in order, where their producer was told that they are."""

from __future__ import annotations

from itertools import pairwise

from harness.model import Reason, View
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.idempotent_client import IdempotentState, Placed
from kafka_proto.cluster.logs import Logs
from kafka_proto.log import PartitionLog


def plain_of(log: PartitionLog) -> tuple[tuple[str, int], ...]:
    """Return the records of a log that were written without transactions, each with its offset."""
    batches = (batch for batch in log.batches if not batch.is_transactional and batch.marker is None)
    return tuple((text, batch.base_offset + n) for batch in batches for n, text in enumerate(batch.records))


def start_of(log: PartitionLog) -> int:
    return log.log_start_offset


def written_once(placement: Placement, view: View, partition: str, logs: Logs) -> Reason:
    """Say which record of an idempotent producer is in a log twice, elsewhere than acknowledged, or out of order.

    One that was deleted may be nowhere, but nowhere else either.
    """
    at: dict[str, int] = {}
    for text, offset in logs.made(view, partition, plain_of):
        if text in at:
            return f"{text} is in {partition} twice, at the offsets {at[text]} and {offset}"
        at[text] = offset
    for i in placement.idempotent_producers:
        state: IdempotentState = view[i]
        mine = sorted((placed for placed in state.acknowledged if placed.partition == partition), key=number_of)
        for placed in mine:
            found = at.get(placed.record)
            if found is None and placed.offset >= logs.made(view, partition, start_of):
                return f"{placed.record} was acknowledged at offset {placed.offset}, but is not in {partition}"
            if found not in (None, placed.offset):
                return (
                    f"{placed.record} was acknowledged at offset {placed.offset} of {partition}, and is there at "
                    f"offset {found}"
                )
        for one, other in pairwise(mine):
            if one.offset > other.offset:
                return f"{one.record} was written before {other.record}, but is after it in {partition}"
    return None


def number_of(placed: Placed) -> int:
    """Return the how manieth of its producer's records one is."""
    return int(placed.record.partition("#")[2])


def waits(placement: Placement, view: View) -> Reason:
    """Say whose records are neither acknowledged nor given up."""
    for i in placement.idempotent_producers:
        state: IdempotentState = view[i]
        if state.producer.batches:
            return f"{i} waits for the answer to {state.producer.batches[0].records[0]}"
    return None


def took_next_epoch(placement: Placement, view: View) -> bool:
    """Say whether an idempotent producer went on in an epoch that nobody gave it (KIP-360)."""
    states: list[IdempotentState] = [view[i] for i in placement.idempotent_producers]
    return any(state.producer.producer_epoch > 0 for state in states)
