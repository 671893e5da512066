"""What a state of the actors of `async-isr` is in the terms of AsyncIsr, so that recorded runs can be held against it.

The module's leader is a constant: here it is who is elected first, under the name `r1` (the two change names). The
mapping is about the time in which it leads. From then on its state stays as it is, and steps are not judged any more.
A follower's offset is the highest one that the leader has heard of. A partition epoch is a version.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs

from harness.model import FrozenMap, Model, Refinement, Value, View, departed, slot
from harness.model.spec import processes, reasons
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.extensions.async_isr import ACTIONS
from kafka_proto.replication.leading import known_end_offset
from kafka_proto.replication.messages import AlterPartitionRequest
from kafka_proto.replication.quorum import Quorum, are_eligible
from kafka_proto.replication.records import NIL, Isr
from kafka_proto.replication.replica_state import ReplicaState
from kafka_proto.replication.specs import async_isr
from kafka_proto.replication.specs.async_isr import LEADER, NEXT, AsyncIsrNames, IsrMessage
from kafka_proto.replication.specs.names import replicas
from kafka_proto.replication.versions import COUNTS, DEPARTURES

UNBOUNDED = 1_000_000
"""The bounds of the spec belong to its constraint; none applies here."""


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


def refinement(sizes: Mapping[str, int], settings: Mapping[str, str]) -> Refinement:
    """Return AsyncIsr at the actors' size, without bounds and with its extensions, and the mapping to it."""
    bounds = AsyncIsrNames(replicas(sizes["replicas"]), UNBOUNDED, UNBOUNDED)
    names = departed(bounds, DEPARTURES, COUNTS[settings["counts"]])
    model = Model(
        "replication/async-isr", processes((*NEXT, *ACTIONS), names), (async_isr.initial(names),),
        properties=async_isr.properties(names), types=(IsrMessage,),
    )
    return Refinement(
        model, partial(abstract, names), AsyncIsrGhost(FrozenMap(async_isr.initial(names))), (), reasons(ACTIONS),
        steps=len(names.replicas),
        by={
            "EarlyExpandIsr": ("ProposeExpandIsr",),
            "ShrinkIsrByMany": ("ProposeShrinkIsr",),
            "LapseRequests": ("ReceiveBrokerRegistrationRequest", "ProposeExpandIsr"),
            "ForgetPendingIsr": ("ReceiveAlterPartitionResponse",),
        },
    )


def abstract(k: AsyncIsrNames, view: View, before: AsyncIsrGhost) -> tuple[Mapping[str, Value], AsyncIsrGhost]:
    """Return the module's state that a state of the actors stands for, and what is remembered of it.

    Raises ValueError where the leader's high watermark rises above what the module's would be.
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
    left = (  # those who were out of the ISR before anybody led have left it one by one, in the module
        message(frozenset(k.replicas) - frozenset(missing[:n]), n - offset) for n in range(1, len(missing) + 1)
    )
    state["requests"] = frozenset(message(p.new_isr, p.partition_epoch) for p in proposals)
    state["updates"] = before.state["updates"] | frozenset((*left, *((now,) if now.version > 0 else ())))
    state |= {slot("controllerState", "isr"): now.isr, slot("controllerState", "version"): now.version}
    allowed = async_isr.high_watermark(k, View(state))
    if mark > max(allowed, before.high_watermark):
        raise ValueError(f"the high watermark rises to {mark}, and those who count have reached {allowed}")
    return state, AsyncIsrGhost(FrozenMap(state), proposals, lapsed, mark)


TYPES: tuple[type, ...] = (AsyncIsrGhost,)
