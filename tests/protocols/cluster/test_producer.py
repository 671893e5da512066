"""The producer as a value: what an application may ask of it when."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kafka_proto.clients import producer as client
from kafka_proto.clients.producer import OffsetsToCommit, Producer, ProducerStatus
from kafka_proto.requests import Error

OFFSETS = OffsetsToCommit("G", "T-0", 5, 3, "member-1")
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
    producer = Producer("tid1", status, 7, 0, last_error=Error.INVALID_TXN_STATE)
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
        COMMANDS[command](Producer("tid1", ProducerStatus.FATAL_ERROR, 7, 0, last_error=error))
