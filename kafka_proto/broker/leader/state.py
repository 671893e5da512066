"""What the leader of a partition keeps: its log, and the verifications under way (`VerificationStateEntry`)."""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import FrozenMap, fresh, volatile
from kafka_proto.log import EMPTY_LOG, PartitionLog, ProducerState

NO_GUARD = 0


class Origin(StrEnum):
    """Where a batch comes from, which says how much of it is checked (`AppendOrigin`)."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


class SupportedOperation(StrEnum):
    """What a leader asks of the coordinator on behalf of a request (`TransactionSupportedOperation`)."""

    DEFAULT_ERROR = "default error"
    """Verify; the client knows no TRANSACTION_ABORTABLE."""
    GENERIC_ERROR = "generic error"
    """Verify."""
    ADD_PARTITION = "add partition"
    """Add the partition to the transaction (KIP-890 part 2)."""


@attrs.frozen
class Verification:
    """A verification of a transaction's first batch, volatile. The guard is an object of one round: a fresh number."""

    guard: int = attrs.field(metadata=fresh("guard", "self", "part"))
    lowest_sequence: int
    producer_epoch: int
    adds_partition: bool
    started: int


@attrs.frozen
class LeaderState:
    """A partition's leader: what it derives from its log, and the verifications under way."""

    log: PartitionLog = volatile(default=EMPTY_LOG)
    verifications: FrozenMap[int, Verification] = volatile(default=FrozenMap())
    guards: int = volatile(default=0, metadata=fresh("guard", "self", "part"))
    """How many were made; `NO_GUARD` is none."""
    serves: bool = volatile(default=False)


def has_open_transaction(state: ProducerState, producer_epoch: int) -> bool:
    """Say whether a producer has an open transaction, of whatever epoch (up to 3.9)."""
    return state.open_from is not None


def has_open_transaction_of_epoch(state: ProducerState, producer_epoch: int) -> bool:
    """Say whether a producer has an open transaction of this epoch: an older one's may still be open (KAFKA-18575)."""
    return state.open_from is not None and state.producer_epoch == producer_epoch
