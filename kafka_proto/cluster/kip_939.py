"""The model `kafka/kip-939`: a proposal over 4.4 before it ships, with what it promises, and wrong variants of it.

A producer takes part in two-phase commits (KIP-939). The version is `KIP_939` of `kafka_proto.broker.versions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

import attrs

from harness.model import (
    RELIABLE,
    Faults,
    FrozenMap,
    Link,
    Network,
    Property,
    Reason,
    Rule,
    Setting,
    Step,
    View,
    always,
    both_ways,
    sometimes,
)
from kafka_proto.broker.changes import BrokerChange
from kafka_proto.broker.coordinator import keep_prepared
from kafka_proto.broker.coordinator.coordinator import times_out_always
from kafka_proto.broker.coordinator.transaction import TxnState, last_entries
from kafka_proto.broker.ghosts import noted
from kafka_proto.broker.parts import LEADER
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.versions import KIP_939
from kafka_proto.clients import database
from kafka_proto.clients.producer import COMPLETING, FAMILIES, PreparedTxnState, Producer, ProducerStatus
from kafka_proto.clients.two_phase_client import TwoPhaseClient, TwoPhaseState
from kafka_proto.cluster.guarantees import nothing_after_a_fence
from kafka_proto.cluster.logs import Logs
from kafka_proto.cluster.models import OLDER, Applications, Beside, Settings, model
from kafka_proto.cluster.properties import NOT_CLAIMED, Facts
from kafka_proto.cluster.scenarios import ALL, APART, row, twin
from kafka_proto.errors import Error
from kafka_proto.log import PartitionLog, batches_between

FAMILY = attrs.evolve(
    FAMILIES["tv2"], name="2pc", title="Java with transaction.two.phase.commit.enable (KIP-939)", init_producer_id=6,
    enable_2pc=True, keep_prepared_txn=True,
)
WITH_TIMEOUT = attrs.evolve(FAMILY, name="keeps", title="Java with initTransactions(true) only", enable_2pc=None)
STORES = ("taken-over", "open")
UNDER_WAY = (ProducerStatus.IN_TRANSACTION, ProducerStatus.PREPARED_TRANSACTION, *COMPLETING)
CHANGES = FrozenMap({
    "aborts": BrokerChange(
        "keepPreparedTxn is ignored: an open transaction is aborted",
        {"init_producer_id": keep_prepared.init_producer_id_aborting},
    ),
    "same-epoch": BrokerChange(
        "an open transaction is kept without a new epoch (apache/kafka#22704)",
        {"init_producer_id": keep_prepared.init_producer_id_same_epoch},
    ),
    "add-fenced": BrokerChange(
        "who adds partitions to a transaction that was kept is told PRODUCER_FENCED",
        arguments={"add_partitions": {"refusal": Error.PRODUCER_FENCED}},
    ),
    "times-out": BrokerChange(
        "a transaction of a two-phase commit has a time-out", {"times_out": times_out_always},
    ),
})


@lru_cache(maxsize=1_000)
def users_of(log: PartitionLog) -> tuple[tuple[PreparedTxnState, str], ...]:
    """Return the transactions of a log, each with the producer id and epoch that it used."""
    found = ((PreparedTxnState(batch.producer_id, batch.producer_epoch), record.transaction) for batch in log.batches
             if batch.marker is None and batch.is_transactional for record in noted(batch))
    return tuple(dict.fromkeys(found))


class TwoPhaseFacts:
    """What is decided about transactions, beside what is there."""

    def __init__(self, placement: Placement, network: Network, logs: Logs) -> None:
        self.placement = placement
        self.logs = logs
        self.there = Facts(placement, network, logs)

    def decisions(self, view: View) -> FrozenMap[PreparedTxnState, str]:
        state: database.DatabaseState = view[database.NAME]
        return state.decisions

    def prepared(self, view: View) -> Iterator[tuple[str, PreparedTxnState]]:
        for c in self.placement.producers:
            for each in view[c].prepared:
                yield c, each

    def as_decided(self, view: View, partition: str) -> Reason:
        """A marker ends a transaction as the application's database decided; what is prepared only after that."""
        decisions, prepared = self.decisions(view), dict.fromkeys(each for _, each in self.prepared(view))
        for span in self.there.spans(view, partition):
            each = PreparedTxnState(span.producer_id, span.producer_epoch)
            decided = decisions.get(each, "nothing" if each in prepared else "abort")
            if span.marker is not None and span.marker.lower() != decided:
                return (f"the {span.marker} of {partition} at offset {span.marker_at} ends {span.records[0]}, of which "
                        f"the database decided {decided}")
        return None

    def stays_open(self, view: View, c: str) -> Reason:
        """Until it is decided, what is prepared is open at its coordinator."""
        decisions, tid = self.decisions(view), self.placement.tid_of(c)
        for each in view[c].prepared:
            if each in decisions:
                continue
            entry = self.logs.told(view, self.placement.transaction_partition(tid), last_entries).get(tid)
            there = entry and (entry.producer_id, entry.producer_epoch) == attrs.astuple(each)
            if entry is None or not there or entry.state is not TxnState.ONGOING:
                said = "unknown" if entry is None else f"{entry.state} in epoch {entry.producer_epoch}"
                return (f"{c} prepared the transaction of producer id {each.producer_id}, epoch {each.producer_epoch}, "
                        f"nobody decided, and {tid} is {said}")
        return None

    def once(self, view: View) -> Reason:
        """No two transactions use one producer id and epoch: of those in logs, and of those that are under way."""
        known: dict[PreparedTxnState, str] = {}
        there = [each for partition in self.there.of_records for each in self.logs.made(view, partition, users_of)]
        for each, transaction in (*there, *self.under_way(view)):
            other = known.setdefault(each, transaction)
            if other != transaction:
                return (f"{other} and {transaction} have the same producer id {each.producer_id} and epoch "
                        f"{each.producer_epoch}")
        return None

    def under_way(self, view: View) -> Iterator[tuple[PreparedTxnState, str]]:
        """Yield the transactions that applications began and have not ended, each with what it uses."""
        for c in self.placement.producers:
            state: TwoPhaseState = view[c]
            producer = state.producer
            if producer.status in UNDER_WAY and state.kept is None and state.transactions:
                yield PreparedTxnState(producer.producer_id, producer.producer_epoch), f"{c}.{state.transactions}"

    def fenced_writes(self, view: View, step: Step) -> bool:
        """Whether a leader takes a batch of an epoch that is older than one that a client has (P7)."""
        told: dict[int, int] = {}
        for c in self.placement.producers:
            producer = view[c].producer
            told[producer.producer_id] = max(producer.producer_epoch, told.get(producer.producer_id, -1))
        for b, partition in product(self.placement.brokers, self.placement.partitions):
            written = LEADER[partition].written(step, b)
            if written is not None and written.serves:
                end = LEADER[partition].of(view, b).log.log_end_offset
                taken = batches_between(written.log, end, written.log.log_end_offset)
                if nothing_after_a_fence(partition, taken, told) is not None:
                    return True
        return False

    def owned(self, view: View) -> Reason:
        """What is open without a time-out has an owner that may end it, or an instance that will keep it is to come."""
        for tid in self.placement.transactional_ids:
            known = self.logs.told(view, self.placement.transaction_partition(tid), last_entries).get(tid)
            if known is None or known.state is not TxnState.ONGOING or keep_prepared.times_out(known):
                continue
            clients = [view[c].producer for c in self.placement.producers if self.placement.tid_of(c) == tid]
            if not any(may_end(producer, known.owner) for producer in clients):
                return f"the transaction of {tid} is open, its owner is {known.owner}, and nobody is that"
        return None


def may_end(producer: Producer, owner: tuple[int, int]) -> bool:
    if producer.status in (ProducerStatus.UNINITIALIZED, ProducerStatus.INITIALIZING):
        return True
    return producer.status is not ProducerStatus.FATAL_ERROR and owner == (
        producer.producer_id, producer.producer_epoch
    )


def keeps(state: TwoPhaseState) -> bool:
    """Whether an instance committed the transaction of a predecessor."""
    return state.outcomes.get(state.kept or "") == "commit"


PROPERTIES = ("PreparedEndsAsDecided", "PreparedStaysOpen", "EpochUsedOnce")


def properties(placement: Placement, network: Network, logs: Logs) -> tuple[Property, ...]:
    """Return what KIP-939 promises besides P1 to P11."""
    facts = TwoPhaseFacts(placement, network, logs)
    return (
        always("PreparedEndsAsDecided", facts.as_decided, over=facts.there.of_records, source="ours: KIP-939"),
        always("PreparedStaysOpen", facts.stays_open, over=placement.producers, source="ours: KIP-939"),
        always("EpochUsedOnce", facts.once, source="ours: KIP-939"),
        always("OpenHasAnOwner", facts.owned, source="ours: KIP-939"),
        sometimes("TransactionKept", lambda view: any(view.derived(c, keeps) for c in placement.producers)),
        sometimes("FencedClientWrites", facts.fenced_writes, on="step", source="ours: P7"),
    )


def beside(addresses: tuple[str, ...], clients: tuple[str, ...], settings: Settings) -> Beside:
    """Return the database of the applications: it loses no message."""
    links = tuple(Link(one, other) for one in addresses for other in addresses)
    store = database.Database(fences=settings["store"] == STORES[0])
    return (store,), (*links, *both_ways(clients, (database.NAME,), RELIABLE))


USERS = Applications(
    {FAMILY.name: FAMILY, WITH_TIMEOUT.name: WITH_TIMEOUT}, TwoPhaseClient, beside, properties, CHANGES,
    not_claimed=(*NOT_CLAIMED, "OpenHasAnOwner"), is_released=False,
)
SETTINGS = {
    "store": Setting(STORES, STORES[0], doc="whether an instance of the application that reads the database takes it "
                     "over, so that an older one cannot commit there any more"),
}
MODEL = model("kip-939", "a proposal over 4.4", tuple(USERS.families), {OLDER: KIP_939}, USERS, SETTINGS)

TWO = {**APART, "producers": 2, "brokers": 1}
MEANWHILE = (*ALL, *PROPERTIES)
PREPARED_ABORTED = row(
    "prepared-aborted", "an instance aborts what its predecessor prepared: keepPreparedTxn is ignored", "kip-939",
    {**TWO, "transactions": 1}, claims=("PreparedEndsAsDecided", "OperationsEnd"), timeouts=0, runs=400,
    settings={"change": "aborts"}, expected="PreparedEndsAsDecided",
)
PREPARED_TIMES_OUT = row(
    "prepared-times-out", "a transaction is prepared and times out: KIP-939 allows to keep without enable2Pc",
    "kip-939", {**TWO, "producers": 1, "transactions": 1}, claims=("PreparedStaysOpen", "OperationsEnd"), timeouts=1,
    settings={"client": "keeps", "timeouts": "transaction"}, expected="PreparedStaysOpen",
)
SAME_EPOCH = row(
    "kept-in-same-epoch", "a transaction is kept without a new epoch, and two instances go on (apache/kafka#22704)",
    "kip-939", TWO, claims=("EpochUsedOnce", "OperationsEnd"), timeouts=0, runs=400, settings={"change": "same-epoch"},
    expected="EpochUsedOnce",
)
OPEN_DATABASE = row(
    "database-not-taken-over", "an instance finds nothing in the database and aborts; its predecessor commits there",
    "kip-939", {**TWO, "transactions": 1}, claims=("PreparedEndsAsDecided", "OperationsEnd"), timeouts=0, runs=400,
    settings={"store": "open"}, expected="PreparedEndsAsDecided",
)
OPEN_FOR_EVER = row(
    "open-for-ever", "a late InitProducerId keeps its own client's transaction for nobody", "kip-939",
    {**TWO, "producers": 1, "transactions": 1},
    Faults(rules=(Rule("delay", message="InitProducerIdRequest", nth=1, delay_ms=200),)),
    ("OpenHasAnOwner", "OperationsEnd"), mode="timed", timers=1, expected="OpenHasAnOwner",
)
STALE_ADD = row(
    "stale-add-told-as-wrong-state", "a fenced instance adds to what was kept, and is told INVALID_TXN_STATE",
    "kip-939", {**TWO, "transactions": 1, "offsets": 1}, claims=("FatalForAReason", "OperationsEnd"), timeouts=0,
    runs=400, expected="FatalForAReason",
)
B = ("b1", "b2")
SCENARIOS = (
    row("two-phase-commit", "instances of an application prepare, are replaced, and commit what their database has",
        "kip-939", {**TWO, "brokers": 2, "partitions": 2, "records": 2},
        Faults(drop=1, duplicate=1, delay=2, partition=1, pause=1, crash=1, skew=1, targets=B), MEANWHILE,
        timeouts=6, settings={"timeouts": "request,delivery,transaction"}, steps=150,
        witnesses=("TransactionCommitted", "TransactionAborted", "TransactionKept")),
    row("two-phase-commit-moves", "the same, while coordinators and leaders of partitions move", "kip-939",
        {**TWO, "brokers": 2, "elections": 3}, Faults(crash=1, delay=1, targets=B), MEANWHILE, timeouts=6,
        settings={"log": "replicated"}, mode="timed", steps=200, witnesses=("TransactionKept",)),
    row("two-phase-commit-epochs", "the same, while epochs run out", "kip-939", {**TWO, "epochs": 2},
        Faults(delay=1), MEANWHILE, timeouts=2, witnesses=("EpochsRanOut",)),
    PREPARED_ABORTED, PREPARED_TIMES_OUT, SAME_EPOCH, OPEN_DATABASE, OPEN_FOR_EVER, STALE_ADD,
    twin(PREPARED_ABORTED, "it is kept", settings={}),
    twin(PREPARED_TIMES_OUT, "with enable2Pc it has no time-out", settings={"timeouts": "transaction"}),
    twin(SAME_EPOCH, "each instance has an epoch of its own", settings={}),
    twin(OPEN_DATABASE, "who reads the database takes it over", settings={}),
    twin(OPEN_FOR_EVER, "as up to 4.4, it is aborted", settings={"change": "aborts"}),
    twin(STALE_ADD, "it is told PRODUCER_FENCED", settings={"change": "add-fenced"}),
)
