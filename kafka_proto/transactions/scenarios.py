"""The scenarios of the transaction protocol as one table. A flawed row and its twin differ in the variant only.

No row encodes an interleaving: a row says what may happen, the scheduler decides what does.
"""

from __future__ import annotations

import attrs

from harness.model import Scenario
from kafka_proto.transactions.properties import INVARIANTS, LIVENESS

GET_PID, _ = LIVENESS
DIARY_01_INVARIANTS = ("TypeOK", "NoBadStateResponse")
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

SCENARIOS: tuple[Scenario, ...] = tuple(attrs.evolve(row, workload=WORKLOAD) for row in FLAWS)
