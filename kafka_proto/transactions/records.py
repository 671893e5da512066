"""The records that clients and coordinators keep, named as in Kafka, and the transition table of a transaction."""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import absent_if_none
from kafka_proto.replication.known import LeaderAndEpoch
from kafka_proto.requests.transaction_state import TxnState
from kafka_proto.transactions import messages
from kafka_proto.transactions.messages import Error, Response

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
class TransactionMetadata:
    """What a coordinator knows of a transactional id: committed, or pending as a transition.

    `last_producer_id` is part of freshly made metadata and of diary 01's transitions only.
    """

    producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    state: TxnState
    partitions: frozenset[str]
    last_producer_id: int | None = attrs.field(default=None, metadata=absent_if_none())


def fresh_metadata(producer_id: int) -> TransactionMetadata:
    """Return the metadata of a transactional id that nobody has seen, with a new producer id."""
    return TransactionMetadata(producer_id, -1, -1, TxnState.EMPTY, frozenset(), last_producer_id=-1)


@attrs.frozen
class Callback:
    """What to do when a log entry commits (`response`) or its coordinator is deposed first (`err`)."""

    type: str
    response: Response | None = None
    err: Response | None = None


@attrs.frozen
class Entry:
    """An entry of the transaction log: the transition of a transactional id, and its callback."""

    transactional_id: str
    transition: TransactionMetadata
    callback: Callback


@attrs.frozen
class TxnRecord:
    """A record of a replicated transaction log. Who is answered when it commits stays with the leader."""

    transactional_id: str
    transition: TransactionMetadata


def entry_of(record: TxnRecord, callback: Callback) -> Entry:
    """Return a record as the entry that the coordinator's decisions speak of, with what its commit sets off."""
    return Entry(record.transactional_id, record.transition, callback)


class ClientState(StrEnum):
    """States of a client; not part of the protocol, they drive it."""

    READY = "Ready"
    SENT_INIT_PID_REQUEST = "SentInitPidRequest"
    HAS_PID = "HasPid"
    BEGUN_TXN = "BegunTxn"
    TERMINATED = "Terminated"


@attrs.frozen
class ClientRecord:
    """What a client knows of its transaction; diary 02 and the gist keep the same."""

    state: ClientState = ClientState.READY
    coordinator: str | None = None
    transactional_id: str | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    last_state: ClientState | None = None
    last_error: Error | None = None
    pending_partitions: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()


TYPES: tuple[type, ...] = (*messages.TYPES, TransactionMetadata, Callback, LeaderAndEpoch, ClientRecord)
"""What occurs in the states and messages of actors, whatever their log is."""
