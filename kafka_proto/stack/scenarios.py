"""The scenarios of the stack as one table. A row that must fail and its twin differ in one setting or size only.

No row encodes an interleaving: a row says what may happen, the scheduler decides what does.
"""

from __future__ import annotations

import attrs

from harness.model import NO_FAULTS, Faults, Rule, Scenario, Timed
from kafka_proto.stack.properties import INVARIANTS, LIVENESS, OF_TRANSACTIONS

GET_PID, _ = LIVENESS
SAFE = (*INVARIANTS, GET_PID)
LOSSY = ("TypeOK", "NoBadStateResponse", "LogMatching", "AckedTransactionsSurvive", GET_PID)
"""What is claimed where the log may lose records: not that each ISR holds all, as it does not in between."""
WORKLOAD = "every client inits with an id of its choice, then adds every topic partition"
B = ("b1", "b2", "b3")
THREE = {"clients": 2, "brokers": 3, "replication-factor": 3, "min-insync-replicas": 2}
TWO = {"clients": 1, "brokers": 2, "replication-factor": 2, "topic-partitions": 2, "min-insync-replicas": 2}


def cluster(
    name: str, title: str, faults: Faults = NO_FAULTS, sizes: dict[str, int] = THREE, elections: int = 0,
    claims: tuple[str, ...] = SAFE, timeouts: int = 6, runs: int = 100, **rest: object,
) -> Scenario:
    """Return a row."""
    return Scenario(
        name, title, "cluster", {**sizes, "elections": elections}, faults=faults, claims=claims, timeouts=timeouts,
        workload=WORKLOAD, steps=90, runs=runs, **rest,  # type: ignore[arg-type]
    )


CUT = Timed("partition", ("b1", "b2"), at_ms=40, until_ms=600)
LOST = Timed("crash", ("b1",), at_ms=250, until_ms=300)
LAST_REPLICA = cluster(
    "stack-last-replica-standing",
    "the ISR shrinks to its leader, whose disk is lost: what two replicas had to hold is gone (KIP-966)",
    Faults(timed=(CUT, LOST)), TWO, claims=LOSSY, mode="timed", runs=200, timers=1,
    settings={"disk": "lost"},
    expected="AckedTransactionsSurvive", repaired="stack-last-replica-standing-repaired",
)
ONE_REPLICA = cluster(
    "stack-one-replica-is-enough", "min.insync.replicas=1: what one broker held is acknowledged, and its disk is lost",
    Faults(timed=(CUT, LOST)), {**TWO, "min-insync-replicas": 1}, claims=LOSSY, mode="timed", runs=200, timers=1,
    settings={"disk": "lost", "election": "elr"},
    expected="AckedTransactionsSurvive", repaired="stack-one-replica-is-enough-repaired",
)
UNCLEAN = cluster(
    "stack-unclean-election", "min.insync.replicas=1, and a broker that is not in sync is elected",
    Faults(timed=(CUT,)), {**TWO, "min-insync-replicas": 1}, elections=2, claims=LOSSY, mode="timed", runs=200,
    timers=1, settings={"election": "unclean"}, expected="AckedTransactionsSurvive",
    repaired="stack-unclean-election-repaired",
)
FAILING = (LAST_REPLICA, ONE_REPLICA, UNCLEAN)
TWINS = (
    attrs.evolve(
        LAST_REPLICA, name="stack-last-replica-standing-repaired", title="who left the ISR last may be elected",
        settings={"disk": "lost", "election": "elr"}, expected=None, repaired=None,
    ),
    attrs.evolve(
        ONE_REPLICA, name="stack-one-replica-is-enough-repaired", title="min.insync.replicas=2",
        sizes={**TWO, "elections": 0}, expected=None, repaired=None,
    ),
    attrs.evolve(
        UNCLEAN, name="stack-unclean-election-repaired", title="only members of the ISR are elected", settings={},
        expected=None, repaired=None,
    ),
)

SCENARIOS: tuple[Scenario, ...] = (
    cluster(
        "stack-happy-path", "two producers on a replicated log, nothing goes wrong",
        claims=(*INVARIANTS, *LIVENESS), timeouts=0,
    ),
    cluster(
        "stack-coordinator-moves", "leaders of the log change in the middle of transactions", elections=2,
        claims=(*INVARIANTS, *LIVENESS), timeouts=0,
        witnesses=("CoordinatorResigned", "RefusedEntrySurvives", "NotCoordinatorRetrySucceeds"),
    ),
    cluster(
        "stack-rolling-restart", "all brokers are started again one after the other, during transactions",
        Faults(timed=tuple(Timed("crash", (b,), at_ms=15 + 90 * n, until_ms=55 + 90 * n) for n, b in enumerate(B))),
        mode="timed", witnesses=("LoadInProgressAnswered", "FollowerRejoinsIsr"),
    ),
    cluster(
        "stack-isolated-leader", "the leader is cut off from its followers, but not from clients and controller",
        Faults(partition=2, one_way=1, targets=("b1",), links=(("b1", "b2"), ("b1", "b3"))), elections=1,
        witnesses=("CoordinatorResigned", "LogTruncated"),
    ),
    cluster(
        "stack-late-controller", "one broker hears of every change of the controller late",
        Faults(rules=(Rule("delay", message="LeaderAndIsrRequest", dest="b1"),)), elections=2,
        witnesses=("CoordinatorResigned",),
    ),
    cluster(
        "stack-lost-disk", "one broker loses its disk", Faults(crash=1, targets=("b1",)), elections=1,
        settings={"disk": "lost", "election": "elr"}, claims=(*OF_TRANSACTIONS, *LOSSY[2:]),
        witnesses=("FollowerRejoinsIsr",),
    ),
    cluster(
        "stack-lost-tail", "a crash loses what was not flushed", Faults(crash=1, targets=("b1", "b2")), elections=1,
        settings={"disk": "unflushed", "election": "elr"}, claims=(*OF_TRANSACTIONS, *LOSSY[2:]),
    ),
    cluster(
        "stack-slow-follower", "a follower pauses and is late: it leaves the ISR and comes back",
        Faults(delay=2, timed=(Timed("pause", ("b3",), at_ms=15, until_ms=300),)), elections=1, mode="timed",
        witnesses=("FollowerRejoinsIsr",),
    ),
    cluster(
        "stack-two-failures", "two of three brokers fail, min.insync.replicas=2",
        Faults(crash=2, targets=B), elections=2, witnesses=("LoadInProgressAnswered",),
    ),
    *FAILING, *TWINS,
)
