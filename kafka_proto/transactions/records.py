"""The records that clients and coordinators keep, named as in the specs, and the transition table of a transaction."""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import absent_if_none
from kafka_proto.requests import TxnState
from kafka_proto.transactions import messages
from kafka_proto.transactions.messages import Response, SpecError

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
    """Return the metadata of a transactional id that nobody has seen, with a new producer id."""
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


TYPES: tuple[type, ...] = (*messages.TYPES, TxnMetadata, Callback, Entry, LogMetadata, ClientRecord)
"""What occurs in states and messages."""
