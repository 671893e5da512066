"""What holds of the actors of replication: R1 to R6, what happens in the end, and witnesses against vacuity.

StrongIsr, WeakIsr and the two about logs look at the replicas' own states. AckDurability starts from the answers to
producers, StableReads is about what consumers were served, and both can be judged from the clients' operations alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations

import attrs

from harness.model import Property, Reason, Step, View, always, eventually, sometimes
from kafka_proto.replication.checks import ReplicaChecks
from kafka_proto.replication.clients import AcknowledgedRecord, ConsumerState, Read, ReplicaClientState
from kafka_proto.replication.controller import CONTROLLER, ControllerState
from kafka_proto.replication.leadership import is_true_leader
from kafka_proto.replication.leading import serves_consumers
from kafka_proto.replication.quorum import Quorum
from kafka_proto.replication.records import record_at
from kafka_proto.replication.replica_state import Replica, ReplicaState, leads

SAFETY = ("StrongIsr", "WeakIsr", "LogMatching", "FollowerLogMatches", "AckDurability", "StableReads", "IsrEligibility")
LIVENESS = ("EverybodyIsAnswered", "FollowersCatchUp")
WITNESSES = ("HighWatermarkRises", "RecordTruncated", "IsrShrinks", "IsrExpands", "RecordAcknowledged", "RecordRead",
             "LeaderReplaced")
UNCLEAN = "UncleanElection"


@attrs.frozen
class ReplicaNames:
    """The constants of a model of actors."""

    replicas: tuple[Replica, ...]
    producers: tuple[str, ...]
    consumers: tuple[str, ...]
    crashes: Callable[[View], int]
    """How often replicas have crashed so far."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(k.name for k in self.replicas)

    @property
    def loses_tails(self) -> bool:
        """Whether a crash may lose the newest records of a log."""
        return not self.replicas[0].flushes_each


def properties(names: ReplicaNames) -> tuple[Property, ...]:
    """Return every property of the actors."""
    k = {replica.name: replica for replica in names.replicas}
    pairs = tuple(permutations(names.names, 2))

    def replica(view: View, name: str) -> ReplicaState:
        state: ReplicaState = view[name]
        return state

    checks = ReplicaChecks(k, replica, partition, names.loses_tails)

    def of_pair(check: Callable[[View, str, str], Reason]) -> Callable[[View, tuple[str, str]], Reason]:
        return lambda view, pair: check(view, *pair)

    def ack_durability(view: View, pair: tuple[str, str]) -> Reason:
        producer, leader = pair
        local: ReplicaClientState = view[producer]
        s, q = replica(view, leader), partition(view)
        if not leads(k[leader], s) or not is_true_leader(leader, s.leader, s.leader_epoch, q.leader, q.leader_epoch):
            return None
        if names.loses_tails and names.crashes(view) >= k[leader].min_insync_replicas:
            return None
        return next((why for ack in local.acknowledged if (why := lost(k[leader], s, ack))), None)

    def unanswered(view: View) -> Reason:
        sending = [p for p in names.producers if view[p].sending is not None]
        waiting = [c for c in names.consumers if view[c].awaits]
        who = (*sending, *waiting)
        return f"{', '.join(who)} {'waits' if len(who) == 1 else 'wait'} for an answer" if who else None

    def behind(view: View) -> Reason:
        q = partition(view)
        if q.leader is None or not leads(k[q.leader], replica(view, q.leader)):
            return "nobody leads"
        leader = replica(view, q.leader)
        for name in names.names:
            s = replica(view, name)
            if (s.leader_epoch, s.log, s.high_watermark) != (q.leader_epoch, leader.log, len(leader.log)):
                return f"{name} does not hold all that {q.leader} holds, up to the high watermark"
            if name not in q.isr and name not in (q.shutting_down or ()):
                return f"{name} is not in the ISR again"
        return None

    return (
        always("StrongIsr", of_pair(checks.strong_isr), over=pairs, source="KafkaReplication; R1"),
        always("WeakIsr", of_pair(checks.weak_isr), over=pairs, source="KafkaReplication; R2"),
        always("LogMatching", of_pair(checks.log_matching), over=tuple(combinations(names.names, 2)), source="R3"),
        always("FollowerLogMatches", of_pair(checks.follower_log_matches), over=pairs,
               source="R3, after a truncation"),
        always("AckDurability", ack_durability, over=tuple((p, r) for p in names.producers for r in names.names),
               source="R4"),
        always("StableReads", lambda view: unstable(sorted_reads(names, view)), source="R5, KIP-207"),
        always("IsrEligibility", checks.eligibility, over=names.names, source="R6, KIP-903"),
        eventually("EverybodyIsAnswered", unanswered, source="ours"),
        eventually("FollowersCatchUp", behind, source="ours"),
        sometimes("HighWatermarkRises", lambda _, step: step.action == "IncreaseHighWatermark", on="step"),
        sometimes("RecordTruncated", record_truncated, on="step"),
        sometimes("IsrShrinks", lambda view, step: isr_change(view, step) < 0, on="step"),
        sometimes("IsrExpands", lambda view, step: isr_change(view, step) > 0, on="step"),
        sometimes("RecordAcknowledged", lambda view: any(view[p].acknowledged for p in names.producers)),
        sometimes("RecordRead", lambda view: any(read.value is not None for read in sorted_reads(names, view))),
        sometimes("LeaderReplaced", lambda view: len({r.leader for r in partition(view).announced} - {None}) > 1),
        sometimes(UNCLEAN, lambda _, step: step.action == "ElectUncleanLeader", on="step"),
    )


def partition(view: View) -> Quorum:
    """Read what the controller knows of the partition."""
    local: ControllerState = view[CONTROLLER]
    return local.partition


def lost(k: Replica, s: ReplicaState, ack: AcknowledgedRecord) -> Reason:
    """Say how an acknowledged record cannot be read from the leader, or return None."""
    found = record_at(s.log, ack.offset)
    if found is None or found.value != ack.value:
        instead = "nothing" if found is None else str(found.value)
        return f"{ack.value} was acknowledged at offset {ack.offset}, where the leader {k.name} has {instead}"
    if serves_consumers(k, s) and ack.offset >= s.high_watermark:
        return f"{ack.value} was acknowledged at offset {ack.offset}, but {k.name} serves {s.high_watermark} only"
    return None


def sorted_reads(names: ReplicaNames, view: View) -> Iterator[Read]:
    """Yield what every consumer was served, each in the order of its polls."""
    for consumer in names.consumers:
        local: ConsumerState = view[consumer]
        yield from local.reads


def unstable(reads: Iterator[Read]) -> Reason:
    """Say which content changed, or which high watermark went back within a leader epoch or from one to the next.

    High watermarks of one epoch are compared within the reads of one consumer only, as the polls of two overlap.
    """
    seen = tuple(reads)
    contents: dict[int, Read] = {}
    for read in seen:
        if read.value is None:
            continue
        first = contents.setdefault(read.offset, read)
        if first.value != read.value:
            return f"offset {read.offset} was served as {first.value}, and as {read.value}"
    for one in seen:
        for other in seen:
            if one.leader_epoch < other.leader_epoch and one.high_watermark > other.high_watermark:
                return (
                    f"epoch {one.leader_epoch} served the high watermark {one.high_watermark}, "
                    f"epoch {other.leader_epoch} only {other.high_watermark}"
                )
    return None


def isr_change(view: View, step: Step) -> int:
    """Return by how many members a step makes the controller's ISR larger."""
    after = dict(step.writes).get(CONTROLLER)
    return 0 if after is None else len(after.partition.isr) - len(partition(view).isr)


def record_truncated(view: View, step: Step) -> bool:
    """Some replica drops records, without having crashed."""
    return any(
        isinstance(value, ReplicaState) and step.action.startswith("Receive") and len(value.log) < len(view[name].log)
        for name, value in step.writes
    )
