"""Wrong steps of the replication specs, and the invariants that they break."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from harness.model import Model, Process, View, slot
from harness.model.spec import Change, SpecProcess
from kafka_proto.replication.specs import async_isr
from kafka_proto.replication.specs import kafka_replication as base
from kafka_proto.replication.specs.names import ReplicationNames, hw_of, leader_of

Changes = Callable[..., Iterable[Change]]


def mutated(model: Model, action: str, changes: Changes) -> Model:
    """Return a model in which one action does something else."""

    def instead(process: Process) -> SpecProcess:
        assert isinstance(process, SpecProcess)
        ((one, index),) = process.actions
        if one.name != action:
            return process
        return SpecProcess(process.name, process.k, ((attrs.evolve(one, changes=changes), index),))

    processes = tuple(instead(process) for process in model.processes)
    assert any(one.changes is changes for process in processes for one, _ in process.actions)
    return attrs.evolve(model, processes=processes)


def counts_nobody(k: ReplicationNames, view: View, leader: str) -> Iterable[Change]:
    """The high watermark rises without asking the ISR."""
    if leader_of(view, leader) == leader and hw_of(view, leader) < view.at("replicaLog", leader, "endOffset"):
        yield Change(((slot("replicaState", leader, "hw"), hw_of(view, leader) + 1),), leader)


def forgets_end_offset(k: ReplicationNames, view: View, leader: str) -> Iterable[Change]:
    """A record is written, and the end offset stays."""
    for change in base.leader_write.changes(k, view, leader):
        yield attrs.evolve(change, writes=tuple(w for w in change.writes if not w[0].endswith("[endOffset]")))


def keeps_failed_leader(k: ReplicationNames, view: View, replica: str) -> Iterable[Change]:
    """A failed leader loses its place in the ISR, but not its office."""
    leader = view.at("quorumState", "leader")
    for change in base.controller_shrink_isr.changes(k, view, replica):
        yield attrs.evolve(change, writes=(*change.writes, (slot("quorumState", "leader"), leader)))


def proposes_without_counting(k: async_isr.AsyncIsrNames, view: View, replica: str) -> Iterable[Change]:
    """RP-10: the leader proposes a member and goes on counting without it."""
    for change in async_isr.leader_request_expand_isr.changes(k, view, replica):
        yield attrs.evolve(change, writes=tuple(w for w in change.writes if not w[0].endswith("[pendingIsr]")))


def proposes_version_below_none(k: async_isr.AsyncIsrNames, view: View, replica: str) -> Iterable[Change]:
    for change in async_isr.leader_request_shrink_isr.changes(k, view, replica):
        yield attrs.evolve(change, writes=(*change.writes, (slot("leaderState", "pendingVersion"), -2)))


KIP_320_MUTANTS: list[tuple[Any, ...]] = [
    ("MCTypeOk", "LeaderWrite", forgets_end_offset, 4,
     "replicaLog[r1][records] holds (Record(id=0, epoch=0),), which is not of its type"),
    ("WeakIsr", "FencedLeaderIncHighWatermark", counts_nobody, 5,
     "r2 is in r1's own ISR but does not hold r1's record at offset 0, "
     "while r1 presumes to lead epoch 0 with the high watermark 1"),
    ("StrongIsr", "FencedLeaderIncHighWatermark", counts_nobody, 5,
     "r2 is in the quorum's ISR but does not hold r1's record at offset 0, "
     "while r1 presumes to lead epoch 0 with the high watermark 1"),
    ("LeaderInIsrOrNone", "ControllerShrinkIsr", keeps_failed_leader, 3, "r1 leads the quorum but its ISR is {r2}"),
]
ASYNC_ISR_MUTANTS: list[tuple[Any, ...]] = [
    ("ValidHighWatermark", "LeaderRequestExpandIsr", proposes_without_counting, 6,
     "r2 is in the controller's ISR at offset 0, below the leader's high watermark 1"),
    ("MCTypeOk", "LeaderRequestShrinkIsr", proposes_version_below_none, 2,
     "leaderState[pendingVersion] holds -2, which is below -1"),
]
