"""What diary 02 knows of a coordinator of whole transactions, and what a decision is in these terms.

Records have diary 02's field names. Times, and authors of changes, are left out: diary 02 depends on neither.
"""

from __future__ import annotations

from typing import Any

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.coordinator import transaction
from kafka_proto.errors import ErrorCode
from kafka_proto.requests import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    CoordinatorResponse,
    InitProducerIdRequest,
    TxnState,
)
from kafka_proto.transactions import records

NONE = -1
"""No producer id, no epoch."""
COMPLETED = {TxnState.PREPARE_COMMIT: TxnState.COMPLETE_COMMIT, TxnState.PREPARE_ABORT: TxnState.COMPLETE_ABORT}
NOBODY = ""
"""Stands for the client to answer, where a coordinator acted of itself."""


@attrs.frozen
class KnownTransaction(records.TxnMetadata):
    """Diary 02's metadata of a transactional id, with the producer ids that Kafka keeps besides."""

    previous_producer_id: int = NONE
    """The one before the last change."""
    next_producer_id: int = NONE
    """The one that Complete* switches to."""

    @classmethod
    def of(cls, entry: transaction.TransactionMetadata) -> KnownTransaction:
        """Return what a coordinator knows, or what its log has, in diary 02's terms."""
        return cls(
            entry.producer_id, entry.producer_epoch, entry.last_producer_epoch, entry.state,
            frozenset(entry.partitions), None, entry.previous_producer_id, entry.next_producer_id,
        )

    @classmethod
    def made(cls, metadata: records.TxnMetadata) -> KnownTransaction:
        """Return what diary 02 decided as such a record; freshly made metadata has no more than diary 02's fields."""
        if isinstance(metadata, cls):
            return attrs.evolve(metadata, last_pid=None)
        return cls(
            metadata.pid, metadata.pepoch, metadata.last_pepoch, metadata.state,
            metadata.partitions,
        )

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether a client was given the last epoch of the producer id."""
        return self.pepoch >= transaction.LAST_EPOCH


@attrs.frozen
class SaidCode:
    """An answer, its code by Kafka's name; producer id and epoch where it gives any."""

    code: str
    producer_id: int = NONE
    producer_epoch: int = NONE


def name(code: ErrorCode) -> str:
    """Return an error code by Kafka's name, from either spelling."""
    return code.kafka.name


def said(response: CoordinatorResponse) -> SaidCode:
    """Return what a coordinator answers; several codes are one text."""
    errors = getattr(response, "errors", None)
    if isinstance(errors, FrozenMap):
        return SaidCode(" and ".join(sorted({name(code) for code in errors.values()})))
    given = getattr(response, "producer_id", NONE), getattr(response, "producer_epoch", NONE)
    return SaidCode(name(response.error), *given)  # type: ignore[union-attr]


def said_in_diary(response: records.Response | None) -> SaidCode | None:
    """Return what diary 02's coordinator answers."""
    if response is None:
        return None
    return SaidCode(name(response.code), getattr(response, "pid", NONE), getattr(response, "pepoch", NONE))


@attrs.frozen
class AppendUnderWay:
    """An entry that is appended and not committed yet: the answers that are sent when it is."""

    to: str = NOBODY
    then: SaidCode | None = None
    fences: bool = False
    """Whether Kafka remembers it as a fence that failed, should the log refuse it."""


@attrs.frozen
class RequestTaken:
    """A step in which a coordinator took a request."""

    broker: str
    to: str
    """The client that asked."""
    request: Any
    """One of the four that a coordinator takes."""
    offered: int
    """The coordinator's next free producer id."""


@attrs.frozen
class MarkersTaken:
    """A step in which a coordinator took the answer to markers."""

    broker: str
    transactional_id: str
    done: frozenset[str]
    """The partitions that have their marker."""
    gives_up: bool
    """Whether a partition says that the transaction was already ended there."""
    producer_epoch: int
    coordinator_epoch: int


@attrs.frozen
class TimeOutTaken:
    """A step in which a transaction's time was out."""

    broker: str
    offered: FrozenMap[str, int]
    """By partition of the log: the coordinator's next free producer id."""


@attrs.frozen
class DecidedEntry:
    """What follows from a step about one transactional id."""

    answered: SaidCode | None = None
    """At once."""
    entry: KnownTransaction | None = None
    """What is appended."""
    then: SaidCode | None = None
    """The answer when that is committed."""
    known: KnownTransaction | None = None
    """What the coordinator knows until then, or from now on."""
    pending: TxnState | None = None
    """What that is to become."""
    fences: bool = False
    repeats: bool = False
    """Whether the entry is the last one again."""


@attrs.frozen
class DecidedOn:
    """What a coordinator had before it when it decided."""

    event: str
    """A `request`, a `time-out`, the `commit` of an entry, the `completion` of a transaction, the `reload` of a log."""
    subject: Any
    """The request, or the entry in question."""
    known: KnownTransaction | None
    """What it knew of the transactional id."""
    pending: bool = False
    serves: bool = True
    """Whether it leads and has loaded its log."""
    failed_fence: bool = False
    offered: int = NONE

    @property
    def adds(self) -> bool:
        return isinstance(self.subject, AddPartitionsToTxnRequest | AddOffsetsToTxnRequest)

    @property
    def fences(self) -> bool:
        """Whether an open transaction is aborted for another producer, or for its time."""
        return self.event == "time-out" or isinstance(self.subject, InitProducerIdRequest)
