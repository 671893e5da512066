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


PARTITION_ERRORS = frozenset((SpecError.PRODUCER_FENCED, SpecError.INVALID_PRODUCER_ID_MAPPING))
"""What the answer to an AddPartitionsToTxnRequest may carry besides the codes of an InitPidResponse."""


@attrs.frozen
class MessageType:
    """The specs' `MessageType`: what a message may carry, and between whom.

    Diary 01's has no topic partitions, hence none of the messages about them.
    """

    clients: frozenset[str]
    brokers: frozenset[str]
    transactional_ids: frozenset[str]
    topic_partitions: frozenset[str]
    codes: frozenset[SpecError]
    """What an InitPidResponse may carry."""

    def __contains__(self, message: Message) -> bool:
        match message:
            case InitPidRequest(tid=asks_for):
                return self._asks(message) and asks_for in self.transactional_ids
            case InitPidResponse(code=error, pid=pid, pepoch=epoch):
                return self._answers(message) and error in self.codes and pid >= -1 and epoch >= -1
            case AddPartitionsToTxnRequest(pid=pid, pepoch=epoch, partitions=partitions):
                known = message.tid in self.transactional_ids and self._has(partitions)
                return self._asks(message) and known and pid >= 0 and epoch >= 0
            case AddPartitionsToTxnResponse(code=error, partitions=partitions):
                known = error in self.codes or error in PARTITION_ERRORS
                return self._answers(message) and known and self._has(partitions)
        return False

    def _asks(self, message: Message) -> bool:
        return message.source in self.clients and message.dest in self.brokers

    def _answers(self, message: Message) -> bool:
        return message.source in self.brokers and message.dest in self.clients

    def _has(self, partitions: frozenset[str]) -> bool:
        return bool(self.topic_partitions) and partitions <= self.topic_partitions
