"""The versions of the transaction protocol: diaries 01 and 02 as published, the gist, and departures from them.

A version lists its decisions; a version that is registered in `kafka_proto.transactions.models` is a model. A flaw of
the published specs is mended by a departure in one place, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from harness.model import Departure, View, departed
from kafka_proto.transactions.decisions import client, completion, election
from kafka_proto.transactions.decisions.completion import complete_partial_txn
from kafka_proto.transactions.decisions.coordinator import DiaryOutcome, add_partitions, init_producer_id
from kafka_proto.transactions.records import ClientRecord, Entry, TxnMetadata


def set_back_to_pid(pid_source: int, pid: int) -> int:
    """S1, as written: the source of producer ids becomes the one just used, even that of an existing id."""
    return pid


def never_back(pid_source: int, pid: int) -> int:
    """S1 repaired: the source of producer ids never goes back."""
    return max(pid_source, pid)


def others_overwritten(view: View, b: str, tid: str) -> TxnMetadata | None:
    """S6, as written: when a transition of one id starts, those of the others become what is known of these ids."""
    metadata: TxnMetadata | None = view.at("tc_txn_metadata", b, tid)
    return metadata


def others_kept(view: View, b: str, tid: str) -> TxnMetadata | None:
    """S6 repaired: pending transitions of other ids stay as they are."""
    pending: TxnMetadata | None = view.at("tc_txn_transition", b, tid)
    return pending


@attrs.frozen
class PidVersion:
    """A version of diary 01."""

    pid_source_after: Callable[[int, int], int]
    others_pending: Callable[[View, str, str], TxnMetadata | None]


DIARY_01 = PidVersion(set_back_to_pid, others_overwritten)


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
    """None if a version leaves what its predecessor prepared alone."""
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


DEPARTURES = (
    Departure("S1", "a producer id is given twice", {"pid_source_after": never_back}),
    Departure("S2", "a third replica never learns the epoch", {"must_follow": election.every_replica_follows}),
    Departure("S3", "an election wipes other metadata", {"materialized": election.materialized_beside_others}),
    Departure("S4", "a follower copies an uncommitted tail", {"follower_log": election.truncated_log}),
    Departure("S5", "a prepared abort is never completed", {"complete_partial_txn": complete_partial_txn}),
    Departure("S6", "a pending transition is never cleared", {"others_pending": others_kept}),
)
"""Ids of docs/models/transactions.md. S1 is in all three specs, S2 in diary 02, S3 in it and the gist, S4 and S5 in
the gist, S6 in diary 01."""
REPAIRED = attrs.evolve(departed(DIARY_02, DEPARTURES, "S1,S2,S3"), name="repaired")
"""What coordinators of whole transactions are checked against."""
