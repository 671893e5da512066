"""The scenarios of whole transactions as one table. A row that must fail and its twin differ in the version only.

No row encodes an interleaving: a row says what may happen, the scheduler decides what does.
"""

from __future__ import annotations

from typing import Any

import attrs

from harness.model import NO_FAULTS, Faults, Rule, Scenario, Timed
from kafka_proto.cluster import moves, replicas
from kafka_proto.cluster.properties import INVARIANTS, LIVENESS

ALL = (*INVARIANTS, *LIVENESS)
OF_REPLICAS = (*ALL, *replicas.SAFETY)
WORKLOAD = "each producer begins transactions, writes, and commits or aborts"
ONE = {"producers": 1, "brokers": 1, "partitions": 1, "transactions": 2, "records": 1}
APART = {**ONE, "brokers": 2}
HAPPY = {"producers": 1, "brokers": 2, "partitions": 1, "transactions": 1, "records": 1}
TWO = {"producers": 1, "brokers": 2, "partitions": 2, "transactions": 2, "records": 2}


def row(
    name: str, title: str, release: str, sizes: dict[str, int] = TWO, faults: Faults = NO_FAULTS,
    claims: tuple[str, ...] = ALL, timeouts: int = 0, runs: int = 60, steps: int = 90, **rest: object,
) -> Scenario:
    """Return a row; a row that must fail has a repaired twin."""
    repaired = f"{name}-repaired" if "expected" in rest else None
    return Scenario(
        name, title, f"kafka/{release}", sizes, faults=faults, claims=claims, timeouts=timeouts,
        workload=WORKLOAD, steps=steps, runs=runs, repaired=repaired, **rest,  # type: ignore[arg-type]
    )


def twin(failing: Scenario, title: str, **changes: Any) -> Scenario:
    """Return the twin of a row that must fail."""
    return attrs.evolve(
        failing, name=f"{failing.name}-repaired", title=title, expected=None, repaired=None, **changes
    )


MIXED = ("MarkerAttribution", "Atomicity", "AcknowledgedOutcome", "OperationsEnd")
LATE_END = row(
    "late-end", "an EndTxn is late in an abandoned connection, and ends a later transaction (KAFKA-17754)", "3.5",
    ONE, Faults(rules=(Rule("delay", message="EndTxnRequest", nth=1, delay_ms=110),)), MIXED, mode="timed", runs=400,
    timers=2, expected="MarkerAttribution",
)
IN_THE_LOGS = (*MIXED, "NoHangingTransaction")
LATE_END_RDKAFKA = row(
    "late-end-rdkafka", "the same on the newest release, whose part 2 of KIP-890 librdkafka does not speak (its issue "
    "5423)", "4.4", ONE, LATE_END.faults, IN_THE_LOGS, mode="timed", runs=400, timers=2, settings={"client": "rdkafka"},
    expected="MarkerAttribution",
)
LATE_OFFSETS = row(
    "late-offsets-rdkafka", "a TxnOffsetCommit is late, and becomes a part of the next transaction: the rule that is "
    "proposed for librdkafka looks at EndTxn only", "4.4", {**ONE, "offsets": 1},
    Faults(rules=(Rule("delay", message="TxnOffsetCommitRequest", nth=1, delay_ms=110),)), IN_THE_LOGS, mode="timed",
    runs=400, timers=1, settings={"client": "rdkafka-end"}, expected="MarkerAttribution",
)
LATE_PRODUCE = Faults(rules=(Rule("delay", message="ProduceRequest", nth=1, delay_ms=200),))
HANGING = row(
    "hanging-transaction", "a batch is late and given up: it opens a transaction that nobody ends (KAFKA-14402)",
    "3.5", APART, LATE_PRODUCE, ("NoHangingTransaction", "OperationsEnd"), mode="timed", runs=400,
    timers=1, settings={"timeouts": "request,delivery"}, expected="NoHangingTransaction",
)
JOINING = row(
    "late-batch-joins", "a batch is late and given up: it becomes a part of the next transaction (KIP-890)",
    "3.9", APART, LATE_PRODUCE, ("AcknowledgedOutcome", "OperationsEnd"), mode="timed", runs=400,
    timers=2, settings={"timeouts": "request,delivery", "client": "aiokafka"}, expected="AcknowledgedOutcome",
)
SLOW_MARKER = Faults(rules=(Rule("delay", message="WriteTxnMarkersRequest", nth=1, delay_ms=200),))
LATE_MARKER = row(
    "late-marker", "a marker that was sent twice is late, and ends the next transaction (KAFKA-19446)", "4.0",
    APART, SLOW_MARKER, MIXED, mode="timed",
    runs=400, timers=1, expected="MarkerAttribution",
)
NO_GUARD = row(
    "append-after-the-marker", "a batch is verified, its transaction ends, then it is appended: without a guard that "
    "counts (KAFKA-14884)", "3.9", APART,
    Faults(rules=(Rule("delay", message="AddPartitionsToTxnResponse", nth=1, delay_ms=200),)),
    ("NoHangingTransaction", "OperationsEnd"), mode="timed", runs=400, timers=1,
    settings={"timeouts": "request,delivery", "change": "no-guard"}, expected="NoHangingTransaction",
)
OLDER_OPEN = row(
    "older-transaction-taken", "a leader takes a transaction that a slow marker has not ended for the next one "
    "(KAFKA-18575)", "4.0", APART,
    SLOW_MARKER, MIXED, mode="timed",
    runs=400, settings={"timeouts": "", "change": "any-open"}, expected="MarkerAttribution",
)
WRONG_STATE = row(
    "time-out-told-as-wrong-state", "a transaction times out, and its producer's commit is told INVALID_TXN_STATE "
    "(KAFKA-20785, open)", "4.4", {**ONE, "transactions": 1}, claims=("FatalForAReason", "OperationsEnd"), timeouts=1,
    runs=400, settings={"timeouts": "transaction"}, expected="FatalForAReason",
)
REFUSED_AGAIN = row(
    "repeated-marker-refused", "a marker's answer is lost, the marker that is sent again is refused: its transaction "
    "is prepared for ever (KAFKA-19999)", "4.2", {**APART, "transactions": 1},
    Faults(rules=(Rule("drop", message="WriteTxnMarkersResponse", nth=1),)), ("PreparedIsCompleted", "OperationsEnd"),
    runs=400, timers=1, timeouts=2, settings={"change": "marker-once"}, expected="PreparedIsCompleted",
)
READING = {**ONE, "consumers": 1}
UNLISTED = row(
    "aborted-unlisted", "a reader is not told what is aborted, and takes it for committed (KAFKA-5376)", "4.0",
    {**READING, "transactions": 1}, claims=("ReadBound", "NoIntermediateRead", "CommittedIsRead", "OperationsEnd"),
    runs=400, settings={"change": "unlisted"}, expected="ReadBound",
)
OLD_BOUND = row(
    "read-past-the-bound", "a reader gets a record of an open transaction, between two looks at the log (KAFKA-9807)",
    "4.0", READING, claims=("ReadBound", "NoIntermediateRead", "CommittedIsRead", "OperationsEnd"), runs=400,
    settings={"change": "old-bound"}, expected="NoIntermediateRead",
)
FORGOTTEN = row(
    "answered-before-replicated", "a coordinator answers first, and the next one has never heard of the transaction "
    "(Redpanda #6018)", "4.0", {**APART, "transactions": 1, "elections": 1},
    Faults(rules=(Rule("delay", message="FetchResponse", dest="b2", delay_ms=200),)),
    ("Atomicity", "AcknowledgedOutcome", "NoHangingTransaction", "OperationsEnd"), mode="timed", runs=400,
    settings={"log": "replicated", "change": "answers-first"}, expected="NoHangingTransaction",
)
EMPTY = row(
    "empty-abort-fenced", "a batch is given up, and the abort of its empty transaction is told PRODUCER_FENCED while "
    "the last one's marker is slow (KAFKA-18464)", "4.0", APART,
    Faults(rules=(*SLOW_MARKER.rules, Rule("delay", message="ProduceRequest", nth=2, delay_ms=200))),
    ("FencedForAReason", "OperationsEnd"), mode="timed", runs=400, timers=2,
    settings={"timeouts": "delivery", "change": "fenced-first"}, expected="FencedForAReason",
)
OVERFLOWS = row(
    "last-epoch-bumped-twice", "the last epoch is used, and a new producer's fence wants two more: it is told "
    "UNKNOWN_SERVER_ERROR (KAFKA-19367)", "4.0", {**ONE, "producers": 2, "transactions": 1, "epochs": 1},
    claims=("FatalForAReason", "OperationsEnd"), runs=400, expected="FatalForAReason",
)
HANDED_OUT = row(
    "last-epoch-handed-out", "a time-out takes the last epoch, a repeated EndTxn hands it to its client, who can end "
    "nothing with it (KAFKA-20090)", "4.2", {**ONE, "epochs": 1}, timeouts=2,
    claims=("FencedForAReason", "OperationsEnd"), runs=400, timers=2, settings={"timeouts": "request,transaction"},
    expected="FencedForAReason",
)
OLD_CACHE = row(
    "refused-from-an-old-cache", "a coordinator has not heard of its successor, and refuses the commit of a "
    "transaction that only that one knows (KAFKA-21181, open)", "4.4", {**APART, "transactions": 1, "elections": 1},
    Faults(rules=(Rule("delay", message="LeaderAndIsrRequest", dest="b1", delay_ms=200),)),
    ("FencedForAReason", "OperationsEnd"), mode="timed", runs=400, timers=1, settings={"log": "replicated"},
    expected="FencedForAReason",
)
COMPLETED_TWICE = row(
    "completed-twice", "a transaction is completed twice, the second time after the next one began, whose partitions "
    "the log forgets (KAFKA-10080)", "3.5", ONE, claims=("NoHangingTransaction", "OperationsEnd"), runs=400,
    settings={"timeouts": "", "change": "completes-twice"}, expected="NoHangingTransaction",
)
FENCED_AGAIN = row(
    "each-fence-takes-an-epoch", "the log refuses a fence, and each try again takes another epoch: past the last one "
    "it is told UNKNOWN_SERVER_ERROR (KAFKA-9666)", "3.5",
    {**APART, "producers": 2, "transactions": 1, "epochs": 2, "min-insync-replicas": 2},
    Faults(rules=(Rule("drop", message="ProduceRequest"), Rule("drop", message="EndTxnRequest"),
                  Rule("drop", message="AddPartitionsToTxnRequest", source="c2")),
           timed=(Timed("one_way", ("b2", "b1"), 90, 800),)),
    ("FatalForAReason",), mode="timed", runs=400, timers=3,
    settings={"log": "replicated", "timeouts": "", "change": "fences-again"}, expected="FatalForAReason",
)
LATER_FIRST = row(
    "later-batch-first", "of two batches in flight the later one is verified and appended first, the earlier one is "
    "out of order for good (KAFKA-14904)", "3.9", {**APART, "transactions": 1, "records": 2, "in-flight": 2},
    Faults(rules=(Rule("delay", message="AddPartitionsToTxnResponse", dest="b2", nth=1, delay_ms=200),)),
    ("AcknowledgedOnce", "OperationsEnd"), mode="timed", runs=400, settings={"timeouts": "", "change": "any-first"},
    expected="AcknowledgedOnce",
)
OLDER_OFFSET = row(
    "older-offset-counts", "an offset counts by its marker, and replaces one that was written later (KAFKA-5247)",
    "3.5", {**ONE, "producers": 2, "transactional-ids": 2, "transactions": 1, "offsets": 1},
    claims=("OffsetsAsCommitted", "OperationsEnd"), runs=400, settings={"timeouts": "", "change": "by-marker"},
    expected="OffsetsAsCommitted",
)
PLAIN = {**ONE, "producers": 0, "idempotent-producers": 1, "records": 3}
SENT_AGAIN = row(
    "record-sent-again", "records are deleted, their producer begins its sequences again: an old copy is taken, too",
    "2.3", {**PLAIN, "deletions": 2}, Faults(rules=(Rule("delay", message="ProduceRequest", nth=2, delay_ms=200),)),
    ("AcknowledgedOnce", "OperationsEnd"), mode="timed", runs=400, timers=2, settings={"client": "java23"},
    expected="AcknowledgedOnce",
)
GOES_ON = row(
    "late-producer-goes-on", "a transaction times out, and its producer goes on in the same epoch (KAFKA-6119)",
    "0.11", {**TWO, "transactions": 1}, claims=("Atomicity", "OperationsEnd"), timeouts=1, runs=400,
    settings={"timeouts": "transaction"}, expected="Atomicity",
)
EVERYTHING = Faults(
    drop=1, duplicate=1, delay=1, partition=1, one_way=1, pause=1, crash=1, skew=1, targets=("b1", "b2", "c1", "c2"),
    links=(("b1", "c1"), ("b1", "c2"), ("b1", "b2"), ("b2", "c1"), ("b2", "c2"), ("c1", "c2")),
)
EVERY_TIMEOUT = {"timeouts": "request,delivery,transaction"}
FAILING = (
    LATE_END, LATE_END_RDKAFKA, LATE_OFFSETS, HANGING, JOINING, LATE_MARKER, SENT_AGAIN, GOES_ON, NO_GUARD, OLDER_OPEN,
    WRONG_STATE, REFUSED_AGAIN, UNLISTED, OLD_BOUND, FORGOTTEN, OVERFLOWS, EMPTY, HANDED_OUT,
    OLD_CACHE, COMPLETED_TWICE, LATER_FIRST, OLDER_OFFSET, FENCED_AGAIN,
)
TWINS = (
    twin(LATE_END, "each end has an epoch of its own (KIP-890)", model="kafka/4.2"),
    twin(LATE_END_RDKAFKA, "it takes the next epoch after each transaction", settings={"client": "rdkafka-each"}),
    twin(LATE_OFFSETS, "it takes the next epoch after each transaction", settings={"client": "rdkafka-each"}),
    twin(HANGING, "the leader asks the coordinator first (KIP-890 part 1)", model="kafka/3.9"),
    twin(JOINING, "each end has an epoch of its own (KIP-890)", model="kafka/4.2",
         settings={"timeouts": "request,delivery"}),
    twin(LATE_MARKER, "a marker's epoch must be above the producer's (KIP-1228)", model="kafka/4.2"),
    twin(SENT_AGAIN, "a producer is known as long as it is used (KAFKA-7190), and goes on in another epoch (KIP-360)",
         model="kafka/3.5", settings={}),
    twin(GOES_ON, "a time-out fences who began the transaction", model="kafka/2.3"),
    twin(NO_GUARD, "each append and each marker drops the guard", settings={"timeouts": "request,delivery"}),
    twin(OLDER_OPEN, "the epoch is compared (4.0), and a marker's must be above the producer's (KIP-1228)",
         model="kafka/4.2", settings={"timeouts": ""}),
    twin(WRONG_STATE, "it is told PRODUCER_FENCED: a mend that no release has",
         settings={"timeouts": "transaction", "change": "told-fenced"}),
    twin(REFUSED_AGAIN, "a marker that is sent again is written again", settings={}),
    twin(UNLISTED, "what is aborted is listed", settings={}),
    twin(OLD_BOUND, "bound and records are of one look at the log", settings={}),
    twin(OVERFLOWS, "one bump, to an epoch that no client is given (4.1), which is told as a fence", model="kafka/4.4",
         settings={"change": "told-fenced"}),
    twin(HANDED_OUT, "what uses up the epochs switches to another producer id", model="kafka/4.4"),
    twin(EMPTY, "what is pending is looked at first: it asks again", settings={"timeouts": "delivery"}),
    twin(OLD_CACHE, "a refusal waits until the log has taken an entry: a mend that no release has",
         settings={"log": "replicated", "change": "checked-refusals"}),
    twin(COMPLETED_TWICE, "one of two answers completes it", settings={"timeouts": ""}),
    twin(FENCED_AGAIN, "the epoch of a fence that was refused is taken again",
         settings={"log": "replicated", "timeouts": ""}),
    twin(LATER_FIRST, "the lowest sequence that was seen is appended first (KAFKA-14920)", settings={"timeouts": ""}),
    twin(OLDER_OFFSET, "offsets count in the order of their records", settings={"timeouts": ""}),
    twin(FORGOTTEN, "an answer follows the commit of its entry", settings={"log": "replicated"}),
)
ENDED = ("TransactionCommitted", "TransactionAborted")

REPLICATED = {"log": "replicated"}
THREE = {"brokers": 3, "replication-factor": 3, "min-insync-replicas": 2}
B = ("b1", "b2", "b3")
MOVING = (
    row("leaders-move", "coordinators and leaders of partitions move in each state of a transaction", "4.0",
        {**TWO, "consumers": 1, "elections": 6}, settings=REPLICATED, mode="timed", steps=200,
        witnesses=(*ENDED, *moves.WITNESSES)),
    row("leaders-crash", "coordinators and leaders of partitions crash in each state of a transaction", "4.0",
        {**TWO, **THREE}, Faults(crash=2, targets=B), timeouts=6, settings=REPLICATED, mode="timed", steps=200,
        witnesses=(*ENDED, "CoordinatorMovedWhileOngoing", "CoordinatorMovedWhilePrepared", "LeaderMovedWhileOpen")),
    row("leaders-lose-their-disk", "a broker loses its disk", "4.0", {**TWO, **THREE, "elections": 1},
        Faults(crash=1, targets=B), timeouts=6, settings={**REPLICATED, "disk": "lost", "election": "elr"},
        mode="timed", steps=200, witnesses=ENDED),
    row("leaders-lose-their-tail", "a crash loses what was not flushed", "4.0", {**TWO, **THREE, "elections": 1},
        Faults(crash=1, targets=B), timeouts=6, settings={**REPLICATED, "disk": "unflushed", "election": "elr"},
        mode="timed", steps=200, witnesses=ENDED),
    row("leaders-move-and-answers-are-late", "leaders move and crash, requests are late and asked again", "4.2",
        {**TWO, "consumers": 1, "elections": 2}, Faults(crash=1, delay=2, drop=1, targets=("b1", "b2")), timeouts=6,
        settings=REPLICATED, mode="timed", steps=200, witnesses=("RequestRepeated", "LeaderLookedUp")),
    row("rolling-restart", "all brokers are started again one after the other, during transactions", "4.0",
        {**TWO, **THREE},
        Faults(timed=tuple(Timed("crash", (b,), at_ms=15 + 90 * n, until_ms=55 + 90 * n) for n, b in enumerate(B))),
        OF_REPLICAS, timeouts=6, settings=REPLICATED, mode="timed", steps=200,
        witnesses=(*ENDED, "FollowerRejoinsIsr")),
    row("isolated-leader", "a leader is cut off from its followers, but not from clients and controller", "4.0",
        {**TWO, **THREE, "elections": 1},
        Faults(partition=2, one_way=1, targets=("b1",), links=(("b1", "b2"), ("b1", "b3"))), OF_REPLICAS, timeouts=6,
        settings=REPLICATED, mode="timed", steps=200, witnesses=("CoordinatorResigned", "LogTruncated")),
    row("late-controller", "one broker hears of every change of the controller late", "4.0",
        {**TWO, **THREE, "elections": 2}, Faults(rules=(Rule("delay", message="LeaderAndIsrRequest", dest="b1"),)),
        OF_REPLICAS, timeouts=6, settings=REPLICATED, mode="timed", steps=200, witnesses=("CoordinatorResigned",)),
    row("slow-follower", "a follower pauses and is late: it leaves the ISR and comes back", "4.0",
        {**TWO, **THREE}, Faults(delay=2, timed=(Timed("pause", ("b3",), at_ms=15, until_ms=300),)), OF_REPLICAS,
        timeouts=6, settings=REPLICATED, mode="timed", steps=200, witnesses=("FollowerRejoinsIsr",)),
)
CUT = Timed("partition", ("b1", "b2"), at_ms=2, until_ms=600)
LOST = Timed("crash", ("b2",), at_ms=250, until_ms=300)
ONE_RECORD = {**PLAIN, "brokers": 2, "records": 1, "replication-factor": 2}
SAVED = {**REPLICATED, "disk": "lost", "election": "elr"}


def losing(name: str, title: str, least: int, settings: dict[str, str], *, lost: bool, elections: int = 0) -> Scenario:
    """Return a row in which a record is lost that was acknowledged; `least` is how large its ISR has to be."""
    return row(
        name, title, "4.0", {**ONE_RECORD, "min-insync-replicas": least, "elections": elections},
        Faults(timed=(CUT, LOST) if lost else (CUT,)), (*replicas.KEPT, "OperationsEnd"), timeouts=6,
        mode="timed", runs=200, timers=1,
        settings={**REPLICATED, **settings}, expected="AcknowledgedSurvives",
    )


LAST_REPLICA = losing(
    "last-replica-standing", "the ISR shrinks to its leader, whose disk is lost: what two replicas had to hold is gone "
    "(KIP-966)", 2, {"disk": "lost"}, lost=True,
)
ONE_REPLICA = losing(
    "one-replica-is-enough", "min.insync.replicas=1: what one broker held is acknowledged, and its disk is lost", 1,
    {"disk": "lost", "election": "elr"}, lost=True,
)
UNCLEAN = losing(
    "unclean-election", "min.insync.replicas=1, and a broker that is not in sync is elected", 1,
    {"election": "unclean"}, lost=False, elections=2,
)
LOSING = (
    LAST_REPLICA, ONE_REPLICA, UNCLEAN,
    twin(LAST_REPLICA, "who left the ISR last may be elected", settings=SAVED),
    twin(ONE_REPLICA, "min.insync.replicas=2", sizes=LAST_REPLICA.sizes),
    twin(UNCLEAN, "only members of the ISR are elected", settings=REPLICATED),
)

SCENARIOS: tuple[Scenario, ...] = (
    row("happy-path", "one producer writes a record and commits it", "4.0", HAPPY,
        witnesses=("TransactionCommitted",)),
    row("fencing-battle", "two producers with one id fence each other while everything goes wrong", "4.4",
        {**HAPPY, "producers": 2, "transactions": 2}, EVERYTHING, timeouts=6, settings=EVERY_TIMEOUT, steps=120,
        witnesses=("ProducerIsFenced",)),
    row("skewed-clocks", "clocks run fast and actors pause: time-outs fire early", "4.4", {**TWO, "producers": 2},
        Faults(skew=2, pause=2, delay=1, targets=("b1", "b2", "c1", "c2")), timeouts=6, settings=EVERY_TIMEOUT,
        mode="timed"),
    row("cut-off-coordinator", "the coordinator is cut off from producers and leaders, one way or both, then healed",
        "4.4", {**TWO, "producers": 2},
        Faults(partition=2, one_way=1, targets=("b1",), links=(("b1", "c1"), ("b1", "c2"), ("b1", "b2"))),
        timeouts=6, settings=EVERY_TIMEOUT, witnesses=("RequestRepeated",)),
    row("exactly-once-commits", "commits and aborts, nothing goes wrong", "4.0", {**TWO, "consumers": 1},
        witnesses=(*ENDED, "AbortedRecordSkipped")),
    row("exactly-once-interleaved", "two producers write to the same partitions", "4.0",
        {**TWO, "producers": 2, "transactional-ids": 2, "consumers": 1}, witnesses=(*ENDED, "AbortedRecordSkipped")),
    row("exactly-once-zombie", "two producers have one transactional id: the later one fences the other", "4.0",
        {**TWO, "producers": 2, "consumers": 1}, witnesses=(*ENDED, "ProducerIsFenced")),
    row("exactly-once-offsets", "offsets are committed with transactions, requests are late", "4.2",
        {**TWO, "partitions": 1, "records": 1, "offsets": 2}, Faults(delay=3), timeouts=3,
        witnesses=(*ENDED, "OffsetStaged")),
    row("exactly-once-late-answers", "requests and answers are late, and asked again", "4.2", TWO,
        Faults(delay=3), timeouts=3, witnesses=("RequestRepeated",)),
    row("exactly-once-lost-answers", "requests and answers are lost, and asked again", "4.0", TWO,
        Faults(drop=3), timeouts=3, witnesses=("RequestRepeated",)),
    row("exactly-once-time-outs", "transactions time out at their coordinator", "4.4", TWO, timeouts=2,
        settings={"timeouts": "request,transaction"}, witnesses=("ProducerIsFenced",)),
    row("exactly-once-crashes", "brokers crash in each state of a transaction, whose log is slow", "4.0",
        TWO, Faults(crash=2, targets=("b1", "b2")), timeouts=3, settings={"log": "later"}, witnesses=ENDED),
    row("exactly-once-epochs-run-out", "transactional ids have few epochs left, and go on with another producer id",
        "4.4", {**TWO, "epochs": 2, "transactions": 4, "records": 1}, Faults(delay=1), timeouts=2,
        settings={"timeouts": "request,transaction"}, witnesses=(*ENDED, "EpochsRanOut")),
    row("idempotent-late-answers", "records without transactions: batches are late or lost, asked again or given up",
        "4.0", {**PLAIN, "brokers": 2}, Faults(delay=2, drop=1), timeouts=4,
        settings={"timeouts": "request,delivery"}, witnesses=("EpochTakenUnasked",)),
    row("idempotent-in-flight", "three batches of a partition are in flight, and connections are given up", "4.0",
        {**PLAIN, "brokers": 2, "records": 5, "in-flight": 3}, timeouts=4),
    row("idempotent-beside-transactions", "two producers write to the same partitions, one of them in transactions",
        "4.0", {**TWO, "idempotent-producers": 1, "consumers": 1}, Faults(delay=1), timeouts=1,
        witnesses=(*ENDED, "AbortedRecordSkipped")),
    *FAILING, *TWINS, *MOVING, *LOSING,
)
