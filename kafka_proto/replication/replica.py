"""The replica of the actor composition: one actor that is one replica of the one partition.

What it does is said in `partition`. Here its functions become turns, its answers to clients messages, and its flushing
is decided: every record at once, or (`flush=lazy`) by a step of its own, so that a crash loses the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, Message, Turn
from kafka_proto.replication import leading, messages, partition, replica_state
from kafka_proto.replication.replica_state import Completed, Replica, ReplicaOutcome, ReplicaState


class PartitionReplica(Actor[ReplicaState]):
    """The actor of one replica."""

    may_crash = True

    def __init__(self, k: Replica, replicas: tuple[str, ...]) -> None:
        self.k = k
        self.name = k.name
        self.others = tuple(replica for replica in replicas if replica != k.name)
        self.initial = ReplicaState()

    def restarted(self, local: ReplicaState) -> ReplicaState:
        """Start a new incarnation: it is on disk with whatever it hears from the controller."""
        return replica_state.restarted(local, loses_tail=not self.k.flushes_each)

    def step(self, local: ReplicaState) -> Iterable[Turn[ReplicaState]]:
        if local.broker_epoch and not local.active and not local.registering:
            after = attrs.evolve(local, registering=True)
            yield Turn("RegisterBroker", (self.name,), after, (self.registration(local),), flush=True)
        if leading.may_increase_high_watermark(self.k, local):
            outcome = leading.increase_high_watermark(self.k, local)
            yield self.turn("IncreaseHighWatermark", (self.name,), outcome)
        for follower in self.others:
            if leading.may_expand_isr(self.k, local, follower):
                outcome = leading.propose_isr(self.k, local, local.isr | {follower})
                yield self.turn("ProposeExpandIsr", (self.name, follower), outcome)

    def on_message(self, local: ReplicaState, message: Message) -> Iterable[Turn[ReplicaState]]:
        action, who = f"Receive{message.type}", (self.name, message.source)
        match message:
            case messages.ProduceRequest():
                callback = (message.source, message.correlation)
                outcome: ReplicaOutcome | None = leading.append(self.k, local, message.value, message.acks, callback)
            case messages.Poll():
                outcome = ReplicaOutcome(local, (self.polled(local, message),))
            case _:
                outcome = partition.receive(self.k, local, message)
        if outcome is not None:
            yield self.turn(action, who, attrs.evolve(outcome, detail=""))

    def turn(self, action: str, who: tuple[str, ...], outcome: ReplicaOutcome) -> Turn[ReplicaState]:
        """Return the turn that an outcome is: clients whose record is completed are answered."""
        answers = tuple(self.answered(outcome.state, done) for done in outcome.completed)
        return Turn(action, who, outcome.state, (*outcome.sent, *answers), outcome.flush, outcome.detail)

    def answered(self, local: ReplicaState, done: Completed) -> messages.ProduceResponse:
        """Return the answer to a client that waits for a record."""
        client, correlation = done.callback
        return self.k.to(
            client, messages.ProduceResponse, error=done.error, base_offset=done.offset, correlation=correlation,
            current_leader=local.leader,
        )

    def polled(self, local: ReplicaState, poll: messages.Poll) -> messages.PollResponse:
        """Return the answer to a consumer."""
        error, entry = leading.read(self.k, local, poll.offset)
        return self.k.to(
            poll.source, messages.PollResponse, error=error, entry=entry, high_watermark=local.high_watermark,
            leader_epoch=local.leader_epoch, correlation=poll.correlation, leader=local.leader,
        )

    def registration(self, local: ReplicaState) -> messages.BrokerRegistrationRequest:
        return self.k.to(self.k.controller, messages.BrokerRegistrationRequest, broker_epoch=local.broker_epoch)

    def timers(self, local: ReplicaState) -> tuple[str, ...]:
        waits = partition.resend(local) or local.registering
        return (
            *(("RequestTimeout",) if waits else ()),
            *(("ReplicaLagTime",) if leading.lagging(self.k, local) else ()),
            *(("LogFlushInterval",) if not self.k.flushes_each and local.flushed < len(local.log) else ()),
        )

    def timer_fired(self, local: ReplicaState, timer: str) -> Iterable[Turn[ReplicaState]]:
        """Ask again for what was not answered; propose to go on without the followers that lag; or flush the log."""
        if timer == "RequestTimeout":
            again = (self.registration(local),) if local.registering else ()
            yield Turn(timer, (self.name,), local, (*again, *partition.resend(local)))
            return
        if timer == "LogFlushInterval":
            yield Turn("FlushLog", (self.name,), attrs.evolve(local, flushed=len(local.log)), flush=True)
            return
        outcome = leading.propose_isr(self.k, local, local.isr - leading.lagging(self.k, local))
        yield self.turn("ProposeShrinkIsr", (self.name,), outcome)
