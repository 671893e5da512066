"""Which requests the format of the transaction log has an entry for (`TransactionLog.valueToBytes`)."""

from __future__ import annotations

from kafka_proto.requests.transactions import AddPartitionsToTxnRequest, CoordinatorRequest, EndTxnRequest


def can_log_any(request: CoordinatorRequest) -> bool:
    """Log what any request makes of a transaction."""
    return True


def can_log_old_clients(request: CoordinatorRequest) -> bool:
    """Log nothing of a client that speaks part 2 of KIP-890: version 0 of `TransactionLogValue` has no field for it.

    So it is at `transaction.version` 0 of Kafka 4. What was begun stays pending, and the id is of no use any more.
    """
    if isinstance(request, AddPartitionsToTxnRequest):
        return request.version <= 3
    return not isinstance(request, EndTxnRequest) or request.version < 5
