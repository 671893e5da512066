"""The search against the reference semantics: both engines find what a plain search finds, always in the same way.

`seen_by_hand` says what there is to be found, from the graph that the plain search keeps. The counts of the model
checker are in `test_reference`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import permutations, product
from typing import Any

import attrs
import pytest
from support.paths import ROOT, SUPPORT
from support.searches import plain_search
from support.searches.engines import ENGINES, KERNEL, assert_violates, assert_witnessed, everything, safety, states_of
from support.searches.spec_models import MODELS, PUBLISHED, SMALL, Given, made

from harness.explore.packed import kernel_loop, layout, python_loop, space
from harness.explore.packed import search as search_module
from harness.explore.packed.result import Result
from harness.explore.packed.search import Search
from harness.explore.reduction.symmetry import rename
from harness.model import Model, Process, Refusal, Step, View, always, canonical_text, parts, slot
from kafka_proto.transactions.properties import INVARIANTS

REPAIRED_CLASSES = 472_538
S1_SIZE = {**SMALL, "clients": 4, "brokers": 1, "txn-log-partitions": 1, "transactional-ids": 3, "elections": 0}

THREE = {"replicas": 3, "log-size": 1, "max-records": 1, "max-leader-epoch": 0}
SYMMETRIC: dict[str, Given] = {
    "diary-01": ("transactions/diary-01", {"clients": 2, "brokers": 3}, {}),
    "choose": ("transactions/diary-01", {"clients": 2, "txn-log-partitions": 2}, {"init": "choose"}),
    "diary-02": MODELS["diary-02"],
    "repaired": MODELS["repaired"],
    "async-isr": MODELS["async-isr-3"],
    "kip-279": ("replication/kip-279", THREE, {}),
}


def within(model: Model) -> Model:
    """Return a model with an invariant that only states out of bounds violate, if there is a constraint."""
    inside = model.constraint
    if inside is None:
        return model
    bounded = always("Bounded", lambda view: None if inside(view) else "out of bounds")
    return attrs.evolve(model, properties=(*model.properties, bounded))


@attrs.frozen
class Seen:
    """What there is to be found in a model."""

    counts: tuple[int, int, int, int]
    actions: dict[str, int]
    lengths: dict[str, int]
    """The shortest length of what is violated, of witnesses, and of a deadlock."""


@cache
def seen_by_hand(name: str) -> Seen:
    """Look at every state of a model, and at those out of bounds, for everything that a search reports."""
    model = within(made(MODELS[name]))
    found = plain_search.search(model, keep_graph=True)
    depths = {n: 1 for n in range(found.initial)}
    for source, _, target in found.edges:
        depths.setdefault(target, depths[source] + 1)
    actions: Counter[str] = Counter()
    lengths: dict[str, int] = {}

    def note(name: str, length: int) -> None:
        lengths[name] = min(length, lengths.get(name, length))

    for n, state in enumerate(found.states):
        view, choices = View(state), model.choices(state)
        if not choices:
            note("Deadlock", depths[n])
        outside = [after for after in (model.apply(state, choice) for choice in choices) if not model.is_inside(after)]
        for prop in model.properties:
            if prop.is_safety:
                if model.why_not(prop, view) is not None:
                    note(prop.name, depths[n])
                if any(model.why_not(prop, View(after)) is not None for after in outside):
                    note(prop.name, depths[n] + 1)
            elif prop.form == "sometimes" and prop.on == "state" and prop.check(view):
                note(prop.name, depths[n])
            elif prop.on == "step" and any(prop.check(view, choice.step) for choice in choices):
                note(prop.name, depths[n] + 1)
        for choice in choices:
            actions[choice.step.action] += choice.step.ways
    return Seen((found.initial, found.distinct, found.generated, found.depth), dict(sorted(actions.items())), lengths)


def counts(found: Result) -> tuple[int, int, int, int]:
    return found.initial, found.distinct, found.generated, found.depth


@pytest.mark.parametrize("how", ["states", "fingerprints", "unscouted", "pieces", "apart"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("engine", ENGINES)
def test_search_finds_what_there_is(name: str, engine: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts, counts per action, and shortest ways to every violation, witness and deadlock, which are runs.

    `unscouted`: nothing was learnt beforehand, so that everything turns up on the way, and fields become too narrow.
    `pieces`: levels are expanded a few states at a time, as large ones are. `apart`: in Python no check is put together
    with the steps, however many groups that takes, and the scouting search starts over for want of room.
    """
    model, seen = within(made(MODELS[name])), seen_by_hand(name)
    if how == "unscouted":
        monkeypatch.setattr(search_module, "SCOUTED", 2)
    if how == "pieces":
        monkeypatch.setattr(python_loop, "CHUNK", 7)
        monkeypatch.setattr(kernel_loop, "SLICE", 7)
    if how == "apart":
        monkeypatch.setattr(space, "GROUPS", 1_000)
        monkeypatch.setattr(layout, "SLACK", 1)
        monkeypatch.setattr(search_module, "SLACK", 1)
    asked = Search(model, safety(model), engine=engine, stop=False, deadlock=True, witnesses=True,
                   fingerprints=how == "fingerprints")
    found = asked.run()
    assert (found.engine, found.complete) == (engine, True)
    assert how == "unscouted" or not asked.restarts
    assert counts(found) == seen.counts
    assert found.actions == seen.actions
    assert {v.name: v.length for v in (*found.violations, *found.witnesses)} == seen.lengths
    for violation in found.violations:
        if violation.kind == "invariant":
            assert_violates(model, violation)
        else:
            assert not model.choices(states_of(model, violation)[-1])
    for witness in found.witnesses:
        assert_witnessed(model, witness)


def test_the_models_have_everything_to_find() -> None:
    """Among the models are deadlocks, violations out of bounds, witnesses that are reached and some that are not."""
    reached = {name for key in MODELS for name in seen_by_hand(key).lengths}
    unreached = {prop.name for key in MODELS for prop in made(MODELS[key]).properties if prop.form == "sometimes"
                 and prop.name not in seen_by_hand(key).lengths}
    assert {"Deadlock", "Bounded", "CommittedTidKnown", "LeaderInIsr", "DuplicateNullKeyMessage"} <= reached
    assert unreached
    assert {seen_by_hand(key).counts[0] for key in MODELS} == {1, 2, 16}


@pytest.mark.parametrize("fingerprints", [False, True], ids=["states", "fingerprints"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("engine", ENGINES)
def test_counterexample_is_the_first_of_the_shortest(name: str, engine: str, fingerprints: bool) -> None:
    """A counterexample is the very one of the plain search, whatever the engine; of several it comes first."""
    model = made(MODELS[name])
    violated = tuple(each for each in safety(model) if each in seen_by_hand(name).lengths)
    for invariants in (*((each,) for each in violated), *([violated] if violated else [])):
        slow = plain_search.search(model, invariants)
        first = Search(model, invariants, engine=engine, fingerprints=fingerprints).run().violations[0]
        assert (first.name, first.reason) == (slow.violated, slow.reason)
        assert first.labels == tuple(choice.label for choice in slow.path)


def classes(model: Model, groups: tuple[tuple[str, ...], ...], hidden: str) -> tuple[int, int, int, int]:
    """Count as a search with symmetry and a view does, by trying every renaming on every state that it meets."""
    each = [[dict(zip(group, images, strict=True)) for images in permutations(group)] for group in groups]
    renamings = [{old: new for part in chosen for old, new in part.items()} for chosen in product(*each)]
    renamed = [cache(lambda value, names=names: canonical_text(rename(value, names))) for names in renamings]
    slots = [name for name in model.initial_states()[0] if parts(name)[0] != hidden]
    places = [[slot(parts(name)[0], *(names.get(part, part) for part in parts(name)[1:])) for name in slots]
              for names in renamings]

    def least(state: Any) -> tuple[str, ...]:
        return min(
            tuple(text for _, text in sorted(zip(to, [image(state[name]) for name in slots], strict=True)))
            for to, image in zip(places, renamed, strict=True)
        )

    level = {least(state): state for state in model.initial_states()}
    met, depth, initial = set(level), 0, len(model.initial_states())
    generated = initial
    while level:
        depth += 1
        after: dict[tuple[str, ...], Any] = {}
        for state in level.values():
            for choice in model.choices(state):
                generated += choice.step.ways
                target = model.apply(state, choice)
                if model.is_inside(target) and (key := least(target)) not in met:
                    met.add(key)
                    after[key] = target
        level = after
    return initial, len(met), generated, depth


@pytest.mark.parametrize("fingerprints", [False, True], ids=["states", "fingerprints"])
@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("engine", ENGINES)
def test_symmetry_counts_classes(name: str, engine: str, fingerprints: bool) -> None:
    """States that differ by a renaming count once, no others do, and every way of a step counts."""
    model = made(SYMMETRIC[name])
    found = Search(model, (), symmetry=True, engine=engine, fingerprints=fingerprints).run()
    assert (found.engine, counts(found)) == (engine, classes_of(name))
    assert found.distinct < plain_search.search(model).distinct


@cache
def classes_of(name: str) -> tuple[int, int, int, int]:
    model = made(SYMMETRIC[name])
    return classes(model, model.symmetric, "")


def test_symmetry_and_view_give_1472_classes_by_hand_as_well() -> None:
    """The counts of `test_reference` for diary 01 with both, by trying 48 renamings on 3,120 states."""
    model = made(("transactions/diary-01", PUBLISHED, {}), history_variables=False)
    assert classes(model, model.symmetric, "") == (36, 1_472, 3_120, 15)


@pytest.mark.parametrize("symmetry", [False, True])
@pytest.mark.parametrize("name", ["diary-02", "repaired", "gist"])
def test_view_hides_more_than_history(name: str, symmetry: bool) -> None:
    """The view of diary 02 hides the number of elections too; the kernel refuses that, and `auto` knows it."""
    model = made(MODELS[name], history_variables=False)
    assert model.view_hides == ("messages_discard", "aux_coord_ctr")
    with pytest.raises(Refusal, match="the kernel cannot search with a view that hides more than history"):
        Search(model, (), view=True, engine="kernel")
    found = Search(model, INVARIANTS[:2], view=True, symmetry=symmetry).run()
    assert found.engine == "python"
    assert counts(found) == classes(model, model.symmetric if symmetry else (), "aux_coord_ctr")


RUNS: list[tuple[Given, tuple[str, ...], dict[str, bool]]] = [
    (("transactions/diary-01", PUBLISHED, {}), ("TypeOK",), {"symmetry": True, "view": True}),
    (("transactions/diary-01", PUBLISHED | {"brokers": 2}, {}), ("TypeOK",), {"symmetry": True, "witnesses": True}),
    (("transactions/diary-02", SMALL, {}), INVARIANTS, {}),
    (("transactions/diary-02", SMALL, {}), INVARIANTS, {"symmetry": True, "fingerprints": True}),
    (("transactions/gist", {}, {}), INVARIANTS, {"stop": False, "witnesses": True}),
    (("replication/kip-101", {}, {}), ("StrongIsr", "WeakIsr"), {}),
    (("replication/kip-101", {"replicas": 3}, {}), ("WeakIsr", "StrongIsr"), {"symmetry": True}),
    (("compaction/pulsar", {}, {}), ("CompactedLedgerLeak", "DuplicateNullKeyMessage"), {"stop": False}),
]
"""Searches whose order is easily disturbed: many shortest counterexamples, and several invariants on one level."""


def results(engine: str) -> list[Any]:
    """Return what the searches find, as data."""
    found = []
    for given, invariants, options in RUNS:
        model = made(given, history_variables=not options.get("view"))
        found.append(attrs.asdict(everything(Search(model, invariants, engine=engine, **options).run())))
    return json.loads(json.dumps(found, default=sorted))  # type: ignore[no-any-return]


@cache
def results_elsewhere(engine: str, seed: str) -> list[Any]:
    """Return what the searches find in a process whose strings have other hashes."""
    code = f"import json, test_search; print(json.dumps(test_search.results({engine!r})))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=SUPPORT.parent,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("run", range(len(RUNS)), ids=["-".join([run[0][0], *run[2]]) for run in RUNS])
@pytest.mark.parametrize("seed", ["1", "2"])
@pytest.mark.parametrize("engine", ENGINES)
def test_results_are_the_same_in_every_process_and_engine(engine: str, seed: str, run: int) -> None:
    """Counts, counts per action, counterexamples and witnesses depend on neither hashes nor the engine."""
    assert results_elsewhere(engine, seed)[run] == results_elsewhere("python", "1")[run]


class Walk(Process):
    """Goes through some values of two variables, one step each."""

    name = "walk"
    places = ((0, 0), (1, 0), (9, 7), (1, 0), (2, 0))

    def steps(self, view: View) -> list[Step]:
        after = view["at"] + 1
        if after == len(self.places):
            return []
        x, y = self.places[after]
        return [Step("Go", (str(after),), (("at", after), ("x", x), ("y", y)))]


def x_is_not_9(view: View) -> str | None:
    """Look at another variable at first, and only at x later on."""
    if view["x"] == 0:
        return None if view["other"] else "never"
    return "x is 9" if view["x"] == 9 else None


@pytest.mark.parametrize("scouted", [1, 2, 3, 2_000])
@pytest.mark.parametrize("engine", ENGINES)
def test_violations_are_found_where_several_begin_at_once(
    engine: str, scouted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that comes to read one variable only, and another that is violated in the same state as it."""
    monkeypatch.setattr(search_module, "SCOUTED", scouted)
    properties = (always("X", x_is_not_9), always("Y", lambda view: "y is 7" if view["y"] == 7 else None))
    model = Model("walk", (Walk(),), ({"at": 0, "x": 0, "y": 0, "other": True},), properties=properties)
    found = Search(model, ("Y", "X"), engine=engine, stop=False).run()
    assert [(v.name, v.length, v.reason) for v in found.violations] == [("Y", 3, "y is 7"), ("X", 3, "x is 9")]


def test_a_search_that_begins_again_says_which_field_was_too_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where widths are chosen after two states only, a log has more values than its field has numbers."""
    monkeypatch.setattr(search_module, "SCOUTED", 2)
    asked = Search(made(MODELS["gist"]), ("TypeOK",), engine="python")
    assert asked.run().complete
    assert asked.restarts
    widths = {field.slots: field.bits for field in asked.space.layout.fields}
    for restart in asked.restarts:
        assert [name.partition("[")[0] for name in restart.slots] == ["tc_log"]
        assert restart.bits < widths[restart.slots]


@KERNEL
@pytest.mark.parametrize("name", [
    "diary-02", "gist", *(pytest.param(name, marks=pytest.mark.large) for name in ("diary-02-S2", "repaired")),
])
def test_variables_share_fields_where_states_are_too_wide(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer bits the kernel does it by shared fields, with fewer still Python takes over: results are equal."""
    model = made(MODELS[name])

    def run(bits: int) -> tuple[Result, bool]:
        monkeypatch.setattr(kernel_loop, "BITS", {2: bits})
        search = Search(model, safety(model), engine="kernel", stop=False, witnesses=True)
        return search.run(), bool(search.together)

    found, shares = run(127)
    assert (found.engine, shares) == ("kernel", False)
    tried = [run(bits) for bits in range(40, 90, 2)]
    ways = {(other.engine, shares) for other, shares in tried}
    assert ways == {("python", True), ("kernel", True), ("kernel", False)}
    assert all(everything(other) == everything(found) for other, _ in tried)


@pytest.mark.parametrize("engine", [pytest.param("python", marks=pytest.mark.large), ENGINES[1]])
def test_s1_is_found_in_14_states_with_symmetry_too(engine: str) -> None:
    """The counterexample at 4 clients and 3 ids is a run of the model, also where it was found up to renaming."""
    model = made(("transactions/diary-02", S1_SIZE, {}), history_variables=False)
    (violation,) = Search(model, ("ClientsHaveDifferentProducerEpochs",), symmetry=True, engine=engine).run().violations
    assert violation.length == 14
    assert_violates(model, violation)


@pytest.mark.large
@pytest.mark.parametrize("engine", ENGINES)
def test_repaired_holds_where_s1_was_found(engine: str) -> None:
    """All eight invariants hold at 4 clients, 1 broker and 3 ids, searched completely up to renaming."""
    model = made(("transactions/repaired", S1_SIZE, {}), history_variables=False)
    found = Search(model, INVARIANTS, symmetry=True, engine=engine).run()
    assert (found.engine, found.complete, found.violations, found.distinct) == (engine, True, (), REPAIRED_CLASSES)


@KERNEL
def test_auto_means_the_kernel_where_it_is() -> None:
    """The kernel need not be asked for."""
    assert Search(made(MODELS["gist"]), ("TypeOK",)).run().engine == "kernel"
