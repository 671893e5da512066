"""What a state of replication's actors is in the terms of their version's module, so that runs can be checked.

One mapping serves the five versions whose modules build on KafkaReplication; AsyncIsr has its own. Its leader is a
constant: here it is the first leader, under the name `r1` (the two change names). The mapping is about the time in
which that leads. From then on its state stays as it is, and steps are not judged any more. A follower's offset is the
highest one that the leader has heard of. A partition epoch is a version.

In the others a record is identified by its leader epoch, offset and value, and numbered as it first appears. A replica
that looks up where to truncate is in its old role until it knows. A leader's ISR is the quorum's while it leads, and
the last one of its epoch when it is deposed: so a change of the ISR is a step of the spec where the controller makes
it. Fetches and look-ups count when they are served.
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
from kafka_proto.replication.leading import known_end_offset
from kafka_proto.replication.messages import AlterPartitionRequest, FetchResponse, OffsetsForLeaderEpochResponse
from kafka_proto.replication.properties import properties
from kafka_proto.replication.quorum import Quorum, are_eligible
from kafka_proto.replication.records import NIL, Isr, LeaderAndIsrRequest, Record
from kafka_proto.replication.replica_state import ReplicaState
from kafka_proto.replication.specs import async_isr
from kafka_proto.replication.specs.async_isr import LEADER, NEXT, AsyncIsrNames, IsrMessage
from kafka_proto.replication.specs.by_version import SPECS
from kafka_proto.replication.specs.names import ReplicationNames, initial, replicas
from kafka_proto.replication.versions import AS_WRITTEN, COUNTS, DEPARTURES, of_spec


@attrs.frozen
class AsyncIsrGhost:
    """What the mapping remembers of a run."""

    state: FrozenMap[str, Value]
    """The state of the module before: a leader that has crashed keeps its part of it, and all stays once it is deposed.
    """
    proposals: frozenset[AlterPartitionRequest] = frozenset()
    """What was proposed and may still be accepted, or could not be for its version."""
    lapsed: frozenset[AlterPartitionRequest] = frozenset()
    """What was proposed and is refused for whom it would let in. It stays refused, also where its version passes before
    the leader hears of that."""
    high_watermark: int = 0
    """The leader's own."""


def async_isr_refinement(sizes: Mapping[str, int], settings: Mapping[str, str]) -> Refinement:
    """Return AsyncIsr at the actors' size, without bounds and with its extensions, and the mapping to it."""
    bounds = AsyncIsrNames(replicas(sizes["replicas"]), UNBOUNDED, UNBOUNDED)
    names = departed(bounds, DEPARTURES, COUNTS[settings["counts"]])
    model = Model(
        "replication/async-isr", processes((*NEXT, *ACTIONS["async-isr"]), names), (async_isr.initial(names),),
        properties=async_isr.properties(names), types=(IsrMessage,),
    )
    return Refinement(
        model, partial(of_async_isr, names), AsyncIsrGhost(FrozenMap(async_isr.initial(names))), (),
        reasons(ACTIONS["async-isr"]), steps=len(names.replicas),
        by={
            "EarlyExpandIsr": ("ProposeExpandIsr",),
            "ShrinkIsrByMany": ("ProposeShrinkIsr",),
            "LapseRequests": ("ReceiveBrokerRegistrationRequest", "ProposeExpandIsr"),
            "ForgetPendingIsr": ("ReceiveAlterPartitionResponse",),
        },
    )


def of_async_isr(k: AsyncIsrNames, view: View, before: AsyncIsrGhost) -> tuple[Mapping[str, Value], AsyncIsrGhost]:
    """Return the module's state that a state of the actors stands for, and what is remembered of it.

    Raises ValueError if the leader's high watermark rises above what the module's would be.
    """
    q: Quorum = view[CONTROLLER].partition
    elected = next((n for n, request in enumerate(q.announced) if request.leader is not None), None)
    if elected is None or {request.leader for request in q.announced[elected:]} != {q.announced[elected].leader}:
        return before.state, before
    leader = q.announced[elected].leader
    assert leader is not None
    as_named = {leader: LEADER, LEADER: leader}
    missing = sorted(frozenset(k.replicas) - q.announced[elected].isr)
    offset = len(missing) - (elected + 1)

    def message(isr: Isr, partition_epoch: int) -> IsrMessage:
        """Return an ISR under the module's names, and a partition epoch as a version."""
        return IsrMessage(frozenset(as_named.get(name, name) for name in isr), partition_epoch + offset)

    s: ReplicaState = view[leader]
    state, proposals, mark = dict(before.state), before.proposals, before.high_watermark
    if s.active and s.leader == leader:
        mark, known, pending = s.high_watermark, message(s.isr, s.partition_epoch), IsrMessage(frozenset(), NIL)
        if s.proposal is not None:
            pending = message(s.proposal.new_isr, s.proposal.partition_epoch)
            proposals |= {s.proposal}
        state |= {
            slot("leaderState", "isr"): known.isr, slot("leaderState", "version"): known.version,
            slot("leaderState", "pendingIsr"): pending.isr, slot("leaderState", "pendingVersion"): pending.version,
        }
        for name in k.replicas:  # what the leader has heard of a follower stays true, also where it forgets it
            of = slot("leaderState", "offsets", as_named.get(name, name))
            heard = len(s.log) if name == leader else known_end_offset(s, name) or 0
            state[of] = max(before.state[of], heard)
    lapsed = before.lapsed | {
        p for p in proposals if p.partition_epoch == q.partition_epoch and not are_eligible(q, p.broker_epochs)
    }
    proposals -= lapsed
    now = message(q.isr, q.partition_epoch)
    left = (  # in the module, those that were out of the ISR before the first leader have left it one by one
        message(frozenset(k.replicas) - frozenset(missing[:n]), n - offset) for n in range(1, len(missing) + 1)
    )
    state["requests"] = frozenset(message(p.new_isr, p.partition_epoch) for p in proposals)
    state["updates"] = before.state["updates"] | frozenset((*left, *((now,) if now.version > 0 else ())))
    state |= {slot("controllerState", "isr"): now.isr, slot("controllerState", "version"): now.version}
    allowed = async_isr.high_watermark(k, View(state))
    if mark > max(allowed, before.high_watermark):
        raise ValueError(f"the high watermark rises to {mark}, and those who count have reached {allowed}")
    return state, AsyncIsrGhost(FrozenMap(state), proposals, lapsed, mark)


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

    The first election, one for each perturbation, and one more if it leaves no leader; so for each restart.
    """
    crashes = faults.crash + sum(timed.kind == "crash" for timed in faults.timed)
    return sizes["elections"] + 2 * sizes["fencings"] + 2 * crashes


def refinement(version: str, sizes: Mapping[str, int], settings: Mapping[str, str], faults: Faults) -> Refinement:
    """Return the spec of a version's actors at a size, its bounds lifted, its extensions on, and the mapping to it."""
    names = ReplicationNames(
        replicas(sizes["replicas"]), UNBOUNDED, UNBOUNDED, leader_epochs(sizes, faults),
        departed(AS_WRITTEN, (*DEPARTURES, *of_spec(version)), f"S8,S10,{settings.get('change', '')}"),
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

    Raises ValueError if a leader's high watermark passes an offset that a member of its ISR never held, or a
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


TYPES: tuple[type, ...] = (ReplicationGhost, AsyncIsrGhost)
