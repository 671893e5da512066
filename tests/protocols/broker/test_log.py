"""The log of a partition: what is kept with each append equals what the batches alone say."""

from __future__ import annotations

from itertools import islice

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.brokers.leader import log_of, replicated

from kafka_proto import log as logs
from kafka_proto.log import (
    EMPTY_LOG,
    MAX_SEQUENCE,
    Marker,
    PartitionLog,
    RecordBatch,
    append,
    marker_batch,
    with_high_watermark,
)
from kafka_proto.log.chunks import WIDTH, LogStart, chunks, longer, same, section

KINDS = st.sampled_from(["data", "plain", "commit", "abort", "bump", "replicate"])
MOVES = st.lists(st.tuples(st.integers(1, 3), KINDS, st.integers(1, 3)), max_size=60)
"""A producer, what it does, and how many records it writes."""


def grown(moves: list[tuple[int, str, int]]) -> PartitionLog:
    """Return a log that some moves of three producers have made; the high watermark lags behind until it is moved."""
    log, epochs, sequences = EMPTY_LOG, {1: 0, 2: 0, 3: 0}, {1: 0, 2: 0, 3: 0}
    for producer, move, size in moves:
        if move == "replicate":
            log = with_high_watermark(log, min(log.log_end_offset, log.high_watermark + 2 * size))
        elif move in ("commit", "abort"):
            log = append(log, marker_batch(producer, epochs[producer], Marker[move.upper()], 0))
        elif move == "bump":
            epochs[producer], sequences[producer] = epochs[producer] + 1, 0
            log = append(log, marker_batch(producer, epochs[producer], Marker.ABORT, 0))
        elif move == "data" or log.producer(producer).open_from is None:
            records = tuple(f"{producer}:{log.log_end_offset + place}" for place in range(size))
            log = append(log, RecordBatch(records, producer, epochs[producer], sequences[producer], move == "data"))
            sequences[producer] += size
    return log


def spans(log: PartitionLog) -> list[tuple[int, int, int | None, Marker | None]]:
    """Return each transaction's producer, first offset, marker's offset and outcome, by looking at batches alone."""
    found: list[tuple[int, int, int | None, Marker | None]] = []
    begun: dict[int, int] = {}
    for batch in log.batches:
        if batch.marker is not None and batch.producer_id in begun:
            found.append((batch.producer_id, begun.pop(batch.producer_id), batch.base_offset, batch.marker))
        elif batch.is_transactional and batch.marker is None:
            begun.setdefault(batch.producer_id, batch.base_offset)
    return found + [(producer, first, None, None) for producer, first in begun.items()]


@given(MOVES)
def test_kept_state_is_what_the_batches_say(moves: list[tuple[int, str, int]]) -> None:
    """A new leader that reads the log again has the same producers, open and aborted transactions, and offsets."""
    log = grown(moves)
    assert logs.rebuild(log) == log


@given(MOVES)
def test_last_stable_offset_is_before_whatever_may_still_be_aborted(moves: list[tuple[int, str, int]]) -> None:
    """It is the high watermark, or the first offset of a transaction without a marker below the high watermark."""
    log = grown(moves)
    undecided = [first for _, first, end, _ in spans(log) if end is None or end >= log.high_watermark]
    assert log.last_stable_offset == min([log.high_watermark, *undecided])


@given(MOVES, st.integers(0, 40), st.integers(0, 40))
def test_p9_aborted_list_has_every_aborted_transaction_of_a_range(
    moves: list[tuple[int, str, int]], start: int, length: int
) -> None:
    """The index stops early and still misses none that overlaps, up to the last stable offset."""
    log = with_high_watermark(grown(moves), 10_000)
    stop = min(start + length, log.last_stable_offset)
    listed = {(txn.producer_id, txn.first_offset) for txn in logs.aborted_between(log, start, stop)}
    overlap = {(producer, first) for producer, first, end, outcome in spans(log)
               if outcome is Marker.ABORT and end is not None and first < stop and end >= start}
    assert listed == overlap


@given(MOVES)
def test_p3_reader_of_committed_records_sees_all_of_them_and_nothing_else(moves: list[tuple[int, str, int]]) -> None:
    """Up to the last stable offset: records of transactions that committed, and of none."""
    log = with_high_watermark(grown(moves), 10_000)
    stop = log.last_stable_offset
    read = logs.batches_between(log, 0, stop)
    aborted = [(producer, first, end) for producer, first, end, outcome in spans(log) if outcome is Marker.ABORT]
    expected = [record for batch in read if batch.marker is None for record in batch.records
                if not (batch.is_transactional and any(
                    producer == batch.producer_id and end is not None and first <= batch.base_offset < end
                    for producer, first, end in aborted))]
    assert list(logs.visible(read, logs.aborted_between(log, 0, stop))) == expected


@given(MOVES, st.integers(0, 60))
def test_truncation_forgets_what_was_cut(moves: list[tuple[int, str, int]], offset: int) -> None:
    """A follower that cuts its log has the state of the batches that are left."""
    log = grown(moves)
    kept = logs.truncate(log, offset)
    again = log_of(*(batch for batch in log.batches if batch.last_offset < offset))
    assert kept.producers == again.producers and list(kept.batches) == list(again.batches)
    assert kept.open == again.open and kept.log_end_offset == min(offset, log.log_end_offset)


def test_deleting_records_keeps_producers() -> None:
    """Deleted records go with the aborted transactions that ended among them."""
    log = replicated(RecordBatch(("a",), 1, 0, 0, True, timestamp=5), marker_batch(1, 0, Marker.ABORT, 0, 6),
                     RecordBatch(("b",), 2, 0, 0, True, timestamp=7))
    shorter = logs.delete_records(log, 2)
    assert (shorter.log_start_offset, len(shorter.batches), len(shorter.aborted)) == (2, 1, 0)
    assert shorter.producers == log.producers and len(log.aborted) == 1


def test_deleting_what_is_open_moves_the_last_stable_offset_to_the_start() -> None:
    """The transaction stays open: what is written after the deletion is not stable."""
    log = replicated(RecordBatch(("a",), 1, 0, 0, True), RecordBatch(("b",), 2, 0, 0, False))
    shorter = logs.delete_records(log, 2)
    assert (log.last_stable_offset, shorter.last_stable_offset, shorter.producer(1).open_from) == (0, 2, 0)
    two = replicated(RecordBatch(("a",), 1, 0, 0, True), RecordBatch(("b", "c"), 1, 0, 1, True))
    inside = logs.delete_records(two, 2)
    before = logs.open_from_start(inside)
    assert (inside.last_stable_offset, before.last_stable_offset) == (1, 2), "from 4.0 on, and before"
    assert [logs.batches_between(inside, 2, stop) for stop in (1, 2)] == [(), ()]
    later = with_high_watermark(append(shorter, RecordBatch(("c",), 2, 0, 1, False)), 3)
    assert later.last_stable_offset == 2
    ended = with_high_watermark(append(later, marker_batch(1, 0, Marker.ABORT, 0)), 4)
    assert ended.last_stable_offset == 4


def test_only_five_batches_are_remembered_and_sequences_wrap() -> None:
    """The sixth batch pushes the first out; the sequence after 2^31 - 1 is 0."""
    kept = log_of(*(RecordBatch(("x",), 1, 0, sequence) for sequence in range(6))).producer(1)
    assert [batch.first_sequence for batch in kept.batches] == [1, 2, 3, 4, 5]
    assert kept.duplicate_of(RecordBatch(("x",), 1, 0, 0)) is None
    assert kept.duplicate_of(RecordBatch(("x",), 1, 0, 3)) == kept.batches[2]
    assert kept.duplicate_of(RecordBatch(("x", "y"), 1, 0, 3)) is None
    assert RecordBatch(("x", "y"), 1, 0, MAX_SEQUENCE).last_sequence == 0


def test_long_sequence_is_shared_between_its_versions() -> None:
    """An append copies at most a chunk; lookups by a growing key find what a scan finds."""
    whole = chunks(range(0, 6 * WIDTH, 2))
    longer = whole.add(6 * WIDTH)
    assert longer == chunks((*range(0, 6 * WIDTH, 2), 6 * WIDTH)) and list(longer)[:-1] == list(whole)
    assert all(ours is theirs for ours, theirs in zip(whole.full, longer.full, strict=False))
    for bound in range(-1, 6 * WIDTH + 2, 7):
        assert longer.first_after(bound, lambda item: item) == sum(item <= bound for item in longer)
    assert list(longer.between(WIDTH - 1, WIDTH + 2)) == list(islice(longer, WIDTH - 1, WIDTH + 2))
    for item in range(WIDTH + 1):
        longer = longer.add(item)
    assert longer == chunks(longer) and len(longer) == len(whole) + WIDTH + 2
    assert attrs.asdict(chunks(())) == {"full": (), "rest": (), "start": None}


@pytest.mark.parametrize("place", [0, 5, WIDTH, 2 * WIDTH + 7, 3 * WIDTH + 2])
def test_long_sequence_forgets_its_beginning(place: int) -> None:
    """Places stay, what is forgotten costs next to nothing, and another sequence can take the beginning over."""
    whole, start = chunks(range(3 * WIDTH + 2)), LogStart(place, place, None)
    shorter = whole.forget(start, lambda item: -1)
    assert list(shorter) == [-1] * place + list(range(place, len(whole)))
    assert (len(shorter), shorter.gone, shorter[len(shorter) - 1], shorter[-1]) == (
        len(whole), place, list(shorter)[-1], list(shorter)[-1])
    assert len({id(chunk) for chunk in shorter.full[: place // WIDTH]}) <= 1
    assert [shorter.first_after(bound, lambda item: item) for bound in (0, place + 1, 10_000)] == [
        max(place, 1), min(max(place + 2, 2), len(whole)), len(whole)]
    again = shorter.forget(attrs.evolve(start, place=len(whole)), lambda item: -1)
    assert set(again) == {-1} and len(longer(again, 7)) == len(whole) + 1
    behind, ahead = chunks(range(2)), longer(whole, 0)
    for other in (behind, ahead):
        begun = other.begun(shorter[:place])
        assert list(begun) == [-1] * place + list(other)[place:] and begun.start == start
    assert section(shorter, place, place + 3) == section(tuple(shorter), place, place + 3)
    assert list(shorter[:place + 1]) == list(shorter)[:place + 1]
    other = longer(whole, 0).begun(shorter[:place])
    assert same(shorter, other, 1, len(whole)) and not same(shorter, other, 1, len(other))
    assert not same(whole, longer(chunks(range(2 * WIDTH)), 7), 1, 2 * WIDTH + 1)
    plain, changed = tuple(whole), (*range(WIDTH), -1, *range(WIDTH + 1, len(whole)))
    for one, two in ((whole, plain), (plain, whole)):  # one of them in chunks, the other not
        assert same(one, two, 0, len(plain))
    for one, two in ((whole, changed), (changed, whole)):
        assert not same(one, two, 0, len(plain))
    with pytest.raises(IndexError, match="begins at its beginning"):
        _ = shorter[1:]


def test_what_is_compacted_is_replaced_where_it_was() -> None:
    """Items behind stay the very same ones."""
    whole = chunks(range(2 * WIDTH + 5))
    start = LogStart(0, 0, None, clean=WIDTH + 3, clean_to=WIDTH + 3)
    after = whole.replaced(start, lambda item, place: item if place % 2 else None)
    assert list(after) == [item if item % 2 or item >= WIDTH + 3 else None for item in whole]
    assert (after.gone, after.rewritten, whole.rewritten) == (0, WIDTH + 3, 0) and after.rest is whole.rest
