"""R1 to R6 of replicated logs, besides P1 to P11: what the replicas of each partition owe to each other and to clients.

Where a crash may lose records, or any replica may be elected, replicas do not agree for a while: there it is claimed
only that what clients know is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import combinations, permutations
from operator import attrgetter

import attrs

from harness.model import FrozenMap, Property, Reason, Step, View, always, sometimes
from kafka_proto.broker.controller import PARTITION
from kafka_proto.broker.ghosts import text_of
from kafka_proto.broker.parts import COORDINATOR, REPLICA
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.consumer import ReaderState
from kafka_proto.clients.producer_client import ClientState
from kafka_proto.cluster.composition import Rules
from kafka_proto.replication.checks import ReplicaChecks
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.leadership import is_true_leader
from kafka_proto.replication.messages import LeaderAndIsrRequest, PartitionMessage
from kafka_proto.replication.quorum import Quorum
from kafka_proto.replication.replica_state import ReplicaState, leads

KEPT = ("AcknowledgedSurvives", "StableReads", "IsrEligibility")
"""What is claimed where records may be lost, too."""
SAFETY = ("StrongIsr", "WeakIsr", "LogMatching", "FollowerLogMatches", *KEPT)
WITNESSES = ("CoordinatorResigned", "LogTruncated", "FollowerRejoinsIsr")
QUORUM = attrgetter("quorum")


def texts_of(state: ReplicaState) -> frozenset[str]:
    """Return the records that a replica of a topic's partition holds."""
    return frozenset(text_of(record) for entry in state.log for record in entry.value.records)


def acknowledged_of(state: ClientState) -> frozenset[tuple[str, str]]:
    """Return the records that were acknowledged to a producer, each with its partition."""
    return frozenset((written.partition, written.record) for written in state.acknowledged)


def read_of(state: ReaderState) -> frozenset[tuple[str, str]]:
    """Return the records that a consumer's application got, each with its partition."""
    return frozenset((p, record) for p, records in state.seen.items() for record in records)


def quorum_of(p: str, view: View) -> Quorum:
    found: Quorum = PARTITION[p].derived(view, CONTROLLER, QUORUM)
    return found


def settled(state: ReplicaState) -> ReplicaState:
    """Return what the properties of replicas look at: a replica without its requests, which change at each fetch."""
    return attrs.evolve(state, request=None, correlation=0, followers=FrozenMap(), parked=FrozenMap(), proposal=None,
                        callbacks=(), flushed=0)


def replica_of(p: str, view: View, b: str) -> ReplicaState:
    found: ReplicaState = REPLICA[p].derived(view, b, settled)
    return found


def properties(placement: Placement, rules: Rules, *, keeps_records: bool) -> tuple[Property, ...]:
    """Return the properties of replicas by these rules, and witnesses.

    `keeps_records` says that no record is lost that is committed: no disk loses any, and the ISR is elected from.
    """
    checks = {p: ReplicaChecks(k, partial(replica_of, p), partial(quorum_of, p)) for p, k in rules.items()}
    ordered = tuple((p, a, b) for p, k in rules.items() for a, b in permutations(k, 2))
    pairs = tuple((p, a, b) for p, k in rules.items() for a, b in combinations(k, 2))
    members = tuple((p, b) for p, k in rules.items() for b in k)
    writers = (*placement.producers, *placement.idempotent_producers)

    def of(check: Callable[..., Reason]) -> Callable[[View, tuple[str, ...]], Reason]:
        return lambda view, index: check(checks[index[0]], view, *index[1:])

    def survives(
        known: Callable[..., frozenset[tuple[str, str]]], how: str, view: View, index: tuple[str, ...]
    ) -> Reason:
        client, p, b = index
        state, quorum = replica_of(p, view, b), quorum_of(p, view)
        if not leads(rules[p][b], state) or not is_true_leader(
            b, state.leader, state.leader_epoch, quorum.leader, quorum.leader_epoch
        ):
            return None
        told = (text for at, text in sorted(view.derived(client, known)) if at == p)
        held = REPLICA[p].derived(view, b, texts_of)
        lost = next((text for text in told if text not in held), None)
        if lost is None:
            return None
        return f"{b} leads {p} in epoch {state.leader_epoch}, but its log lacks {lost}, which {client} {how}"

    strict: tuple[Property, ...] = (
        always("StrongIsr", of(ReplicaChecks.strong_isr), over=ordered, source="KafkaReplication; R1"),
        always("WeakIsr", of(ReplicaChecks.weak_isr), over=ordered, source="KafkaReplication; R2"),
        always("FollowerLogMatches", of(ReplicaChecks.follower_log_matches), over=ordered,
               source="R3, after a truncation"),
        always("LogMatching", of(ReplicaChecks.log_matching), over=pairs, source="R3"),
    )
    return (
        *(strict if keeps_records else ()),
        always("AcknowledgedSurvives", partial(survives, acknowledged_of, "was told to be written"),
               over=of_clients(writers, placement, rules), source="R4"),
        always("StableReads", partial(survives, read_of, "has read"),
               over=of_clients(placement.consumers, placement, rules), source="R5"),
        always("IsrEligibility", of(ReplicaChecks.eligibility), over=members, source="R6, KIP-903"),
        sometimes("CoordinatorResigned", resigned, on="step"),
        sometimes("LogTruncated", truncated, on="step"),
        sometimes("FollowerRejoinsIsr", lambda view, step: step.action == "ProposeExpandIsr", on="step"),
    )


def of_clients(clients: Iterable[str], placement: Placement, rules: Rules) -> tuple[tuple[str, ...], ...]:
    """Return each client with each partition of the topic and each of its replicas."""
    return tuple((c, p, b) for c in clients for p in placement.partitions for b in rules[p])


def resigned(view: View, step: Step) -> bool:
    """A coordinator that served a partition hears that another broker leads."""
    announced = step.consumed
    if not isinstance(announced, LeaderAndIsrRequest) or announced.leader == announced.dest:
        return False
    part = COORDINATOR[announced.partition or ""]
    after = part.written(step, announced.dest)
    return after is not None and after.cache.loading and not part.of(view, announced.dest).cache.loading


def truncated(view: View, step: Step) -> bool:
    """A running broker cuts its log."""
    about = step.consumed
    if not isinstance(about, PartitionMessage) or about.partition is None or about.dest == CONTROLLER:
        return False
    part = REPLICA[about.partition]
    after = part.written(step, about.dest)
    return after is not None and len(after.log) < len(part.of(view, about.dest).log)
