"""What a version of the transaction protocol is made of: decisions, those of brokers and those of clients.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kafka_proto.transactions.decisions.outcome import DiaryOutcome
from kafka_proto.transactions.records import ClientRecord, Entry, TxnMetadata


@attrs.frozen(kw_only=True)
class Version:
    """A version, with one decision for each request and event."""

    name: str
    election: str = "ElectLeader"
    """The name of the election action."""

    init_producer_id: Callable[..., DiaryOutcome]
    pid_source_after: Callable[[int, int], int]
    """The source of producer ids after a request, from the source and the producer id that the request is about."""
    add_partitions: Callable[..., DiaryOutcome]
    entry_committed: Callable[[Entry], DiaryOutcome]
    complete_partial_txn: Callable[..., Entry | None] | None
    """None where a version leaves what its predecessor prepared alone."""
    must_follow: Callable[[str, str, int, str, int], bool]
    follower_log: Callable[..., tuple[Entry, ...]]
    materialized: Callable[[bool, TxnMetadata | None, TxnMetadata | None], TxnMetadata | None]

    init_answered: Callable[..., ClientRecord]
    add_answered: Callable[..., ClientRecord]
