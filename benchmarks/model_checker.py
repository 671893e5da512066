"""TLC beside ours: what it is given to check the four benchmark models, and one measured run of it.

The modules are not part of this project. They come from a folder that the caller has, laid out as `MODULES` says:

    diary-01     Vanlightly/kafka-tlaplus, transactions/diary/01_InitPidRequest/tlaplus at commit 9f1a1c8
    diary-02     Vanlightly/kafka-tlaplus, transactions/diary/02_AddPartitionsToTxn/tlaplus
    replication  hachikuji/kafka-specification
    compaction   thetumbled/pulsar-tlaplus at commit 6402c8d

The class path holds TLC and the community modules (tla2tools.jar and CommunityModules-deps.jar).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import attrs
from measure import Cost, fail, run

Sizes = Mapping[str, int]

MODULES = {
    "diary-01": ("kafka_transactions", "network"),
    "diary-02": ("kafka_transactions", "network"),
    "replication": (
        "Kip320", "Kip279", "Kip101", "KafkaTruncateToHighWatermark", "KafkaReplication", "FiniteReplicatedLog",
        "IdSequence", "Util",
    ),
    "compaction": ("compaction",),
}
"""What must be in each folder; the first is the one to check."""

CONSTANTS = {
    "diary-01": """
        InitPidRequest InitPidResponse Ready SentInitPidRequest HasPid Empty Begin PrepareCommit PrepareAbort
        CompleteAbort CompleteCommit Ongoing PrepareEpochFence Dead Abort Commit IllegalState OK
        NotCoordinatorForTransactionalId ConcurrentTransactions ProducerFenced InvalidTxnState InvalidTransition
        NotSupportedYet None""",
    "diary-02": """
        InitPidRequest InitPidResponse AddPartitionsToTxnRequest AddPartitionsToTxnResponse Ready SentInitPidRequest
        HasPid BegunTxn Terminated Empty PrepareCommit PrepareAbort CompleteAbort CompleteCommit Ongoing
        PrepareEpochFence Dead Abort Commit IllegalState OK NotCoordinator ConcurrentTransactions ProducerFenced
        InvalidTransition NotSupportedYet InvalidProducerIdMapping None""",
    "replication": "",
    "compaction": """
        Nil Compactor_In_PhaseOne Compactor_In_PhaseTwoWrite Compactor_In_PhaseTwoUpdateContext
        Compactor_In_PhaseTwoUpdateHorizon Compactor_In_PhaseTwoPersistCusror Compactor_In_PhaseTwoDeleteLedger""",
}
"""The model values of each module, each assigned to the constant of its own name."""

WRAPPER = "benchmarked"
REPLICATION = """
EXTENDS Kip320

\\* TypeOk compares a record with -1, which TLC refuses; this says it of each field, and LeaderInIsr as it can hold.
Believes(who) ==
    who.leaderEpoch \\in Nil..MaxLeaderEpoch /\\ who.isr \\union ({who.leader} \\ {None}) \\subseteq Replicas
Written(record) == record.id \\in 0..MaxRecords - 1 /\\ record.epoch \\in 0..MaxLeaderEpoch
Kept(log) ==
    /\\ log.endOffset \\in 0..LogSize /\\ DOMAIN log.records = 0..LogSize - 1
    /\\ \\A n \\in 0..LogSize - 1 : IF n < log.endOffset THEN Written(log.records[n]) ELSE log.records[n] = Nil
MCTypeOk ==
    /\\ nextLeaderEpoch \\in 0..MaxLeaderEpoch + 1 /\\ nextRecordId \\in 0..MaxRecords
    /\\ \\A who \\in {quorumState} \\cup leaderAndIsrRequests : Believes(who)
    /\\ \\A r \\in Replicas : Believes(replicaState[r]) /\\ replicaState[r].hw \\in 0..LogSize /\\ Kept(replicaLog[r])
LeaderInIsrOrNone == quorumState.leader = None \\/ quorumState.leader \\in quorumState.isr
"""

COUNTS = re.compile(r"^(\d+) states generated, (\d+) distinct states found, 0 states left on queue\.", re.MULTILINE)
DEPTH = re.compile(r"^The depth of the complete state graph search is (\d+)\.", re.MULTILINE)


@attrs.frozen
class Checker:
    """TLC: the class path it is on, and the folder with the modules. Both are looked at when it is made."""

    class_path: str
    modules: Path

    @staticmethod
    def make(class_path: str | None, modules: Path | None) -> Checker | None:
        """Return the checker that the flags ask for, if any; end the program where something is missing."""
        if class_path is None and modules is None:
            return None
        if class_path is None or modules is None:
            fail("TLC needs both --tlc CLASSPATH and --modules FOLDER")
        if shutil.which("java") is None:
            fail("TLC needs Java, and there is no java on the PATH; install one or leave out --tlc")
        for entry in filter(None, class_path.split(os.pathsep)):
            if not Path(entry.removesuffix("*")).exists():
                fail(f"the class path of TLC names {entry}, which does not exist")
        if "ClassNotFoundException" in run(["java", "-cp", class_path, "tlc2.TLC", "-h"]).errors:
            fail(f"Java finds no class tlc2.TLC on the class path {class_path}; expected tla2tools.jar or its classes")
        for folder, names in MODULES.items():
            for name in names:
                if not (modules / folder / f"{name}.tla").is_file():
                    fail(f"{modules / folder / name}.tla is missing; see benchmarks/model_checker.py for the layout")
        return Checker(":".join(absolute(entry) for entry in class_path.split(os.pathsep)), modules)

    def check(self, module: str, sizes: Sizes, invariants: tuple[str, ...]) -> tuple[tuple[int, int, int], Cost]:
        """Check a module; return distinct states, generated states and depth, and what the process cost."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            for name in MODULES[module]:
                shutil.copy(self.modules / module / f"{name}.tla", folder)
            (folder / f"{WRAPPER}.tla").write_text(wrapper(module), encoding="utf-8")
            (folder / f"{WRAPPER}.cfg").write_text(configuration(module, sizes, invariants), encoding="utf-8")
            command = ["java", "-XX:+UseParallelGC", "-cp", self.class_path, "tlc2.TLC", "-workers", "2", "-deadlock"]
            ended = run([*command, "-metadir", str(folder / "states"), f"{WRAPPER}.tla"], folder)
        counts, depth = COUNTS.search(ended.output), DEPTH.search(ended.output)
        if ended.code != 0 or counts is None or depth is None:
            last = (ended.output + ended.errors).strip()[-1500:]
            fail(f"TLC did not finish {module}, it ended with code {ended.code}: {last}")
        return (int(counts[2]), int(counts[1]), int(depth[1])), ended.cost


def absolute(entry: str) -> str:
    """Return an entry of a class path as TLC's own folder may see it; `folder/*` stays what it is."""
    return os.path.abspath(entry) if entry else entry


def wrapper(module: str) -> str:
    body = REPLICATION if module == "replication" else f"EXTENDS {MODULES[module][0]}\n"
    return f"---- MODULE {WRAPPER} ----\n{body}====\n"


def configuration(module: str, sizes: Sizes, invariants: tuple[str, ...]) -> str:
    """Return the cfg of a module: its constants at our sizes, the invariants, `Init` and `Next` without fairness."""
    constants = {name: name for name in CONSTANTS[module].split()} | CONSTANTS_AT[module](sizes)
    lines = ["CONSTANTS", *(f"    {name} = {value}" for name, value in constants.items())]
    return "\n".join([*lines, "INIT Init", "NEXT Next", "INVARIANTS", *(f"    {name}" for name in invariants)]) + "\n"


def members(prefix: str, count: int) -> str:
    """Return a set of model values, `{c1, c2}`."""
    return f"{{{', '.join(f'{prefix}{n}' for n in range(1, count + 1))}}}"


def diary_01(sizes: Sizes) -> dict[str, str]:
    return {
        "Clients": members("c", sizes["clients"]), "Brokers": members("b", sizes["brokers"]),
        "TxnLogPartitions": members("p", sizes["txn-log-partitions"]),
        "TransactionIds": members("tid", sizes["transactional-ids"]),
    }


def diary_02(sizes: Sizes) -> dict[str, str]:
    elections = str(sizes["elections"])
    return diary_01(sizes) | {
        "TopicPartitions": members("tp", sizes["topic-partitions"]), "MaxTxnLogLeaderElections": elections
    }


def replication(sizes: Sizes) -> dict[str, str]:
    return {
        "Replicas": members("r", sizes["replicas"]), "LogSize": str(sizes["log-size"]),
        "MaxRecords": str(sizes["max-records"]), "MaxLeaderEpoch": str(sizes["max-leader-epoch"]),
    }


def compaction(sizes: Sizes) -> dict[str, str]:
    """With the producer, without the consumer, null keys retained."""
    return {
        "MessageSentLimit": str(sizes["messages"]), "CompactionTimesLimit": str(sizes["compactions"]),
        "KeySpace": members("", sizes["keys"]), "ValueSpace": members("", sizes["values"]),
        "MaxCrashTimes": str(sizes["crashes"]), "ConsumeTimesLimit": str(sizes["consumptions"]),
        "ModelConsumer": "FALSE", "ModelProducer": "TRUE", "RetainNullKey": "TRUE",
    }


CONSTANTS_AT = {"diary-01": diary_01, "diary-02": diary_02, "replication": replication, "compaction": compaction}
