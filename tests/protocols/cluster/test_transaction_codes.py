"""Every error code of the transaction protocol is answered in some run, and every verdict of a client is taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from support.brokers.fencing import appended_after_fencing
from support.brokers.node import elected, new_node
from support.paths import RECORDED
from support.runs.made_runs import scenario_runs, states_of

from harness.model import find_scenario, model_of
from kafka_proto import requests
from kafka_proto.broker.coordinator import coordinator as role
from kafka_proto.broker.coordinator.coordinator import Coordinator
from kafka_proto.broker.coordinator.transaction import Answer, Block, ProducerIds
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.versions import KIP_98, KIP_360, KIP_890_4_4
from kafka_proto.clients.producer.answers import AnswerVerdict
from kafka_proto.cluster.logs import LocalLogs
from kafka_proto.cluster.properties import WITNESSES
from kafka_proto.cluster.scenarios import SCENARIOS
from kafka_proto.conformance import load, play
from kafka_proto.log import RecordBatch
from kafka_proto.requests import Error

CODES = {
    "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE",
    "INVALID_PRODUCER_ID_MAPPING", "CONCURRENT_TRANSACTIONS", "TRANSACTION_COORDINATOR_FENCED", "UNKNOWN_PRODUCER_ID",
    "FENCED_INSTANCE_ID", "UNSTABLE_OFFSET_COMMIT", "PRODUCER_FENCED", "TRANSACTION_ABORTABLE",
}
"""Those of the protocol. No broker since 1.0 answers DUPLICATE_SEQUENCE_NUMBER; a client takes it for success."""
RARE = ("leaders-move", "exactly-once-epochs-run-out", "idempotent-late-answers")
"""Scenarios that reach what others do not: they are run first."""
INIT = requests.InitProducerIdRequest(4, "tid", 60_000)


def codes_in(step: Any) -> Iterator[str]:
    """Yield the codes of a response, and of all that is in it."""
    if isinstance(step, dict):
        for value in step.values():
            yield from codes_in(value)
    elif isinstance(step, list | tuple):
        for value in step:
            yield from codes_in(value)
    elif isinstance(step, str):
        yield str(step)


def recorded() -> set[str]:
    """Return what our brokers answer in the recorded situations."""
    found = set[str]()
    for record in load(RECORDED / "kafka.json.gz"):
        for step in play(record):
            found |= set(codes_in([step.get("response"), step.get("marker_answer")])) & CODES
    return found


def unrecorded() -> set[str]:
    """Return what they answer where no recording reaches: to a loading or a failing log, and to an old coordinator."""
    found = set[Error]()
    for state, fails in ((Coordinator(loading=True), None), *(
        (Coordinator(ids=ProducerIds(Block(1, 9))), error)
        for error in (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
    )):
        after, effects = role.receive(KIP_360.coordinator, state, INIT, now=0)
        if fails is not None:
            _, effects = role.append_failed(after, "tid", fails)
        found |= {effect.error for effect in effects if isinstance(effect, Answer)}
    node = new_node(KIP_890_4_4)
    elected(node)
    node.ask(INIT)
    for epoch in (1, 0):
        found |= set(node.ask(requests.WriteTxnMarkersRequest(2, 0, 0, epoch, False, ("T-0",), 0)).errors.values())
    first = requests.ProduceRequest(7, None, -1, "T-0", RecordBatch(("x",), 7, 0, 0))
    node = new_node(KIP_98, first, requests.DeleteRecordsRequest(1, "T-0", -1))
    found.add(node.ask(attrs.evolve(first, batch=attrs.evolve(first.batch, base_sequence=1))).error)
    return {error.value for error in found}


def test_every_code_is_answered() -> None:
    """Nothing is left over."""
    assert CODES - recorded() - unrecorded() == set()


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
