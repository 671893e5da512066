"""A transactional producer as a pure value: which request it sends next, and what an answer makes of it.

One request at a time, of the coordinator's and of the leaders'. Kafka's producer has up to five batches in flight; that
is to come. A transaction's number, the ghost `transaction`, is for properties: no decision reads it.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import FrozenMap
from kafka_proto.clients.family import Family
from kafka_proto.clients.verdicts import Verdict, verdict
from kafka_proto.log import RecordBatch
from kafka_proto.log.records import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kafka_proto.requests import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    Error,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)

Request = InitProducerIdRequest | AddPartitionsToTxnRequest | ProduceRequest | EndTxnRequest
Response = InitProducerIdResponse | AddPartitionsToTxnResponse | ProduceResponse | EndTxnResponse


class State(StrEnum):
    """`TransactionManager.State`, without what is between them."""

    UNINITIALIZED = "uninitialized"
    READY = "ready"
    IN_TRANSACTION = "in transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "abortable error"
    FATAL_ERROR = "fatal error"


@attrs.frozen
class Producer:
    """A producer with a transactional id. While it is initializing, its state is that of before."""

    state: State = State.UNINITIALIZED
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    sequences: FrozenMap[str, int] = FrozenMap()
    """The next sequence of each partition, 0 where there is none."""
    partitions: tuple[str, ...] = ()
    """Those that are part of the transaction as far as the producer knows."""
    begun: bool = False
    """Whether the coordinator may know of the transaction: else its end needs no request."""
    needs_bump: bool = False
    """After an abortable error: the next transaction waits for a new epoch (KIP-360)."""
    initializing: bool = False
    sending: tuple[str, str] | None = None
    """The partition and value of the record that is being sent."""
    transaction: int = 0


class IllegalState(Exception):
    """A call that Kafka's producer refuses with an IllegalStateException, or a KafkaException after a fatal error."""


REFUSED = {
    "begin_transaction": (State.READY, "cannot begin a transaction"),
    "send": (State.IN_TRANSACTION, "cannot send outside a transaction"),
    "commit_transaction": (State.IN_TRANSACTION, "cannot commit without an open transaction"),
}


def check_call(producer: Producer, call: str) -> None:
    """Raise IllegalState for a call of the application that the state does not allow, with one sentence."""
    if producer.state is State.FATAL_ERROR:
        raise IllegalState(f"{call} after a fatal error; close the producer and make another one")
    if call == "init_transactions":
        if producer.state is not State.UNINITIALIZED:
            raise IllegalState("init_transactions was called before; call it once, before the first transaction")
        return
    if producer.state is State.UNINITIALIZED:
        raise IllegalState(f"{call} before init_transactions; call that first")
    if producer.state is State.ABORTABLE_ERROR and call != "abort_transaction":
        raise IllegalState(f"{call} after an error; call abort_transaction first")
    if call == "abort_transaction":
        if producer.state not in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            raise IllegalState("cannot abort without an open transaction; call begin_transaction first")
        return
    wanted, why = REFUSED[call]
    if producer.state is not wanted:
        raise IllegalState(f"{why} while the producer is {producer.state.value}; it must be {wanted.value}")


def called(producer: Producer, call: str, record: tuple[str, str] | None = None) -> Producer:
    """Return a producer after a call of the application. Raises IllegalState."""
    check_call(producer, call)
    if call == "init_transactions":
        return attrs.evolve(producer, initializing=True)
    if call == "begin_transaction":
        return attrs.evolve(producer, state=State.IN_TRANSACTION, transaction=producer.transaction + 1)
    if call == "send":
        return attrs.evolve(producer, sending=record)
    return attrs.evolve(producer, state=State.COMMITTING if call == "commit_transaction" else State.ABORTING)


def next_request(family: Family, producer: Producer, transactional_id: str, timeout_ms: int) -> Request | None:
    """Return what the producer sends next, None where it waits for the application."""
    ids = producer.producer_id, producer.producer_epoch
    if producer.initializing:
        given = ids if producer.needs_bump and family.goes_on_after_errors else (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        return InitProducerIdRequest(family.init_producer_id, transactional_id, timeout_ms, *given)
    if producer.state in (State.COMMITTING, State.ABORTING):
        committed = producer.state is State.COMMITTING
        return EndTxnRequest(family.end_txn, transactional_id, *ids, committed) if producer.begun else None
    if producer.sending is None:
        return None
    partition, value = producer.sending
    if family.adds_partitions and partition not in producer.partitions:
        return AddPartitionsToTxnRequest(family.add_partitions, transactional_id, *ids, (partition,))
    batch = RecordBatch((value,), *ids, producer.sequences.get(partition, 0), True)
    return ProduceRequest(family.produce, transactional_id, -1, partition, batch)


def ended_without_request(producer: Producer) -> bool:
    """Say whether an end needs no request: the coordinator knows of no transaction."""
    return producer.state in (State.COMMITTING, State.ABORTING) and not producer.begun and not producer.initializing


def ended(producer: Producer) -> Producer:
    """Return a producer whose transaction is over: ready, or first in need of a new epoch."""
    over = attrs.evolve(producer, state=State.READY, partitions=(), begun=False)
    return attrs.evolve(over, initializing=True) if producer.needs_bump else over


def asked(family: Family, producer: Producer, request: Request) -> Producer:
    """Return a producer after it has sent a request: the coordinator may know of the transaction from then on."""
    if isinstance(request, AddPartitionsToTxnRequest):
        return attrs.evolve(producer, begun=True)
    if isinstance(request, ProduceRequest) and not family.adds_partitions:
        return attrs.evolve(producer, begun=True)
    return producer


def error_of(response: Response) -> Error:
    """Return the code of a response, of the first partition that has one."""
    if isinstance(response, AddPartitionsToTxnResponse):
        return next((error for error in response.errors.values() if error is not Error.NONE), Error.NONE)
    return response.error


def answered(family: Family, producer: Producer, request: Request, response: Response) -> tuple[Producer, Verdict]:
    """Return a producer after the answer to its request, and what it makes of it."""
    found = verdict(request, error_of(response))
    if found is Verdict.FATAL or (found is Verdict.ABORTABLE and isinstance(request, InitProducerIdRequest)):
        return attrs.evolve(producer, state=State.FATAL_ERROR, sending=None, initializing=False), Verdict.FATAL
    if found is Verdict.ABORTABLE:
        return expired(family, producer), found
    if found is not Verdict.DONE:
        return producer, found
    return _succeeded(family, producer, request, response), found


def expired(family: Family, producer: Producer) -> Producer:
    """Return a producer that gave its record up (`delivery.timeout.ms`): nobody knows whether it was written.

    Its transaction can only be aborted; then it wants a new epoch, unless the abort brings one (KIP-360, KIP-890).
    """
    bump = not family.is_bumped_by_end and family.goes_on_after_errors
    return attrs.evolve(producer, state=State.ABORTABLE_ERROR, sending=None, needs_bump=bump)


def _succeeded(family: Family, producer: Producer, request: Request, response: Response) -> Producer:
    if isinstance(response, InitProducerIdResponse):
        return attrs.evolve(producer, state=State.READY, initializing=False, needs_bump=False, sequences=FrozenMap(),
                            producer_id=response.producer_id, producer_epoch=response.producer_epoch)
    if isinstance(request, AddPartitionsToTxnRequest):
        return attrs.evolve(producer, partitions=tuple(sorted({*producer.partitions, *request.partitions})))
    if isinstance(request, ProduceRequest):
        sequences = producer.sequences.set(request.partition, producer.sequences.get(request.partition, 0) + 1)
        return attrs.evolve(producer, sending=None, sequences=sequences)
    assert isinstance(response, EndTxnResponse)
    if not family.is_bumped_by_end:
        return ended(producer)
    return attrs.evolve(ended(producer), producer_id=response.producer_id, producer_epoch=response.producer_epoch,
                        sequences=FrozenMap())
