"""A record of the transaction log, and what its records tell: the last entry of each transactional id, and ghosts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.coordinator.transaction import PREPARED, TransactionMetadata, TxnState
from kafka_proto.broker.ghosts import Ghosts
from kafka_proto.requests import AddPartitionsToTxnRequest, CoordinatorRequest, EndTxnRequest


@attrs.frozen
class TransactionRecord:
    """An entry of a transactional id; None is a tombstone."""

    transactional_id: str
    entry: TransactionMetadata | None
    transaction: str = ""
    """The ghost: the application's transaction that was added to, or whose EndTxn this is."""


def last_entries(records: Iterable[TransactionRecord]) -> FrozenMap[str, TransactionMetadata]:
    """Return the last entry of each transactional id."""
    last = {record.transactional_id: record.entry for record in records}
    return FrozenMap({tid: entry for tid, entry in last.items() if entry is not None})


def ghosts_after(ghosts: Ghosts, record: TransactionRecord) -> Ghosts:
    """Return the ghosts after an entry is in the log: whose transaction is ongoing, and who decided its end."""
    tid, entry = record.transactional_id, record.entry
    if entry is None:
        return ghosts
    if entry.state is TxnState.ONGOING:
        return attrs.evolve(ghosts, ongoing=ghosts.ongoing.set(tid, record.transaction))
    if entry.state not in PREPARED:
        return ghosts
    cause = record.transaction or ghosts.ongoing.get(tid, "")
    decided = {cause} if entry.state is TxnState.PREPARE_COMMIT else set()
    return attrs.evolve(ghosts, causes=ghosts.causes.set(tid, cause), committed=ghosts.committed | decided)


def ghosts_of(records: Iterable[TransactionRecord]) -> Ghosts:
    """Return what a transaction log tells of the application's transactions."""
    return reduce(ghosts_after, records, Ghosts())


def can_log_any(request: CoordinatorRequest) -> bool:
    """Log what any request makes of a transaction (`TransactionLog.valueToBytes`)."""
    return True


def can_log_old_clients(request: CoordinatorRequest) -> bool:
    """Log nothing of a client that speaks part 2 of KIP-890: version 0 of `TransactionLogValue` has no field for it.

    So it is at `transaction.version` 0 of Kafka 4. What was begun stays pending, and the id is of no use any more.
    """
    if isinstance(request, AddPartitionsToTxnRequest):
        return request.version <= 3
    return not isinstance(request, EndTxnRequest) or request.version < 5
