"""The producer as a value: what an application may ask, what is sent, and what each answer means."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import pytest

from kafka_proto import requests
from kafka_proto.clients import producer as client
from kafka_proto.clients.producer import FAMILIES, AnswerVerdict, Family, Producer, ProducerStatus, answered, next_call
from kafka_proto.clients.producer.answers import delivery_timed_out
from kafka_proto.clients.producer.state import OffsetsToCommit
from kafka_proto.requests import Error

JAVA, NEW, OLD = FAMILIES["java35"], FAMILIES["tv2"], FAMILIES["aiokafka"]
READY = Producer(ProducerStatus.READY, 7, 0)
BEGUN = client.begin_transaction(READY)
OFFSETS = OffsetsToCommit("G", "T-0", 5, 3, "member-1")


def flying(family: Family, *records: str, most: int = 5) -> Producer:
    """Return a producer whose partition is part of its transaction, with batches of one record in flight."""
    producer = BEGUN
    for text in records:
        producer = client.send(producer, "T-0", text, adds_partitions=family.adds_partitions)
    producer = attrs.evolve(producer, new_partitions=(), partitions=("T-0",))
    for place, request in client.next_produces(family, producer, "tid1", most):
        producer = client.sent_batch(producer, place, request)
    return producer


COMMANDS: Mapping[str, Callable[[Producer], Producer]] = {
    "init_transactions": client.init_transactions,
    "begin_transaction": client.begin_transaction,
    "send": lambda producer: client.send(producer, "T-0", "a", adds_partitions=True),
    "send_offsets_to_transaction": lambda producer: client.send_offsets_to_transaction(producer, OFFSETS),
    "commit_transaction": client.commit_transaction,
    "abort_transaction": client.abort_transaction,
}
ALLOWED = {
    "init_transactions": (ProducerStatus.UNINITIALIZED,), "begin_transaction": (ProducerStatus.READY,),
    "send": (ProducerStatus.IN_TRANSACTION,), "send_offsets_to_transaction": (ProducerStatus.IN_TRANSACTION,),
    "commit_transaction": (ProducerStatus.IN_TRANSACTION,),
    "abort_transaction": (ProducerStatus.IN_TRANSACTION, ProducerStatus.ABORTABLE_ERROR),
}


@pytest.mark.parametrize("status", ProducerStatus)
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_in_each_state_is_taken_or_raises_what_the_client_of_kafka_raises(
    command: str, status: ProducerStatus
) -> None:
    """Outside its state, two at once, after an error: the exception of Kafka's client, with one sentence."""
    producer = Producer(status, 7, 0, last_error=Error.INVALID_TXN_STATE)
    if status in ALLOWED[command]:
        assert COMMANDS[command](producer) != producer
        return
    raised: type[Exception] = client.IllegalState
    said = f"{command} is called .*; the producer is {status.value.lower().replace('_', ' ')}"
    if status is ProducerStatus.FATAL_ERROR:
        raised, said = client.KafkaError, "failed by INVALID_TXN_STATE; close it and make another"
    elif status is ProducerStatus.ABORTABLE_ERROR:
        raised, said = client.KafkaError, "the transaction failed by INVALID_TXN_STATE; call abort_transaction"
    with pytest.raises(raised, match=said) as found:
        COMMANDS[command](producer)
    assert type(found.value) is raised
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("error", [Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_raises_that_it_is_fenced(command: str, error: Error) -> None:
    """Whatever it is asked, from then on."""
    with pytest.raises(client.ProducerFenced, match="another producer with the same transactional id was started"):
        COMMANDS[command](Producer(ProducerStatus.FATAL_ERROR, 7, 0, last_error=error))


@pytest.mark.parametrize("most", [1, 2, 5])
def test_so_many_batches_of_a_partition_are_in_flight(most: int) -> None:
    """At most five, as many as a leader remembers."""
    assert sum(batch.in_flight for batch in flying(JAVA, *"abcdef", most=most).batches) == most


def test_after_an_abortable_error_a_client_that_can_asks_for_a_new_epoch() -> None:
    """EndTxn(abort), then InitProducerId with id and epoch (KIP-360); an older client goes on as before."""
    for family, bumps in ((JAVA, True), (OLD, False)):
        failed = delivery_timed_out(family, flying(family, "a"))
        assert failed.status is ProducerStatus.ABORTABLE_ERROR
        aborting = client.abort_transaction(failed)
        end = next_call(family, aborting, "tid1")
        assert isinstance(end, requests.EndTxnRequest)
        assert not end.committed
        after = answered(family, client.sent_call(aborting, end), end, requests.EndTxnResponse(Error.NONE)).producer
        init = next_call(family, after, "tid1")
        assert (init == requests.InitProducerIdRequest(4, "tid1", 60_000, 7, 0)) is bumps
        if bumps:
            assert init is not None
            answer = requests.InitProducerIdResponse(Error.NONE, 7, 1)
            after = answered(family, client.sent_call(after, init), init, answer).producer
        assert (after.status, after.producer_epoch) == (ProducerStatus.READY, int(bumps))


@pytest.mark.parametrize("api", ["ProduceRequest", "EndTxnRequest"])
def test_each_code_of_an_answer_leads_where_the_table_says(api: str) -> None:
    """Fatal ends the producer, abortable the transaction, the rest asks again as it was."""
    for error in Error:
        expected = client.verdict(api, error)
        if api == "ProduceRequest":
            producer = flying(JAVA, "a")
            ((_, request),) = client.next_produces(JAVA, attrs.evolve(producer, batches=tuple(
                attrs.evolve(batch, in_flight=False) for batch in producer.batches
            )), "tid1", 5)
            found = answered(JAVA, producer, request, requests.ProduceResponse(error))
        else:
            producer = attrs.evolve(BEGUN, status=ProducerStatus.COMMITTING_TRANSACTION, partitions=("T-0",))
            end = requests.EndTxnRequest(3, "tid1", 7, 0, True)
            found = answered(JAVA, client.sent_call(producer, end), end, requests.EndTxnResponse(error))
        assert found.verdict is expected
        status = found.producer.status
        assert (status is ProducerStatus.FATAL_ERROR) is (expected is AnswerVerdict.FATAL)
        assert (status is ProducerStatus.ABORTABLE_ERROR) is (expected is AnswerVerdict.ABORTABLE)
