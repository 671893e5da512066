"""What a version of the transaction protocol is made of: decisions, those of brokers and those of clients.

Brokers and clients may be of different versions: a broker asks its own for the first part, a client for the second.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kafka_proto.transactions.decisions.outcome import Outcome
from kafka_proto.transactions.records import ClientRecord, Entry, TransactionMetadata


@attrs.frozen(kw_only=True)
class Version:
    """A version, with one decision for each request and event."""

    name: str
    election: str = "ElectLeader"
    """The name of the election action."""

    init_producer_id: Callable[..., Outcome]
    pid_source_after: Callable[[int, int], int]
    """The source of producer ids after a request, from the source and the producer id that the request is about."""
    add_partitions: Callable[..., Outcome]
    entry_committed: Callable[[Entry], Outcome]
    complete_partial_txn: Callable[..., Entry | None] | None
    """None where a version leaves what its predecessor prepared alone."""
    must_follow: Callable[[str, str, int, str, int], bool]
    follower_log: Callable[..., tuple[Entry, ...]]
    materialized: Callable[[bool, TransactionMetadata | None, TransactionMetadata | None], TransactionMetadata | None]

    init_answered: Callable[..., ClientRecord]
    add_answered: Callable[..., ClientRecord]
    given_up: Callable[[ClientRecord], ClientRecord]
