"""A transaction as its coordinator keeps it (`TransactionMetadata`), its states, and what each of them may become."""

from __future__ import annotations

import attrs

from kafka_proto.log import MAX_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kafka_proto.requests import TxnState as TxnState

PREPARED = (TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT)
AT_REST = (TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT)
VALID_PREVIOUS = {
    TxnState.EMPTY: AT_REST,
    TxnState.ONGOING: (TxnState.ONGOING, *AT_REST),
    TxnState.PREPARE_COMMIT: (TxnState.ONGOING,),
    TxnState.PREPARE_ABORT: (TxnState.ONGOING, TxnState.PREPARE_EPOCH_FENCE, *AT_REST),
    TxnState.COMPLETE_COMMIT: (TxnState.PREPARE_COMMIT,),
    TxnState.COMPLETE_ABORT: (TxnState.PREPARE_ABORT,),
    TxnState.DEAD: AT_REST,
    TxnState.PREPARE_EPOCH_FENCE: (TxnState.ONGOING,),
}
"""`TransactionState.validPreviousStates`; an abort of what is at rest is KIP-890's, and its EndTxn alone gets there."""
LAST_EPOCH = MAX_EPOCH - 1
"""The last one that a client is given; the one after it is for fencing only."""


@attrs.frozen
class TransactionMetadata:
    """What the transaction log has of a transactional id; `previous_producer_id` is the one before the last change."""

    producer_id: int
    state: TxnState = TxnState.EMPTY
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """Between Prepare* and Complete* of a transaction that used up its epochs (KIP-890)."""
    partitions: tuple[str, ...] = ()
    """Names, sorted."""
    timeout_ms: int = 0
    start_timestamp: int = -1
    last_update_timestamp: int = -1
    transaction_version: int = 0
    """Of the client that made the last change: 2 bumps the epoch at each end (KIP-890)."""

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH

    @property
    def bumps_epoch(self) -> bool:
        return self.transaction_version >= 2


@attrs.frozen
class CachedTransaction:
    """A transaction in a coordinator's cache, with what is under way and not yet in the log."""

    metadata: TransactionMetadata
    pending_state: TxnState | None = None
    has_failed_epoch_fence: bool = False
    """A fence's append failed: its epoch was never given to anybody, so the next fence needs no other (KAFKA-9666)."""


class IllegalTransition(Exception):
    """A change that the coordinator's code takes for impossible; a client is told UNKNOWN_SERVER_ERROR."""


def prepare(cached: CachedTransaction, **changes: object) -> TransactionMetadata:
    """Return a transaction after a change that is to be appended (`prepareTransitionTo`).

    Raises IllegalTransition where the change is none of `VALID_PREVIOUS`, or the epoch no epoch.
    """
    now = cached.metadata
    after = attrs.evolve(now, previous_producer_id=now.producer_id, **changes)  # type: ignore[arg-type]
    if cached.pending_state is not None:
        raise IllegalTransition(f"{after.state} while {cached.pending_state} is pending")
    if not 0 <= after.producer_epoch <= MAX_EPOCH:
        raise IllegalTransition(f"epoch {after.producer_epoch}")
    if now.state not in VALID_PREVIOUS[after.state]:
        raise IllegalTransition(f"{after.state} after {now.state}")
    return after
