"""Messages and error codes of the transaction specs (diaries 01 and 02, the gist), as they spell them."""

from __future__ import annotations

from typing import get_args

import attrs

from harness.model import Message
from kafka_proto.errors import ErrorCode


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
TYPES = (*get_args(Request), *get_args(Response))


def answer(request: Request, code: SpecError) -> Response:
    """Return the response to a request that carries an error and nothing else."""
    kind = InitPidResponse if isinstance(request, InitPidRequest) else AddPartitionsToTxnResponse
    return kind(code, source=request.dest, dest=request.source)
