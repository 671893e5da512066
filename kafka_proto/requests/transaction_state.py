"""The states of a transaction, by the names that DescribeTransactions and ListTransactions have for them."""

from __future__ import annotations

from enum import StrEnum


class TxnState(StrEnum):
    """States of a transaction at its coordinator, by the names of Kafka's listings.

    `PrepareEpochFence` is only ever pending, `Dead` never written.
    """

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
