"""The scenarios of replication as one table: exhibits, each beside the version in which it is gone, and operations.

A flawed row and its twin differ in the version only, or in one setting of it. No row encodes an interleaving: a row
says what may happen, the scheduler decides what does.
"""

from __future__ import annotations

import attrs

from harness.model import Checked, Faults, Scenario, Timed
from kafka_proto.replication.actor_properties import LIVENESS, SAFETY, UNCLEAN

CALM = {"replicas": 2, "producers": 1, "consumers": 0, "records": 1, "elections": 0, "fencings": 0}
EVERYBODY = ("r1", "r2", "r3")
WORKLOAD = "every producer sends its records one after the other, every consumer polls; each asks whom it likes"
NEW_LEADER = ("HighWatermarkRises", "RecordTruncated", "LeaderReplaced")


def exhibit(
    row: Scenario, twin: dict[str, str], version: str | None = None
) -> tuple[Scenario, Scenario]:
    """Return a flawed row, and its twin: the same with other settings, or of another version."""
    name = f"{row.name}-repaired"
    bad = attrs.evolve(row, repaired=name)
    good = attrs.evolve(
        row, name=name, title=f"{row.title.partition(':')[0]} repaired", model=version or row.model,
        settings={**row.settings, **twin}, expected=None, repaired=None, checked=None,
    )
    return bad, good


def actors(version: str) -> str:
    return f"replication/{version}/actors"


EXHIBITS: tuple[Scenario, ...] = (
    *exhibit(
        Scenario(
            "rp-01-truncate-to-high-watermark", "RP-01: a new follower drops a committed record (KAFKA-1211)",
            actors("truncate-to-high-watermark"), {**CALM, "elections": 2}, claims=("StrongIsr",),
            expected="StrongIsr", witnesses=("HighWatermarkRises", "RecordTruncated"), steps=40, timeouts=0, runs=1000,
            checked=Checked("replication/truncate-to-high-watermark", "StrongIsr"),
        ),
        {}, actors("kip-101"),
    ),
    *exhibit(
        Scenario(
            "rp-02-diverging-tails", "RP-02: a replica that lost its tail leads, the other keeps its own (KIP-101)",
            actors("truncate-to-high-watermark"), {**CALM, "fencings": 1, "records": 2, "producers": 2},
            {"acks": "1", "flush": "lazy"}, faults=Faults(crash=2, targets=("r1", "r2")),
            claims=("FollowerLogMatches",), expected="FollowerLogMatches", witnesses=NEW_LEADER, steps=60, timeouts=0,
            runs=400,
        ),
        {}, actors("kip-279"),
    ),
    *exhibit(
        Scenario(
            "rp-03-unknown-epoch", "RP-03: the leader does not know the epoch, and the follower falls back (KIP-279)",
            actors("kip-101"), {**CALM, "elections": 2, "producers": 3}, {"acks": "1"}, claims=("StrongIsr",),
            expected="StrongIsr", witnesses=NEW_LEADER, steps=45, timeouts=0, runs=400,
            checked=Checked("replication/kip-101", "StrongIsr"),
        ),
        {}, actors("kip-320"),
    ),
    *exhibit(
        Scenario(
            "rp-04-fast-failover", "RP-04: one look-up leaves different records at one offset (KAFKA-6361)",
            actors("kip-101"), {**CALM, "elections": 2, "fencings": 1, "producers": 3},
            {"acks": "1", "election": "unclean"},
            claims=("FollowerLogMatches",), expected="FollowerLogMatches", witnesses=(*NEW_LEADER, UNCLEAN), steps=45,
            timeouts=0, runs=400,
        ),
        {}, actors("kip-279"),
    ),
    *exhibit(
        Scenario(
            "rp-05-unfenced-fetch", "RP-05: a follower of an older epoch counts (KAFKA-6880, KIP-320)",
            actors("kip-279"), {**CALM, "replicas": 3, "elections": 2, "fencings": 1, "producers": 2}, {"acks": "1"},
            network="fifo", claims=("StrongIsr",), expected="StrongIsr", witnesses=NEW_LEADER, steps=50, timeouts=0,
            runs=400,
            checked=Checked(
                "replication/kip-279", "StrongIsr", {"replicas": 3, "log-size": 1, "max-records": 1}, symmetry=True
            ),
        ),
        {}, actors("kip-320"),
    ),
    *exhibit(
        Scenario(
            "rp-06-first-try", "RP-06: the rejected first try at KIP-320 lets a late fetch through",
            actors("kip-320-first-try"), {**CALM, "replicas": 3, "elections": 1, "fencings": 2, "producers": 2},
            {"acks": "1"}, network="fifo", claims=("WeakIsr",), expected="WeakIsr", witnesses=NEW_LEADER, steps=45,
            timeouts=0, runs=400,
            checked=Checked("replication/kip-320-first-try", "WeakIsr", {"replicas": 3}, symmetry=True),
        ),
        {}, actors("kip-320"),
    ),
    *exhibit(
        Scenario(
            "rp-10-unseen-member", "RP-10: a proposed member does not count yet (KIP-497, KAFKA-8836)",
            actors("async-isr"), {**CALM, "replicas": 3, "fencings": 1, "records": 2}, {"counts": "isr"},
            claims=("StrongIsr",), expected="StrongIsr", witnesses=("HighWatermarkRises", "IsrExpands"), steps=45,
            timeouts=0, runs=300,
            checked=Checked("replication/async-isr", "ValidHighWatermark", {}, {"counts": "isr"}),
        ),
        {"counts": "potential-isr"},
    ),
)

BUSY = {**CALM, "replicas": 3, "producers": 2, "consumers": 2, "records": 2, "polls": 3, "min-insync-replicas": 2}
EVERYTHING = (*SAFETY, *LIVENESS)
KIP_320 = actors("kip-320")

OPERATIONS: tuple[Scenario, ...] = (
    Scenario(
        "replication-calm", "three replicas, nothing goes wrong", KIP_320, BUSY, claims=EVERYTHING,
        witnesses=("HighWatermarkRises", "RecordAcknowledged", "RecordRead"), runs=60, steps=120,
    ),
    Scenario(
        "replication-late-leader-and-isr", "leaders change, and some replicas hear of it late", KIP_320,
        {**BUSY, "elections": 3, "fencings": 1}, faults=Faults(delay=3, drop=2), claims=EVERYTHING,
        witnesses=NEW_LEADER, runs=60, steps=120,
    ),
    Scenario(
        "replication-rolling-crash", "one replica after the other crashes and comes back", KIP_320,
        {**BUSY, "elections": 1},
        faults=Faults(crash=3, targets=EVERYBODY), claims=EVERYTHING, witnesses=("IsrShrinks", "IsrExpands"), runs=60,
        steps=120,
    ),
    Scenario(
        "replication-isolated-leader", "a leader is cut off from everybody but its clients", KIP_320,
        {**BUSY, "elections": 2},
        faults=Faults(
            partition=2, one_way=1, targets=EVERYBODY,
            links=tuple((a, b) for a in EVERYBODY for b in (*EVERYBODY, "controller") if a < b or b == "controller"),
        ),
        claims=EVERYTHING, witnesses=("HighWatermarkRises", "IsrShrinks"), runs=60, steps=120,
    ),
    Scenario(
        "replication-slow-follower", "a follower pauses, falls out of the ISR and catches up", KIP_320, BUSY,
        faults=Faults(pause=2, skew=1, targets=("r2", "r3")), claims=EVERYTHING, witnesses=("HighWatermarkRises",),
        runs=60, steps=120,
    ),
    Scenario(
        "replication-doubled-and-reordered", "requests and answers are doubled and reordered", KIP_320,
        {**BUSY, "elections": 2},
        network="fifo", faults=Faults(duplicate=3, reorder=3), claims=EVERYTHING, witnesses=NEW_LEADER, runs=60,
        steps=120,
    ),
    Scenario(
        "replication-tail-loss", "a crash loses what was not flushed, min.insync.replicas is 2", KIP_320,
        {**CALM, "records": 3, "min-insync-replicas": 2, "consumers": 1}, {"flush": "lazy"},
        faults=Faults(crash=2, targets=("r1", "r2")),
        claims=("FollowerLogMatches", "IsrEligibility", *LIVENESS), witnesses=("RecordAcknowledged",), runs=60,
        steps=120,
    ),
    Scenario(
        "replication-timed-failover", "the leader of three is down for a while, in timed mode", KIP_320,
        {**BUSY, "elections": 2}, faults=Faults(targets=("r1",), timed=(Timed("crash", ("r1",), 20, 300),)),
        claims=EVERYTHING, witnesses=("RecordAcknowledged",), mode="timed", runs=40, steps=150,
    ),
)

SCENARIOS: tuple[Scenario, ...] = tuple(attrs.evolve(row, workload=WORKLOAD) for row in (*EXHIBITS, *OPERATIONS))
