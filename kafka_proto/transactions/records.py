"""The records that clients and coordinators keep, named as in the specs, and the transition table of a transaction."""

from __future__ import annotations

from enum import StrEnum
from typing import get_args

import attrs

from harness.model import Message, absent_if_none
from kafka_proto.errors import ErrorCode
from kafka_proto.requests import TxnState


class SpecError(ErrorCode):
    """Response codes, spelled as the specs spell them; there all are definite. `OK` is the absence of an error."""

    OK = "OK"
    NOT_COORDINATOR = "NotCoordinator"
    NOT_COORDINATOR_FOR_TRANSACTIONAL_ID = "NotCoordinatorForTransactionalId"
    CONCURRENT_TRANSACTIONS = "ConcurrentTransactions"
    PRODUCER_FENCED = "ProducerFenced"
    INVALID_PRODUCER_ID_MAPPING = "InvalidProducerIdMapping"
    INVALID_TRANSITION = "InvalidTransition"
    ILLEGAL_STATE = "IllegalState"
    COORDINATOR_LOAD_IN_PROGRESS = "CoordinatorLoadInProgress"
    """Kafka's, for a coordinator that has not loaded its log."""


@attrs.frozen
class InitPidRequest(Message):
    tid: str


@attrs.frozen
class InitPidResponse(Message):
    code: SpecError
    pid: int = -1
    pepoch: int = -1


@attrs.frozen
class AddPartitionsToTxnRequest(Message):
    tid: str
    pid: int
    pepoch: int
    partitions: frozenset[str]


@attrs.frozen
class AddPartitionsToTxnResponse(Message):
    code: SpecError
    partitions: frozenset[str] = frozenset()


Request = InitPidRequest | AddPartitionsToTxnRequest
Response = InitPidResponse | AddPartitionsToTxnResponse


def answer(request: Request, code: SpecError) -> Response:
    """Return the response to a request that carries an error and nothing else."""
    kind = InitPidResponse if isinstance(request, InitPidRequest) else AddPartitionsToTxnResponse
    return kind(code, source=request.dest, dest=request.source)


VALID_PREVIOUS: dict[TxnState, tuple[TxnState | None, ...]] = {
    TxnState.EMPTY: (None, TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT),
    TxnState.ONGOING: (TxnState.ONGOING, TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT),
    TxnState.PREPARE_COMMIT: (TxnState.ONGOING,),
    TxnState.PREPARE_ABORT: (TxnState.ONGOING, TxnState.PREPARE_EPOCH_FENCE),
    TxnState.COMPLETE_COMMIT: (TxnState.PREPARE_COMMIT,),
    TxnState.COMPLETE_ABORT: (TxnState.PREPARE_ABORT,),
    TxnState.DEAD: (TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT),
    TxnState.PREPARE_EPOCH_FENCE: (TxnState.ONGOING,),
}
"""`ValidPrevTxnStates` of the specs."""

PREPARED = (TxnState.PREPARE_ABORT, TxnState.PREPARE_COMMIT)
FINISHED = (TxnState.COMPLETE_ABORT, TxnState.COMPLETE_COMMIT, TxnState.EMPTY)


@attrs.frozen
class TxnMetadata:
    """What a coordinator knows of a transactional id: committed, or pending as a transition.

    `last_pid` is part of freshly made metadata and of diary 01's transitions only.
    """

    pid: int
    pepoch: int
    last_pepoch: int
    state: TxnState
    partitions: frozenset[str]
    last_pid: int | None = attrs.field(default=None, metadata=absent_if_none())


def fresh_metadata(pid: int) -> TxnMetadata:
    """Return the metadata of a new transactional id, with a new producer id."""
    return TxnMetadata(pid, -1, -1, TxnState.EMPTY, frozenset(), last_pid=-1)


@attrs.frozen
class Callback:
    """What to do when a log entry commits (`response`) or its coordinator is deposed first (`err`)."""

    type: str
    response: Response | None = None
    err: Response | None = None


@attrs.frozen
class Entry:
    """An entry of the transaction log: the transition of a transactional id, and its callback."""

    tid: str
    transition: TxnMetadata
    callback: Callback


@attrs.frozen
class LogMetadata:
    """A broker's belief about a partition of the transaction log: its leader, and the coordinator epoch."""

    cepoch: int
    leader: str


class ClientPhase(StrEnum):
    """States of a client; not part of the protocol, they drive it."""

    READY = "Ready"
    SENT_INIT_PID_REQUEST = "SentInitPidRequest"
    HAS_PID = "HasPid"
    BEGUN_TXN = "BegunTxn"
    TERMINATED = "Terminated"


@attrs.frozen
class ClientRecord:
    """What a client knows of its transaction; diary 02 and the gist keep the same."""

    state: ClientPhase = ClientPhase.READY
    tc: str | None = None
    tid: str | None = None
    pid: int = -1
    epoch: int = -1
    last_state: ClientPhase | None = None
    last_error: SpecError | None = None
    pending_partitions: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()


TYPES: tuple[type, ...] = (
    *get_args(Request), *get_args(Response), TxnMetadata, Callback, Entry, LogMetadata, ClientRecord,
)
"""What occurs in states and messages."""
