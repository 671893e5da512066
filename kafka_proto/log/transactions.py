"""Transactions as a partition's log sees them: open ones, ended ones whose marker is not replicated, aborted ones."""

from __future__ import annotations

import attrs


@attrs.frozen
class OpenTransaction:
    """A transaction without marker (`TxnMetadata`)."""

    first_offset: int
    producer_id: int


@attrs.frozen
class EndedTransaction:
    """A transaction whose marker, at `last_offset`, was not below the high watermark when last looked at."""

    first_offset: int
    last_offset: int
    producer_id: int


@attrs.frozen
class AbortedTransaction:
    """An entry of the index of aborted transactions (`AbortedTxn`): records from `first_offset` to the marker are void.

    `last_stable_offset` is that of the log once the marker is replicated; it grows from entry to entry.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
