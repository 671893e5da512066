"""Records without transactions between actors: P6 fails on bad states, leaders delete, any broker gives an id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from support.brokers.leader import replicated
from support.runs.made_runs import scenario_runs, states_of
from support.searches.spec_states import state

from harness.model import NO_FAULTS, Model, Value, View, find_model, model_of
from kafka_proto.broker.parts import LeaderState
from kafka_proto.clients.producer import Batch, Producer
from kafka_proto.clients.producer_client import ClientState, Written
from kafka_proto.cluster.scenarios import SCENARIOS
from kafka_proto.log import RecordBatch, delete_records

COMMITS = next(row for row in SCENARIOS if row.name == "exactly-once-commits")
SIZES = {"producers": 0, "idempotent-producers": 1, "brokers": 2, "partitions": 1}


@pytest.fixture(scope="module")
def model() -> Model:
    """One idempotent producer, two brokers of which b2 leads the one partition."""
    return find_model("kafka/3.5").make(SIZES)


def log(*texts: str, deleted: int = 0) -> LeaderState:
    """Return a leader of these records, of which so many are deleted."""
    made = replicated(*(RecordBatch((text,), 10, 0, sequence) for sequence, text in enumerate(texts)))
    return LeaderState(delete_records(made, deleted), serves=True)


def told(*texts: str) -> ClientState:
    """Return a producer that was told where its records are, as `i1#1@0`."""
    placed = (text.split("@") for text in texts)
    return ClientState(acknowledged=tuple(Written("T-0", name, int(offset)) for name, offset in placed))


CASES: Mapping[str, tuple[LeaderState, ClientState, LeaderState, ClientState, str]] = {
    "lost": (
        log("i1#1"), told("i1#1@0", "i1#2@1"), log("i1#1", "i1#2"), told("i1#1@0", "i1#2@1"),
        "i1#2 was acknowledged at offset 1, but is not in T-0",
    ),
    "elsewhere after it was deleted": (
        log("i1#1", "i1#1", deleted=1), told("i1#1@0"), log("i1#1", "i1#2", deleted=1), told("i1#1@0", "i1#2@1"),
        "i1#1 was acknowledged at offset 0 of T-0, and is there at offset 1",
    ),
}


def why(model: Model, name: str, **changes: Value) -> Any:
    """Return why a property does not hold in the initial state with the leader, or the producer, changed."""
    slots = {"leader": "b2[leader][T-0]", "producer": "i1"}
    return model.property(name).reason(View(state(model, {slots[key]: value for key, value in changes.items()})))


@pytest.mark.parametrize("name", CASES)
def test_acknowledged_once_says_what_is_wrong(model: Model, name: str) -> None:
    """With the record and its offsets; the repaired twin is silent. More is in `test_transaction_properties`."""
    bad, told_bad, good, told_good, said = CASES[name]
    assert why(model, "AcknowledgedOnce", leader=bad, producer=told_bad) == said
    assert why(model, "AcknowledgedOnce", leader=good, producer=told_good) is None


def test_operations_do_not_end_while_a_record_is_neither_acknowledged_nor_given_up(model: Model) -> None:
    """Its name is said."""
    waits = ClientState(Producer(producer_id=10, batches=(Batch(1, "T-0", ("i1#1",)),)))
    assert why(model, "OperationsEnd", producer=waits) == (
        "i1 waits for the answer to i1#1 with producer id 10, epoch -1: no request of it is under way")
    assert why(model, "OperationsEnd") is None


@pytest.mark.parametrize("log", ["at-once", "replicated"])
def test_producers_of_both_kinds_have_ids_of_their_own(log: str) -> None:
    """Whichever broker gives them, whether it coordinates something or not."""
    sizes = {**SIZES, "producers": 2, "transactional-ids": 2, "idempotent-producers": 3, "transactions": 1}
    scenario = attrs.evolve(COMMITS, sizes=sizes, settings={"log": log}, faults=NO_FAULTS, timeouts=0)
    for run in scenario_runs(scenario, "random", 2):
        assert run.verdict.ok, (run.trail.seed, run.verdict)
        *_, last = states_of(model_of(scenario), run)
        given = [last[name].producer.producer_id for name in ("c1", "c2", "i1", "i2", "i3")]
        assert len({producer_id for producer_id in given if producer_id >= 0}) == len(given)


def test_batch_that_is_numbered_again_in_the_next_epoch_may_be_taken_twice() -> None:
    """One before it timed out, so that it came out of order, while its old copy was in a connection given up."""
    (row,) = (row for row in SCENARIOS if row.name == "idempotent-in-flight")
    scenario = attrs.evolve(row, settings={"timeouts": "request,delivery"})
    (run,) = scenario_runs(scenario, "random", 1, 207)
    assert (run.verdict.violated, run.verdict.reason, len(run.trail.choices)) == (
        "AcknowledgedOnce", "i1#3 is in T-0 twice, at the offsets 2 and 3", 21)
