"""Each invariant of each spec model can fail: one wrong step in a sound model breaks it, and it alone.

A `Mutation` says which action does what instead, and the states of a shortest counterexample, the initial one included.
Its sound twin is the same model at the same size without the wrong step: there a complete search finds nothing.
Likewise each witness: without the step that makes it, it is not reached. The replication and compaction tests have such
tables of their own; the tests for completeness read those, too. Temporal properties are not this file's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import pytest
from support.mutants import replication_mutants, spec_mutations
from support.mutants.spec_mutations import MUTATIONS, WITNESSES, WRITTEN, Mutation, Witness, Written, keeps, made
from support.searches.plain_search import PlainResult, search

from harness.model import Property, View, find_model, model_specs


def parametrize(rows: Iterable[Any], named: str) -> pytest.MarkDecorator:
    """Run a test for every row and each of its models."""
    pairs = [(row, model) for row in rows for model in row.models]
    ids = [f"{getattr(row, named)}-{model.partition('/')[2]}" for row, model in pairs]
    return pytest.mark.parametrize(("row", "name"), pairs, ids=ids)


@cache
def searched(name: str, sizes: tuple[tuple[str, int], ...]) -> PlainResult:
    model = made(name, dict(sizes))
    return search(model, keeps(model))


def twin(name: str, sizes: Mapping[str, int]) -> PlainResult:
    """Search a sound model completely, once for all rows that have it as their twin."""
    return searched(name, tuple(sizes.items()))


@parametrize(MUTATIONS, "invariant")
def test_invariant_is_violated_by_a_wrong_step(row: Mutation, name: str) -> None:
    """A wrong step breaks the invariant in the expected number of states, with a sentence; the sound twin keeps it."""
    found = search(row.mutate(made(name, row.sizes)), (row.invariant,))
    assert (found.violated, found.depth, len(found.path)) == (row.invariant, row.states, row.states - 1)
    assert str(found.reason).startswith(row.reason)
    assert row.invariant in keeps(made(name, row.sizes))
    assert twin(name, row.sizes).violated is None


@parametrize(MUTATIONS, "invariant")
def test_invariant_is_the_only_one_that_its_wrong_step_violates(row: Mutation, name: str) -> None:
    """In a complete search the others hold, but for those that follow from it: they fail in no earlier state."""
    wrong = row.mutate(made(name, row.sizes))
    others = tuple(other for other in keeps(wrong) if other not in (row.invariant, *row.also))
    assert search(wrong, others).violated is None
    for other in row.also:
        found = search(wrong, (other,))
        assert found.violated == other
        assert found.depth >= row.states


@parametrize(WRITTEN, "invariant")
def test_invariant_false_as_written_fails_where_its_reading_makes_an_exception(row: Written, name: str) -> None:
    """It fails in the first state and wherever one slot has that value, and nowhere else; the reading holds."""
    model = made(name, row.sizes)
    as_written = search(model, (row.invariant,))
    assert (as_written.violated, as_written.depth) == (row.invariant, 1)
    assert as_written.reason
    found = search(model, (row.reading,), keep_graph=True)
    assert found.violated is None
    for state in found.states:
        fails = model.why_not(model.property(row.invariant), View(state)) is not None
        assert fails == (state[row.slot] == row.value)


@parametrize(WRITTEN, "invariant")
def test_invariant_false_as_written_fails_with_its_reading_where_a_step_is_wrong(row: Written, name: str) -> None:
    """What breaks the reading breaks the written form in the same state, where there is no exception to make."""
    wrong = row.mutate(made(name, row.sizes))
    found = search(wrong, (row.reading,))
    assert (found.violated, found.depth) == (row.reading, row.states)
    (state,) = wrong.initial_states()
    for choice in found.path:
        state = wrong.apply(state, choice)
    assert state[row.slot] != row.value
    assert wrong.why_not(wrong.property(row.invariant), View(state))


@parametrize(WITNESSES, "name")
def test_witness_is_reached_by_the_sound_model_and_not_without_its_step(row: Witness, name: str) -> None:
    """The sound model reaches it; with one action left out it does not, while the rest is reached as before."""
    assert twin(name, row.sizes).violated is None
    assert twin(name, row.sizes).witnessed >= {row.name, *row.rest}
    idle = spec_mutations.with_steps(made(name, row.sizes), lambda view, step: None if row.leaves_out(step) else step)
    assert search(idle).witnessed == row.rest


def test_ledger_may_be_written_in_any_order() -> None:
    """No invariant of compaction is about the order of a ledger: backwards, they hold and fail as before."""
    backwards = spec_mutations.writes(spec_mutations.written_backwards, "CompactorPhaseTwoWrite")
    sound = backwards(made(spec_mutations.PULSAR, spec_mutations.COMPACTION))
    assert search(sound, keeps(sound)).violated is None
    flawed = find_model(spec_mutations.PULSAR).make(spec_mutations.COMPACTION, {"producer": "true"})
    found = [search(model, ("DuplicateNullKeyMessage",)) for model in (flawed, backwards(flawed))]
    assert [(one.violated, one.depth) for one in found] == [("DuplicateNullKeyMessage", 5)] * 2


ELSEWHERE = {
    spec_mutations.KIP_320: [name for name, *_ in replication_mutants.KIP_320_MUTANTS],
    spec_mutations.ASYNC_ISR: [name for name, *_ in replication_mutants.ASYNC_ISR_MUTANTS],
    spec_mutations.PULSAR: [name for name, *_ in spec_mutations.COMPACTION_MUTATIONS],
}
"""The invariants for which the tests of single models have mutations."""


def named(holds: Callable[[Property], bool]) -> set[tuple[str, str]]:
    """Return every spec model with its properties of a kind. Actor compositions are not searched exhaustively."""
    models = [model for spec in model_specs() if not (model := spec.make()).actors]
    return {(model.name, prop.name) for model in models for prop in model.properties if holds(prop)}


def test_every_invariant_of_every_spec_model_has_a_mutation() -> None:
    """Here or elsewhere, and no mutation is about an invariant that is not there."""
    here = {(model, row.invariant) for row in (*MUTATIONS, *WRITTEN) for model in row.models}
    elsewhere = {(model, name) for model, names in ELSEWHERE.items() for name in names}
    assert here | elsewhere == named(lambda prop: prop.is_safety)
    # Elsewhere the first two fail together; here each fails alone. The third fails for another reason here.
    kip_320, pulsar = spec_mutations.KIP_320, spec_mutations.PULSAR
    assert here & elsewhere == {(kip_320, "WeakIsr"), (kip_320, "StrongIsr"), (pulsar, "TypeSafe")}


def test_every_witness_of_every_spec_model_has_a_step_that_it_needs() -> None:
    """Every witness of every model is in the table, and no other."""
    assert {(model, row.name) for row in WITNESSES for model in row.models} == named(
        lambda prop: prop.form == "sometimes"
    )
