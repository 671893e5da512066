"""The gist: an earlier diary 02 without CompletePartialTxn, whose followers copy the leader's whole log."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from harness.model import Faults, Model, Network, departed
from harness.model.spec import Next
from kafka_proto.transactions.specs import diary_02
from kafka_proto.transactions.specs.names import Names
from kafka_proto.transactions.versions.departures import DEPARTURES
from kafka_proto.transactions.versions.diary_02 import GIST

become_leader = attrs.evolve(diary_02.elect_leader, name="BecomeLeader")

NEXT: Next = (*diary_02.NEXT[:6], (diary_02.commit_txn_log_append, become_leader, diary_02.become_follower))
"""The next-state relation: that of diary 02, but of CompletePartialTxn it speaks in a comment only (S5)."""


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
) -> Model:
    """Build the gist at a size, with the repairs that the settings name."""
    k = Names.of(sizes, version=departed(GIST, DEPARTURES, settings["repair"]))
    next_state = NEXT if k.version.complete_partial_txn is None else (*NEXT, diary_02.complete_partial_txn)
    return diary_02.compose(next_state, k, sizes, settings, network, faults, history_variables)
