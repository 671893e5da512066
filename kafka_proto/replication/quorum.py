"""What the controller keeps of a partition and decides about it: leader, leader epoch, ISR, partition epoch.

Pure functions of a frozen state, for an actor that is the controller of one partition or of many. Every change of the
leader is announced in a new leader epoch; a change of the ISR that a leader proposed keeps the epoch (KIP-497).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from harness.model import FrozenMap, absent_if_none, ordered
from kafka_proto.errors import Error
from kafka_proto.replication import isr as in_sync
from kafka_proto.replication import leadership, messages
from kafka_proto.replication.records import NIL, Isr


@attrs.frozen
class PartitionState:
    """Leader and ISR with which a leader epoch began: what a LeaderAndIsrRequest says of them."""

    leader: str | None
    leader_epoch: int
    isr: Isr


@attrs.frozen
class Quorum:
    """The controller's state of one partition."""

    isr: Isr
    leader: str | None = None
    leader_epoch: int = NIL
    partition_epoch: int = 0
    broker_epochs: FrozenMap[str, int] = attrs.field(default=FrozenMap(), metadata=ordered("broker_epoch", "key"))
    """The newest broker epoch of each replica that has registered."""
    heard: FrozenMap[str, int] = FrozenMap()
    """The newest leader epoch that each replica has acknowledged."""
    announced: tuple[PartitionState, ...] = ()
    """What was announced so far, by leader epoch: history, on which nothing depends."""
    last_isr: FrozenMap[str, Isr] = FrozenMap()
    """The last ISR of each leader epoch: history, too."""
    entered: FrozenMap[str, int | None] = attrs.field(default=FrozenMap(), metadata=ordered("broker_epoch", "key"))
    """The broker epoch in which each replica was let in by its leader's word, last: history, too."""
    shutting_down: Isr | None = attrs.field(default=None, metadata=absent_if_none())
    """KIP-841: the replicas that are about to go; None where no replica says so."""


def initial(replicas: Iterable[str]) -> Quorum:
    """Return the state in which no replica leads yet, and all are in sync."""
    names = frozenset(replicas)
    nothing = FrozenMap({replica: NIL for replica in sorted(names)})
    return Quorum(names, broker_epochs=FrozenMap({replica: 0 for replica in sorted(names)}), heard=nothing)


def changed(q: Quorum, leader: str | None, isr: Isr) -> Quorum:
    """Return the state with another leader or ISR in a new leader epoch (`ControllerUpdateIsr`)."""
    epoch = q.leader_epoch + 1
    return attrs.evolve(
        q, leader=leader, leader_epoch=epoch, isr=isr, partition_epoch=q.partition_epoch + 1,
        announced=(*q.announced, PartitionState(leader, epoch, isr)), last_isr=q.last_isr.set(str(epoch), isr),
    )


def elect(q: Quorum, candidate: str) -> Quorum | None:
    """Make a member of the ISR the leader, or return None if it may not be (`ControllerElectLeader`)."""
    return changed(q, candidate, q.isr) if leadership.may_elect(candidate, q.leader, q.isr) else None


def elect_uncleanly(q: Quorum, candidate: str) -> Quorum | None:
    """Make a replica the leader that is not in sync. Its log is the truth from now on, whatever is lost."""
    return changed(q, candidate, frozenset((candidate,))) if candidate not in q.isr else None


def take_out(q: Quorum, replica: str) -> Quorum | None:
    """Take a failed replica out of the ISR and out of office, or return None (`ControllerShrinkIsr`)."""
    shrunk = in_sync.shrink_by_controller(replica, q.leader, q.isr)
    return None if shrunk is None else changed(q, *shrunk)


def shut_down(q: Quorum, replica: str) -> Quorum | None:
    """Take out a replica that is about to go, and still fetches; None if it is not in the ISR, or alone there."""
    if replica not in q.isr or q.isr == {replica}:
        return None
    going = (q.shutting_down or frozenset()) | {replica}
    taken = take_out(q, replica)
    return None if taken is None else attrs.evolve(taken, shutting_down=going)


def register(q: Quorum, replica: str, broker_epoch: int) -> Quorum:
    """Note that a replica was started again: it has failed meanwhile, and has heard of nothing.

    The last member of the ISR stays in it, as what it is now.
    """
    if broker_epoch <= q.broker_epochs[replica]:
        return q
    q = attrs.evolve(q, broker_epochs=q.broker_epochs.set(replica, broker_epoch), heard=q.heard.set(replica, NIL))
    if q.shutting_down is not None:
        q = attrs.evolve(q, shutting_down=q.shutting_down - {replica})
    q = take_out(q, replica) or q
    return attrs.evolve(q, entered=q.entered.set(replica, broker_epoch)) if replica in q.isr else q


def are_eligible(q: Quorum, broker_epochs: FrozenMap[str, int]) -> bool:
    """KIP-841, KIP-903: say whether no member is about to go, and all are meant as they are now."""
    return are_as_registered(q, broker_epochs) and (q.shutting_down or frozenset()).isdisjoint(broker_epochs)


def are_as_registered(q: Quorum, broker_epochs: FrozenMap[str, int]) -> bool:
    """RP-11, without KIP-841: say only whether members are meant as they are now, not as they were before a restart."""
    return all(broker_epoch == q.broker_epochs[replica] for replica, broker_epoch in broker_epochs.items())


def are_anybody(q: Quorum, broker_epochs: FrozenMap[str, int]) -> bool:
    """RP-12: whoever is proposed is taken, whatever became of it."""
    return True


TakeOut = Callable[[Quorum, str], Quorum | None]
"""The state after the controller takes a replica out, or None if it does not."""
Eligible = Callable[[Quorum, FrozenMap[str, int]], bool]
"""Whether the members of a proposed ISR, each in its broker epoch, may be in it."""


def alter(
    q: Quorum, proposal: messages.AlterPartitionRequest, eligible: Eligible = are_eligible
) -> tuple[Quorum, messages.AlterPartitionResponse]:
    """Take a leader's proposal, or say why not (`ControllerHandleRequest`); either way say what holds now."""
    error = why_not(q, proposal, eligible)
    if error is Error.NONE:
        q = attrs.evolve(
            q, isr=proposal.new_isr, partition_epoch=q.partition_epoch + 1,
            last_isr=q.last_isr.set(str(q.leader_epoch), proposal.new_isr),
            entered=q.entered.update({b: proposal.broker_epochs.get(b) for b in sorted(proposal.new_isr - q.isr)}),
        )
    return q, messages.AlterPartitionResponse(
        error, q.leader_epoch, q.isr, q.partition_epoch, proposal.partition_epoch,
        proposal.broker_epochs if error is Error.INELIGIBLE_REPLICA else None,
        source=proposal.dest, dest=proposal.source, partition=proposal.partition,
    )


def why_not(q: Quorum, proposal: messages.AlterPartitionRequest, eligible: Eligible) -> Error:
    """Say why a proposal is refused, or `NONE`."""
    leader = proposal.source
    if not leadership.is_true_leader(leader, leader, proposal.leader_epoch, q.leader, q.leader_epoch):
        return Error.FENCED_LEADER_EPOCH
    if proposal.partition_epoch != q.partition_epoch:
        return Error.INVALID_UPDATE_VERSION
    if not eligible(q, proposal.broker_epochs):
        return Error.INELIGIBLE_REPLICA
    return Error.NONE


def acknowledged(q: Quorum, response: messages.LeaderAndIsrResponse) -> Quorum:
    """Note that a replica, in its present incarnation, has heard of a leader epoch."""
    if response.broker_epoch != q.broker_epochs[response.source] or response.leader_epoch <= q.heard[response.source]:
        return q
    return attrs.evolve(q, heard=q.heard.set(response.source, response.leader_epoch))


def deaf(q: Quorum) -> tuple[str, ...]:
    """Return the replicas that have not said that they know the present leader epoch."""
    return tuple(replica for replica, epoch in q.heard.items() if epoch < q.leader_epoch)


def announcement(
    q: Quorum, source: str, replica: str, partition: str | None = None, again: bool = False
) -> messages.LeaderAndIsrRequest:
    """Return the request that tells a replica its leader."""
    return messages.LeaderAndIsrRequest(
        q.leader, q.leader_epoch, q.isr, q.partition_epoch, q.broker_epochs[replica], again,
        source=source, dest=replica, partition=partition,
    )


TYPES: tuple[type, ...] = (Quorum, PartitionState)
