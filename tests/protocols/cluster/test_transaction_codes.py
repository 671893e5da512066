"""Every error code of the transaction protocol is answered in some run, and every verdict of a client is taken."""

from __future__ import annotations

import attrs
import pytest
from support.brokers.fencing import appended_after_fencing
from support.paths import RECORDED
from support.runs.made_runs import scenario_runs, states_of

from harness.model import find_scenario, model_of
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.producer.answers import AnswerVerdict
from kafka_proto.cluster.logs import LocalLogs
from kafka_proto.cluster.properties import WITNESSES
from kafka_proto.cluster.scenarios import SCENARIOS
from kafka_proto.conformance import load, play

CODES = {
    "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE",
    "INVALID_PRODUCER_ID_MAPPING", "CONCURRENT_TRANSACTIONS", "TRANSACTION_COORDINATOR_FENCED", "UNKNOWN_PRODUCER_ID",
    "FENCED_INSTANCE_ID", "UNSTABLE_OFFSET_COMMIT", "PRODUCER_FENCED", "TRANSACTION_ABORTABLE",
}
"""Those of the protocol. No broker since 1.0 answers DUPLICATE_SEQUENCE_NUMBER; a client takes it for success."""
RARE = ("leaders-move", "exactly-once-epochs-run-out", "idempotent-late-answers")
"""Scenarios that reach what others do not: they are run first."""
UNRECORDED = {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR",
              "TRANSACTION_COORDINATOR_FENCED", "UNKNOWN_PRODUCER_ID"}
"""Those of a loading or a failing log, to an old coordinator, and of old releases: see `test_decisions` of the broker,
and of groups `test_group_members`."""


def test_every_code_is_answered() -> None:
    """Our brokers answer each in some recorded situation, but for those that no recording reaches."""
    found = set[str]()
    for record in load(RECORDED / "kafka.json.gz"):
        answers = str([[step.get("response"), step.get("marker_answer")] for step in play(record)])
        found |= {code for code in CODES if f"'{code}'" in answers}
    assert CODES - found == UNRECORDED


def test_every_witness_is_reached_and_every_verdict_taken() -> None:
    """In few runs of each scenario: a client retries, looks up again, aborts, fails for good."""
    missing, verdicts = set(WITNESSES), {known.value for known in AnswerVerdict}
    for scenario in sorted(SCENARIOS, key=lambda row: row.name not in RARE):
        for run in scenario_runs(scenario, "random", 3 if scenario.name.startswith("leaders") else 20):
            missing -= run.witnessed
            if verdicts:
                *_, last = states_of(model_of(scenario), run)
                verdicts -= {taken.partition(" ")[2] for state in last.values()
                             for taken in getattr(state, "verdicts", ())}
            if not missing and not verdicts:
                return
    assert (missing, verdicts) == (set(), set())


@pytest.mark.parametrize(("name", "writes"), [("hanging-transaction", True), ("hanging-transaction-repaired", False)])
def test_late_batch_is_appended_after_the_next_epoch_was_given_until_leaders_ask(name: str, writes: bool) -> None:
    """P7 on histories: InitProducerId after a time-out was answered before the batch came (KAFKA-14402)."""
    row = find_scenario(name)
    assert row is not None
    scenario = attrs.evolve(row, claims=())
    model = model_of(scenario)
    placement = Placement.of(model.sizes)
    found = [appended_after_fencing(placement, LocalLogs(placement), states_of(model, run))
             for run in scenario_runs(scenario, "random", 30)]
    assert any(found) is writes, next(filter(None, found), None)
