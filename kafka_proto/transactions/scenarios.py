"""The scenarios of the transaction protocol as one table. A flawed row and its twin differ in the variant only.

No row encodes an interleaving: a row says what may happen, the scheduler decides what does.
"""

from __future__ import annotations

import attrs

from harness.model import Faults, Rule, Scenario, Timed
from kafka_proto.transactions.properties import ACTOR_INVARIANTS, INVARIANTS, LIVENESS

GET_PID, ADD_ALL = LIVENESS
DIARY_01_INVARIANTS = ("TypeOK", "NoBadStateResponse")
ACTORS = "transactions/repaired/actors"
WORKLOAD = "every client inits with an id of its choice, then adds every topic partition"
ONE = {"clients": 1, "brokers": 2, "txn-log-partitions": 1, "topic-partitions": 1, "transactional-ids": 1}
TWO = {**ONE, "clients": 2}


def flawed(
    name: str, title: str, model: str, sizes: dict[str, int], expected: str, claims: tuple[str, ...]
) -> tuple[Scenario, Scenario]:
    """Return the flawed row of a published flaw and its repaired twin; the name starts with the flaw's id."""
    flaw = name.split("-")[0].upper()
    twin = f"{name}-repaired"
    bad = Scenario(name, f"{flaw}: {title}", model, sizes, claims=claims, expected=expected, repaired=twin)
    good = attrs.evolve(
        bad, name=twin, title=f"{flaw} repaired", settings={"repair": flaw}, expected=None, repaired=None
    )
    return bad, good


FLAWS: tuple[Scenario, ...] = (
    *flawed(
        "s1-reused-pid", "a producer id given twice", "transactions/diary-02",
        {"clients": 4, "brokers": 1, "txn-log-partitions": 1, "topic-partitions": 1, "transactional-ids": 3,
         "elections": 0},
        "ClientsHaveDifferentProducerEpochs", ("TypeOK", "NoBadStateResponse", "ClientsHaveDifferentProducerEpochs"),
    ),
    *flawed(
        "s2-stuck-replica", "a third replica never learns the epoch", "transactions/diary-02",
        {**ONE, "brokers": 3, "elections": 1}, GET_PID, (*INVARIANTS, *LIVENESS),
    ),
    *flawed(
        "s3-wiped-metadata", "an election wipes other metadata", "transactions/diary-02",
        {**TWO, "txn-log-partitions": 2, "transactional-ids": 2, "elections": 1},
        "OnePidPerTid", ("TypeOK", "NoBadStateResponse", "LogsAgreeUpToHwm", "OnePidPerTid"),
    ),
    *flawed(
        "s4-copied-tail", "a follower copies an uncommitted tail", "transactions/gist", {**TWO, "elections": 1},
        "LogsAgreeUpToHwm", ("TypeOK", "NoBadStateResponse", "OnePidPerTid", "LogsAgreeUpToHwm"),
    ),
    *flawed(
        "s5-stuck-abort", "a prepared abort is never completed", "transactions/gist", {**TWO, "elections": 1},
        GET_PID, ("TypeOK", "NoBadStateResponse", GET_PID),
    ),
    *flawed(
        "s6-stuck-transition", "a pending transition is never cleared", "transactions/diary-01",
        {"clients": 3, "brokers": 1, "txn-log-partitions": 1, "transactional-ids": 2},
        GET_PID, (*DIARY_01_INVARIANTS, GET_PID),
    ),
)


BETWEEN_CLIENTS_AND_BROKERS = (
    ("b1", "c1"), ("b1", "c2"), ("b1", "b2"), ("b2", "c1"), ("b2", "c2"), ("c1", "c2"),
)
"""The links that are cut where the controller and the log stay within reach."""
ROWS: tuple[Scenario, ...] = (
    Scenario(
        "happy-path", "one producer gets an id and adds a partition (figure 1)", ACTORS, {**ONE, "elections": 0},
        claims=(*ACTOR_INVARIANTS, *LIVENESS), timeouts=0,
    ),
    Scenario(
        "fencing", "a second producer fences the first and aborts its transaction (figure 2)", ACTORS,
        {**TWO, "elections": 0}, claims=(*ACTOR_INVARIANTS, *LIVENESS), witnesses=("ProducerFenced",), timeouts=0,
    ),
    Scenario(
        "coordinator-moves", "the coordinator moves in the middle of a transaction", ACTORS, {**TWO, "elections": 2},
        claims=(*ACTOR_INVARIANTS, *LIVENESS), witnesses=("NotCoordinatorRetrySucceeds",), timeouts=0,
    ),
    Scenario(
        "three-brokers", "three brokers, two log partitions, two ids, elections in timed mode", ACTORS,
        {**TWO, "brokers": 3, "txn-log-partitions": 2, "transactional-ids": 2, "elections": 2},
        claims=(*ACTOR_INVARIANTS, GET_PID), mode="timed",
    ),
    Scenario(
        "duplicate-and-reorder", "requests and responses doubled and reordered", ACTORS, {**TWO, "elections": 0},
        network="fifo", faults=Faults(duplicate=2, reorder=2), claims=(*ACTOR_INVARIANTS, GET_PID),
    ),
    Scenario(
        "fenced-by-own-duplicate", "a producer is fenced by its own doubled InitProducerIdRequest", ACTORS,
        {**ONE, "elections": 0}, faults=Faults(rules=(Rule("duplicate", message="InitProducerIdRequest", nth=1),)),
        claims=(*ACTOR_INVARIANTS, *LIVENESS), expected=ADD_ALL, timeouts=0,
    ),
    Scenario(
        "lost-responses", "responses are lost, producers time out and retry", ACTORS, {**TWO, "elections": 0},
        faults=Faults(
            drop=1,
            rules=(
                Rule("drop", message="InitProducerIdResponse", nth=1),
                Rule("drop", message="AddPartitionsToTxnResponse", nth=1),
            ),
        ),
        claims=(*ACTOR_INVARIANTS, GET_PID), mode="timed",
    ),
    Scenario(
        "deaf-client", "one-way partition: the active coordinator hears a client that cannot hear it", ACTORS,
        {**TWO, "elections": 1},
        faults=Faults(
            one_way=1, targets=("b1",), links=(("b1", "c1"),),
            timed=(Timed("one_way", ("b1", "c1"), at_ms=5, until_ms=300),),
        ),
        claims=(*ACTOR_INVARIANTS, GET_PID), mode="timed",
    ),
    Scenario(
        "partitioned-coordinator", "the active coordinator is cut off from all clients, then healed", ACTORS,
        {**TWO, "elections": 1},
        faults=Faults(partition=2, one_way=1, targets=("b1",), links=(("b1", "c1"), ("b1", "c2"), ("b1", "b2"))),
        claims=(*ACTOR_INVARIANTS, GET_PID),
    ),
    Scenario(
        "coordinator-crash", "the coordinator crashes with an uncommitted entry and reloads its log", ACTORS,
        {**TWO, "elections": 1}, faults=Faults(crash=2, targets=("b1", "b2")), claims=(*ACTOR_INVARIANTS, GET_PID),
    ),
    Scenario(
        "fencing-battle", "two producers with one id fence each other while everything goes wrong", ACTORS,
        {**TWO, "elections": 2},
        faults=Faults(
            drop=1, duplicate=1, delay=1, partition=1, one_way=1, pause=1, crash=1, skew=1,
            targets=("b1", "b2", "c1", "c2"), links=BETWEEN_CLIENTS_AND_BROKERS,
        ),
        claims=(*ACTOR_INVARIANTS, GET_PID),
    ),
    Scenario(
        "skewed-clocks", "clocks run fast and actors pause: timeouts fire early", ACTORS, {**TWO, "elections": 1},
        faults=Faults(skew=2, pause=2, delay=1, targets=("b1", "b2", "c1", "c2")),
        claims=(*ACTOR_INVARIANTS, GET_PID), mode="timed",
    ),
    *FLAWS,
)

SCENARIOS: tuple[Scenario, ...] = tuple(attrs.evolve(row, workload=WORKLOAD) for row in ROWS)
