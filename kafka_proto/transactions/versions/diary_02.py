"""Diary 02 as published, and the gist, which is earlier: the decisions that a version is made of, and theirs."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kafka_proto.transactions.decisions import client, completion, election
from kafka_proto.transactions.decisions.add_partitions import add_partitions
from kafka_proto.transactions.decisions.init_producer_id import init_producer_id
from kafka_proto.transactions.decisions.outcome import DiaryOutcome
from kafka_proto.transactions.decisions.producer_ids import set_back_to_pid
from kafka_proto.transactions.records import ClientRecord, Entry, TxnMetadata


@attrs.frozen(kw_only=True)
class Version:
    """A version, with one decision for each request and event, of brokers and of clients."""

    name: str

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


DIARY_02 = Version(
    name="diary-02",
    init_producer_id=init_producer_id,
    pid_source_after=set_back_to_pid,
    add_partitions=add_partitions,
    entry_committed=completion.entry_committed,
    complete_partial_txn=completion.complete_partial_txn,
    must_follow=election.deposed_leader_follows,
    follower_log=election.truncated_log,
    materialized=election.materialized_alone,
    init_answered=client.init_answered,
    add_answered=client.add_answered,
)
GIST = attrs.evolve(
    DIARY_02, name="gist", complete_partial_txn=None, must_follow=election.every_replica_follows,
    follower_log=election.leaders_log, init_answered=client.init_answered_keeping_error,
)
