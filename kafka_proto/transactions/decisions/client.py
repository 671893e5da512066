"""What a transactional client decides: pure functions of its record, used by the specs and by the actors."""

from __future__ import annotations

import attrs

from kafka_proto.transactions.messages import AddPartitionsToTxnResponse, Error, InitProducerIdResponse, Response
from kafka_proto.transactions.records import ClientRecord, ClientState


def may_init(client: ClientRecord, tid: str) -> bool:
    """Say whether a client may send an InitProducerIdRequest for an id: a retry keeps the id of the first try."""
    return client.state is ClientState.READY and client.transactional_id in (None, tid)


def init_sent(client: ClientRecord, tid: str) -> ClientRecord:
    """The client after `SendInitPidRequest`."""
    return attrs.evolve(client, transactional_id=tid, state=ClientState.SENT_INIT_PID_REQUEST)


def awaits(client: ClientRecord, response: Response) -> bool:
    """Say whether a client takes a response: it goes by its own state alone."""
    if isinstance(response, InitProducerIdResponse):
        return client.state is ClientState.SENT_INIT_PID_REQUEST
    return client.state is ClientState.BEGUN_TXN


def init_answered(client: ClientRecord, response: InitProducerIdResponse) -> ClientRecord:
    """The client after `ReceiveInitPidResponse` of diary 02: as below, and a success clears the last error."""
    after = init_answered_keeping_error(client, response)
    return attrs.evolve(after, last_state=None, last_error=None) if after.state is ClientState.HAS_PID else after


def init_answered_keeping_error(client: ClientRecord, response: InitProducerIdResponse) -> ClientRecord:
    """The client after `ReceiveInitPidResponse` of the gist: it has a producer id, or is ready to try again."""
    if response.error is not Error.OK:
        return failed(client, ClientState.READY, response.error)
    return attrs.evolve(
        client, state=ClientState.HAS_PID, coordinator=response.source, producer_id=response.producer_id,
        producer_epoch=response.producer_epoch,
    )


def may_add(client: ClientRecord, partition: str) -> bool:
    """Say whether a client may send an AddPartitionsToTxnRequest for a topic partition."""
    return (
        client.state in (ClientState.HAS_PID, ClientState.BEGUN_TXN)
        and not client.pending_partitions
        and partition not in client.partitions
    )


def add_sent(client: ClientRecord, partition: str) -> ClientRecord:
    """The client after `SendAddPartitionsToTxnRequest`."""
    return attrs.evolve(client, pending_partitions=frozenset((partition,)), state=ClientState.BEGUN_TXN)


def add_answered(client: ClientRecord, response: AddPartitionsToTxnResponse, found: str | None) -> ClientRecord:
    """The client after `ReceiveAddPartitionsToTxnResponse`; `found` is the coordinator a new look-up gives."""
    if response.error is Error.OK:
        return attrs.evolve(
            client,
            pending_partitions=client.pending_partitions - response.partitions,
            partitions=client.partitions | response.partitions,
        )
    if response.error.is_retriable:
        coordinator = found if response.error is Error.NOT_COORDINATOR else client.coordinator
        after = failed(client, client.state, response.error)
        return attrs.evolve(after, coordinator=coordinator, pending_partitions=frozenset())
    terminated = failed(client, ClientState.TERMINATED, response.error)
    return attrs.evolve(terminated, pending_partitions=frozenset(), partitions=frozenset())


def given_up(client: ClientRecord) -> ClientRecord:
    """The client after a request timed out: what became of it is unknown, and it may ask again."""
    if client.state is ClientState.SENT_INIT_PID_REQUEST:
        return attrs.evolve(client, state=ClientState.READY)
    return attrs.evolve(client, pending_partitions=frozenset())


def failed(client: ClientRecord, state: ClientState, code: Error) -> ClientRecord:
    """The client in a new state, remembering where it was and which error sent it there."""
    return attrs.evolve(client, state=state, last_state=client.state, last_error=code)
