"""What a client does about a request that timed out: librdkafka as it is, and as proposed in its issue 5423.

The decisions one by one, then what a search of whole transactions finds of each rule: the figures of the page.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from kafka_proto import requests
from kafka_proto.clients import producer as client
from kafka_proto.clients.producer import FAMILIES, OffsetsToCommit, Producer, ProducerStatus, answers, sending
from kafka_proto.clients.producer.answers import answered
from kafka_proto.clients.producer.sending import ends_unasked, next_call, next_produces
from kafka_proto.requests import Error as E

JAVA = FAMILIES["java35"]
READY = Producer("tid1", ProducerStatus.READY, 7, 0)
BEGUN = client.begin_transaction(READY)
OFFSETS = OffsetsToCommit("G", "T-0", 5, 3, "member-1")
ENDING = attrs.evolve(client.commit_transaction(BEGUN), partitions=("T-0",))
CALLS = {
    "AddPartitionsToTxnRequest": attrs.evolve(BEGUN, new_partitions=("T-0",)),
    "AddOffsetsToTxnRequest": client.send_offsets_to_transaction(BEGUN, OFFSETS),
    "TxnOffsetCommitRequest": attrs.evolve(client.send_offsets_to_transaction(BEGUN, OFFSETS), groups=("G",)),
    "EndTxnRequest": ENDING,
    "InitProducerIdRequest": client.init_transactions(Producer("tid1")),
}
"""A producer that sends each request."""


def called(family: client.Family, producer: Producer, response: Any) -> Producer:
    """Return a producer once the call that it sends next is answered."""
    call = next_call(family, producer)
    assert call is not None
    return answered(family, sending.sent_call(producer, call), call, response).producer


def timed_out(family: client.Family, producer: Producer) -> Producer:
    """Return a producer whose call, just sent, gets no answer."""
    call = next_call(family, producer)
    assert call is not None
    return answers.broker_lost(family, sending.sent_call(producer, call), (), was_called=True)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_time_out_leads_to_a_new_epoch_where_a_family_says_so(name: str) -> None:
    """By another producer or by asking; every other client sends the request again, and that is all."""
    family = FAMILIES[name]
    after = {api: timed_out(family, producer) for api, producer in CALLS.items()}
    assert [api for api, producer in after.items() if producer.is_in_doubt] == {
        "rdkafka-end": ["EndTxnRequest"], "rdkafka-all": list(CALLS)[:-1]}.get(name, [])
    assert [api for api, producer in after.items() if producer.needs_new_epoch] == {
        "rdkafka-bump": list(CALLS)[:-1]}.get(name, [])
    assert all(next_call(family, after[api]) == next_call(family, CALLS[api]) for api in after)


def test_a_second_time_out_takes_nothing_back() -> None:
    """Of a request that is harmless."""
    for name, is_kept in (("rdkafka-end", "is_in_doubt"), ("rdkafka-bump", "needs_new_epoch")):
        again = attrs.evolve(timed_out(FAMILIES[name], ENDING), call=None, status=ProducerStatus.INITIALIZING)
        assert getattr(timed_out(FAMILIES[name], again), is_kept)


def test_a_producer_in_doubt_ends_its_transaction_and_begins_no_other() -> None:
    """What is under way goes on; after an epoch of its own, it may begin again."""
    end = FAMILIES["rdkafka-end"]
    ended = called(end, timed_out(end, ENDING), requests.EndTxnResponse(E.NONE))
    assert (ended.status, ended.is_in_doubt) == (ProducerStatus.READY, True)
    with pytest.raises(client.KafkaError, match=r"^a request that timed out may still arrive; close the producer and"):
        client.begin_transaction(ended)
    asking = called(end, attrs.evolve(timed_out(end, ENDING), needs_new_epoch=True), requests.EndTxnResponse(E.NONE))
    bumped = called(end, asking, requests.InitProducerIdResponse(E.NONE, 7, 1))
    assert not client.begin_transaction(bumped).is_in_doubt


@pytest.mark.parametrize(("name", "times_out", "asks"), [
    ("rdkafka", True, False), ("rdkafka-bump", False, False), ("rdkafka-bump", True, True),
    ("rdkafka-each", False, True),
])
def test_the_next_epoch_is_asked_for_once_the_transaction_has_ended(name: str, times_out: bool, asks: bool) -> None:
    """With the id and epoch that it has: no other producer is fenced."""
    family = FAMILIES[name]
    ending = timed_out(family, ENDING) if times_out else ENDING
    ended = called(family, ending, requests.EndTxnResponse(E.NONE))
    asked = requests.InitProducerIdRequest(4, "tid1", client.TRANSACTION_TIMEOUT_MS, 7, 0)
    assert (next_call(family, ended) == asked) is asks
    assert (ended.status is ProducerStatus.READY) is not asks


@pytest.mark.parametrize(("name", "next_one"), [("rdkafka", "EndTxnRequest"), ("java35", "AddPartitionsToTxnRequest")])
def test_an_abort_does_not_wait_for_partitions_in_librdkafka(name: str, next_one: str) -> None:
    """Where their request has timed out; it is not known whether they are part, so the coordinator is asked to end."""
    family = FAMILIES[name]
    adding = client.send(BEGUN, "T-0", "a", adds_partitions=True)
    call = next_call(family, adding)
    assert call is not None
    aborting = client.abort_transaction(sending.sent_call(adding, call))
    lost = answers.broker_lost(family, aborting, (), was_called=True)
    assert type(next_call(family, lost)).__name__ == next_one
    assert not ends_unasked(lost)


REFUSALS_KEPT = {E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                 E.INVALID_TRANSACTION_TIMEOUT}


def test_librdkafka_asks_for_a_producer_id_until_it_has_one() -> None:
    """Only a fence, or what it may not do, is fatal (`rd_kafka_idemp_check_error`): of Java's client other errors are.

    Of other requests both take the same codes for the same.
    """
    family = FAMILIES["rdkafka"]
    fatal = {error for error in E
             if answers.verdict(family, "InitProducerIdRequest", error) is answers.AnswerVerdict.FATAL}
    assert fatal == REFUSALS_KEPT
    assert all(answers.verdict(family, api, error) is answers.verdict(JAVA, api, error)
               for api in answers.TABLE if api != "InitProducerIdRequest" for error in E)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_producer_id_that_is_refused_is_asked_for_again_by_librdkafka(name: str) -> None:
    """The same request after a pause; every other client gives its producer up."""
    family, producer = FAMILIES[name], CALLS["InitProducerIdRequest"]
    after = called(family, producer, requests.InitProducerIdResponse(E.UNKNOWN_SERVER_ERROR))
    asks_again = name.startswith("rdkafka")
    assert (after.status is ProducerStatus.FATAL_ERROR) is not asks_again
    assert answers.backs_off(after) is asks_again
    if asks_again:
        assert next_call(family, answers.rested(after)) == next_call(family, producer)


def test_a_commit_waits_for_partitions() -> None:
    """Nothing is written before they are added."""
    family = FAMILIES["rdkafka"]
    adding = client.send(BEGUN, "T-0", "a", adds_partitions=True)
    assert next_call(family, adding) == next_call(family, timed_out(family, client.commit_transaction(adding)))
    assert next_produces(family, timed_out(family, client.commit_transaction(adding)), 5) == ()


def test_an_abort_while_offsets_are_added_is_sent() -> None:
    """The offsets are given up, but the coordinator has a transaction."""
    adding = client.send_offsets_to_transaction(BEGUN, OFFSETS)
    call = next_call(JAVA, adding)
    assert call is not None
    aborting = client.abort_transaction(sending.sent_call(adding, call))
    added = answered(JAVA, aborting, call, requests.AddOffsetsToTxnResponse(E.NONE)).producer
    assert next_call(JAVA, added) == requests.EndTxnRequest(3, "tid1", 7, 0, False) and not ends_unasked(added)
