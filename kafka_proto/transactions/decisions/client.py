"""What a transactional client decides: pure functions of its record, which the specs compose."""

from __future__ import annotations

import attrs

from kafka_proto.transactions.records import (
    AddPartitionsToTxnResponse,
    ClientPhase,
    ClientRecord,
    InitPidResponse,
    Response,
    SpecError,
)


def may_init(client: ClientRecord, tid: str) -> bool:
    """Say whether a client may send an InitPidRequest for an id: a retry keeps the id of the first try."""
    return client.state is ClientPhase.READY and client.tid in (None, tid)


def init_sent(client: ClientRecord, tid: str) -> ClientRecord:
    """The client after `SendInitPidRequest`."""
    return attrs.evolve(client, tid=tid, state=ClientPhase.SENT_INIT_PID_REQUEST)


def awaits(client: ClientRecord, response: Response) -> bool:
    """Say whether a client takes a response: it goes by its own state alone."""
    if isinstance(response, InitPidResponse):
        return client.state is ClientPhase.SENT_INIT_PID_REQUEST
    return client.state is ClientPhase.BEGUN_TXN


def init_answered(client: ClientRecord, response: InitPidResponse) -> ClientRecord:
    """The client after `ReceiveInitPidResponse` of diary 02: as below, and a success clears the last error."""
    after = init_answered_keeping_error(client, response)
    return attrs.evolve(after, last_state=None, last_error=None) if after.state is ClientPhase.HAS_PID else after


def init_answered_keeping_error(client: ClientRecord, response: InitPidResponse) -> ClientRecord:
    """The client after `ReceiveInitPidResponse` of the gist: it has a producer id, or is ready to try again."""
    if response.code is not SpecError.OK:
        return failed(client, ClientPhase.READY, response.code)
    return attrs.evolve(
        client, state=ClientPhase.HAS_PID, tc=response.source, pid=response.pid, epoch=response.pepoch,
    )


def may_add(client: ClientRecord, partition: str) -> bool:
    """Say whether a client may send an AddPartitionsToTxnRequest for a topic partition."""
    return (
        client.state in (ClientPhase.HAS_PID, ClientPhase.BEGUN_TXN)
        and not client.pending_partitions
        and partition not in client.partitions
    )


def add_sent(client: ClientRecord, partition: str) -> ClientRecord:
    """The client after `SendAddPartitionsToTxnRequest`."""
    return attrs.evolve(client, pending_partitions=frozenset((partition,)), state=ClientPhase.BEGUN_TXN)


def add_answered(client: ClientRecord, response: AddPartitionsToTxnResponse, found: str | None) -> ClientRecord:
    """The client after `ReceiveAddPartitionsToTxnResponse`; `found` is the coordinator a new look-up gives."""
    if response.code is SpecError.OK:
        return attrs.evolve(
            client,
            pending_partitions=client.pending_partitions - response.partitions,
            partitions=client.partitions | response.partitions,
        )
    if response.code.is_retriable:
        coordinator = found if response.code is SpecError.NOT_COORDINATOR else client.tc
        after = failed(client, client.state, response.code)
        return attrs.evolve(after, tc=coordinator, pending_partitions=frozenset())
    terminated = failed(client, ClientPhase.TERMINATED, response.code)
    return attrs.evolve(terminated, pending_partitions=frozenset(), partitions=frozenset())


def failed(client: ClientRecord, state: ClientPhase, code: SpecError) -> ClientRecord:
    """The client in a new state, remembering where it was and which error sent it there."""
    return attrs.evolve(client, state=state, last_state=client.state, last_error=code)
