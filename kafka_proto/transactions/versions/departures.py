"""The flaws of the published specs as departures from them: each is mended in one place, and nothing else changes."""

from __future__ import annotations

import attrs

from harness.model import Departure, departed
from kafka_proto.transactions.decisions import election
from kafka_proto.transactions.decisions.completion import complete_partial_txn
from kafka_proto.transactions.decisions.producer_ids import never_back
from kafka_proto.transactions.versions.diary_01 import others_kept
from kafka_proto.transactions.versions.diary_02 import DIARY_02

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
"""What coordinators of whole transactions are held against."""
