"""Messages and error codes of the transaction protocol, as Kafka names them.

The specs' messages (diaries 01 and 02, the gist) are made of these by `specs.correspondence`. `correlation` exists in
the actor composition only; the specs' records do not have it.
"""

from __future__ import annotations

from typing import get_args

import attrs

from harness.model import Message, absent_if_none, fresh
from kafka_proto.errors import ErrorCode


class Error(ErrorCode):
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
    """Kafka's, for a coordinator that has not loaded its log or waits for a block of producer ids (actors only)."""


ASKED, ANSWERED = (absent_if_none() | fresh("correlation", client) for client in ("source", "dest"))
"""A client's correlation id, in what it asks and in what it is answered."""


@attrs.frozen
class InitProducerIdRequest(Message):
    transactional_id: str
    correlation: int | None = attrs.field(default=None, metadata=ASKED, kw_only=True)


@attrs.frozen
class InitProducerIdResponse(Message):
    error: Error
    producer_id: int = -1
    producer_epoch: int = -1
    correlation: int | None = attrs.field(default=None, metadata=ANSWERED, kw_only=True)


@attrs.frozen
class AddPartitionsToTxnRequest(Message):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[str]
    correlation: int | None = attrs.field(default=None, metadata=ASKED, kw_only=True)


@attrs.frozen
class AddPartitionsToTxnResponse(Message):
    error: Error
    partitions: frozenset[str] = frozenset()
    correlation: int | None = attrs.field(default=None, metadata=ANSWERED, kw_only=True)


Request = InitProducerIdRequest | AddPartitionsToTxnRequest
Response = InitProducerIdResponse | AddPartitionsToTxnResponse
TYPES = (*get_args(Request), *get_args(Response))


def answer(request: Request, code: Error) -> Response:
    """Return the response to a request that carries an error and nothing else."""
    back = {"source": request.dest, "dest": request.source, "correlation": request.correlation}
    if isinstance(request, InitProducerIdRequest):
        return InitProducerIdResponse(code, **back)  # type: ignore[arg-type]
    return AddPartitionsToTxnResponse(code, **back)  # type: ignore[arg-type]


PARTITION_ERRORS = frozenset((Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_ID_MAPPING))
"""What the answer to an AddPartitionsToTxnRequest may carry besides the codes of an InitProducerIdResponse."""


@attrs.frozen
class MessageType:
    """The specs' `MessageType`: what a message may carry, and between whom.

    Diary 01's has no topic partitions, hence none of the messages about them.
    """

    clients: frozenset[str]
    brokers: frozenset[str]
    transactional_ids: frozenset[str]
    topic_partitions: frozenset[str]
    codes: frozenset[Error]
    """What an InitProducerIdResponse may carry."""

    def __contains__(self, message: Message) -> bool:
        match message:
            case InitProducerIdRequest(transactional_id=asks_for):
                return self._asks(message) and asks_for in self.transactional_ids
            case InitProducerIdResponse(error=error, producer_id=producer_id, producer_epoch=epoch):
                return self._answers(message) and error in self.codes and producer_id >= -1 and epoch >= -1
            case AddPartitionsToTxnRequest(producer_id=producer_id, producer_epoch=epoch, partitions=partitions):
                known = message.transactional_id in self.transactional_ids and self._has(partitions)
                return self._asks(message) and known and producer_id >= 0 and epoch >= 0
            case AddPartitionsToTxnResponse(error=error, partitions=partitions):
                known = error in self.codes or error in PARTITION_ERRORS
                return self._answers(message) and known and self._has(partitions)
        return False

    def _asks(self, message: Message) -> bool:
        return message.source in self.clients and message.dest in self.brokers

    def _answers(self, message: Message) -> bool:
        return message.source in self.brokers and message.dest in self.clients

    def _has(self, partitions: frozenset[str]) -> bool:
        return bool(self.topic_partitions) and partitions <= self.topic_partitions


@attrs.frozen
class ActorMessage(Message):
    """A message that exists in the actor composition only."""


@attrs.frozen
class FindCoordinatorRequest(ActorMessage):
    """Asks any broker who coordinates a transactional id."""

    transactional_id: str
    correlation: int = attrs.field(metadata=fresh("correlation", "source"))


@attrs.frozen
class FindCoordinatorResponse(ActorMessage):
    """Answers from the broker's metadata cache, which may be stale."""

    coordinator: str
    correlation: int = attrs.field(metadata=fresh("correlation", "dest"))


@attrs.frozen
class LeaderAndIsrRequest(ActorMessage):
    """The controller tells a broker who leads a transaction log partition from which coordinator epoch on."""

    partition: str
    leader: str
    leader_epoch: int


@attrs.frozen
class ServiceMessage(ActorMessage):
    """A message between a broker and the controller or a partition of the transaction log."""


@attrs.frozen
class BrokerRegistrationRequest(ServiceMessage):
    """A broker that restarted asks the controller who leads what."""


@attrs.frozen
class AllocateProducerIdsRequest(ServiceMessage):
    """A coordinator that ran out of producer ids asks the controller for a block (KIP-730)."""


@attrs.frozen
class AllocateProducerIdsResponse(ServiceMessage):
    """A block of producer ids: its first one, and how many."""

    producer_id_start: int
    producer_id_len: int
