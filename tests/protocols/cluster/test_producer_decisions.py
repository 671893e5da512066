"""Each decision of the producer by itself: its guards, its order, and what it keeps."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from harness.model import FrozenMap
from kafka_proto import requests
from kafka_proto.clients import producer as client
from kafka_proto.clients.producer import (
    FAMILIES,
    Batch,
    OffsetsToCommit,
    Producer,
    ProducerStatus,
    Sequences,
    answers,
    sending,
)
from kafka_proto.clients.producer.answers import (
    AnswerVerdict,
    answered,
    backs_off,
    delivery_timed_out,
    failed,
    produced,
    rested,
    without_end,
)
from kafka_proto.clients.producer.sending import ends_unasked, next_call, next_produces
from kafka_proto.log import MAX_SEQUENCE
from kafka_proto.requests import OFFSETS_PARTITION, Error

JAVA, JAVA39, NEW, OLD = (FAMILIES[name] for name in ("java35", "java39", "tv2", "aiokafka"))
READY = Producer("tid1", ProducerStatus.READY, 7, 0)
BEGUN = client.begin_transaction(READY)
OFFSETS = OffsetsToCommit("G", "T-0", 5, 3, "member-1")
MORE = attrs.evolve(OFFSETS, partition="T-1", offset=6)
E = Error
COORDINATOR = {
    AnswerVerdict.RETRY: {E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS, E.UNKNOWN_TOPIC_OR_PARTITION},
    AnswerVerdict.LOOK_UP: {E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.REQUEST_TIMED_OUT, E.NETWORK_EXCEPTION},
    AnswerVerdict.ABORTABLE: {E.TRANSACTION_ABORTABLE, E.UNKNOWN_PRODUCER_ID, E.INVALID_PRODUCER_ID_MAPPING},
}
FENCED_BY_GROUP = {E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID}
KAFKAS: dict[str, dict[AnswerVerdict, set[Error]]] = {
    "InitProducerIdRequest": {**COORDINATOR, AnswerVerdict.ABORTABLE: {E.TRANSACTION_ABORTABLE}},
    "AddPartitionsToTxnRequest": {
        **COORDINATOR, AnswerVerdict.ABORTABLE: COORDINATOR[AnswerVerdict.ABORTABLE] | {E.OPERATION_NOT_ATTEMPTED}},
    "AddOffsetsToTxnRequest": COORDINATOR,
    "EndTxnRequest": COORDINATOR,
    "TxnOffsetCommitRequest": {
        **COORDINATOR, AnswerVerdict.ABORTABLE: COORDINATOR[AnswerVerdict.ABORTABLE] | FENCED_BY_GROUP,
    },
    "ProduceRequest": {
        AnswerVerdict.RETRY: {E.NOT_ENOUGH_REPLICAS, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.REQUEST_TIMED_OUT,
                              E.KAFKA_STORAGE_ERROR, E.CONCURRENT_TRANSACTIONS},
        AnswerVerdict.LOOK_UP: {E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION, E.NETWORK_EXCEPTION},
        AnswerVerdict.FATAL: {E.PRODUCER_FENCED, E.INVALID_PRODUCER_ID_MAPPING,
                              E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED},
    },
}
"""What Kafka's client makes of a code; of any other a batch is given up, and a transactional request is fatal."""


@pytest.mark.parametrize("api", KAFKAS)
def test_codes_mean_what_they_mean_to_the_client_of_kafka(api: str) -> None:
    """To the handler of each request."""
    done = {E.NONE, E.DUPLICATE_SEQUENCE_NUMBER} if api == "ProduceRequest" else {E.NONE}
    listed = {error: found for found, errors in KAFKAS[api].items() for error in errors} | dict.fromkeys(
        done, AnswerVerdict.DONE)
    other = AnswerVerdict.ABORTABLE if api == "ProduceRequest" else AnswerVerdict.FATAL
    assert [answers.verdict(JAVA, api, error) for error in Error] == [listed.get(error, other) for error in Error]


def test_families_differ_in_what_their_versions_of_requests_mean() -> None:
    """Who adds partitions, whose ends bring an epoch, who asks for one after an error."""
    assert {name: (family.adds_partitions, family.ends_with_new_epoch, family.bumps_epoch)
            for name, family in FAMILIES.items()} == {
        "tv2": (False, True, True), "java39": (True, False, True), "java35": (True, False, True),
        **dict.fromkeys(("rdkafka", "rdkafka-end", "rdkafka-all", "rdkafka-bump", "rdkafka-each"), (True, False, True)),
        "aiokafka": (True, False, False), "java23": (True, False, False),
    }


def in_flight(family: client.Family, *batches: str, most: int = 5) -> Producer:
    """Return a producer of the partitions of some texts `T-0 a b`, all of whose batches are sent."""
    producer = BEGUN
    for text in batches:
        name, *records = text.split()
        producer = client.send(producer, name, *records, adds_partitions=family.adds_partitions)
    known = tuple(sorted({*producer.partitions, *producer.new_partitions}))
    return dispatched(family, attrs.evolve(producer, new_partitions=(), partitions=known), most)


def dispatched(family: client.Family, producer: Producer, most: int = 5) -> Producer:
    for number, request in next_produces(family, producer, most):
        producer = sending.sent_batch(producer, number, request)
    return producer


def called(family: client.Family, producer: Producer, response: Any) -> Producer:
    """Send the next transactional request and take its answer."""
    call = next_call(family, producer)
    assert call is not None
    return answered(family, sending.sent_call(producer, call), call, response).producer


def sequences(producer: Producer) -> list[tuple[str, int]]:
    return [(batch.partition, batch.base_sequence) for batch in producer.batches]


def following(producer: Producer) -> dict[str, int]:
    return {name: known.following for name, known in producer.sequences.items()}


def test_sequences_count_records_by_partition_and_wrap() -> None:
    """Each batch follows the one before it; after 2^31 - 1 comes 0."""
    producer = in_flight(JAVA, "T-0 a b", "T-1 c", "T-0 d")
    assert sequences(producer) == [("T-0", 0), ("T-1", 0), ("T-0", 2)]
    assert following(producer) == {"T-0": 3, "T-1": 1}
    late = attrs.evolve(in_flight(JAVA), partitions=("T-0",)).with_sequences("T-0", Sequences(7, 0, MAX_SEQUENCE))
    for text in "ab":
        late = client.send(late, "T-0", text, adds_partitions=True)
    late = dispatched(JAVA, late)
    assert sequences(late) == [("T-0", MAX_SEQUENCE), ("T-0", 0)] and following(late) == {"T-0": 1}
    ((_, request),) = next_produces(JAVA, client.send(attrs.evolve(BEGUN, partitions=("T-0",)), "T-0", "a",
                                               adds_partitions=True), 1)
    assert (request.version, request.transactional_id, request.acks) == (9, "tid1", -1)
    assert (request.batch.producer_id, request.batch.producer_epoch, request.batch.is_transactional) == (7, 0, True)


def test_retried_batch_keeps_its_sequence_and_those_behind_it_wait() -> None:
    """After a pause, one of a partition at a time, in order; another partition is not held up."""
    producer = in_flight(JAVA, "T-0 a", "T-0 b", "T-1 c")
    producer = produced(JAVA, producer, 1, E.NOT_ENOUGH_REPLICAS).producer
    assert producer.batches[0] == Batch(1, "T-0", ("a",), 0, 0, in_flight=False, backs_off=True)
    waiting = client.send(producer, "T-0", "d", adds_partitions=True)
    assert next_produces(JAVA, waiting, 5) == () and backs_off(producer)
    both = answers.broker_lost(JAVA, producer, [1, 2], was_called=False)
    assert [batch.in_flight for batch in both.batches] == [False, False, True]
    ready = rested(both)
    assert not backs_off(ready)
    assert [(number, one.batch.base_sequence) for number, one in next_produces(JAVA, ready, 5)] == [(1, 0)]
    assert next_produces(JAVA, ready, 1) != ()


def test_nothing_is_sent_twice_or_before_its_partition_is_added() -> None:
    """What is in flight stays so; a partition that is not part of the transaction waits."""
    producer = in_flight(JAVA, "T-0 a")
    assert next_produces(JAVA, producer, 5) == ()
    assert next_produces(JAVA, client.send(producer, "T-1", "b", adds_partitions=True), 5) == ()
    assert client.send(producer, "T-0", "b", adds_partitions=True).new_partitions == ()
    assert client.send(BEGUN, "T-1", "b", adds_partitions=True).new_partitions == ("T-1",)
    assert client.send(BEGUN, "T-1", "b", adds_partitions=False).partitions == ("T-1",)
    dead = failed(producer, E.PRODUCER_FENCED)
    assert dead == attrs.evolve(producer, status=ProducerStatus.FATAL_ERROR, last_error=E.PRODUCER_FENCED, batches=())
    calling = sending.sent_call(producer, requests.EndTxnRequest(3, "tid1", 7, 0, True))
    assert failed(calling, E.PRODUCER_FENCED).call is None
    assert next_produces(JAVA, attrs.evolve(producer, status=dead.status, batches=(Batch(2, "T-0", ("b",)),)),
                         5) == ()
    assert next_call(JAVA, attrs.evolve(producer, status=dead.status, new_partitions=("T-1",))) is None


def test_call_is_sent_once_and_again_as_it_was() -> None:
    """Not while it is under way, after a pause, or on a new connection at once; one at a time."""
    producer = client.commit_transaction(in_flight(JAVA))
    producer = attrs.evolve(producer, partitions=("T-0",))
    end = next_call(JAVA, producer)
    assert end == requests.EndTxnRequest(3, "tid1", 7, 0, True)
    under_way = sending.sent_call(producer, end)
    assert next_call(JAVA, under_way) is None
    for error in (E.CONCURRENT_TRANSACTIONS, E.NOT_COORDINATOR):
        again = answered(JAVA, under_way, end, requests.EndTxnResponse(error)).producer
        assert next_call(JAVA, again) is None and backs_off(again)
        assert next_call(JAVA, rested(again)) is end
    assert next_call(JAVA, answers.broker_lost(JAVA, under_way, (), was_called=True)) is end
    assert next_call(JAVA, answers.broker_lost(JAVA, under_way, (), was_called=False)) is None
    dead = answered(JAVA, under_way, end, requests.EndTxnResponse(E.PRODUCER_FENCED))
    assert (dead.producer.call, dead.error) == (None, E.PRODUCER_FENCED)


def test_calls_come_in_the_order_of_kafkas_priorities() -> None:
    """Partitions, offsets with their group, batches, the end; nothing after an abortable error."""
    producer = client.send_offsets_to_transaction(client.send(BEGUN, "T-0", "a", adds_partitions=True), OFFSETS)
    producer = client.commit_transaction(client.send_offsets_to_transaction(producer, MORE))
    assert next_call(JAVA, producer) == requests.AddPartitionsToTxnRequest(3, "tid1", 7, 0, ("T-0",))
    producer = called(JAVA, producer, requests.AddPartitionsToTxnResponse(FrozenMap({"T-0": E.NONE})))
    assert (producer.partitions, producer.new_partitions) == (("T-0",), ())
    assert next_call(JAVA, producer) == requests.AddOffsetsToTxnRequest(3, "tid1", 7, 0, OFFSETS_PARTITION)
    producer = called(JAVA, producer, requests.AddOffsetsToTxnResponse(E.NONE))
    for offsets in (OFFSETS, MORE):
        assert next_call(JAVA, producer) == requests.TxnOffsetCommitRequest(
            3, "tid1", "G", 7, 0, offsets.partition, offsets.offset, 3, "member-1")
        producer = called(JAVA, producer, requests.TxnOffsetCommitResponse(E.NONE))
    assert (producer.offsets, producer.groups) == ((), ("G",))
    assert next_call(JAVA, producer) is None
    producer = dispatched(JAVA, producer)
    assert next_call(JAVA, producer) is None
    producer = produced(JAVA, producer, 1, E.NONE).producer
    assert next_call(JAVA, producer) == requests.EndTxnRequest(3, "tid1", 7, 0, True)
    stopped = attrs.evolve(producer, status=ProducerStatus.ABORTABLE_ERROR, new_partitions=("T-1",))
    assert next_call(JAVA, stopped) is None
    assert next_call(JAVA, attrs.evolve(BEGUN, partitions=("T-0",))) is None
    first = next_call(NEW, client.send_offsets_to_transaction(BEGUN, OFFSETS))
    assert isinstance(first, requests.TxnOffsetCommitRequest)


def test_one_refused_partition_of_several_decides() -> None:
    """The first that is an error, whatever comes before it."""
    producer = attrs.evolve(BEGUN, new_partitions=("T-0", "T-1"))
    add = next_call(JAVA, producer)
    errors = FrozenMap({"T-0": E.NONE, "T-1": E.TRANSACTION_ABORTABLE})
    found = answered(JAVA, sending.sent_call(producer, add), add, requests.AddPartitionsToTxnResponse(errors))
    assert (found.verdict, found.error) == (AnswerVerdict.ABORTABLE, E.TRANSACTION_ABORTABLE)
    assert (found.producer.status, found.producer.new_partitions) == (ProducerStatus.ABORTABLE_ERROR, ())


def test_abort_gives_up_what_was_not_sent_and_asks_to_abort() -> None:
    """Batches, partitions and offsets; one of which nobody knows ends unasked."""
    producer = client.send(in_flight(JAVA, "T-0 a"), "T-1", "b", adds_partitions=True)
    aborting = client.abort_transaction(client.send_offsets_to_transaction(producer, OFFSETS))
    assert sequences(aborting) == [("T-0", 0)] and (aborting.new_partitions, aborting.offsets) == ((), ())
    assert next_call(JAVA, attrs.evolve(aborting, batches=())) == requests.EndTxnRequest(3, "tid1", 7, 0, False)
    unknown = client.abort_transaction(client.send(BEGUN, "T-0", "a", adds_partitions=True))
    assert ends_unasked(unknown) and without_end(unknown) == attrs.evolve(READY, numbers=1)
    for known in (aborting, attrs.evolve(unknown, groups=("G",)), attrs.evolve(unknown, offsets=(OFFSETS,)),
                  attrs.evolve(unknown, batches=aborting.batches), attrs.evolve(unknown, is_ended=True),
                  attrs.evolve(unknown, last_error=E.INVALID_PRODUCER_ID_MAPPING), BEGUN,
                  sending.sent_call(unknown, requests.EndTxnRequest(3, "tid1", 7, 0, False))):
        assert not ends_unasked(known)
    bumped = without_end(attrs.evolve(unknown, needs_new_epoch=True))
    assert bumped.is_ended and isinstance(next_call(JAVA, bumped), requests.InitProducerIdRequest)


def test_next_transaction_goes_on_with_its_sequences_or_begins_anew_with_its_epoch() -> None:
    """EndTxn from version 5 brings an epoch, in which sequences are 0; before it they go on."""
    ended = attrs.evolve(client.commit_transaction(in_flight(JAVA, "T-0 a")), batches=())
    after = called(JAVA, ended, requests.EndTxnResponse(E.NONE))
    assert after == attrs.evolve(READY, numbers=1).with_sequences("T-0", Sequences(7, 0, 1))
    assert next_call(NEW, ended) == requests.EndTxnRequest(5, "tid1", 7, 0, True)
    assert called(NEW, ended, requests.EndTxnResponse(E.NONE, 8, 0)) == attrs.evolve(READY, producer_id=8, numbers=1)
    assert called(JAVA39, attrs.evolve(ended, needs_new_epoch=True), requests.EndTxnResponse(E.NONE, 8, 0)).is_ended
    fresh = called(JAVA, attrs.evolve(after, status=ProducerStatus.INITIALIZING),
                   requests.InitProducerIdResponse(E.NONE, 9, 3))
    assert fresh == Producer("tid1", ProducerStatus.READY, 9, 3, numbers=1)


@pytest.mark.parametrize(("family", "status", "bumps"), [
    (JAVA, ProducerStatus.ABORTABLE_ERROR, True), (NEW, ProducerStatus.ABORTABLE_ERROR, False),
    (OLD, ProducerStatus.FATAL_ERROR, False),
])
def test_unknown_mapping_is_aborted_by_a_new_epoch_where_the_client_can(
    family: client.Family, status: ProducerStatus, bumps: bool
) -> None:
    """No EndTxn: the coordinator does not know the producer; an old client can only be closed."""
    producer = attrs.evolve(BEGUN, new_partitions=("T-0",), partitions=("T-1",))
    answer = requests.AddPartitionsToTxnResponse(FrozenMap({"T-0": E.INVALID_PRODUCER_ID_MAPPING}))
    after = called(family, producer, answer)
    assert (after.status, after.needs_new_epoch) == (status, bumps)
    if status is ProducerStatus.ABORTABLE_ERROR:
        init = next_call(family, client.abort_transaction(after))
        assert init == requests.InitProducerIdRequest(family.init_producer_id, "tid1", 60_000, 7, 0)


def test_refused_batch_moves_those_behind_it_down() -> None:
    """Of its partition, when they are not in flight; and the transaction has to be aborted, with a new epoch."""
    producer = in_flight(JAVA, "T-0 a b", "T-1 c", "T-0 d", "T-0 e")
    producer = produced(JAVA, producer, 3, E.NOT_ENOUGH_REPLICAS).producer
    unsent = client.send(producer, "T-0", "f", adds_partitions=True)
    found = produced(JAVA, unsent, 1, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert (found.verdict, found.producer.needs_new_epoch) == (AnswerVerdict.ABORTABLE, True)
    assert sequences(found.producer) == [("T-1", 0), ("T-0", 0), ("T-0", 3)]
    assert following(found.producer) == {"T-0": 2, "T-1": 1}
    waits = produced(JAVA, producer, 4, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert waits.verdict is AnswerVerdict.RETRY
    middle = produced(JAVA, producer, 3, E.TRANSACTION_ABORTABLE).producer
    assert sequences(middle) == [("T-0", 0), ("T-1", 0), ("T-0", 3)]
    waiting = answers.broker_lost(JAVA, producer, [1, 2, 3, 4], was_called=False)
    moved = produced(JAVA, waiting, 3, E.TRANSACTION_ABORTABLE).producer
    assert sequences(moved) == [("T-0", 0), ("T-1", 0), ("T-0", 2)]
    first = produced(JAVA, waiting, 1, E.TRANSACTION_ABORTABLE).producer
    assert sequences(first) == [("T-1", 0), ("T-0", 0), ("T-0", 1)]
    fatal = produced(JAVA, producer, 1, E.PRODUCER_FENCED).producer
    assert (fatal.status, fatal.batches) == (ProducerStatus.FATAL_ERROR, ())
    done = produced(JAVA, producer, 2, E.NONE)
    assert done.acknowledged == ("c",) and sequences(done.producer) == [("T-0", 0), ("T-0", 2), ("T-0", 3)]
    assert produced(JAVA, BEGUN, 2, E.NONE).producer == BEGUN


def test_error_of_one_request_keeps_the_epoch_and_error_while_aborting_goes_on() -> None:
    """Only a lost sequence needs a new epoch; once needed it stays so; an abort is not begun again."""
    producer = attrs.evolve(BEGUN, partitions=("T-0",), offsets=(OFFSETS,), groups=("G",),
                            batches=(Batch(1, "T-0", ("a",)), Batch(2, "T-0", ("b",), 4, in_flight=True)))
    after = called(JAVA, producer, requests.TxnOffsetCommitResponse(E.ILLEGAL_GENERATION))
    assert (after.status, after.needs_new_epoch, after.offsets) == (ProducerStatus.ABORTABLE_ERROR, False, ())
    assert sequences(after) == [("T-0", 4)]
    refused = requests.TxnOffsetCommitResponse(E.ILLEGAL_GENERATION)
    assert called(JAVA, attrs.evolve(producer, needs_new_epoch=True), refused).needs_new_epoch
    aborting = client.abort_transaction(in_flight(JAVA, "T-0 a"))
    given_up = delivery_timed_out(JAVA, aborting)
    assert (given_up.status, given_up.batches, given_up.needs_new_epoch) == (aborting.status, (), True)
    assert [delivery_timed_out(family, in_flight(family, "T-0 a")).needs_new_epoch
            for family in (JAVA, JAVA39, NEW, OLD)] == [True, True, False, False]


@pytest.mark.parametrize("family", [NEW, OLD])
def test_answer_is_taken_only_for_the_batch_that_its_request_carried(family: client.Family) -> None:
    """Not for one of another partition, nor for one of the next transaction, in the same epoch or the next one."""
    producer = in_flight(family, "T-0 a", "T-1 a")
    assert [batch.partition for batch in produced(family, producer, 2, E.NONE).producer.batches] == ["T-0"]
    given_up = delivery_timed_out(family, delivery_timed_out(family, producer))
    again = client.begin_transaction(given_up.ready(7, int(family is NEW)))
    again = client.send(again, "T-0", "a", adds_partitions=False)
    again = dispatched(family, again)
    for other in (given_up, again):
        assert produced(family, other, 1, E.NONE) == answers.AfterAnswer(other, AnswerVerdict.DONE)
    assert [batch.number for batch in again.batches] == [3] and sequences(again) == [("T-0", 0)]


@pytest.mark.parametrize("error", [E.INVALID_PRODUCER_ID_MAPPING, E.UNKNOWN_PRODUCER_ID, E.TRANSACTION_ABORTABLE])
def test_abort_that_is_refused_is_not_asked_for_again(error: Error) -> None:
    """A new epoch is asked for where that was to follow; else the producer can only be closed."""
    aborting = attrs.evolve(BEGUN, status=ProducerStatus.ABORTING_TRANSACTION, partitions=("T-0",))
    for needs, after in ((False, ProducerStatus.FATAL_ERROR), (True, ProducerStatus.ABORTING_TRANSACTION)):
        producer = attrs.evolve(aborting, needs_new_epoch=needs)
        end = next_call(JAVA, producer)
        assert isinstance(end, requests.EndTxnRequest)
        refused = answered(JAVA, sending.sent_call(producer, end), end, requests.EndTxnResponse(error)).producer
        assert refused.status is after
        following = next_call(JAVA, refused)
        assert following == (requests.InitProducerIdRequest(4, "tid1", 60_000, 7, 0) if needs else None)


@pytest.mark.parametrize("error", [E.NONE, E.NOT_COORDINATOR, E.TRANSACTION_ABORTABLE, E.INVALID_TXN_STATE])
def test_nothing_follows_from_an_answer_once_a_batch_has_failed_for_good(error: Error) -> None:
    """A batch and a transactional request may be under way at once; the answer that comes second is only noted."""
    producer = in_flight(NEW, "T-0 a")
    producer = client.send_offsets_to_transaction(producer, OFFSETS)
    call = next_call(NEW, producer)
    assert isinstance(call, requests.TxnOffsetCommitRequest)
    over = produced(NEW, sending.sent_call(producer, call), 1, E.INVALID_PRODUCER_ID_MAPPING).producer
    assert over.status is ProducerStatus.FATAL_ERROR
    found = answered(NEW, over, call, requests.TxnOffsetCommitResponse(error))
    assert (found.producer, found.error) == (over, error)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_so_many_batches_of_a_partition_are_in_flight(most: int) -> None:
    """At most five, as many as a leader remembers."""
    producer = in_flight(JAVA, *(f"T-0 {text}" for text in "abcdef"), most=most)
    assert sum(batch.in_flight for batch in producer.batches) == most


def test_after_an_abortable_error_a_client_that_can_asks_for_a_new_epoch() -> None:
    """EndTxn(abort), then InitProducerId with id and epoch (KIP-360); an older client goes on as before."""
    for family, bumps in ((JAVA, True), (OLD, False)):
        timed_out = delivery_timed_out(family, in_flight(family, "T-0 a"))
        assert timed_out.status is ProducerStatus.ABORTABLE_ERROR
        aborting = client.abort_transaction(timed_out)
        end = next_call(family, aborting)
        assert isinstance(end, requests.EndTxnRequest) and not end.committed
        after = called(family, aborting, requests.EndTxnResponse(E.NONE))
        init = next_call(family, after)
        assert (init == requests.InitProducerIdRequest(4, "tid1", 60_000, 7, 0)) is bumps
        if bumps:
            after = called(family, after, requests.InitProducerIdResponse(E.NONE, 7, 1))
        assert (after.status, after.producer_epoch) == (ProducerStatus.READY, int(bumps))


@pytest.mark.parametrize("api", ["ProduceRequest", "EndTxnRequest"])
def test_each_code_of_an_answer_leads_where_the_table_says(api: str) -> None:
    """Fatal ends the producer, abortable the transaction, the rest asks again as it was."""
    for error in Error:
        expected = answers.verdict(JAVA, api, error)
        if api == "ProduceRequest":
            producer = in_flight(JAVA, "T-0 a")
            found = produced(JAVA, producer, 1, error)
        else:
            producer = attrs.evolve(BEGUN, status=ProducerStatus.COMMITTING_TRANSACTION, partitions=("T-0",))
            end = requests.EndTxnRequest(3, "tid1", 7, 0, True)
            found = answered(JAVA, sending.sent_call(producer, end), end, requests.EndTxnResponse(error))
        assert found.verdict is expected
        status = found.producer.status
        assert (status is ProducerStatus.FATAL_ERROR) is (expected is AnswerVerdict.FATAL)
        assert (status is ProducerStatus.ABORTABLE_ERROR) is (expected is AnswerVerdict.ABORTABLE)
