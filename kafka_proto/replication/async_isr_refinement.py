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
    """Return the module's state that a state of the actors stands for. Raises ValueError: see `checked`."""
    q: Quorum = view[CONTROLLER].partition
    elected = next((n for n, request in enumerate(q.announced) if request.leader is not None), None)
    if elected is None or {request.leader for request in q.announced[elected:]} != {q.announced[elected].leader}:
        return before.state, before
    leader = q.announced[elected].leader
    assert leader is not None
    as_named = {leader: LEADER, LEADER: leader}
    first = q.announced[elected].isr
    missing = sorted(frozenset(k.replicas) - first)
    offset = len(missing) - (elected + 1)
    return AsyncIsrMapped(k, q, view[leader], before, leader, as_named, tuple(missing), offset).state()


@attrs.frozen
class AsyncIsrMapped:
    """One state, mapped: what its parts need to know of each other."""

    k: AsyncIsrNames
    q: Quorum
    s: ReplicaState
    before: AsyncIsrGhost
    leader: str
    as_named: Mapping[str, str]
    missing: tuple[str, ...]
    """Who was out of the ISR before anybody led: they have left it one by one, in the module."""
    offset: int
    """From a partition epoch to a version."""

    def state(self) -> tuple[Mapping[str, Value], AsyncIsrGhost]:
        """Return the state of the module, and what is remembered of it."""
        was, s = self.before.state, self.s
        leads = s.active and s.leader == self.leader
        state = dict(was)
        proposals = self.before.proposals
        if leads:
            state.update(self.known_to_the_leader())
            proposals |= frozenset(() if s.proposal is None else (s.proposal,))
        version = self.version(self.q.partition_epoch)
        lapsed = self.before.lapsed | frozenset(
            p for p in proposals
            if self.version(p.partition_epoch) == version and not are_eligible(self.q, p.broker_epochs)
        )
        proposals -= lapsed
        state["requests"] = frozenset(self.message(p.new_isr, p.partition_epoch) for p in proposals)
        state["updates"] = was["updates"] | self.updates()
        state[slot("controllerState", "isr")] = self.named(self.q.isr)
        state[slot("controllerState", "version")] = version
        mark = s.high_watermark if leads else self.before.high_watermark
        self.checked(state, mark)
        return state, AsyncIsrGhost(FrozenMap(state), proposals, lapsed, mark)

    def known_to_the_leader(self) -> dict[str, Value]:
        """Return `leaderState`. What the leader has heard of a follower stays true, also where it forgets it."""
        s = self.s
        known: dict[str, Value] = {
            slot("leaderState", "isr"): self.named(s.isr),
            slot("leaderState", "version"): self.version(s.partition_epoch),
            slot("leaderState", "pendingIsr"): self.named(frozenset() if s.proposal is None else s.proposal.new_isr),
            slot("leaderState", "pendingVersion"): (
                NIL if s.proposal is None else self.version(s.proposal.partition_epoch)
            ),
        }
        for name in self.k.replicas:
            of = slot("leaderState", "offsets", self.as_named.get(name, name))
            heard = len(s.log) if name == self.leader else known_end_offset(s, name) or 0
            known[of] = max(self.before.state[of], heard)
        return known

    def updates(self) -> frozenset[IsrMessage]:
        """Return the controller's last word, and the first ones, of those who were out before anybody led."""
        found = {
            IsrMessage(self.named(frozenset(self.k.replicas) - frozenset(self.missing[: n + 1])), n + 1)
            for n in range(len(self.missing))
        }
        now = self.message(self.q.isr, self.q.partition_epoch)
        return frozenset(found | ({now} if now.version > 0 else set()))

    def checked(self, state: Mapping[str, Value], mark: int) -> None:
        """Compare high watermarks. Raises ValueError where the leader's rises above what the module's would be."""
        allowed = async_isr.high_watermark(self.k, View(state))
        if mark > max(allowed, self.before.high_watermark):
            raise ValueError(f"the high watermark rises to {mark}, and those who count have reached {allowed}")

    def version(self, partition_epoch: int) -> int:
        return partition_epoch + self.offset

    def message(self, isr: Isr, partition_epoch: int) -> IsrMessage:
        return IsrMessage(self.named(isr), self.version(partition_epoch))

    def named(self, isr: Isr) -> Isr:
        """Return an ISR under the module's names."""
        return frozenset(self.as_named.get(name, name) for name in isr)


TYPES: tuple[type, ...] = (AsyncIsrGhost,)
