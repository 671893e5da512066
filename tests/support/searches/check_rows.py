"""What is searched, and what is expected of it: a small size of every model, and every exhibit beside its twin."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

BOUND = 300_000
"""States after which a search of the table of models ends."""


@attrs.frozen
class Row:
    """A model, its size where it is not the default, and how many timers may fire and faults happen."""

    model: str
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    timers: int = 0
    faults: str = ""
    targets: tuple[str, ...] = ()
    settings: Mapping[str, str] = attrs.field(factory=dict)
    violates: tuple[str, ...] = ()
    """Invariants that the model is known to violate at this size."""
    is_large: bool = False

    @property
    def arguments(self) -> list[str]:
        """The row as arguments of `kafka-proto check`."""
        bounds = ["--timers", str(self.timers)] if self.has_actors else []
        faults = ["--faults", self.faults, *(f"--target={name}" for name in self.targets)] if self.faults else []
        return [self.model, *options(self.sizes, self.settings), *bounds, *faults]

    @property
    def has_actors(self) -> bool:
        return self.model.endswith("/actors") or self.model.startswith("kafka/")

    @property
    def within(self) -> str:
        """The size and the budget, in words."""
        said = [f"{name}={n}" for name, n in self.sizes.items()] + [f"{k}={v}" for k, v in self.settings.items()]
        said += [self.faults] if self.faults else []
        said += [f"timers={self.timers}"] if self.timers else []
        return ", ".join(said) or "default"


def options(sizes: Mapping[str, int], settings: Mapping[str, str]) -> list[str]:
    return [*(f"--size={name}={n}" for name, n in sizes.items()), *(f"--set={k}={v}" for k, v in settings.items())]


ONE_READER = {"messages": 1, "keys": 1, "readers": 1}
TWO_READERS = {"messages": 1, "keys": 1, "readers": 2}
WHOLE = {"brokers": 1, "partitions": 1, "records": 1}
MOVING = {"partitions": 1, "records": 1, "transactions": 1, "elections": 1}
ONE_RECORD = {"producers": 0, "idempotent-producers": 1, "partitions": 1, "records": 1}
REPLICATED = {"log": "replicated"}
FLAWED = ("truncate-to-high-watermark", "kip-101")
ROWS: tuple[Row, ...] = (
    *(Row(f"kafka/{release}", WHOLE) for release in (
        "0.11", "2.3", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4",
    )),
    Row("kafka/3.5", WHOLE, 1, violates=("AcknowledgedOutcome", "FencedForAReason", "MarkerAttribution",
                                         "NoHangingTransaction")),
    Row("kafka/3.9", WHOLE, 1, violates=("AcknowledgedOutcome", "FencedForAReason", "MarkerAttribution")),
    Row("kafka/4.0", WHOLE, 1, violates=("AcknowledgedOutcome", "MarkerAttribution")),
    Row("kafka/4.2", WHOLE, 1),
    Row("kafka/4.4", WHOLE, 1),
    *(Row("kafka/4.4", WHOLE, 1, settings={"client": client},
          violates=("AcknowledgedOutcome", "FencedForAReason", "MarkerAttribution"))
      for client in ("rdkafka", "java39")),
    Row("kafka/kip-939", {**WHOLE, "transactions": 1, "producers": 2}),
    Row("kafka/kip-447", {**WHOLE, "partitions": 2, "transactions": 1}, 1, settings={"timeouts": ""}),
    Row("kafka/4.0", MOVING, settings=REPLICATED),
    Row("kafka/4.0", {**ONE_RECORD, "elections": 1}, 1, settings=REPLICATED),
    Row("kafka/4.0", ONE_RECORD, 0, "crash=1", ("b1", "b2"), REPLICATED, is_large=True),
    Row("compaction/pulsar", {"messages": 2, "keys": 1, "values": 1}),
    Row("compaction/pulsar"),
    Row("compaction/pulsar", settings={"producer": "true", "consumer": "true", "retain-null-key": "false"}),
    Row("compaction/pulsar/actors", ONE_READER, 1),
    Row("compaction/pulsar/actors", TWO_READERS, 0, "crash=1", ("broker",)),
    Row("compaction/pulsar-trimming/actors", ONE_READER, 0, "crash=1", ("broker",)),
    *(Row(f"replication/{name}", violates=("StrongIsr", "WeakIsr")) for name in FLAWED),
    *(Row(f"replication/{name}") for name in ("kip-279", "kip-320-first-try", "kip-320", "async-isr")),
    *(Row(f"replication/{name}/actors") for name in
      (*FLAWED, "kip-279", "kip-320-first-try", "kip-320", "async-isr", "truncation-on-fetch")),
    Row("replication/kip-320/actors", {"elections": 0}, 0, "crash=1", ("r1", "r2")),
    Row("replication/kip-320/actors", {"replicas": 3}, is_large=True),
    Row("transactions/gist", violates=("FollowersHoldNoUncommitted", "LogsAgreeUpToHwm")),
    *(Row(f"transactions/{name}") for name in ("diary-01", "diary-02", "repaired")),
)


@attrs.frozen
class Exhibit:
    """A flawed scenario, what a search of it finds, and of its twin at the same size and budget.

    They are the scenario's own but for what is said.
    """

    row: str
    violates: str
    steps: int
    """Of the shortest schedule that violates it."""
    states: int
    """Of the twin."""
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    timers: str = ""
    faults: str = ""
    targets: tuple[str, ...] = ()
    reduce: str = "none"
    most: int = 800_000
    """States after which a search ends."""
    network: str = ""
    view: bool = False
    """Whether what the module's view hides is left out of states."""
    gigabytes: int = 1
    """Of memory that the search takes at most."""
    is_large: bool = False

    @property
    def arguments(self) -> list[str]:
        """What is the same for the flawed row and its twin, as arguments of `kafka-proto check`."""
        timers = ["--timers", self.timers] if self.timers else []
        faults = ["--faults", self.faults, *(f"--target={name}" for name in self.targets)] if self.faults else []
        bounds = ["--reduce", self.reduce, "--states", str(self.most)]
        network = ["--network", self.network] if self.network else []
        view = ["--view"] if self.view else []
        return [*options(self.sizes, {}), *network, *view, *timers, *faults, *bounds]

    @property
    def within(self) -> str:
        """What is not the scenario's own, in words."""
        said = [f"{name}={n}" for name, n in self.sizes.items()]
        said += [f"network={self.network}"] if self.network else []
        said += [self.faults.replace("none,", "only ").replace("none", "no faults")] if self.faults else []
        said += [f"timers={self.timers.replace(',', ', ')}"] if self.timers else []
        said += ["--view"] if self.view else []
        return ", ".join(said)


GET_PID = "EventuallyAllClientsGetPid"
SHRINK = "1,RequestTimeout=0"
"""One timer, and not of a client: the leader that takes a follower out of the ISR."""
FENCES = "3,ReplicaLagTime=1,b2.ReplicaLagTime=0,c1.RetryBackoff=0,RequestTimeout=0,RequestExpiry=0"
"""Three timers: of one follower that lags, and of a new producer that asks again."""
OF_CLIENTS = "1,b1.RequestTimeout=0"
"""One timer, and not of the broker: markers are not sent again."""
EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit("rp-01-truncate-to-high-watermark", "StrongIsr", 12, 60_779, reduce="all"),
    Exhibit("rp-02-diverging-tails", "FollowerLogMatches", 23, 18_315_713, {"producers": 1}, faults="crash=1",
            network="fifo", most=25_000_000, is_large=True),
    Exhibit("rp-03-unknown-epoch", "StrongIsr", 17, 4_033_033, {"producers": 2}, network="fifo", most=6_000_000,
            is_large=True),
    Exhibit("rp-04-fast-failover", "FollowerLogMatches", 22, 8_529_739,
            {"producers": 1, "records": 2, "elections": 1}, network="fifo", most=12_000_000, is_large=True),
    Exhibit("rp-05-unfenced-fetch", "StrongIsr", 22, 9_652_502, {"producers": 1, "fencings": 0}, most=12_000_000,
            is_large=True),
    Exhibit("rp-06-first-try", "WeakIsr", 20, 70_430_801, {"producers": 1, "fencings": 1}, most=80_000_000,
            gigabytes=5, is_large=True),
    Exhibit("rp-07-unfenced-look-up", "FollowerLogMatches", 24, 8_258_061, {"producers": 1, "records": 2},
            most=12_000_000, is_large=True),
    Exhibit("rp-08-stale-high-watermark", "StrongIsr", 19, 9_996_019, {"elections": 1, "fencings": 0}, timers=SHRINK,
            most=15_000_000, is_large=True),
    Exhibit("rp-09-same-leader", "FollowerLogMatches", 20, 42_399_287, {"producers": 1, "records": 2}, most=50_000_000,
            gigabytes=5, is_large=True),
    Exhibit("rp-10-unseen-member", "StrongIsr", 14, 13_228_490, {"records": 1}, most=20_000_000, is_large=True),
    Exhibit("rp-11-any-state", "IsrEligibility", 7, 103_333, most=150_000),
    Exhibit("rp-12-any-broker-epoch", "IsrEligibility", 11, 15_307_605, most=20_000_000, is_large=True),
    Exhibit("rp-14-counts-diverging", "StrongIsr", 11, 909_921, most=1_500_000, is_large=True),
    Exhibit("rp-14-raises-first", "LogMatching", 21, 1_350_359, {"producers": 1, "records": 2}, network="fifo",
            most=2_000_000, is_large=True),
    Exhibit("pc-01-leaked-ledger", "NoLeak", 9, 15_248, {"messages": 1}, "0", reduce="all"),
    Exhibit("pc-02-read-twice", "ReaderView", 14, 70_447, reduce="all", is_large=True),
    Exhibit("pc-03-durable-too-late", "ReaderView", 20, 264_072, reduce="all", is_large=True),
    Exhibit("pc-03-trimmed-too-early", "ReaderView", 19, 663_270, reduce="all", is_large=True),
    Exhibit("pc-04-lost-property", "CompactionEquivalence", 18, 264_072, reduce="all", is_large=True),
    Exhibit("pc-05-read-too-far", "CompactionEquivalence", 15, 24_146, reduce="all"),
    Exhibit("pc-06-replayed-twice", "ReaderView", 17, 46_378, reduce="all", is_large=True),
    Exhibit("pc-07-first-read-only", "ReaderView", 26, 663_270, reduce="all", is_large=True),
    Exhibit("late-end", "MarkerAttribution", 20, 67_999),
    Exhibit("late-end-rdkafka", "MarkerAttribution", 22, 315_124, is_large=True),
    Exhibit("late-offsets-rdkafka", "MarkerAttribution", 28, 568_075, timers=OF_CLIENTS, is_large=True),
    Exhibit("hanging-transaction", "NoHangingTransaction", 14, 11_530),
    Exhibit("late-batch-joins", "AcknowledgedOutcome", 26, 103_322, is_large=True),
    Exhibit("late-marker", "MarkerAttribution", 22, 4_870),
    Exhibit("record-sent-again", "AcknowledgedOnce", 11, 31_503),
    Exhibit("late-producer-goes-on", "Atomicity", 20, 3_154),
    Exhibit("append-after-the-marker", "NoHangingTransaction", 16, 11_635),
    Exhibit("older-transaction-taken", "MarkerAttribution", 17, 206),
    Exhibit("time-out-told-as-wrong-state", "FatalForAReason", 15, 193),
    Exhibit("repeated-marker-refused", "PreparedIsCompleted", 15, 392),
    Exhibit("aborted-unlisted", "ReadBound", 14, 80),
    Exhibit("read-past-the-bound", "NoIntermediateRead", 22, 592),
    Exhibit("answered-before-replicated", "NoHangingTransaction", 9, 31_976),
    Exhibit("last-epoch-bumped-twice", "FatalForAReason", 10, 1_952),
    Exhibit("empty-abort-fenced", "FencedForAReason", 17, 38_149),
    Exhibit("last-epoch-handed-out", "FencedForAReason", 24, 68_041),
    Exhibit("refused-from-an-old-cache", "FencedForAReason", 23, 1_736_667, most=2_500_000, is_large=True),
    Exhibit("completed-twice", "NoHangingTransaction", 18, 222),
    Exhibit("older-offset-counts", "OffsetsAsCommitted", 24, 3_838_904, most=6_000_000, is_large=True),
    Exhibit("later-batch-first", "AcknowledgedOnce", 14, 172),
    Exhibit("each-fence-takes-an-epoch", "FatalForAReason", 28, 11_677_425, timers=FENCES, most=15_000_000,
            gigabytes=2, is_large=True),
    Exhibit("offset-read-too-early", "ProcessedOnce", 54, 172_762, is_large=True),
    Exhibit("prepared-aborted", "PreparedEndsAsDecided", 13, 7_254),
    Exhibit("prepared-times-out", "PreparedStaysOpen", 11, 222),
    Exhibit("kept-in-same-epoch", "EpochUsedOnce", 23, 136_950, is_large=True),
    Exhibit("database-not-taken-over", "PreparedEndsAsDecided", 18, 7_254),
    Exhibit("open-for-ever", "OpenHasAnOwner", 10, 723),
    Exhibit("stale-add-told-as-wrong-state", "FatalForAReason", 16, 412_378, is_large=True),
    Exhibit("unclean-election", "AcknowledgedSurvives", 10, 10_797, {"elections": 1}, faults="none"),
    Exhibit("one-replica-is-enough", "AcknowledgedSurvives", 13, 11_263_025, timers=SHRINK, faults="none,crash=1",
            targets=("b2",), most=15_000_000, is_large=True),
    Exhibit("last-replica-standing", "AcknowledgedSurvives", 14, 11_263_025, timers=SHRINK, faults="none,crash=1",
            targets=("b2",), most=15_000_000, is_large=True),
    Exhibit("s1-reused-pid", "ClientsHaveDifferentProducerEpochs", 13, 472_538, reduce="symmetry", view=True,
            is_large=True),
    Exhibit("s2-stuck-replica", GET_PID, 4, 193),
    Exhibit("s3-wiped-metadata", "OnePidPerTid", 6, 6_821, reduce="symmetry"),
    Exhibit("s4-copied-tail", "LogsAgreeUpToHwm", 8, 10_709),
    Exhibit("s5-stuck-abort", GET_PID, 20, 13_959),
    Exhibit("s6-stuck-transition", GET_PID, 14, 4_713),
)
