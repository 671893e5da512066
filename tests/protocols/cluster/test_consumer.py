"""The consumer as a value: its positions, what it takes of an answer, and what its application gets."""

from __future__ import annotations

import attrs
from support.brokers.leader import replicated

from harness.model import FrozenMap
from kafka_proto.clients.consumer import Consumer, Polled, fetched, next_fetch
from kafka_proto.log import Marker, RecordBatch, aborted_between, marker_batch
from kafka_proto.requests import ConsumerFetchRequest, ConsumerFetchResponse, Error, IsolationLevel

COMMITTED = Consumer(IsolationLevel.READ_COMMITTED)
LOG = replicated(
    RecordBatch(("a", "b"), 7, 0, 0, True), RecordBatch(("plain",)), marker_batch(7, 0, Marker.ABORT, 0),
    RecordBatch(("c",), 7, 0, 2, True), marker_batch(7, 0, Marker.COMMIT, 0),
)


def answer(*, aborted: bool = True) -> ConsumerFetchResponse:
    found = aborted_between(LOG, 0, 7) if aborted else None
    return ConsumerFetchResponse(Error.NONE, 7, 7, 0, found, tuple(LOG.batches))


def test_position_moves_past_markers_and_aborted_records() -> None:
    """The application gets committed and plain records, once; the next fetch begins behind the last batch."""
    asked = next_fetch(COMMITTED, "T-0")
    assert asked == ConsumerFetchRequest(12, "T-0", 0, IsolationLevel.READ_COMMITTED)
    polled = fetched(COMMITTED, asked, answer())
    assert polled.records == ("plain", "c") and polled.consumer.positions["T-0"] == 6
    assert next_fetch(polled.consumer, "T-0").fetch_offset == 6 and next_fetch(polled.consumer, "T-1").fetch_offset == 0
    assert fetched(polled.consumer, asked, answer()) == Polled(polled.consumer)
    reads_all = attrs.evolve(COMMITTED, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    assert fetched(reads_all, asked, answer(aborted=False)).records == ("a", "b", "plain", "c")


def test_records_before_the_position_are_not_shown_again() -> None:
    """A copy of an answer that a network brings twice shows what follows the position, and never moves it back."""
    there = attrs.evolve(COMMITTED, positions=FrozenMap({"T-0": 3}))
    polled = fetched(there, next_fetch(there, "T-0"), answer())
    assert polled.records == ("c",) and polled.consumer.positions["T-0"] == 6
    behind = attrs.evolve(COMMITTED, positions=FrozenMap({"T-0": 9}))
    assert fetched(behind, next_fetch(behind, "T-0"), answer()) == Polled(behind)


def test_answer_for_another_position_is_stale() -> None:
    """Neither its records nor its error count: the next fetch is for the present position."""
    there = attrs.evolve(COMMITTED, positions=FrozenMap({"T-0": 3}))
    for stale in (answer(), ConsumerFetchResponse(Error.OFFSET_OUT_OF_RANGE)):
        assert fetched(there, next_fetch(COMMITTED, "T-0"), stale) == Polled(there)


def test_empty_answer_leaves_the_position_and_one_out_of_range_begins_anew() -> None:
    """As `auto.offset.reset=earliest` has it."""
    there = attrs.evolve(COMMITTED, positions=FrozenMap({"T-0": 9}))
    asked = next_fetch(there, "T-0")
    assert fetched(there, asked, ConsumerFetchResponse(Error.NONE, 9, 9, 0, (), ())) == Polled(there)
    assert fetched(there, asked, ConsumerFetchResponse(Error.NOT_LEADER_OR_FOLLOWER)) == Polled(there)
    reset = fetched(there, asked, ConsumerFetchResponse(Error.OFFSET_OUT_OF_RANGE))
    assert reset == Polled(attrs.evolve(there, positions=FrozenMap({"T-0": 0})))
