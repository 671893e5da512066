"""The controller of the actor composition: what it keeps and decides is in `quorum`.

It stands for the quorum of controllers, and never crashes. It is reached over the ordinary network: what it says can be
lost, late or doubled, and it says it again until it was heard.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, Kind, Message, Turn
from kafka_proto.replication import quorum
from kafka_proto.replication.messages import AlterPartitionRequest, BrokerRegistrationRequest, LeaderAndIsrResponse
from kafka_proto.replication.quorum import Eligible, Quorum, TakeOut

CONTROLLER = "controller"


@attrs.frozen
class ControllerState:
    """The local state of the controller: the partition, and how often it may still perturb."""

    partition: Quorum
    elections: int
    fencings: int


class Controller(Actor[ControllerState]):
    """The actor that elects leaders and decides on the ISR.

    `elections` is how often it may elect another leader while one leads, `fencings` how often it may take a replica out
    of the ISR and of office that has not failed. Elections where no replica leads are not limited.
    """

    name = CONTROLLER

    def __init__(
        self, replicas: tuple[str, ...], elections: int, fencings: int, unclean: bool, are_eligible: Eligible,
        take_out: TakeOut,
    ) -> None:
        self.replicas = replicas
        self.unclean = unclean
        self.are_eligible = are_eligible
        self.take_out = take_out
        self.initial = ControllerState(quorum.initial(replicas), elections, fencings)

    def step(self, local: ControllerState) -> Iterable[Turn[ControllerState]]:
        q = local.partition
        for replica in self.replicas:
            if q.leader is None and (elected := quorum.elect(q, replica)):
                yield self.announced("ControllerElectLeader", (replica,), local, elected)
        if q.leader is None:
            return
        fewer = attrs.evolve(local, elections=local.elections - 1)
        for replica in self.replicas if local.elections else ():
            if elected := quorum.elect(q, replica):
                yield self.announced("ControllerElectLeader", (replica,), fewer, elected, Kind.PERTURBATION)
            if self.unclean and (elected := quorum.elect_uncleanly(q, replica)):
                yield self.announced("ElectUncleanLeader", (replica,), fewer, elected, Kind.PERTURBATION)
        fewer = attrs.evolve(local, fencings=local.fencings - 1)
        for replica in self.replicas if local.fencings else ():
            if shrunk := self.take_out(q, replica):
                yield self.announced("ControllerShrinkIsr", (replica,), fewer, shrunk, Kind.PERTURBATION)

    def announced(
        self, action: str, args: tuple[str, ...], local: ControllerState, q: Quorum, kind: Kind = Kind.STEP
    ) -> Turn[ControllerState]:
        """Return the turn that changes the leader or the ISR and tells everybody."""
        sent = tuple(quorum.announcement(q, self.name, replica) for replica in self.replicas)
        return Turn(action, args, attrs.evolve(local, partition=q), sent, kind=kind)

    def on_message(self, local: ControllerState, message: Message) -> Iterable[Turn[ControllerState]]:
        action, who, q = f"Receive{message.type}", (message.source,), local.partition
        match message:
            case BrokerRegistrationRequest():
                after = quorum.register(q, message.source, message.broker_epoch)
                if after.leader_epoch != q.leader_epoch:
                    yield self.announced(action, who, local, after)
                else:
                    known = quorum.announcement(after, self.name, message.source)
                    yield Turn(action, who, attrs.evolve(local, partition=after), (known,))
            case AlterPartitionRequest():
                after, answer = quorum.alter(q, message, self.are_eligible)
                yield Turn(action, who, attrs.evolve(local, partition=after), (answer,))
            case LeaderAndIsrResponse():
                yield Turn(action, who, attrs.evolve(local, partition=quorum.acknowledged(q, message)))

    def timers(self, local: ControllerState) -> tuple[str, ...]:
        return ("LeaderAndIsrTimeout",) if quorum.deaf(local.partition) else ()

    def timer_fired(self, local: ControllerState, timer: str) -> Iterable[Turn[ControllerState]]:
        """Resend to replicas that have not acknowledged the present leader epoch."""
        q = local.partition
        again = tuple(quorum.announcement(q, self.name, replica, again=True) for replica in quorum.deaf(q))
        yield Turn(timer, (self.name,), local, again)


TYPES: tuple[type, ...] = (*quorum.TYPES, ControllerState)
