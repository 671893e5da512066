"""The scenarios of replication as one table: exhibits, each beside the version in which it is gone, and operations.

A flawed row and its twin differ in the version only, or in one setting of it. No row encodes an interleaving: a row
says what may happen, the scheduler decides what does.
"""

from __future__ import annotations

from typing import Any

import attrs

from harness.model import NO_FAULTS, Checked, Faults, Rule, Scenario, Timed
from kafka_proto.replication.actor_properties import LIVENESS, SAFETY, UNCLEAN

CALM = {"replicas": 2, "producers": 1, "consumers": 0, "records": 1, "elections": 0, "fencings": 0}
EVERYBODY = ("r1", "r2", "r3")
WORKLOAD = "every producer sends its records one after the other, every consumer polls; each asks whom it likes"
NEW_LEADER = ("HighWatermarkRises", "RecordTruncated", "LeaderReplaced")


def exhibit(
    name: str, title: str, version: str, sizes: dict[str, int], settings: dict[str, str], expected: str, steps: int,
    runs: int, sound: str | None = None, twin: dict[str, str] | None = None,
    witnesses: tuple[str, ...] = NEW_LEADER, **more: Any,
) -> tuple[Scenario, Scenario]:
    """Return a flawed row, and its twin: the same of a `sound` version, or with other settings."""
    id_, repaired = name[:5].upper(), f"{name}-repaired"
    bad = Scenario(
        name, f"{id_}: {title}", actors(version), {**CALM, **sizes}, settings, claims=(expected,), expected=expected,
        repaired=repaired, witnesses=witnesses, steps=steps, timeouts=0, runs=runs, **more,
    )
    good = attrs.evolve(
        bad, name=repaired, title=f"{id_} repaired", model=actors(sound or version),
        settings={**settings, **(twin or {})}, expected=None, repaired=None, checked=None,
    )
    return bad, good


def actors(version: str) -> str:
    return f"replication/{version}/actors"


EXHIBITS: tuple[Scenario, ...] = (
    *exhibit(
        "rp-01-truncate-to-high-watermark", "a new follower drops a committed record (KAFKA-1211)",
        "truncate-to-high-watermark", {"elections": 2}, {}, "StrongIsr", 40, 1000, "kip-101",
        witnesses=("HighWatermarkRises", "RecordTruncated"),
        checked=Checked("replication/truncate-to-high-watermark", "StrongIsr"),
    ),
    *exhibit(
        "rp-02-diverging-tails", "a replica that lost its tail leads, the other keeps its own (KIP-101)",
        "truncate-to-high-watermark", {"fencings": 1, "records": 2, "producers": 2}, {"acks": "1", "flush": "lazy"},
        "FollowerLogMatches", 60, 400, "kip-279", faults=Faults(crash=2, targets=("r1", "r2")),
    ),
    *exhibit(
        "rp-03-unknown-epoch", "the leader does not know the epoch, and the follower falls back (KIP-279)",
        "kip-101", {"elections": 2, "producers": 3}, {"acks": "1"}, "StrongIsr", 45, 400, "kip-320",
        checked=Checked("replication/kip-101", "StrongIsr"),
    ),
    *exhibit(
        "rp-04-fast-failover", "one look-up leaves different records at one offset (KAFKA-6361)", "kip-101",
        {"elections": 2, "fencings": 1, "producers": 3}, {"acks": "1", "election": "unclean"}, "FollowerLogMatches",
        45, 400, "kip-279", witnesses=(*NEW_LEADER, UNCLEAN),
    ),
    *exhibit(
        "rp-05-unfenced-fetch", "a follower of an older epoch counts (KAFKA-6880, KIP-320)", "kip-279",
        {"replicas": 3, "elections": 2, "fencings": 1, "producers": 2}, {"acks": "1"}, "StrongIsr", 50, 400, "kip-320",
        network="fifo",
        checked=Checked(
            "replication/kip-279", "StrongIsr", {"replicas": 3, "log-size": 1, "max-records": 1}, symmetry=True
        ),
    ),
    *exhibit(
        "rp-06-first-try", "the rejected first try at KIP-320 lets a late fetch through", "kip-320-first-try",
        {"replicas": 3, "elections": 1, "fencings": 2, "producers": 2}, {"acks": "1"}, "WeakIsr", 45, 400, "kip-320",
        network="fifo", checked=Checked("replication/kip-320-first-try", "WeakIsr", {"replicas": 3}, symmetry=True),
    ),
    *exhibit(
        "rp-07-unfenced-look-up", "a follower truncates by what a leader of an older epoch says (KIP-320, rule 2)",
        "kip-320", {"replicas": 3, "elections": 2, "producers": 3}, {"acks": "1", "change": "unfenced-look-up"},
        "FollowerLogMatches", 45, 1000, network="fifo", twin={"change": ""},
        faults=Faults(rules=(
            Rule("drop", message="LeaderAndIsrRequest", dest="r3", nth=2),
            Rule("delay", message="LeaderAndIsrRequest", dest="r1", nth=2),
            Rule("delay", message="LeaderAndIsrRequest", dest="r1", nth=3),
            Rule("drop", message="FetchRequest", source="r2", nth=1),
            Rule("drop", message="LeaderAndIsrRequest", dest="r2", nth=3),
        )),
    ),
    *exhibit(
        "rp-08-stale-high-watermark", "a follower enters the ISR by a stale high watermark (KAFKA-7128)", "kip-320",
        {"replicas": 3, "fencings": 2}, {"change": "stale-high-watermark"}, "StrongIsr", 45, 2000, network="fifo",
        twin={"change": "epoch-start"}, witnesses=("HighWatermarkRises", "IsrExpands"),
        checked=Checked(
            "replication/kip-320", "StrongIsr", {"replicas": 3, "log-size": 1, "max-records": 1},
            {"change": "stale-high-watermark"}, symmetry=True,
        ),
    ),
    *exhibit(
        "rp-09-same-leader", "a follower misses an epoch in which it should have truncated (KAFKA-7164)", "kip-320",
        {"replicas": 3, "elections": 2, "producers": 3}, {"acks": "1", "change": "same-leader"}, "FollowerLogMatches",
        45, 600, network="fifo", twin={"change": "no-missed-epoch"},
        faults=Faults(rules=(
            Rule("drop", message="LeaderAndIsrRequest", dest="r3", nth=2),
            Rule("delay", message="FetchResponse", dest="r2", nth=1),
        )),
    ),
    *exhibit(
        "rp-10-unseen-member", "a proposed member does not count yet (KIP-497, KAFKA-8836)", "async-isr",
        {"replicas": 3, "fencings": 1, "records": 2}, {"counts": "isr"}, "StrongIsr", 45, 300,
        twin={"counts": "potential-isr"}, witnesses=("HighWatermarkRises", "IsrExpands"),
        checked=Checked("replication/async-isr", "ValidHighWatermark", {}, {"counts": "isr"}),
    ),
    *exhibit(
        "rp-11-any-state", "a replica that shuts down is let into the ISR again (KIP-841, KAFKA-13916)", "kip-320",
        {"fencings": 1}, {"change": "shuts-down,any-state"}, "IsrEligibility", 45, 400, twin={"change": "shuts-down"},
        witnesses=("HighWatermarkRises",),
    ),
    *exhibit(
        "rp-12-any-broker-epoch", "a replica that lost its log meanwhile enters the ISR (KIP-903)", "kip-320",
        {"fencings": 1}, {"flush": "lazy", "change": "any-broker-epoch"}, "IsrEligibility", 45, 400,
        twin={"change": ""}, faults=Faults(crash=1, targets=("r2",)), witnesses=("HighWatermarkRises", "IsrExpands"),
    ),
    *exhibit(
        "rp-14-counts-diverging", "a follower whose log diverges counts (KAFKA-13141)", "truncation-on-fetch",
        {"elections": 1, "producers": 2}, {"acks": "1", "change": "counts-diverging"}, "StrongIsr", 45, 400,
        twin={"change": ""},
    ),
    *exhibit(
        "rp-14-raises-first", "a follower's high watermark rises before truncation (KAFKA-14704)",
        "truncation-on-fetch", {"elections": 1, "fencings": 1, "producers": 2},
        {"acks": "1", "change": "raises-first"}, "LogMatching", 45, 400, twin={"change": ""},
    ),
)

BUSY = {**CALM, "replicas": 3, "producers": 2, "consumers": 2, "records": 2, "polls": 3, "min-insync-replicas": 2}
EVERYTHING = (*SAFETY, *LIVENESS)


def operation(
    name: str, title: str, sizes: dict[str, int], witnesses: tuple[str, ...], faults: Faults = NO_FAULTS, **more: Any
) -> Scenario:
    """Return a row of three busy replicas that claims everything."""
    row = {"claims": EVERYTHING, "runs": 60, "steps": 120, **more}
    return Scenario(f"replication-{name}", title, actors("kip-320"), {**BUSY, **sizes}, witnesses=witnesses,
                    faults=faults, **row)


OPERATIONS: tuple[Scenario, ...] = (
    operation(
        "calm", "three replicas, nothing goes wrong", {}, ("HighWatermarkRises", "RecordAcknowledged", "RecordRead"),
    ),
    operation(
        "late-leader-and-isr", "leaders change, and some replicas hear of it late", {"elections": 3, "fencings": 1},
        NEW_LEADER, Faults(delay=3, drop=2),
    ),
    operation(
        "rolling-crash", "one replica after the other crashes and comes back", {"elections": 1},
        ("IsrShrinks", "IsrExpands"), Faults(crash=3, targets=EVERYBODY),
    ),
    operation(
        "isolated-leader", "a leader is cut off from everybody but its clients", {"elections": 2},
        ("HighWatermarkRises", "IsrShrinks"),
        Faults(
            partition=2, one_way=1, targets=EVERYBODY,
            links=tuple((a, b) for a in EVERYBODY for b in (*EVERYBODY, "controller") if a < b or b == "controller"),
        ),
    ),
    operation(
        "slow-follower", "a follower pauses, falls out of the ISR and catches up", {}, ("HighWatermarkRises",),
        Faults(pause=2, skew=1, targets=("r2", "r3")),
    ),
    operation(
        "doubled-and-reordered", "requests and answers are doubled and reordered", {"elections": 2}, NEW_LEADER,
        Faults(duplicate=3, reorder=3), network="fifo",
    ),
    Scenario(
        "replication-tail-loss", "a crash loses what was not flushed, min.insync.replicas is 2", actors("kip-320"),
        {**CALM, "records": 3, "min-insync-replicas": 2, "consumers": 1}, {"flush": "lazy"},
        faults=Faults(crash=2, targets=("r1", "r2")), claims=("FollowerLogMatches", "IsrEligibility", *LIVENESS),
        witnesses=("RecordAcknowledged",), runs=60, steps=120,
    ),
    operation(
        "timed-failover", "the leader of three is down for a while, in timed mode", {"elections": 2},
        ("RecordAcknowledged",), Faults(targets=("r1",), timed=(Timed("crash", ("r1",), 20, 300),)), mode="timed",
        runs=40, steps=150,
    ),
)

SCENARIOS: tuple[Scenario, ...] = tuple(attrs.evolve(row, workload=WORKLOAD) for row in (*EXHIBITS, *OPERATIONS))
