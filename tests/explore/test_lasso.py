"""The liveness checker against what it could get wrong: random graphs and an oracle by brute force, broken lassos."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations, pairwise

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paths import ROOT
from support.searches.lassos import checked, violated, why_not
from support.searches.plain_graph import plain_graph
from support.searches.plain_search import search
from support.toys.walk import FAIR, FORMS, Edge, walking

from harness.explore.liveness.check import Lasso, check_temporal, fairness_of
from harness.explore.liveness.cycle import Budget
from harness.explore.liveness.edges import Edges
from harness.explore.liveness.fairness import Components, Fairness, FairnessConditions
from harness.explore.liveness.graph import StateGraph, holding
from harness.explore.liveness.lasso import why_no_counterexample
from harness.model import Model, Property, Refusal, Step, View, find_model

STATES = 5


def is_violated(model: Model, edges: list[Edge], good: set[int], asked: set[int], form: str, mode: str) -> bool:
    """Say by brute force whether a property fails: try every set of states that a run may visit for ever.

    A run does best to take every edge within the set, again and again.
    """
    proper = [edge for edge in edges if edge[0] != edge[2]]
    bad = set(range(STATES)) - good
    everywhere = reach(proper, {0}, set(range(STATES)))
    where = {
        "Stays": everywhere, "Again": everywhere & bad, "Once": reach(proper, {0} & bad, bad),
        "Answered": reach(proper, everywhere & asked & bad, bad),
    }[form]
    for size in range(1, STATES + 1):
        for visited in map(set, combinations(sorted(where), size)):
            inside = [edge for edge in proper if {edge[0], edge[2]} <= visited]
            connected = all(reach(inside, {state}, visited) == visited for state in visited)
            if connected and (form != "Stays" or visited & bad) and is_fair(proper, inside, visited, mode):
                return True
    return False


def reach(edges: list[Edge], start: set[int], within: set[int]) -> set[int]:
    """Return the states that can be reached without leaving some set."""
    found = set(start)
    while more := {t for s, _, t in edges if s in found and t in within} - found:
        found |= more
    return found


def is_fair(proper: list[Edge], inside: list[Edge], visited: set[int], mode: str) -> bool:
    """Say whether a run that visits these states, and takes these edges, for ever, is fair."""
    if mode == "none":
        return True
    for action in {edge[1] for edge in proper} if mode == "spec" else {""}:
        strength = FAIR.get(action[0]) if action else "weak"
        enabled = {s for s, name, _ in proper if name == action or not action} & visited
        taken = any(name == action or not action for _, name, _ in inside)
        if not taken and ((strength == "strong" and enabled) or (strength == "weak" and enabled == visited)):
            return False
    return True


actions = st.sampled_from(["A1", "A2", "B1", "B2", "C", "D", "E"])
"""Fair actions with parameters and without, and one that is not fair."""
states = st.integers(0, STATES - 1)
walks = st.lists(st.tuples(states, actions, states), max_size=10)


@settings(max_examples=1000)
@given(walks, st.sets(states), st.sets(states), st.sampled_from(FORMS), st.sampled_from(["spec", "none", "next"]))
def test_lasso_is_found_exactly_where_brute_force_finds_a_fair_set_of_states(
    edges: list[Edge], good: set[int], asked: set[int], form: str, mode: str
) -> None:
    """On random graphs the verdicts agree, and the independent check takes every lasso."""
    model = walking(edges, good, asked)
    assert (checked(model, form, mode) is not None) == is_violated(model, edges, good, asked, form, mode)


@settings(max_examples=150)
@given(walks, st.sets(states, max_size=3), st.sampled_from(FORMS))
def test_lasso_is_as_short_as_any(edges: list[Edge], good: set[int], form: str) -> None:
    """On random graphs no shorter run, tried out one by one, is a counterexample."""
    model = walking(edges, good)
    lasso = checked(model, form)
    runs: list[tuple[tuple[str, ...], tuple[int, ...]]] = [((), (0,))]
    for length in range(1, min(lasso.length, 6) if lasso is not None else 5):
        longer = [
            ((*labels, Step(action[0], tuple(action[1:]), detail=f"{n}").label), (*visited, target))
            for labels, visited in runs
            for n, (source, action, target) in enumerate(edges)
            if source == visited[-1]
        ]
        tries = [labels for labels, visited in runs if len(visited) == length]
        for found in (*tries, *(labels for labels, visited in longer if visited[-1] in visited[:-1])):
            for back in range(len(found) + 1):
                assert why_no_counterexample(model, 0, found[:back], found[back:], form) is not None
        runs = longer


def test_lasso_strong_fairness_takes_states_out_again_and_again() -> None:
    """D leads out of 0 and B out of 2: without these two states nothing is left that goes round."""
    edges = [(0, "A1", 1), (1, "A2", 2), (2, "C", 0), (0, "D", 3), (2, "B1", 3)]
    model = walking(edges, {3})
    assert checked(model, "Again") is None
    lasso = violated(attrs.evolve(model, fairness=dict.fromkeys(FAIR, "weak")), "Again")
    assert (lasso.prefix, lasso.cycle) == ((), ("A(1) 0", "A(2) 1", "C 2"))
    assert lasso.reason == "at 0, for ever: 3 steps lead back to the same state, and fairness asks for no other"


def test_lasso_goes_to_every_strongly_fair_step_that_its_cycle_enables() -> None:
    """The short way back from 1 would leave D untaken, which 1 enables; A(2) is disabled elsewhere, and so is fair."""
    edges = [(0, "A1", 1), (1, "A2", 0), (1, "D", 2), (2, "C", 0), (0, "E", 4)]
    lasso = violated(walking(edges, {4}), "Stays")
    assert (lasso.prefix, lasso.cycle) == ((), ("A(1) 0", "D 2", "C 3"))
    assert [str(note) for note in lasso.fairness] == [
        "SF(D): taken in the cycle", "WF(A(1)): taken in the cycle", "WF(C): taken in the cycle",
        "WF(A(2)): disabled in some state of the cycle",
    ]


def test_lasso_long_parts_get_some_cycle_where_the_shortest_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest goes to and fro between 0 and 1; without a budget for it one duty is done after the other."""
    edges = [*((n, "C", n + 1) for n in range(4)), (4, "C", 0), (1, "B1", 0), (3, "D", 2)]
    model = walking(edges, ())

    assert ((lasso := violated(model, "Again")).length, lasso.cycle) == (2, ("C 0", "B(1) 5"))
    monkeypatch.setattr("harness.explore.liveness.check.Budget", lambda: Budget(-1))
    assert ((lasso := violated(model, "Again")).length, len(lasso.cycle)) == (9, 9)


# The independent check: every part of a lasso counts.


@pytest.fixture(scope="module")
def flawed() -> tuple[Model, Lasso]:
    """Diary 01 with S6, and its lasso of 14 states."""
    model = find_model("transactions/diary-01").make(
        {"clients": 3, "brokers": 1, "txn-log-partitions": 1, "transactional-ids": 2}, history_variables=True
    )
    return model, violated(model, "EventuallyAllClientsGetPid")


def test_lasso_check_takes_it_and_rejects_its_broken_twins(flawed: tuple[Model, Lasso]) -> None:
    """A cycle that does not close, a step that is not possible, a start that is not there: each is said."""
    model, lasso = flawed
    assert why_not(model, lasso) is None
    assert why_not(model, attrs.evolve(lasso, prefix=(*lasso.prefix, *lasso.cycle))) is None
    assert why_not(model, attrs.evolve(lasso, cycle=lasso.cycle * 2)) is None
    open_ = attrs.evolve(lasso, cycle=lasso.cycle[:-1])
    assert why_not(model, open_) == "the cycle does not close: its last step does not lead back to state 12"
    turned = attrs.evolve(lasso, cycle=lasso.cycle[::-1])
    assert why_not(model, turned) == f"step 12, {lasso.cycle[-1]}, is not possible in state 12"
    assert why_not(model, attrs.evolve(lasso, initial=1)) == "there is no initial state 1, only 0 to 0"
    assert why_not(model, attrs.evolve(lasso, name="TypeOK")) == (
        "TypeOK is not a temporal property of transactions/diary-01"
    )
    assert why_not(model, lasso, "some") == "there is no fairness 'some', only spec, none, action, weak and next"


def test_lasso_check_rejects_staying_where_a_step_has_to_happen(flawed: tuple[Model, Lasso]) -> None:
    """The same run cut off before its cycle stays in a state from which a fair step leads on."""
    model, lasso = flawed
    cut = attrs.evolve(lasso, cycle=())
    assert why_not(model, cut) == (
        "the cycle is not fair: SendInitPidRequest(c2,b1) is strongly fair and enabled again and again, but never taken"
    )
    assert why_not(model, cut, "next") == (
        "the cycle is not fair: any step is weakly fair and enabled all the time, but never taken"
    )
    assert why_not(model, cut, "none") is None


@pytest.mark.parametrize(("form", "prefix", "cycle", "reason"), [
    ("Stays", ("E 0", "E 1"), (), "it is true in every state of the cycle"),
    ("Again", (), ("E 0", "E 1", "E 2"), "it is true in state 3, over and over"),
    ("Once", ("E 0", "E 1", "E 3"), (), "it is true in state 3"),
    ("Answered", (), ("E 0", "E 1", "E 2"), "its end is true in state 3, over and over"),
    ("Answered", ("E 0", "E 1", "E 3"), (), "its beginning is not true anywhere after state 3"),
])
def test_lasso_check_rejects_a_run_on_which_the_property_holds(
    form: str, prefix: tuple[str, ...], cycle: tuple[str, ...], reason: str
) -> None:
    """Of every form: 0 asks, 2 is good, 3 is not; with the good state gone the same runs are counterexamples."""
    edges = [(0, "E", 1), (1, "E", 2), (2, "E", 0), (2, "E", 3)]
    said = why_no_counterexample(walking(edges, {2}), 0, prefix, cycle, form)
    assert said == f"{form} is not violated: {reason}"
    assert why_no_counterexample(walking(edges, ()), 0, prefix, cycle, form) is None


def test_lasso_check_knows_a_step_by_its_effect() -> None:
    """An edge that two fair actions share takes both, whatever its label; a step that changes nothing is none."""
    edges = [(0, "A1", 1), (0, "B1", 1), (1, "E", 0), (1, "D", 1)]
    model = walking(edges, ())
    lasso = violated(model, "Again")
    assert (lasso.prefix, lasso.cycle) == (("A(1) 0",), ())
    back_and_forth = attrs.evolve(lasso, prefix=(), cycle=("A(1) 0", "E 2"))
    assert why_not(model, back_and_forth) is None
    assert why_not(walking([*edges, (0, "B2", 2)], ()), back_and_forth) == (
        "the cycle is not fair: B(2) is strongly fair and enabled again and again, but never taken"
    )


# The graph: whoever builds it, and with what.


def test_lasso_graph_equals_that_of_the_plain_search() -> None:
    """The same states, and the same number of edges of each name."""
    model = find_model("transactions/diary-02").make(history_variables=True)
    graph, found = plain_graph(model), search(model, keep_graph=True)
    assert [dict(graph.state(n)) for n in range(graph.count)] == [dict(state) for state in found.states]
    names = [graph.names[label] for label in graph.labels.tolist()]
    shown = [f"{name.action}({','.join(name.args)})" for name in names]
    assert list(zip(graph.sources.tolist(), shown, graph.targets.tolist(), strict=True)) == list(found.edges)


def test_lasso_graph_may_be_lists_in_any_order_without_columns(flawed: tuple[Model, Lasso]) -> None:
    """Plain lists of edges, backwards, and predicates evaluated state by state give the same verdict and length."""
    model, lasso = flawed
    graph = plain_graph(model)
    lists = attrs.evolve(
        graph, initial=graph.initial.tolist(), sources=graph.sources.tolist()[::-1],
        targets=graph.targets.tolist()[::-1], labels=graph.labels.tolist()[::-1], column=None,
    )
    other = violated(model, lasso.name, graph=lists)
    assert (other.length, other.back_to, other.reason) == (lasso.length, lasso.back_to, lasso.reason)
    repaired = find_model("transactions/diary-01").make(model.sizes, {"repair": "S6"}, history_variables=True)
    assert checked(repaired, lasso.name, graph=attrs.evolve(plain_graph(repaired), column=None)) is None


def test_lasso_predicates_are_evaluated_once_per_combination_of_values(flawed: tuple[Model, Lasso]) -> None:
    """With columns a predicate of two slots sees far fewer views than there are states, and gives the same answers."""
    graph = plain_graph(flawed[0])
    views = []

    def ready(view: View) -> bool:
        views.append(view)
        return view["client[c1]"].pid == -1 or view["client[c2]"].pid != -1

    answers = holding(graph, ready).tolist()
    assert len(views) < graph.count / 20
    assert answers == [ready(View(graph.state(n))) for n in range(graph.count)]


def test_lasso_components_are_the_fair_ones() -> None:
    """Two parts go round; the one that enables A(1) everywhere and never takes it is dropped."""
    edges = [(0, "E", 1), (1, "E", 0), (1, "E", 2), (2, "E", 3), (3, "E", 2), (2, "A1", 4), (3, "A1", 4)]
    flat = Edges(plain_graph(walking(edges, ())))
    everything = holding(plain_graph(walking(edges, ())), lambda view: True)

    def parts(fairness: Fairness, goal: object = None) -> list[list[int]]:
        found = Components(flat, FairnessConditions(flat, fairness), everything, goal)
        return sorted(sorted(found.states[a:b].tolist()) for a, b in pairwise(found.bounds.tolist()))

    assert parts(Fairness()) == [[0, 1], [2, 3]]
    assert parts(Fairness({"A": "weak"})) == [[0, 1]]
    assert parts(Fairness(whole=True)) == [[0, 1], [2, 3]]
    assert parts(Fairness({"A": "strong", "E": "strong"}), everything & False) == []


# What is refused.


def test_lasso_refuses_what_is_no_temporal_property(flawed: tuple[Model, Lasso]) -> None:
    """An invariant, an unknown name, a mode of fairness that is not there."""
    model, _ = flawed
    with pytest.raises(Refusal, match="TypeOK is not a temporal property of transactions/diary-01; its temporal "
                                      "properties are EventuallyAllClientsGetPid"):
        check_temporal(_empty(), model, "TypeOK", Fairness())
    isr = find_model("replication/async-isr").make()
    with pytest.raises(Refusal, match="Nothing is not a temporal property of replication/async-isr; it has none"):
        check_temporal(_empty(), isr, "Nothing", Fairness())
    for mode in ("some", "spec,A", ""):
        with pytest.raises(Refusal, match=f"fairness must be one of spec, none, action, .* not '{mode}'"):
            fairness_of(model, mode)
    with pytest.raises(Refusal, match="SendInitPid is not a fair action of transactions/diary-01; did you mean"):
        fairness_of(model, "weak,SendInitPid")
    with pytest.raises(Refusal, match="has 'very' fairness for A; it must be weak or strong"):
        fairness_of(attrs.evolve(model, fairness={"A": "very"}), "spec")


def test_lasso_refuses_a_model_that_is_cut_off_by_a_constraint() -> None:
    """A run that leaves the bounds would look like one that stops."""
    model = attrs.evolve(walking([(0, "A1", 1)], {1}), constraint=lambda view: view["at"] == 0)
    with pytest.raises(Refusal, match="walk is bounded by a constraint"):
        check_temporal(plain_graph(model), model, "Stays", Fairness())
    assert why_no_counterexample(model, 0, ("A(1) 0",), (), "Stays") == (
        "step 1, A(1) 0, leads out of the model's bounds"
    )


def _empty() -> StateGraph:
    return StateGraph((0,), (), (), (), (), 1, lambda n: {})


@pytest.mark.parametrize("missing", ["numpy", "scipy.sparse"])
def test_lasso_says_which_library_is_missing(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without numpy or scipy there is one sentence that says what to install."""
    model = walking([(0, "A1", 1), (1, "A1", 0)], {1})
    graph = plain_graph(model)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(Refusal, match=rf"but {missing.split('.')[0]} is missing here; install both: pip install"):
        check_temporal(graph, model, "Stays", Fairness())


def test_lasso_loads_no_library_before_it_is_asked() -> None:
    """Importing the checkers loads neither numpy nor scipy; the independent check never does."""
    source = (
        "import sys\nimport harness.explore.liveness.check, harness.explore.liveness.lasso\n"
        "from harness.model import find_model\n"
        "model = find_model('transactions/diary-01').make()\n"
        "harness.explore.liveness.lasso.why_no_counterexample(model, 0, (), (), 'EventuallyAllClientsGetPid')\n"
        "print([name for name in ('numpy', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", source], stdout=subprocess.PIPE, check=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_lasso_forms_are_those_of_the_properties() -> None:
    """The walk's properties have every temporal form that there is."""
    forms = [p.form for p in walking((), ()).properties if isinstance(p, Property) and p.is_temporal]
    assert forms == ["<>[]", "[]<>", "<>", "~>"]
