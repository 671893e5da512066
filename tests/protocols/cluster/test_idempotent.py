"""The idempotent producer as a value: its sequences, what it sends again, and how it goes on where it cannot."""

from __future__ import annotations

import attrs
import pytest

from kafka_proto.clients import producer as client
from kafka_proto.clients.producer import FAMILIES, Family, Producer, Sequences, answers, sending
from kafka_proto.clients.producer.answers import AnswerVerdict, backs_off, delivery_timed_out, produced, rested
from kafka_proto.clients.producer.idempotent import begun_again
from kafka_proto.clients.producer.sending import next_call, next_produces
from kafka_proto.log import MAX_EPOCH, MAX_SEQUENCE
from kafka_proto.requests import Error, InitProducerIdRequest, InitProducerIdResponse, ProduceRequest

OLD, NEW = FAMILIES["java23"], FAMILIES["java35"]
READY = Producer().ready(7, 0)
ASKED = InitProducerIdRequest(4, None, 2**31 - 1)
UNKNOWN, OUT_OF_ORDER = Error.UNKNOWN_PRODUCER_ID, Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def written(*texts: str, producer: Producer = READY) -> Producer:
    """Return a producer with batches as texts say: `T-0 a b`."""
    for text in texts:
        partition, *records = text.split()
        producer = client.send(producer, partition, *records, adds_partitions=True)
    return producer


def dispatched(
    producer: Producer, most: int = 5, family: Family = NEW
) -> tuple[Producer, dict[int, ProduceRequest]]:
    """Send what may be sent; return the requests by number."""
    requests = dict(next_produces(family, producer, most))
    for number, request in requests.items():
        producer = sending.sent_batch(producer, number, request)
    return producer, requests


def said(requests: dict[int, ProduceRequest]) -> dict[int, tuple[str, int, int]]:
    """Return partition, epoch and sequence of each."""
    return {n: (r.partition, r.batch.producer_epoch, r.batch.base_sequence) for n, r in requests.items()}


def test_a_producer_id_is_asked_for_once_and_again_after_a_pause() -> None:
    """Nothing is sent before it is there; the request names no transactional id."""
    producer = written("T-0 a", producer=Producer())
    assert next_produces(NEW, producer, 5) == ()
    assert next_call(NEW, producer) == ASKED
    asked = sending.sent_call(producer, ASKED)
    assert next_call(NEW, asked) is None
    refused = answers.answered(NEW, asked, ASKED, InitProducerIdResponse(Error.COORDINATOR_LOAD_IN_PROGRESS))
    assert refused.verdict is AnswerVerdict.RETRY and next_call(NEW, refused.producer) is None
    assert backs_off(refused.producer) and not backs_off(rested(refused.producer))
    assert next_call(NEW, rested(refused.producer)) == ASKED
    assert next_call(NEW, answers.broker_lost(NEW, asked, (), was_called=True)) == ASKED
    assert next_call(NEW, answers.broker_lost(NEW, asked, (), was_called=False)) is None
    given = answers.answered(NEW, asked, ASKED, InitProducerIdResponse(Error.NONE, 7, 0))
    assert given.verdict is AnswerVerdict.DONE and next_call(NEW, given.producer) is None
    assert [request.transactional_id for _, request in next_produces(NEW, given.producer, 5)] == [None]


def test_each_partition_has_sequences_of_its_own_and_so_many_in_flight() -> None:
    """They count records, and wrap after the last."""
    producer, requests = dispatched(written("T-0 a b", "T-1 c", "T-0 d", "T-0 e"), most=2)
    assert said(requests) == {1: ("T-0", 0, 0), 2: ("T-1", 0, 0), 3: ("T-0", 0, 2)}
    assert all(not request.batch.is_transactional for request in requests.values())
    producer = produced(NEW, producer, 1, Error.NONE).producer
    assert said(dispatched(producer, most=2)[1]) == {4: ("T-0", 0, 3)}
    last = READY.with_sequences("T-0", Sequences(7, 0, MAX_SEQUENCE))
    assert said(dispatched(written("T-0 a b", "T-0 c", producer=last))[1]) == {
        1: ("T-0", 0, MAX_SEQUENCE), 2: ("T-0", 0, 1)}


@pytest.mark.parametrize("error", [Error.NONE, Error.DUPLICATE_SEQUENCE_NUMBER])
def test_what_is_answered_is_acknowledged_once(error: Error) -> None:
    """A second answer, or one after a time-out, is for nothing."""
    producer, _ = dispatched(written("T-0 a b"))
    done = produced(NEW, producer, 1, error)
    assert (done.verdict, done.acknowledged, done.producer.batches) == (AnswerVerdict.DONE, ("a", "b"), ())
    again = produced(NEW, done.producer, 1, error)
    assert again.acknowledged == () and again.producer == done.producer


def test_what_was_on_a_lost_connection_goes_again_as_it_was_one_after_the_other() -> None:
    """After a pause, with the sequences that it had; others are not held up."""
    producer, first = dispatched(written("T-0 a", "T-0 b", "T-1 c"))
    lost = answers.broker_lost(NEW, producer, (1, 2), was_called=False)
    assert dispatched(lost)[1] == {}
    producer, again = dispatched(rested(lost))
    assert again == {1: first[1]}
    producer = produced(NEW, producer, 1, Error.NONE).producer
    assert dispatched(producer)[1] == {2: first[2]}


@pytest.mark.parametrize(("family", "epoch"), [(OLD, 0), (NEW, 1)])
def test_who_is_unknown_begins_again_in_the_next_epoch_since_kip_360(family: Family, epoch: int) -> None:
    """All that was sent to the partition, in order; what is in flight when it comes back, whatever its answer is."""
    producer, _ = dispatched(written("T-0 z", "T-1 y"))
    producer = produced(family, producer, 1, Error.NONE).producer
    producer, _ = dispatched(written("T-0 a", "T-0 b c", "T-0 d", producer=producer))
    found = produced(family, producer, 3, UNKNOWN)
    assert found.verdict is AnswerVerdict.RETRY and found.acknowledged == ()
    assert [(b.number, b.base_sequence, b.producer_epoch, b.is_renumbered) for b in found.producer.batches] == [
        (2, 0, 0, False), (3, 0, epoch, True), (4, 1, epoch, True), (5, 3, epoch, True)]
    producer = found.producer
    for number, error in ((4, UNKNOWN), (5, OUT_OF_ORDER)):
        producer = produced(family, producer, number, error).producer
    assert producer.producer_epoch == epoch
    for number, sequence in ((3, 0), (4, 1), (5, 3)):
        producer, requests = dispatched(rested(producer), family=family)
        assert said(requests) == {number: ("T-0", epoch, sequence)}
        producer = produced(family, producer, number, Error.NONE).producer
    assert said(dispatched(written("T-0 e", producer=producer))[1]) == {6: ("T-0", epoch, 4)}


def test_another_partition_stays_in_its_epoch_until_nothing_of_it_is_left() -> None:
    """New batches wait meanwhile: their epoch must not overtake those before (`hasStaleProducerIdAndEpoch`)."""
    producer, _ = dispatched(written("T-0 a", "T-1 b"))
    producer = begun_again(NEW, written("T-1 c", producer=producer), "T-0")
    assert dispatched(producer)[1] == {}
    lost = rested(answers.broker_lost(NEW, producer, (2,), was_called=False))
    producer, requests = dispatched(lost)
    assert said(requests) == {2: ("T-1", 0, 0)}
    producer = produced(NEW, producer, 2, Error.NONE).producer
    assert said(dispatched(producer)[1]) == {3: ("T-1", 1, 0)}


@pytest.mark.parametrize(("family", "left"), [(OLD, ()), (NEW, (1, 2))])
def test_a_gap_is_a_new_epoch_or_another_producer_id(family: Family, left: tuple[int, ...]) -> None:
    """Where the batch is the next one; one behind it waits for it."""
    producer, _ = dispatched(written("T-0 a", "T-0 b"))
    behind = produced(family, producer, 2, OUT_OF_ORDER)
    assert behind.verdict is AnswerVerdict.RETRY and behind.producer.producer_epoch == 0
    gap = produced(family, producer, 1, OUT_OF_ORDER).producer
    assert tuple(batch.number for batch in gap.batches) == left
    assert (gap.producer_id, gap.producer_epoch) == ((7, 1) if left else (-1, -1))


@pytest.mark.parametrize(("family", "after"), [(OLD, (-1, -1)), (NEW, (7, 1))])
def test_a_refused_batch_is_given_up(family: Family, after: tuple[int, int]) -> None:
    """Its application is told; the producer goes on."""
    producer, _ = dispatched(written("T-0 a"))
    found = produced(family, producer, 1, Error.INVALID_PRODUCER_EPOCH)
    assert (found.verdict, found.acknowledged, found.producer.batches) == (AnswerVerdict.ABORTABLE, (), ())
    assert (found.producer.producer_id, found.producer.producer_epoch) == after


@pytest.mark.parametrize(("family", "after"), [(OLD, (-1, -1)), (NEW, (7, 1))])
def test_after_a_time_out_new_batches_wait_until_it_is_known_what_the_leader_has(
    family: Family, after: tuple[int, int]
) -> None:
    """What came behind it was taken: so was it. Else its sequence is never used again."""
    producer, _ = dispatched(written("T-0 a", "T-0 b"))
    producer = delivery_timed_out(family, written("T-0 c", producer=producer))
    assert [batch.number for batch in producer.batches] == [2, 3] and dispatched(producer)[1] == {}
    taken = produced(family, producer, 2, Error.NONE).producer
    assert said(dispatched(taken)[1]) == {3: ("T-0", 0, 2)}
    gap = produced(family, producer, 2, OUT_OF_ORDER).producer
    assert (gap.producer_id, gap.producer_epoch) == after
    nothing = delivery_timed_out(family, producer)
    assert (nothing.producer_id, nothing.producer_epoch) == after
    assert [batch.number for batch in nothing.batches] == [3]
    assert said(dispatched(nothing)[1]) == ({3: ("T-0", 1, 0)} if family is NEW else {})


def test_with_two_unresolved_a_new_client_waits_for_the_later_one() -> None:
    """A batch behind them that is not the next one is sent again as it is."""
    producer, _ = dispatched(written("T-0 a", "T-0 b", "T-0 c", "T-0 d"))
    producer = delivery_timed_out(NEW, producer)
    waits = produced(NEW, producer, 3, OUT_OF_ORDER).producer
    assert waits.producer_epoch == 0 and waits.batches[1].backs_off
    assert produced(NEW, producer, 2, OUT_OF_ORDER).producer.producer_epoch == 1
    assert produced(OLD, producer, 3, OUT_OF_ORDER).producer.producer_id == -1


def test_epochs_that_run_out_are_another_producer_id() -> None:
    """All that was sent is given up then; what was not keeps waiting."""
    last = attrs.evolve(READY, producer_epoch=MAX_EPOCH)
    producer, _ = dispatched(written("T-0 a", producer=last))
    after = begun_again(NEW, written("T-0 b", producer=producer), "T-0")
    assert (after.producer_id, after.producer_epoch) == (-1, -1)
    assert [batch.number for batch in after.batches] == [2] and next_call(NEW, after) is not None
    refused = produced(NEW, producer, 1, UNKNOWN)
    assert (refused.verdict, refused.producer.producer_id) == (AnswerVerdict.ABORTABLE, -1)
