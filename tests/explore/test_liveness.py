"""Temporal properties under fairness: the model checker's verdicts row by row, the known flaws, what fairness is for.

The rows of `data/temporal.json` are runs without symmetry and view. Where a property holds, `distinct` is the number of
states; where it does not, `lasso_states` is the length of the model checker's counterexample, and `back_to` the state
that it leads back to (null: it stays in the last one). Ours must not be longer, and the independent check must take it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import attrs
import pytest
from support.mutants.spec_mutations import Mutate, doing
from support.paths import DATA
from support.searches.lassos import checked, violated, why_not
from support.searches.plain_graph import plain_graph

from harness.explore.liveness.check import Lasso
from harness.explore.liveness.graph import StateGraph
from harness.explore.liveness.lasso import why_no_counterexample
from harness.model import Model, Step, View, find_model
from harness.model.spec import processes
from kafka_proto.replication.specs.kafka_replication import leader_expand_isr
from kafka_proto.replication.specs.names import names
from kafka_proto.transactions.records import InitPidResponse, SpecError

Row = dict[str, Any]

ROWS: list[Row] = json.loads((DATA / "temporal.json").read_text(encoding="utf-8"))
NORMAL = 5_000
"""States whose graph the plain builder makes in about half a second."""
ALL_GET_PID = "EventuallyAllClientsGetPid"
ONE_ADDS_ALL = "EventuallyOneClientAddsAllPartitions"
SMALL = {"txn-log-partitions": 1, "transactional-ids": 1}


def made(name: str, sizes: dict[str, int], settings: dict[str, str] | None = None) -> Model:
    """Build a model with the history variables of the published counts."""
    return find_model(name).make(sizes, settings or {}, history_variables=True)


@lru_cache(maxsize=1)
def graph_of(name: str, sizes: tuple[tuple[str, int], ...], settings: tuple[tuple[str, str], ...]) -> StateGraph:
    """Build a row's graph; the next row often has the same."""
    return plain_graph(made(name, dict(sizes), dict(settings)))


def row_name(row: Row) -> str:
    """Return a row's id: model, sizes, settings that are set, property, fairness."""
    sizes = "".join(f"{name[:2]}{number}" for name, number in row["sizes"].items())
    return "-".join([row["model"], sizes, *(v for _, v in sorted(row["settings"].items())), row["property"],
                     row["fairness"]])


def marks(row: Row) -> list[pytest.MarkDecorator]:
    return [pytest.mark.large] if row.get("distinct", 0) > NORMAL else []


@pytest.mark.parametrize("row", [pytest.param(row, id=row_name(row), marks=marks(row)) for row in ROWS])
def test_liveness_verdicts_equal_the_model_checkers(row: Row) -> None:
    """Every row: a property that holds has no lasso, another one a lasso no longer than the model checker's."""
    graph = graph_of(row["model"], tuple(row["sizes"].items()), tuple(row["settings"].items()))
    model = made(row["model"], row["sizes"], row["settings"])
    lasso = checked(model, row["property"], row["fairness"], graph)
    if row["holds"]:
        assert lasso is None
        assert graph.count == row["distinct"]
    else:
        assert lasso is not None
        assert lasso.length <= row["lasso_states"]
        if lasso.length == row["lasso_states"]:
            assert lasso.back_to == row["back_to"]


def test_liveness_every_row_has_its_own_name() -> None:
    """There are 64 rows, 10 of them violations, and no id stands for two."""
    assert len({row_name(row) for row in ROWS}) == len(ROWS) == 64
    assert sum(not row["holds"] for row in ROWS) == 10


@pytest.mark.parametrize(("name", "sizes", "flaw", "property_name", "length", "reason"), [
    ("transactions/diary-02", {"clients": 1, "brokers": 3}, "S2", ALL_GET_PID, 5,
     "c1 still without a producer id, and no step that has to happen can happen any more"),
    ("transactions/diary-02", {"clients": 1, "brokers": 3}, "S2", ONE_ADDS_ALL, 5,
     "no client has added every topic partition, and no step that has to happen can happen any more"),
    pytest.param(
        "transactions/gist", {}, "S5", ALL_GET_PID, 20,
        "c2 still without a producer id, again and again: 3 steps lead back to the same state, "
        "and fairness asks for no other", marks=pytest.mark.large),
    ("transactions/diary-01", {"clients": 3, "brokers": 1, "transactional-ids": 2}, "S6", ALL_GET_PID, 14,
     "c2 still without a producer id, again and again: 3 steps lead back to the same state, "
     "and fairness asks for no other"),
], ids=("S2-all", "S2-one", "S5", "S6"))
def test_liveness_flaw_is_found_as_written_and_gone_when_repaired(
    name: str, sizes: dict[str, int], flaw: str, property_name: str, length: int, reason: str
) -> None:
    """S2, S5 and S6 each break a liveness property, and their single repair mends it."""
    lasso = violated(made(name, sizes), property_name)
    assert (lasso.length, lasso.reason) == (length, reason)
    assert checked(made(name, sizes, {"repair": flaw}), property_name) is None


def without(action: str, **nothing: tuple[()]) -> Mutate:
    """Let an action's steps send nothing, or not write anything either but consume their message."""
    return doing(lambda view, step: attrs.evolve(step, **nothing), action)


def refused(view: View, step: Step) -> Step:
    """Let diary 01's coordinators refuse everybody: what is sent is the answer to a request for another one."""
    broker, client = step.args
    refusal = InitPidResponse(SpecError.NOT_COORDINATOR_FOR_TRANSACTIONAL_ID, source=broker, dest=client)
    return attrs.evolve(step, writes=(), sent=(refusal,))


ONE_ELECTION = {"clients": 1, "brokers": 2, "elections": 1}
COMMIT, RECEIVE_ADD = "CommitTxnLogAppend", "ReceiveAddPartitionsToTxnRequest"
ONE_PAIR = {"clients": 1, "brokers": 1, **SMALL}
COMPACTION = {"messages": 1, "compactions": 2, "keys": 1, "values": 1, "crashes": 0}


@pytest.mark.parametrize(("name", "sizes", "property_name", "fairness", "mutate", "length", "back_to"), [
    ("transactions/diary-01", ONE_PAIR, ALL_GET_PID, "spec", without("CompleteInitPidRequest", sent=()), 4, None),
    ("transactions/diary-01", ONE_PAIR, ALL_GET_PID, "spec", doing(refused, "ReceiveInitPidRequest"), 6, 4),
    *((name, ONE_ELECTION, prop, "spec", mutate, length, None)
      for name in ("transactions/diary-02", "transactions/gist", "transactions/repaired") for prop, mutate, length in (
          (ALL_GET_PID, without(COMMIT, sent=()), 4), (ONE_ADDS_ALL, without(RECEIVE_ADD, sent=(), writes=()), 7))),
    ("compaction/pulsar", COMPACTION, "Termination", "next",
     doing(lambda view, step: None, "CompactorPhaseTwoWrite"), 3, None),
])
def test_liveness_property_is_violated_by_a_mutated_step(
    name: str, sizes: dict[str, int], property_name: str, fairness: str, mutate: Mutate, length: int,
    back_to: int | None,
) -> None:
    """Every temporal property of every module holds, and fails with a shortest lasso once a step is mutated."""
    model = made(name, sizes, {"producer": "true"} if name == "compaction/pulsar" else {})
    assert checked(model, property_name, fairness) is None
    lasso = violated(mutate(model), property_name, fairness)
    assert (lasso.length, lasso.back_to) == (length, back_to)


def test_liveness_every_temporal_property_is_mutated() -> None:
    """The properties of the test above are all there are."""
    names = ("transactions/diary-01", "transactions/diary-02", "transactions/gist", "transactions/repaired",
             "compaction/pulsar")
    temporal = {name: [p.name for p in find_model(name).make().properties if p.is_temporal] for name in names}
    both = [ALL_GET_PID, ONE_ADDS_ALL]
    assert temporal == dict(zip(names, ([ALL_GET_PID], both, both, both, ["Termination"]), strict=True))


# Which fairness diary 01 needs, in the order in which diary entry 2 finds out.

UNANSWERED = ("SendInitPidRequest(c1,b1)", "ReceiveInitPidRequest(b1,c1)", "CompleteInitPidRequest(b1,p1)")
WRONG_BROKER = ("SendInitPidRequest", "ReceiveInitPidRequest", "ReceiveInitPidResponse")


def labels_of(model: Model, *names: str) -> tuple[str, ...]:
    """Return the full labels of steps given by their names, from the first initial state on."""
    state, labels = model.initial_states()[0], []
    for name in names:
        choice = next(choice for choice in model.choices(state) if choice.step.name == name)
        labels.append(choice.label)
        state = model.apply(state, choice)
    return tuple(labels)


def test_fairness_lesson_without_any_nothing_has_to_happen() -> None:
    """No fairness: the trace of the text, in which c1 never gets its answer, counts as one; the shortest does nothing.

    With the spec's fairness the trace is none, since the answer has to arrive.
    """
    model = made("transactions/diary-01", ONE_PAIR)
    labels = labels_of(model, *UNANSWERED)
    assert why_no_counterexample(model, 0, labels, (), ALL_GET_PID, "none") is None
    assert why_no_counterexample(model, 0, labels, (), ALL_GET_PID) == (
        "the cycle is not fair: ReceiveInitPidResponse(c1) is weakly fair and enabled all the time, but never taken"
    )
    lasso = violated(model, ALL_GET_PID, "none")
    assert (lasso.length, lasso.cycle, lasso.fairness) == (1, (), ())
    assert lasso.reason == "c1 still without a producer id, and nothing has to happen any more"


ONE_CLIENT = {"clients": 1, "brokers": 2, **SMALL}


def wrong_broker_cycle(fairness: str) -> Lasso:
    """Check diary 01 with one client and two brokers: it must fail as c1 asks the wrong broker again and again."""
    lasso = violated(made("transactions/diary-01", ONE_CLIENT), ALL_GET_PID, fairness)
    assert [label.split("(")[0].split(" ")[0] for label in lasso.cycle] == list(WRONG_BROKER)
    assert (lasso.length, lasso.back_to) == (6, 4)
    return lasso


def test_fairness_lesson_weak_per_action_lets_a_client_stick_with_the_wrong_broker() -> None:
    """Weak fairness of actions without parameters: some request is sent again and again, and that is enough."""
    assert [str(note) for note in wrong_broker_cycle("action").fairness] == [
        "WF(ReceiveInitPidRequest): taken in the cycle",
        "WF(ReceiveInitPidResponse): taken in the cycle",
        "WF(SendInitPidRequest): taken in the cycle",
        "WF(CompleteInitPidRequest): disabled in every state of the cycle",
    ]


def test_fairness_lesson_weak_per_parameters_is_not_enough() -> None:
    """Weak fairness per client and broker: sending to the right one is enabled again and again, but not all the time.

    The text then makes the wrong action strongly fair; only SendInitPidRequest helps, as the module has it.
    """
    lasso = wrong_broker_cycle("weak")
    right, wrong = ("b1", "b2") if "b2" in lasso.cycle[0] else ("b2", "b1")
    notes = {note.formula: note.how for note in lasso.fairness}
    assert notes[f"WF(SendInitPidRequest(c1,{wrong}))"] == "taken in the cycle"
    assert notes[f"WF(SendInitPidRequest(c1,{right}))"] == "disabled in some state of the cycle"
    assert notes["WF(CompleteInitPidRequest(b1,p1))"] == "disabled in every state of the cycle"
    wrong_broker_cycle("weak,ReceiveInitPidRequest")
    model = made("transactions/diary-01", ONE_CLIENT)
    assert [checked(model, ALL_GET_PID, mode) for mode in ("weak,SendInitPidRequest", "spec")] == [None, None]
    assert why_not(model, lasso) == (
        f"the cycle is not fair: SendInitPidRequest(c1,{right}) is strongly fair and enabled again and again, "
        "but never taken"
    )


def test_fairness_names_an_action_in_place_of_one_that_next_does_not_have() -> None:
    """Kip320FirstTry asks for strong fairness of LeaderExpandIsr, which is not in Next.

    Whenever the action in its place is enabled, so is LeaderExpandIsr, by the same step; and no other step of Next is
    one of it. So the module's formula implies what the model asks for. It asks for more: in some states only
    LeaderExpandIsr is enabled, and runs that are there again and again without expanding the ISR break it.
    """
    model = made("replication/kip-320-first-try", {"max-leader-epoch": 1})
    old = processes((leader_expand_isr,), names(model.sizes, model.settings))
    graph = plain_graph(model)
    only_old = 0
    for n in range(graph.count):
        state = graph.state(n)
        expands = [dict(step.writes) for process in old for step in process.steps(View(state))]
        steps = [choice.step for choice in model.choices(state)]
        better = [dict(step.writes) for step in steps if step.action == "LeaderExpandIsrBetterFencing"]
        others = [dict(step.writes) for step in steps if step.action != "LeaderExpandIsrBetterFencing"]
        assert all(writes in expands for writes in better)
        assert not any(writes in expands for writes in others)
        only_old += bool(expands) and not better
    assert only_old > 0
