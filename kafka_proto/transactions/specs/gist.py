"""The gist: an earlier diary 02 without CompletePartialTxn, whose followers copy the leader's whole log."""

from __future__ import annotations

import attrs

from harness.model.spec import Next
from kafka_proto.transactions.specs import diary_02

become_leader = attrs.evolve(diary_02.elect_leader, name="BecomeLeader")

NEXT: Next = (*diary_02.NEXT[:6], (diary_02.commit_txn_log_append, become_leader, diary_02.become_follower))
"""The next-state relation: that of diary 02, but of CompletePartialTxn it speaks in a comment only (S5)."""
