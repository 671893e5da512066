"""The TLA+ modules of the transaction specs: names, constants at a size, and the invariants that TLC can check.

Those of our own (`source="ours: ..."` in `properties`) are given in terms of diary 02's variables.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.model.module import ModuleOf, TlaModule
from kafka_proto.transactions.specs.names import Names

ERRORS_01 = (
    "IllegalState", "OK", "NotCoordinatorForTransactionalId", "ConcurrentTransactions", "ProducerFenced",
    "InvalidTxnState", "InvalidTransition", "NotSupportedYet",
)
ERRORS_02 = (
    "IllegalState", "OK", "NotCoordinator", "ConcurrentTransactions", "ProducerFenced", "InvalidTransition",
    "NotSupportedYet", "InvalidProducerIdMapping",
)
TXN_STATES = (
    "Empty", "PrepareCommit", "PrepareAbort", "CompleteAbort", "CompleteCommit", "Ongoing", "PrepareEpochFence", "Dead",
)
REST = ("Abort", "Commit", "None")
VALUES_01 = (
    "InitPidRequest", "InitPidResponse", "Ready", "SentInitPidRequest", "HasPid", *TXN_STATES, "Begin", *REST,
    *ERRORS_01,
)
VALUES_02 = (
    "InitPidRequest", "InitPidResponse", "AddPartitionsToTxnRequest", "AddPartitionsToTxnResponse", "Ready",
    "SentInitPidRequest", "HasPid", "BegunTxn", "Terminated", *TXN_STATES, *REST, *ERRORS_02,
)

MESSAGES = ("TypeOK", "NoBadStateResponse")
CLIENTS_DIFFER = r"""
    LET known == {c \in Clients : client[c].pid # -1}
    IN Cardinality({<<client[c].pid, client[c].epoch>> : c \in known}) = Cardinality(known)"""
TCS_DIFFER = r"""
    \A p \in TxnLogPartitions :
        LET leading == {b \in Brokers : tc_log_metadata[b][p].leader = b}
        IN Cardinality({tc_log_metadata[b][p].cepoch : b \in leading}) = Cardinality(leading)"""
OURS = {
    "LogsAgreeUpToHwm": r"""
    \A p \in TxnLogPartitions, br1, br2 \in Brokers :
        \A n \in 1..tc_log_hwm[br1][p] :
            n <= tc_log_hwm[br2][p] =>
                \/ n > Len(tc_log[br1][p]) /\ n > Len(tc_log[br2][p])
                \/ /\ n <= Len(tc_log[br1][p]) /\ n <= Len(tc_log[br2][p])
                   /\ tc_log[br1][p][n] = tc_log[br2][p][n]""",
    "FollowersHoldNoUncommitted": r"""
    \A p \in TxnLogPartitions, b \in Brokers :
        tc_log_metadata[b][p].leader # b => Len(tc_log[b][p]) <= tc_log_hwm[b][p]""",
    "EffectiveHwmIsMonotonic": r"""
    \A p \in TxnLogPartitions, b \in Brokers : tc_log_hwm[b][p] <= tc_log_hwm[txn_log_leader[p]][p]""",
    "CommittedTidKnown": r"""
    \A p \in TxnLogPartitions, b \in Brokers :
        txn_log_leader[p] = b =>
            \A n \in 1..tc_log_hwm[b][p] :
                LET entry == tc_log[b][p][n]
                    later == {m \in n + 1..tc_log_hwm[b][p] : tc_log[b][p][m].tid = entry.tid}
                IN later = {} =>
                    /\ tc_tid_metadata[b][entry.tid] # None
                    /\ tc_tid_metadata[b][entry.tid].pid = entry.transition.pid""",
    "OnePidPerTid": r"""
    \A p \in TxnLogPartitions, b \in Brokers :
        \A n, m \in 1..Len(tc_log[b][p]) :
            tc_log[b][p][n].tid = tc_log[b][p][m].tid =>
                tc_log[b][p][n].transition.pid = tc_log[b][p][m].transition.pid""",
}
IDS_SPREAD = {
    "BalancedTidToPartSpread(mapping)": r"""
    /\ mapping = Trace[1].t_to_p_mapping
    /\ LET held == {Cardinality({tid \in TransactionIds : mapping[tid] = p}) : p \in TxnLogPartitions}
       IN \A most, least \in held : most - least <= 1""",
}
CHOSEN_01 = {
    **IDS_SPREAD,
    "BalancedBrokerToPartLeadership(mapping)": r"""
    /\ mapping = [b \in Brokers |-> DOMAIN Trace[1].tc_part_metadata[b]]
    /\ \A p \in TxnLogPartitions : Cardinality({b \in Brokers : p \in mapping[b]}) = 1""",
}
CHOSEN_02 = {
    **IDS_SPREAD,
    "BalancedPartitionLeadership(part_leader)": r"""
    /\ part_leader = Trace[1].txn_log_leader
    /\ LET led == {Cardinality({p \in TxnLogPartitions : part_leader[p] = b}) : b \in Brokers}
       IN \A most, least \in led : most - least <= 1""",
}
"""What `Init` of diaries 01 and 02 and of the gist may choose, and what a run's first state says it did choose."""
DIARY = "https://github.com/Vanlightly/kafka-tlaplus, transactions/diary"


def diary_01(sizes: Mapping[str, int], settings: Mapping[str, str]) -> TlaModule:
    """Return `kafka_transactions` of diary 01: with `init=published` that of commit 9f1a1c88, else the later one."""
    published = settings["init"] == "published"
    return TlaModule(
        "kafka_transactions", {name: held for name, held in _sets(sizes).items() if name != "TopicPartitions"}, {},
        VALUES_01, MESSAGES, chosen={} if published else CHOSEN_01,
        source=f"{DIARY}/01_InitPidRequest/tlaplus, {'commit 9f1a1c88' if published else 'the newest'}",
        as_written=not settings["repair"],
    )


def diary_02(sizes: Mapping[str, int], settings: Mapping[str, str]) -> TlaModule:
    """Return `kafka_transactions` of diary 02."""
    return TlaModule(
        "kafka_transactions", _sets(sizes), {"MaxTxnLogLeaderElections": str(sizes["elections"])}, VALUES_02,
        (*MESSAGES, "ClientsHaveDifferentProducerEpochs", "TCsHaveDifferentEpochs"), OURS, chosen=CHOSEN_02,
        source=f"{DIARY}/02_AddPartitionsToTxn/tlaplus", as_written=settings.get("repair") == "",
    )


def gist(sizes: Mapping[str, int], settings: Mapping[str, str]) -> TlaModule:
    """Return the gist's `kafka_transactions_for_web`, which has no invariants about clients and coordinators."""
    ours = {"ClientsHaveDifferentProducerEpochs": CLIENTS_DIFFER, "TCsHaveDifferentEpochs": TCS_DIFFER, **OURS}
    return TlaModule(
        "kafka_transactions_for_web", _sets(sizes), {"MaxCoordinatorChanges": str(sizes["elections"])},
        (*VALUES_02, "Begin"), MESSAGES, ours, chosen=CHOSEN_02,
        source="the gist Throwaway Kafka txns for TLA web", as_written=not settings["repair"],
    )


def _sets(sizes: Mapping[str, int]) -> Mapping[str, tuple[str, ...]]:
    k = Names.of(sizes)
    return {
        "TxnLogPartitions": k.txn_log_partitions, "TopicPartitions": k.topic_partitions, "Brokers": k.brokers,
        "Clients": k.clients, "TransactionIds": k.transactional_ids,
    }


MODULES: Mapping[str, ModuleOf] = {
    "transactions/diary-01": diary_01,
    "transactions/diary-02": diary_02,
    "transactions/gist": gist,
    "transactions/repaired": diary_02,
}
"""The repaired diary 02 is not published, and the published module has no setting for the repairs."""
