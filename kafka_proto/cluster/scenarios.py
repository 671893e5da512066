"""The scenarios of whole transactions as one table. A row that must fail and its twin differ in the version only.

No row encodes an interleaving: a row says what may happen, the scheduler decides what does.
"""

from __future__ import annotations

import attrs

from harness.model import NO_FAULTS, Faults, Rule, Scenario
from kafka_proto.cluster import moves
from kafka_proto.cluster.properties import INVARIANTS, LIVENESS

ALL = (*INVARIANTS, *LIVENESS)
WORKLOAD = "each producer begins transactions, writes, and commits or aborts"
ONE = {"producers": 1, "brokers": 1, "partitions": 1, "transactions": 2, "records": 1}
APART = {**ONE, "brokers": 2}
TWO = {"producers": 1, "brokers": 2, "partitions": 2, "transactions": 2, "records": 2}


def row(
    name: str, title: str, version: str, sizes: dict[str, int] = TWO, faults: Faults = NO_FAULTS,
    claims: tuple[str, ...] = ALL, timeouts: int = 0, runs: int = 60, steps: int = 90, **rest: object,
) -> Scenario:
    """Return a row."""
    return Scenario(
        name, title, f"exactly-once/{version}", sizes, faults=faults, claims=claims, timeouts=timeouts,
        workload=WORKLOAD, steps=steps, runs=runs, **rest,  # type: ignore[arg-type]
    )


MIXED = ("MarkerAttribution", "Atomicity", "AcknowledgedOutcome", "OperationsEnd")
LATE_END = row(
    "late-end", "an EndTxn is late in an abandoned connection, and ends a later transaction (KAFKA-17754)", "kip-360",
    ONE, Faults(rules=(Rule("delay", message="EndTxnRequest", nth=1, delay_ms=110),)), MIXED, mode="timed", runs=400,
    timers=2, expected="MarkerAttribution", repaired="late-end-repaired",
)
LATE_PRODUCE = Faults(rules=(Rule("delay", message="ProduceRequest", nth=1, delay_ms=200),))
HANGING = row(
    "hanging-transaction", "a batch is late and given up: it opens a transaction that nobody ends (KAFKA-14402)",
    "kip-360", APART, LATE_PRODUCE, ("NoHangingTransaction", "OperationsEnd"), mode="timed", runs=400,
    timers=1, settings={"timeouts": "request,delivery"}, expected="NoHangingTransaction",
    repaired="hanging-transaction-repaired",
)
JOINING = row(
    "late-batch-joins", "a batch is late and given up: it becomes a part of the next transaction (KIP-890)",
    "kip-890-part-1", APART, LATE_PRODUCE, ("AcknowledgedOutcome", "OperationsEnd"), mode="timed", runs=400,
    timers=2, settings={"timeouts": "request,delivery", "client": "aiokafka"}, expected="AcknowledgedOutcome",
    repaired="late-batch-joins-repaired",
)
LATE_MARKER = row(
    "late-marker", "a marker that was sent twice is late, and ends the next transaction (KAFKA-19446)", "kip-890",
    APART, Faults(rules=(Rule("delay", message="WriteTxnMarkersRequest", nth=1, delay_ms=200),)), MIXED, mode="timed",
    runs=400, timers=1, expected="MarkerAttribution", repaired="late-marker-repaired",
)
PLAIN = {**ONE, "producers": 0, "idempotent-producers": 1, "records": 3}
SENT_AGAIN = row(
    "record-sent-again", "records are deleted, their producer begins its sequences again: an old copy is taken, too",
    "kip-98", {**PLAIN, "deletions": 2}, Faults(rules=(Rule("delay", message="ProduceRequest", nth=2, delay_ms=200),)),
    ("AcknowledgedOnce", "OperationsEnd"), mode="timed", runs=400, timers=2, settings={"client": "java23"},
    expected="AcknowledgedOnce", repaired="record-sent-again-repaired",
)
GOES_ON = row(
    "late-producer-goes-on", "a transaction times out, and its producer goes on in the same epoch (KAFKA-6119)",
    "kip-98", {**TWO, "transactions": 1}, claims=("Atomicity", "OperationsEnd"), timeouts=1, runs=400,
    settings={"timeouts": "transaction", "release": "0.11"}, expected="Atomicity",
    repaired="late-producer-goes-on-repaired",
)
FAILING = (LATE_END, HANGING, JOINING, LATE_MARKER, SENT_AGAIN, GOES_ON)
REFUSES_LATE_MARKERS = {"release": "4.2"}
TWINS = (
    attrs.evolve(
        LATE_END, name="late-end-repaired", title="each end has an epoch of its own (KIP-890)",
        model="exactly-once/kip-890", settings=REFUSES_LATE_MARKERS, expected=None, repaired=None,
    ),
    attrs.evolve(
        HANGING, name="hanging-transaction-repaired", title="the leader asks the coordinator first (KIP-890 part 1)",
        model="exactly-once/kip-890-part-1", expected=None, repaired=None,
    ),
    attrs.evolve(
        JOINING, name="late-batch-joins-repaired", title="each end has an epoch of its own (KIP-890)",
        model="exactly-once/kip-890", settings={**REFUSES_LATE_MARKERS, "timeouts": "request,delivery"},
        expected=None, repaired=None,
    ),
    attrs.evolve(
        LATE_MARKER, name="late-marker-repaired", title="a marker's epoch must be above the producer's (KIP-1228)",
        settings=REFUSES_LATE_MARKERS, expected=None, repaired=None,
    ),
    attrs.evolve(
        SENT_AGAIN, name="record-sent-again-repaired",
        title="a producer is known as long as it is used (KAFKA-7190), and goes on in another epoch (KIP-360)",
        model="exactly-once/kip-360", settings={}, expected=None, repaired=None,
    ),
    attrs.evolve(
        GOES_ON, name="late-producer-goes-on-repaired", title="a time-out fences who began the transaction",
        settings={"timeouts": "transaction"}, expected=None, repaired=None,
    ),
)
ENDED = ("TransactionCommitted", "TransactionAborted")

REPLICATED = {"log": "replicated"}
THREE = {"brokers": 3, "replication-factor": 3, "min-insync-replicas": 2}
B = ("b1", "b2", "b3")
MOVING = (
    row("leaders-move", "coordinators and leaders of partitions move in each state of a transaction", "kip-890",
        {**TWO, "consumers": 1, "elections": 6}, settings=REPLICATED, mode="timed", steps=200,
        witnesses=(*ENDED, *moves.WITNESSES)),
    row("leaders-crash", "coordinators and leaders of partitions crash in each state of a transaction", "kip-890",
        {**TWO, **THREE}, Faults(crash=2, targets=B), timeouts=6, settings=REPLICATED, mode="timed", steps=200,
        witnesses=(*ENDED, "CoordinatorMovedWhileOngoing", "CoordinatorMovedWhilePrepared", "LeaderMovedWhileOpen")),
    row("leaders-lose-their-disk", "a broker loses its disk", "kip-890", {**TWO, **THREE, "elections": 1},
        Faults(crash=1, targets=B), timeouts=6, settings={**REPLICATED, "disk": "lost", "election": "elr"},
        mode="timed", steps=200, witnesses=ENDED),
    row("leaders-lose-their-tail", "a crash loses what was not flushed", "kip-890", {**TWO, **THREE, "elections": 1},
        Faults(crash=1, targets=B), timeouts=6, settings={**REPLICATED, "disk": "unflushed", "election": "elr"},
        mode="timed", steps=200, witnesses=ENDED),
    row("leaders-move-and-answers-are-late", "leaders move and crash, requests are late and asked again", "kip-890",
        {**TWO, "consumers": 1, "elections": 2}, Faults(crash=1, delay=2, drop=1, targets=("b1", "b2")), timeouts=6,
        settings=REPLICATED, mode="timed", steps=200, witnesses=("RequestRepeated", "LeaderLookedUp")),
)

SCENARIOS: tuple[Scenario, ...] = (
    row("exactly-once-commits", "commits and aborts, nothing goes wrong", "kip-890", {**TWO, "consumers": 1},
        witnesses=(*ENDED, "AbortedRecordSkipped")),
    row("exactly-once-interleaved", "two producers write to the same partitions", "kip-890",
        {**TWO, "producers": 2, "transactional-ids": 2, "consumers": 1}, witnesses=(*ENDED, "AbortedRecordSkipped")),
    row("exactly-once-zombie", "two producers have one transactional id: the later one fences the other", "kip-890",
        {**TWO, "producers": 2, "consumers": 1}, witnesses=(*ENDED, "ProducerIsFenced")),
    row("exactly-once-offsets", "offsets are committed with transactions, requests are late", "kip-890",
        {**TWO, "partitions": 1, "records": 1, "offsets": 2}, Faults(delay=3), timeouts=3,
        witnesses=(*ENDED, "OffsetStaged")),
    row("exactly-once-late-answers", "requests and answers are late, and asked again", "kip-890", TWO,
        Faults(delay=3), timeouts=3, witnesses=("RequestRepeated",)),
    row("exactly-once-lost-answers", "requests and answers are lost, and asked again", "kip-890", TWO,
        Faults(drop=3), timeouts=3, witnesses=("RequestRepeated",)),
    row("exactly-once-time-outs", "transactions time out at their coordinator", "kip-890", TWO, timeouts=2,
        settings={"timeouts": "request,transaction", "release": "4.4"}, witnesses=("ProducerIsFenced",)),
    row("exactly-once-crashes", "brokers crash in each state of a transaction, whose log is slow", "kip-890",
        TWO, Faults(crash=2, targets=("b1", "b2")), timeouts=3, settings={"log": "later"}, witnesses=ENDED),
    row("exactly-once-epochs-run-out", "transactional ids have few epochs left, and go on with another producer id",
        "kip-890", {**TWO, "epochs": 2, "transactions": 4, "records": 1}, Faults(delay=1), timeouts=2,
        settings={"timeouts": "request,transaction", "release": "4.4"}, witnesses=(*ENDED, "EpochsRanOut")),
    row("idempotent-late-answers", "records without transactions: batches are late or lost, asked again or given up",
        "kip-890", {**PLAIN, "brokers": 2}, Faults(delay=2, drop=1), timeouts=4,
        settings={"timeouts": "request,delivery"}, witnesses=("EpochTakenUnasked",)),
    row("idempotent-in-flight", "three batches of a partition are in flight, and connections are given up", "kip-890",
        {**PLAIN, "brokers": 2, "records": 5, "in-flight": 3}, timeouts=4),
    row("idempotent-beside-transactions", "two producers write to the same partitions, one of them in transactions",
        "kip-890", {**TWO, "idempotent-producers": 1, "consumers": 1}, Faults(delay=1), timeouts=1,
        witnesses=(*ENDED, "AbortedRecordSkipped")),
    *FAILING, *TWINS, *MOVING,
)
