"""Witnesses of leaders that moved in the midst of something, as replicated logs tell: the writer of each epoch."""

from __future__ import annotations

from collections.abc import Callable

from harness.model import Property, View, sometimes
from kafka_proto.broker.coordinator.transaction import PREPARED, TxnState
from kafka_proto.broker.parts import REPLICA
from kafka_proto.broker.placement import Placement
from kafka_proto.cluster.logs import ReplicatedLogs
from kafka_proto.replication.replica_state import ReplicaState

WITNESSES = (
    "CoordinatorMovedAtRest", "CoordinatorMovedWhileOngoing", "CoordinatorMovedWhilePrepared", "LeaderMovedWhileOpen",
    "LeaderLookedUp",
)


def states_left(state: ReplicaState) -> frozenset[TxnState]:
    """Return the states of transactions whose next entry is another coordinator's."""
    before: dict[str, tuple[TxnState, int]] = {}
    found = set[TxnState]()
    for entry in state.log:
        tid, metadata = entry.value.transactional_id, entry.value.entry
        if tid in before and before[tid][1] < entry.epoch:
            found.add(before[tid][0])
        before[tid] = metadata.state, entry.epoch
    return frozenset(found)


def left_open(state: ReplicaState) -> bool:
    """Say whether a transaction was open in a partition when its next batch, or marker, is another leader's."""
    open_: dict[int, int] = {}
    for entry in state.log:
        batch = entry.value
        if open_.get(batch.producer_id, entry.epoch) < entry.epoch:
            return True
        if batch.marker is not None:
            open_.pop(batch.producer_id, None)
        elif batch.is_transactional:
            open_[batch.producer_id] = entry.epoch
    return False


def witnesses(placement: Placement, logs: ReplicatedLogs, looked_up: Callable[[View], bool]) -> tuple[Property, ...]:
    """Return what is worth reaching where leaders move."""

    def left(view: View, *states: TxnState) -> bool:
        return any(
            not REPLICA[p].derived(view, logs.leader(view, p), states_left).isdisjoint(states)
            for p in placement.transaction_partitions
        )

    return (
        sometimes("CoordinatorMovedAtRest", lambda view: left(
            view, TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT
        )),
        sometimes("CoordinatorMovedWhileOngoing", lambda view: left(view, TxnState.ONGOING)),
        sometimes("CoordinatorMovedWhilePrepared", lambda view: left(view, *PREPARED)),
        sometimes("LeaderMovedWhileOpen", lambda view: any(
            REPLICA[p].derived(view, logs.leader(view, p), left_open) for p in placement.partitions
        )),
        sometimes("LeaderLookedUp", looked_up),
    )
