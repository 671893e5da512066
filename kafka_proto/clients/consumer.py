"""A consumer's positions, and what it makes of a fetch (`FetchCollector`, `CompletedFetch.nextFetchedRecord`)."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap, Value
from kafka_proto.log import visible
from kafka_proto.requests import ConsumerFetchRequest, ConsumerFetchResponse, Error, IsolationLevel

FETCH_VERSION = 12


@attrs.frozen
class Consumer:
    """A consumer of some partitions; its position in each is the offset that it reads next."""

    isolation_level: IsolationLevel
    positions: FrozenMap[str, int] = FrozenMap()


@attrs.frozen
class Polled:
    """A consumer after an answer, and what its application gets."""

    consumer: Consumer
    records: tuple[Value, ...] = ()


def next_fetch(consumer: Consumer, partition: str) -> ConsumerFetchRequest:
    """Ask for what follows the position."""
    return ConsumerFetchRequest(
        FETCH_VERSION, partition, consumer.positions.get(partition, 0), consumer.isolation_level)


def fetched(consumer: Consumer, request: ConsumerFetchRequest, response: ConsumerFetchResponse) -> Polled:
    """Take an answer: the position moves past all batches, markers and aborted records included.

    An answer for another position than the present one is stale. Out of range, the position goes to the log's start.
    """
    position = consumer.positions.get(request.partition, 0)
    if request.fetch_offset != position:
        return Polled(consumer)
    if response.error is Error.OFFSET_OUT_OF_RANGE:
        return Polled(attrs.evolve(consumer, positions=consumer.positions.set(request.partition, 0)))
    if response.error is not Error.NONE or not response.batches:
        return Polled(consumer)
    after = response.batches[-1].last_offset + 1
    moved = attrs.evolve(consumer, positions=consumer.positions.set(request.partition, after))
    return Polled(moved, tuple(visible(response.batches, response.aborted_transactions or ())))
