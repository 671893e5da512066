"""R1, R2, R3 and R6: what holds of the replicas of one partition, wherever a model keeps them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from harness.model import Reason, View
from kafka_proto.replication.quorum import Quorum
from kafka_proto.replication.records import first_disagreement
from kafka_proto.replication.replica_state import Replica, ReplicaState, leads


@attrs.frozen
class ReplicaChecks:
    """The replicas of a partition by name, where their states are, and what the controller keeps of them."""

    k: Mapping[str, Replica]
    replica: Callable[[View, str], ReplicaState]
    quorum: Callable[[View], Quorum]
    loses_tails: bool = False
    """Whether a crash may lose the newest records of a log."""

    def strong_isr(self, view: View, leader: str, member: str) -> Reason:
        """R1: a leader and each member of the controller's ISR agree below its high watermark."""
        if not leads(self.k[leader], self.replica(view, leader)) or member not in self.quorum(view).isr:
            return None
        return self.disagreement(view, leader, member, "in the quorum's ISR")

    def weak_isr(self, view: View, leader: str, member: str) -> Reason:
        """R2: the same of its own ISR."""
        if not leads(self.k[leader], self.replica(view, leader)) or member not in self.replica(view, leader).isr:
            return None
        return self.disagreement(view, leader, member, f"in {leader}'s own ISR")

    def disagreement(self, view: View, leader: str, member: str, where: str) -> Reason:
        one, other = self.replica(view, leader), self.replica(view, member)
        if self.loses_tails and not other.active:
            return None
        offset = first_disagreement(one.log, other.log, one.high_watermark)
        if offset is None:
            return None
        return (
            f"{member} is {where} but does not hold {leader}'s record at offset {offset}, while {leader} leads "
            f"epoch {one.leader_epoch} with the high watermark {one.high_watermark}"
        )

    def log_matching(self, view: View, one: str, other: str) -> Reason:
        """R3: two replicas agree below the smaller of their high watermarks."""
        mine, theirs = self.replica(view, one), self.replica(view, other)
        offset = first_disagreement(mine.log, theirs.log, min(mine.high_watermark, theirs.high_watermark))
        if offset is None:
            return None
        return f"{one} and {other} hold different records at offset {offset}, below their high watermarks"

    def follower_log_matches(self, view: View, leader: str, follower: str) -> Reason:
        """R3: a follower in its leader's epoch agrees with it in all that both hold."""
        one, other = self.replica(view, leader), self.replica(view, follower)
        if not leads(self.k[leader], one) or not other.active or other.becoming is not None:
            return None
        if other.leader != leader or other.leader_epoch != one.leader_epoch:
            return None
        offset = first_disagreement(one.log, other.log, min(len(one.log), len(other.log)))
        if offset is None:
            return None
        return f"{follower} follows {leader} in epoch {one.leader_epoch}, but holds another record at offset {offset}"

    def eligibility(self, view: View, member: str) -> Reason:
        """R6: each member of the ISR was let in in the broker epoch that is registered, and none is about to go."""
        q = self.quorum(view)
        if member in q.isr and member in (q.shutting_down or ()):
            return f"{member} is in the ISR, and shuts down"
        entered = q.entered.get(member, q.broker_epochs[member])
        if member not in q.isr or len(q.isr) == 1 or entered == q.broker_epochs[member]:
            return None
        return f"{member} is in the ISR as of broker epoch {entered}, but has registered {q.broker_epochs[member]}"
