"""One replica of one partition: what it does with a message, as a pure function, and what it sends again.

`receive` takes any message about the partition. What a replica may do of its own accord is in `leading`; in
`replica_state` is `restarted`, the state after a crash. A host sends what a `ReplicaOutcome` holds, answers the clients
that `completed` names, flushes where it says.
"""

from __future__ import annotations

import attrs

from harness.model import FrozenMap, Message
from kafka_proto.errors import Error
from kafka_proto.replication import following, leading, messages
from kafka_proto.replication.replica_state import Completed, Replica, ReplicaOutcome, ReplicaState, then


def receive(k: Replica, s: ReplicaState, message: Message) -> ReplicaOutcome | None:
    """Return the outcome of a message about the partition, or None if it is not one for a replica."""
    match message:
        case messages.LeaderAndIsrRequest():
            return obey(k, s, message)
        case messages.FetchRequest() | messages.OffsetsForLeaderEpochRequest():
            return leading.ask(k, s, message)
        case messages.FetchResponse():
            return following.apply_fetch(k, s, message)
        case messages.OffsetsForLeaderEpochResponse():
            return following.learn_end_offset(k, s, message)
        case messages.AlterPartitionResponse():
            return leading.learn_isr(k, s, message)
    return None


def obey(k: Replica, s: ReplicaState, announced: messages.LeaderAndIsrRequest) -> ReplicaOutcome:
    """Obey a LeaderAndIsr request of a newer epoch, and say that it was heard where the controller wants to know."""
    if announced.broker_epoch != s.broker_epoch:
        return ReplicaOutcome(s, detail=f"epoch {announced.leader_epoch}, for broker epoch {announced.broker_epoch}")
    response = k.to(
        k.controller, messages.LeaderAndIsrResponse, leader_epoch=announced.leader_epoch, broker_epoch=s.broker_epoch
    )
    heard = (response,) if announced.again else ()
    known = s.becoming.leader_epoch if s.becoming is not None else s.leader_epoch
    if announced.leader_epoch > known:
        return then(ReplicaOutcome(s, heard), take_office(k, s, announced))
    if not s.active and s.becoming is None and announced.leader_epoch == known:
        after = attrs.evolve(s, active=True, registering=False)
        return then(ReplicaOutcome(after, heard, detail=f"epoch {known} again"), following.fetch(k, after))
    return ReplicaOutcome(s, heard, detail=f"epoch {announced.leader_epoch}, already known")


def take_office(k: Replica, s: ReplicaState, announced: messages.LeaderAndIsrRequest) -> ReplicaOutcome:
    """Lead or follow in a newer epoch. Clients that wait for a record of an older one get an unknown outcome."""
    given_up = tuple(Completed(callback, Error.REQUEST_TIMED_OUT, at) for at, callback in s.callbacks)
    s = attrs.evolve(s, callbacks=(), becoming=None, request=None, registering=False)
    who = announced.leader or "nobody"
    if announced.leader == k.name:
        after = leading.become_leader(k, s, announced)
        return then(ReplicaOutcome(s, (), given_up, f"leads epoch {announced.leader_epoch}", flush=True), after)
    parked = {f: request for f, request in s.parked.items() if request.current_leader_epoch > announced.leader_epoch}
    s = attrs.evolve(s, parked=FrozenMap(parked), followers=FrozenMap(), proposal=None)
    follow = following.keep_log if announced.leader is None else k.version.follow
    after = follow(k, s, announced)
    detail = f"follows {who} epoch {announced.leader_epoch} {after.detail}"
    return then(ReplicaOutcome(s, (), given_up, detail), after)


def resend(s: ReplicaState) -> tuple[Message, ...]:
    """Return what a replica has sent and was not answered: it may have been lost."""
    return tuple(message for message in (s.request, s.proposal) if message is not None)
