"""Each property of the stack can fail: a broker that does one thing wrong breaks it in some seeded run.

A mutant is a broker, its log or its coordinator with one method replaced. Its sound twin is the broker as it is, silent
in the runs of test_cluster and in the same seeds here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import pytest

from harness.model import NO_FAULTS, Faults, Local, Message, Turn, Value, find_model, find_scenario, model_of
from harness.simulate.runs.plan import Plan, plan_of
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import PctStrategy, RandomStrategy
from harness.simulate.trails.replay import try_choices
from kafka_proto.broker import composition
from kafka_proto.broker.broker import Broker
from kafka_proto.broker.logs.replicated import REPLICA, ReplicatedLog
from kafka_proto.broker.state import METADATA
from kafka_proto.replication import partition
from kafka_proto.replication.messages import OffsetsForLeaderEpochResponse
from kafka_proto.replication.partition import Replica, ReplicaOutcome, ReplicaState
from kafka_proto.replication.truncation import EpochEnd
from kafka_proto.stack import model as cluster
from kafka_proto.stack.properties import INVARIANTS, OF_THE_LOG
from kafka_proto.transactions.coordinator_role import CoordinatorRole
from kafka_proto.transactions.records import Entry, TxnRecord

ONE, TWO = {"elections": 1}, {"elections": 2}
CRASH = Faults(crash=1, targets=("b1",))
WITHIN = 60


class AnswersEarly(ReplicatedLog):
    """A log that counts an entry as committed when its leader has it."""

    def produce(self, k: Replica, state: ReplicaState, record: Value, callback: Value) -> ReplicaOutcome:
        return partition.produce(k, state, record, "1", callback)


class DoesNotResign(CoordinatorRole):
    """A coordinator that goes on with what it knew when it is deposed, and when it is elected again."""

    def resigned(self, local: Local, p: str) -> Local:
        return local


class SkipsLoading(CoordinatorRole):
    """A coordinator that serves a log without having read it."""

    def loaded(self, local: Local, p: str, records: Iterable[Entry | TxnRecord]) -> Local:
        return super().loaded(local, p, ())


class CountsItself(ReplicatedLog):
    """A leader whose high watermark is the end of its own log."""

    def may_raise(self, k: Replica, state: ReplicaState) -> bool:
        return partition.leads(k, state) and state.high_watermark < len(state.log)


class KeepsTail(ReplicatedLog):
    """A follower that does not truncate."""

    def receive(self, local: Local, message: Message) -> Turn[Local] | None:
        if isinstance(message, OffsetsForLeaderEpochResponse) and message.answer is not None:
            log = local[REPLICA[message.partition or ""]].log
            message = attrs.evolve(message, answer=EpochEnd(log[-1].epoch, len(log)))
        return super().receive(local, message)


class ForgetsLog(ReplicatedLog):
    """A broker whose log is not persisted."""

    def restarted(self, local: Local) -> Local:
        after = super().restarted(local)
        for p in self.hosts:
            after = after.put(REPLICA[p], attrs.evolve(after[REPLICA[p]], log=(), high_watermark=0))
        return after


class KeepsIncarnation(Broker):
    """A broker that starts again, with an empty disk, as if it had never failed."""

    def restarted(self, local: Local) -> Local:
        broker_epoch = local[METADATA].broker_epoch
        after = super().restarted(local).put(METADATA, local[METADATA])
        for part in self.log.parts:
            after = after.put(part, attrs.evolve(after[part], broker_epoch=broker_epoch))
        return after


@attrs.frozen
class Broken:
    """A mutant, what it breaks, and where."""

    mutant: type
    violates: str
    sizes: Mapping[str, int]
    settings: Mapping[str, str] = attrs.field(factory=dict)
    faults: Faults = NO_FAULTS
    alone: bool = False
    """Whether only this property is claimed, as another one fails sooner."""


TABLE = (
    Broken(AnswersEarly, "AckedTransactionsSurvive", ONE),
    Broken(DoesNotResign, "CommittedTidKnown", TWO),
    Broken(SkipsLoading, "OnePidPerTid", ONE, alone=True),
    Broken(SkipsLoading, "CommittedTidKnown", ONE),
    Broken(CountsItself, "StrongIsr", ONE),
    Broken(CountsItself, "LogsAgreeUpToHwm", TWO, alone=True),
    Broken(KeepsTail, "StrongIsr", TWO),
    Broken(KeepsTail, "LogMatching", TWO, alone=True),
    Broken(ForgetsLog, "StrongIsr", ONE, faults=CRASH),
    Broken(KeepsIncarnation, "AckedTransactionsSurvive", ONE, {"disk": "lost"}, CRASH, alone=True),
)


def tables_of(row: Broken, mutant: type | None, monkeypatch: pytest.MonkeyPatch) -> Tables:
    with monkeypatch.context() as patch:
        if mutant is not None:
            name = mutant.__bases__[0].__name__
            patch.setattr(cluster if hasattr(cluster, name) else composition, name, mutant)
        return Tables(find_model("cluster").make(row.sizes, row.settings, faults=row.faults))


def first_failing(tables: Tables, plan: Plan, within: int) -> Run | None:
    runs = (run_plain(tables, plan, PctStrategy(seed)) for seed in range(within))
    return next((run for run in runs if not run.verdict.ok), None)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.mutant.__name__}-{row.violates}")
def test_broker_that_does_one_thing_wrong_is_caught(row: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its property fails within some runs; the broker as it is keeps it in the same runs, and in the same schedule."""
    claims = (row.violates,) if row.alone or row.settings else INVARIANTS
    plan = Plan(claims, steps=80, timeouts=6)
    run = first_failing(tables_of(row, row.mutant, monkeypatch), plan, 5 * WITHIN)
    assert run is not None and run.verdict.violated == row.violates, run and run.verdict
    sound = tables_of(row, None, monkeypatch)
    assert first_failing(sound, plan, min(WITHIN, run.trail.seed + 10)) is None
    assert try_choices(sound, run.trail, run.trail.choices).verdict.ok


class WaitsForEpoch(ReplicatedLog):
    """A leader that lets nobody in before its high watermark has reached its epoch, as KIP-320's module has it."""

    def may_expand_isr(self, k: Replica, state: ReplicaState, follower: str) -> bool:
        return partition.may_expand_isr(k, state, follower)


def test_high_watermark_and_isr_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """With KIP-966 a leader that is alone must let followers in by Kafka's rule: by the spec's it waits for ever."""
    scenario = find_scenario("stack-last-replica-standing-repaired")
    assert scenario is not None
    monkeypatch.setattr(composition, "ReplicatedLog", WaitsForEpoch)
    tables, plan = Tables(model_of(scenario)), plan_of(scenario)
    runs = (run_plain(tables, plan, RandomStrategy(seed)) for seed in range(WITHIN))
    verdict = next(run.verdict for run in runs if not run.verdict.ok)
    assert verdict.violated == "EventuallyAllClientsGetPid" and verdict.reason is not None
    assert "above its high watermark" in verdict.reason


def test_every_property_of_the_log_fails_for_some_mutant() -> None:
    """None of the properties that the stack adds is one that cannot fail."""
    assert {row.violates for row in TABLE} >= set(OF_THE_LOG)


def test_clients_share_an_epoch_where_a_coordinator_answers_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user sees of a lost record: two clients that hold one producer id with one epoch."""
    sizes = {"clients": 3, "brokers": 2, "replication-factor": 2, "elections": 1}
    row = Broken(AnswersEarly, "ClientsHaveDifferentProducerEpochs", sizes)
    tables: Any = tables_of(row, row.mutant, monkeypatch)
    run = first_failing(tables, Plan((row.violates,), steps=120, timeouts=6), 10 * WITHIN)
    assert run is not None and run.verdict.reason is not None and "both hold producer id" in run.verdict.reason
