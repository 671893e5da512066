"""What a state of replication's actors is in the terms of their version's module, so that runs can be held against it.

One mapping serves the five versions whose modules build on KafkaReplication; `async_isr_refinement` has the sixth.
A record is identified by its leader epoch, offset and value, and numbered as it first appears. A replica that looks up
where to truncate is in its old role until it knows. A leader's ISR is the quorum's while it leads, and the last one of
its epoch when it is deposed: so a change of the ISR is a step of the spec where the controller makes it. Fetches and
look-ups count when they are served.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs

from harness.model import Faults, FrozenMap, Model, Refinement, Value, View, departed, slot
from harness.model.spec import flat, processes, reasons
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.extensions import ACTIONS
from kafka_proto.replication.leadership import is_true_leader
from kafka_proto.replication.messages import FetchResponse, OffsetsForLeaderEpochResponse
from kafka_proto.replication.properties import properties
from kafka_proto.replication.quorum import Quorum
from kafka_proto.replication.records import NIL, Isr, LeaderAndIsrRequest, Record
from kafka_proto.replication.replica_state import ReplicaState
from kafka_proto.replication.specs.by_version import SPECS
from kafka_proto.replication.specs.names import ReplicationNames, initial, replicas
from kafka_proto.replication.versions import AS_WRITTEN, DEPARTURES

UNBOUNDED = 1_000_000
"""More records than any run has: the bounds of the spec, lifted."""

BY: Mapping[str, tuple[str, ...]] = {
    **{f"{kind}IncHighWatermark": ("IncreaseHighWatermark",)
       for kind in ("Leader", "ImprovedLeader", "FencedLeader", "DeposedLeader", "Stale")},
    "ForgetHighWatermark": (
        "Crash", "ReceiveBrokerRegistrationRequest", "ControllerElectLeader", "ControllerShrinkIsr",
    ),
    "LateShrinkIsr": ("ReceiveAlterPartitionRequest",),
    "LateExpandIsr": ("ReceiveAlterPartitionRequest",),
    "LeaderWrite": ("ReceiveProduceRequest",),
    "FollowEmptyLog": ("ReceiveLeaderAndIsrRequest",),
}
"""The actions of the actors that some actions of the specs are kept to."""


@attrs.frozen
class ReplicationGhost:
    """What the mapping remembers of a run."""

    records: tuple[tuple[int, int, Value], ...] = ()
    """Every record so far, by epoch, offset and value, in order of appearance."""
    high_watermarks: FrozenMap[str, int] = FrozenMap()
    """What each replica knew last; a leader that has crashed forgets it in the spec when it is deposed."""
    longest: FrozenMap[str, int] = FrozenMap()
    """The highest end offset that each replica's log ever had."""
    isr: Isr = frozenset()
    """The quorum's."""


def leader_epochs(sizes: Mapping[str, int], faults: Faults) -> int:
    """Return the last leader epoch that a run can reach.

    The first election, one for each perturbation, and one more where it leaves nobody leading; so for each restart.
    """
    crashes = faults.crash + sum(timed.kind == "crash" for timed in faults.timed)
    return sizes["elections"] + 2 * sizes["fencings"] + 2 * crashes


def refinement(version: str, sizes: Mapping[str, int], faults: Faults) -> Refinement:
    """Return the spec of a version's actors at a size, its bounds lifted, its extensions on, and the mapping to it."""
    names = ReplicationNames(
        replicas(sizes["replicas"]), UNBOUNDED, UNBOUNDED, leader_epochs(sizes, faults),
        departed(AS_WRITTEN, DEPARTURES, "S8,S10"),
    )
    next_state = (*SPECS[version].next_state, *ACTIONS[version])
    model = Model(
        f"replication/{version}", processes(next_state, names), (initial(names),), properties=properties(names),
        types=(Record, LeaderAndIsrRequest),
    )
    own = {action.name for action in flat(next_state)}
    return Refinement(
        model, partial(abstract, names), ReplicationGhost(), (FetchResponse, OffsetsForLeaderEpochResponse),
        reasons(ACTIONS[version]), steps=len(names.replicas),
        by={name: actions for name, actions in BY.items() if name in own},
    )


def abstract(k: ReplicationNames, view: View, before: ReplicationGhost) -> tuple[Mapping[str, Value], ReplicationGhost]:
    """Return the spec's state that a state of the actors stands for, and every record up to then."""
    q: Quorum = view[CONTROLLER].partition
    replicas: dict[str, ReplicaState] = {name: view[name] for name in k.replicas}
    known = dict.fromkeys(before.records)
    for s in replicas.values():
        known.update(dict.fromkeys((entry.epoch, at, entry.value) for at, entry in enumerate(s.log)))
    marks = FrozenMap({
        name: known_high_watermark(q, name, s, before.high_watermarks.get(name, 0)) for name, s in replicas.items()
    })
    number = {record: n for n, record in enumerate(known)}
    state: dict[str, Value] = {
        "nextLeaderEpoch": q.leader_epoch + 1,
        "nextRecordId": len(number),
        slot("quorumState", "leader"): q.leader,
        slot("quorumState", "leaderEpoch"): q.leader_epoch,
        slot("quorumState", "isr"): q.isr,
    }
    for n, epoch in enumerate(k.epochs):
        state[slot("leaderAndIsrRequests", epoch)] = (
            LeaderAndIsrRequest(*attrs.astuple(q.announced[n], recurse=False)) if n < len(q.announced) else None
        )
    for name, s in replicas.items():
        records = tuple(Record(number[e.epoch, at, e.value], e.epoch) for at, e in enumerate(s.log))
        state[slot("replicaLog", name, "records")] = records
        state[slot("replicaLog", name, "endOffset")] = len(records)
        state[slot("replicaState", name, "hw")] = marks[name]
        state[slot("replicaState", name, "leaderEpoch")] = s.leader_epoch
        state[slot("replicaState", name, "leader")] = s.leader
        state[slot("replicaState", name, "isr")] = known_isr(q, name, s)
    longest = FrozenMap({name: max(len(s.log), before.longest.get(name, 0)) for name, s in replicas.items()})
    after = ReplicationGhost(tuple(number), marks, longest, q.isr)
    checked(q, replicas, before, after)
    return state, after


def checked(q: Quorum, replicas: Mapping[str, ReplicaState], before: ReplicationGhost, after: ReplicationGhost) -> None:
    """Compare what counts with what was ever held: an extension may be about stale news, not about wrong ones.

    Raises ValueError where a leader's high watermark passes an offset that a member of its ISR never held, or a
    replica enters the quorum's ISR that never reached the leader's high watermark.
    """
    for name, s in replicas.items():
        mark = after.high_watermarks[name]
        if not s.active or s.leader != name or mark <= before.high_watermarks.get(name, 0):
            continue
        for member in sorted(known_isr(q, name, s)):
            if after.longest[member] < mark:
                raise ValueError(f"{name}'s high watermark rises to {mark}, and {member} never held as much")
    if q.leader is not None and before.isr:
        mark = after.high_watermarks[q.leader]
        for member in sorted(q.isr - before.isr):
            if after.longest[member] < mark:
                raise ValueError(f"{member} enters the ISR, and never reached {q.leader}'s high watermark {mark}")


def known_high_watermark(q: Quorum, name: str, s: ReplicaState, before: int) -> int:
    """Return a replica's high watermark in the spec's terms: a leader that has crashed keeps it until it is deposed."""
    leads = is_true_leader(name, s.leader, s.leader_epoch, q.leader, q.leader_epoch)
    return before if leads and not s.active else s.high_watermark


def known_isr(q: Quorum, name: str, s: ReplicaState) -> Isr:
    """Return the ISR that a replica knows in the spec's terms: a leader hears of a change when it is made.

    A follower knows the ISR with which its epoch began, also where it heard of the epoch later.
    """
    if s.leader != name:
        return q.announced[s.leader_epoch].isr if s.leader_epoch != NIL else s.isr
    if is_true_leader(name, s.leader, s.leader_epoch, q.leader, q.leader_epoch):
        return q.isr
    return q.last_isr[str(s.leader_epoch)]


TYPES: tuple[type, ...] = (ReplicationGhost,)
