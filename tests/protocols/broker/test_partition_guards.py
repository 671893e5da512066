"""Guard by guard: what a partition's leader takes, what it lets whom read, and what its log forgets."""

from __future__ import annotations

import attrs
import pytest
from support.brokers.leader import append_batch, log_of
from support.brokers.node import new_node

from kafka_proto import log as logs
from kafka_proto import requests
from kafka_proto.broker.leader import appending
from kafka_proto.broker.leader.admission import admit, refusal
from kafka_proto.broker.leader.fetching import delete, fetch, forget_nothing, list_offsets
from kafka_proto.broker.leader.verification import (
    NO_GUARD,
    LeaderState,
    Origin,
    SupportedOperation,
    Verification,
    has_open_transaction,
    start,
)
from kafka_proto.broker.versions import KIP_360, KIP_890_4_4, KIP_890_PART_1
from kafka_proto.log import (
    MAX_SEQUENCE,
    Marker,
    PartitionLog,
    ProducerState,
    RecordBatch,
    RememberedBatch,
    marker_batch,
    with_high_watermark,
)
from kafka_proto.requests import Error

COMMITTED, ALL = requests.IsolationLevel.READ_COMMITTED, requests.IsolationLevel.READ_UNCOMMITTED
SEEN = (RememberedBatch(3, 4, 9, 1),)
VERIFYING = Verification(1, 5, 2, True, 0)


def batch(epoch: int = 2, sequence: int = 5, producer: int = 7, *, transactional: bool = True) -> RecordBatch:
    return RecordBatch(("x",), producer, epoch, sequence, transactional)


@pytest.mark.parametrize(("known", "epoch", "sequence", "plain", "old", "verified", "from_zero"), [
    (ProducerState(2, SEEN), 2, 5, "NONE", "NONE", "NONE", "NONE"),
    (ProducerState(2, SEEN), 2, 4, *("OUT_OF_ORDER_SEQUENCE_NUMBER",) * 4),
    (ProducerState(2, SEEN), 2, 6, *("OUT_OF_ORDER_SEQUENCE_NUMBER",) * 4),
    (ProducerState(1, SEEN), 2, 0, "NONE", "NONE", "NONE", "NONE"),
    (ProducerState(1, SEEN), 2, 5, *("OUT_OF_ORDER_SEQUENCE_NUMBER",) * 4),
    (ProducerState(2, ()), 2, 0, "NONE", "NONE", "NONE", "NONE"),
    (ProducerState(2, ()), 2, 5, "OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID",
     *("OUT_OF_ORDER_SEQUENCE_NUMBER",) * 2),
    (ProducerState(), 2, 5, "NONE", "UNKNOWN_PRODUCER_ID", "NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    (ProducerState(), 2, 0, "NONE", "NONE", "NONE", "NONE"),
    (ProducerState(), 2, 6, "NONE", "UNKNOWN_PRODUCER_ID", *("OUT_OF_ORDER_SEQUENCE_NUMBER",) * 2),
])
def test_sequence_of_a_batch_is_checked_as_each_release_does(
    known: ProducerState, epoch: int, sequence: int, plain: str, old: str, verified: str, from_zero: str
) -> None:
    """From 2.4 on, up to 2.3, from 3.6 on, from 4.2 on where the leader adds the partition."""
    found = [check(known, batch(epoch, sequence), VERIFYING) for check in (
        appending.check_sequence, appending.check_sequence_known, appending.check_sequence_verified,
        appending.check_sequence_from_zero)]
    assert found == [Error[name] for name in (plain, old, verified, from_zero)]
    only_verifies = attrs.evolve(VERIFYING, adds_partition=False, lowest_sequence=9)
    assert appending.check_sequence_from_zero(known, batch(epoch, sequence), only_verifies) is found[0]


def test_sequences_wrap_and_are_dense() -> None:
    """Nothing else follows 2^31 - 1 than 0."""
    assert [appending.follows(MAX_SEQUENCE, sequence) for sequence in (0, 1, MAX_SEQUENCE, MAX_SEQUENCE + 1)] == [
        True, False, False, False]
    assert [appending.follows(3, sequence) for sequence in (2, 3, 4, 5)] == [False, False, True, False]


def test_open_transaction_of_another_epoch_needs_a_guard() -> None:
    """KAFKA-18575: the marker of the one before may be late."""
    older = ProducerState(1, SEEN, open_from=3)
    for known, verification, guard, error in (
        (older, None, NO_GUARD, Error.INVALID_TXN_STATE), (older, VERIFYING, 1, Error.NONE),
        (attrs.evolve(older, producer_epoch=2), None, NO_GUARD, Error.NONE),
        (ProducerState(2, SEEN), None, NO_GUARD, Error.INVALID_TXN_STATE),
    ):
        assert appending.check_open_in_epoch_or_guard(known, batch(2), verification, guard) is error


def test_verification_keeps_the_lowest_sequence_of_its_newest_epoch() -> None:
    """Requests of one round share a guard."""
    leader, seen = LeaderState(), []
    for epoch, sequence in ((1, 5), (1, 4), (1, 6), (0, 2), (2, 7), (2, 8)):
        started = start(leader, 7, epoch, sequence, SupportedOperation.ADD_PARTITION, has_open_transaction, now=3)
        leader = started.leader
        seen.append((started.guard, *attrs.astuple(leader.verifications[7])[1:3]))
    assert seen == [(1, 5, 1), (1, 4, 1), (1, 4, 1), (1, 4, 1), (1, 7, 2), (1, 7, 2)]
    assert leader.verifications[7] == Verification(1, 7, 2, True, 3)


def test_request_is_looked_at_before_its_batch() -> None:
    """No transactional id; what else is wrong is said after the coordinator was asked: acks, the topic, the bytes."""
    nameless = requests.ProduceRequest(9, None, 5, "T-0", batch(), Error.MESSAGE_TOO_LARGE)
    named = attrs.evolve(nameless, transactional_id="tid")
    admitted = admit(KIP_890_PART_1.leader, LeaderState(), nameless, now=0)
    assert (admitted.error, admitted.guard) == (Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_GUARD)
    for asked, error in (
        (attrs.evolve(named, partition="__consumer_offsets-0"), Error.INVALID_REQUIRED_ACKS),
        (attrs.evolve(named, acks=1, partition="__consumer_offsets-0"), Error.INVALID_TOPIC_EXCEPTION),
        (attrs.evolve(named, acks=1, partition="__transaction_state-0"), Error.INVALID_TOPIC_EXCEPTION),
        (attrs.evolve(named, acks=0), Error.MESSAGE_TOO_LARGE),
        (attrs.evolve(named, acks=-1, refused=Error.NONE), Error.NONE),
    ):
        admitted = admit(KIP_890_PART_1.leader, LeaderState(), asked, now=0)
        assert admitted.guard != NO_GUARD and (admitted.error, refusal(asked)) == (Error.NONE, error)
        assert KIP_890_PART_1.leader.operation("Produce", asked.version) is SupportedOperation.DEFAULT_ERROR


def test_duplicate_is_known_before_anybody_is_asked() -> None:
    """Nor is the coordinator asked about a batch that is of no transaction."""
    plain = requests.ProduceRequest(9, None, 1, "T-0", batch(transactional=False))
    assert admit(KIP_890_PART_1.leader, LeaderState(), plain, now=0).guard == NO_GUARD
    done = LeaderState(log_of(batch(), marker_batch(7, 2, Marker.COMMIT, 0)))
    again, checked = append_batch(KIP_890_PART_1.leader, done, batch(), Origin.CLIENT, NO_GUARD)
    assert (again, checked.error, checked.duplicate_at) == (done, Error.NONE, 0)


def test_refused_marker_leaves_the_log_as_it_is() -> None:
    """In each version."""
    for version in (KIP_360, KIP_890_4_4):
        node = new_node(version, requests.ProduceRequest(7, None, -1, "T-0", batch(2, 0, transactional=False)))
        log = node.log("T-0")
        refused = node.ask(requests.WriteTxnMarkersRequest(1, 7, 1, 0, False, ("T-0",)))
        assert refused.errors["T-0"] is Error.INVALID_PRODUCER_EPOCH
        assert node.log("T-0") == log and len(log.batches) == 1


def whole() -> PartitionLog:
    """Return offsets 0, 1 aborted by 2, 3 plain, 4 committed by 5, 6 open, 7 plain and not replicated."""
    batches = (
        RecordBatch(("a", "b"), 7, 0, 0, True), marker_batch(7, 0, Marker.ABORT, 0), RecordBatch(("c",)),
        RecordBatch(("d",), 8, 0, 0, True), marker_batch(8, 0, Marker.COMMIT, 0), RecordBatch(("e",), 9, 0, 0, True),
        RecordBatch(("f",)),
    )
    return with_high_watermark(log_of(*(attrs.evolve(one, timestamp=10 * n) for n, one in enumerate(batches))), 7)


def read(
    start: int, isolation: requests.IsolationLevel = ALL, replica: int = -1, most: int | None = None
) -> requests.ConsumerFetchResponse:
    return fetch(whole(), requests.ConsumerFetchRequest(12, "T-0", start, isolation, replica, most))


def test_who_reads_how_far() -> None:
    """A follower the end, others the high watermark, of committed records the last stable offset."""
    ends = {(isolation, replica): read(0, isolation, replica).batches[-1].last_offset
            for isolation in (ALL, COMMITTED) for replica in (-1, 1)}
    assert ends == {(ALL, -1): 6, (ALL, 1): 7, (COMMITTED, -1): 5, (COMMITTED, 1): 7}
    assert (read(0).high_watermark, read(0).last_stable_offset, read(0).log_start_offset) == (7, 6, 0)
    assert [len(read(start, most=2).batches) for start in (0, 1, 2, 6, 7)] == [2, 2, 2, 1, 0]
    assert [one.base_offset for one in read(1, most=2).batches] == [0, 2]
    assert read(8).error is Error.NONE and read(9).error is Error.OFFSET_OUT_OF_RANGE
    shorter = logs.delete_records(whole(), 3)
    assert fetch(shorter, requests.ConsumerFetchRequest(12, "T-0", 2)).error is Error.OFFSET_OUT_OF_RANGE
    assert fetch(shorter, requests.ConsumerFetchRequest(12, "T-0", 3)).error is Error.NONE


def test_aborted_transactions_are_listed_to_readers_of_committed_records() -> None:
    """Those that overlap what is answered; to nobody else, not even an empty list."""
    listed = {start: read(start, COMMITTED).aborted_transactions for start in (0, 1, 2, 3, 6)}
    (aborted,) = whole().aborted
    assert listed == {0: (aborted,), 1: (aborted,), 2: (aborted,), 3: (), 6: ()}
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset, aborted.last_stable_offset) == (7, 0, 2, 3)
    assert read(0, COMMITTED, most=1).aborted_transactions == (aborted,)
    assert read(0).aborted_transactions is None and read(0, COMMITTED, replica=1).aborted_transactions is None
    two = log_of(batch(producer=7), marker_batch(7, 2, Marker.ABORT, 0), batch(producer=8),
                 marker_batch(8, 2, Marker.ABORT, 0))
    assert [[one.producer_id for one in logs.aborted_between(two, *span)] for span in (
        (0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 4), (4, 5))] == [[7], [7], [7, 8], [7], [8], [8], []]


def test_aborted_transactions_are_found_behind_one_that_was_open_meanwhile() -> None:
    """The index is by last offset: an earlier entry does not end the search, and one that begins later is left out."""
    log = log_of(batch(producer=7), batch(producer=8), marker_batch(8, 2, Marker.ABORT, 0), batch(producer=9),
                 marker_batch(9, 2, Marker.ABORT, 0), marker_batch(7, 2, Marker.ABORT, 0))
    assert [txn.last_stable_offset for txn in log.aborted] == [0, 0, 6]
    assert [txn.producer_id for txn in logs.aborted_between(log, 0, 2)] == [8, 7]
    assert [txn.producer_id for txn in logs.aborted_between(log, 0, 4)] == [8, 9, 7]


def test_aborted_transaction_that_began_after_what_is_read_is_listed() -> None:
    """An open transaction keeps the reader before it; the index is asked up to the end of the log, as by Kafka."""
    log = log_of(batch(producer=6, transactional=False), batch(producer=7), batch(producer=8),
                 marker_batch(8, 2, Marker.ABORT, 0))
    found = fetch(with_high_watermark(log, 4), requests.ConsumerFetchRequest(12, "T-0", 0, COMMITTED))
    assert [one.base_offset for one in found.batches] == [0]
    assert [(txn.producer_id, txn.first_offset) for txn in found.aborted_transactions or ()] == [(8, 2)]


def test_nothing_is_listed_as_aborted_where_nothing_is_read() -> None:
    """The reader is at the last stable offset, inside a transaction that was aborted meanwhile: as 4.4.0 answers."""
    log = log_of(batch(producer=7), batch(producer=8), marker_batch(7, 2, Marker.ABORT, 0))
    log = with_high_watermark(log, 3)
    asked = [fetch(log, requests.ConsumerFetchRequest(12, "T-0", start, COMMITTED)) for start in (0, 1)]
    assert [len(found.batches) for found in asked] == [1, 0]
    assert [[txn.producer_id for txn in found.aborted_transactions or ()] for found in asked] == [[7], []]


def test_batch_of_a_new_epoch_forgets_the_batches_of_the_old_one_but_not_the_coordinator() -> None:
    """Else the second batch of an epoch would pass for a duplicate."""
    log = log_of(batch(1, 0), batch(1, 1), marker_batch(7, 1, Marker.COMMIT, 4), batch(2, 0))
    assert log.producer(7).duplicate_of(batch(2, 1)) is None and log.producer(7).duplicate_of(batch(2, 0)) is not None
    assert log.producer(7).coordinator_epoch == 4


def test_reader_drops_what_is_aborted_from_its_first_offset_to_its_marker() -> None:
    """Of that producer, transactional records only; whatever the order of the list."""
    log = log_of(batch(producer=8, sequence=0), batch(producer=7, sequence=0), marker_batch(7, 2, Marker.ABORT, 0),
                 RecordBatch(("plain",), 8, 2, 1), marker_batch(7, 2, Marker.COMMIT, 0),
                 attrs.evolve(batch(producer=8, sequence=2), records=("void",)), marker_batch(8, 2, Marker.ABORT, 0),
                 attrs.evolve(batch(producer=8, sequence=3), records=("kept",)), marker_batch(8, 2, Marker.COMMIT, 0))
    aborted = logs.aborted_between(log, 0, log.log_end_offset)
    assert [txn.first_offset for txn in aborted] == [1, 0]
    for order in (aborted, aborted[::-1]):
        assert list(logs.visible(log.batches, order)) == ["plain", "kept"]


def test_offsets_by_time() -> None:
    """The earliest, the latest that one may see, the first with a time stamp that is not behind that."""
    def ask(
        timestamp: int, isolation: requests.IsolationLevel = ALL, log: PartitionLog | None = None
    ) -> requests.ListOffsetsResponse:
        return list_offsets(log or whole(), requests.ListOffsetsRequest(7, "T-0", timestamp, isolation))
    assert [ask(-1).offset, ask(-1, COMMITTED).offset, ask(-2).offset] == [7, 6, 0]
    assert ask(-2, log=logs.delete_records(whole(), 3)).offset == 3
    assert [ask(at).offset for at in (0, 1, 10, 20, 50, 60, 70)] == [0, 2, 2, 3, 6, -1, -1]
    assert ask(50, COMMITTED).offset == -1


def test_deleting_records_moves_the_start_up_to_the_high_watermark() -> None:
    """Never back, never beyond; an aborted transaction stays until its marker is deleted."""
    def ask(log: PartitionLog, offset: int) -> tuple[int, Error]:
        shorter, response = delete(log, requests.DeleteRecordsRequest(1, "T-0", offset), forget_nothing)
        return shorter.log_start_offset, response.error
    assert [ask(whole(), offset) for offset in (3, 7, -1)] == [(3, Error.NONE), (7, Error.NONE), (7, Error.NONE)]
    assert [ask(whole(), offset) for offset in (8, -2)] == [(0, Error.OFFSET_OUT_OF_RANGE)] * 2
    assert logs.delete_records(logs.delete_records(whole(), 3), 1).log_start_offset == 3
    assert [(len(logs.delete_records(whole(), at).aborted), len(logs.delete_records(whole(), at).batches))
            for at in (1, 2, 3)] == [(1, 7), (1, 6), (0, 5)]
    inside = logs.delete_records(whole(), 1)
    assert logs.rebuild(inside) == inside and [one.base_offset for one in inside.batches][:2] == [0, 2]
    later = logs.delete_records(whole(), 3)
    assert logs.rebuild(later).batches == later.batches and later.batches[0].base_offset == 3


def test_truncation_cuts_the_high_watermark() -> None:
    """Never beyond it."""
    assert [logs.truncate(whole(), at).high_watermark for at in (2, 7, 8)] == [2, 7, 7]
