"""Invariants of a user's own: expressions over a model's variables; what is none is refused."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest
from support.commands.command_line import call
from support.searches.engines import ENGINES

from harness.model import Refusal, View, always, find_model
from harness.record.expressions import expressed, expressions_of, with_expressions

FENCED = 'not any(m.type == "AddPartitionsToTxnResponse" and m.code == "ProducerFenced" for m in messages)'


def test_an_expression_reads_what_it_looks_at() -> None:
    """Variables with and without an index, messages in flight, and nothing else, so that engines may remember it."""
    model = find_model("transactions/gist").make()
    view = View(model.initial_states()[0])
    assert expressed(model, 'client["c1"].state == "Ready" and pid_source == 0').reason(view) is None
    assert sorted(view.reads()) == ["client[c1]", "pid_source"]
    assert expressed(model, "len(client) == 2 and all(log == () for log in tc_log['b1'].values())").reason(view) is None
    assert expressed(model, "pid_source > 0").reason(view) == "the expression is false"
    view = View(model.initial_states()[0])
    assert expressed(model, FENCED).reason(view) is None
    assert view.reads() == tuple(f"inbox[{name}]" for name in ("c1", "c2", "b1", "b2"))
    assert [prop.name for prop in with_expressions(model, ("TypeOK", FENCED)).properties][-1] == FENCED
    assert with_expressions(model, ("TypeOK",)) is model


@pytest.mark.parametrize("engine", [*ENGINES, "plain"])
def test_every_engine_finds_the_same(engine: str, tmp_path: Path) -> None:
    """The gist's TestInv, as commented there: a producer is fenced in the tenth state; a true one holds."""
    done = call("check", "transactions/gist", "--engine", engine, "--invariant", FENCED, "--out", tmp_path, "--json")
    [violation] = done.json["violated"]
    assert (done.code, violation["property"], violation["length"], violation["shortest"]) == (1, FENCED, 10, True)
    done = call("check", "compaction/pulsar", "--engine", engine, "--invariant", "crashTimes >= 0", "--json")
    assert (done.code, done.json["distinct"]) == (0, 45_198)


@pytest.mark.parametrize(("text", "said"), [
    ("crashTimes = 0", "is neither an invariant of compaction/pulsar nor an expression over its variables (invalid"),
    ("crashTime < 0", "compaction/pulsar has no variable 'crashTime'; did you mean crashTimes?"),
    ('__import__("os")', "an invariant may not say \"__import__('os')\"; expected an expression that compares values"),
    ("cursor.__class__ == 1", "an invariant may not say 'cursor.__class__'"),
    ("(lambda: 1)()", "an invariant may not say '(lambda: 1)()'"),
    ("2 ** 9 == 1", "an invariant may not say '2 ** 9'"),
    ('messages["9"] == 1', "cannot be evaluated in a state of compaction/pulsar: messages has no '9'; it has 1, 2, 3"),
    ("cursor.x == 1", "cannot be evaluated in a state of compaction/pulsar: 'NoneType' object has no attribute 'x'"),
])
def test_what_is_no_expression_over_the_variables_is_refused(text: str, said: str) -> None:
    """One sentence says what is wrong; nothing is called, and nothing hidden is looked at."""
    with pytest.raises(Refusal, match=re.escape(said)):
        expressed(find_model("compaction/pulsar").make(), text)


def test_a_property_whose_name_could_be_an_expression_is_that_property() -> None:
    """Names of users' properties may have hyphens; neither is one evaluated, nor do options refuse it."""
    gist = find_model("transactions/gist").make()
    model = attrs.evolve(gist, properties=(*gist.properties, always("pid_source-0", lambda view: None)))
    assert with_expressions(model, ("pid_source-0",)) is model and expressions_of(model) == []
    assert expressions_of(with_expressions(model, ("pid_source-0", "pid_source - 1 < 9"))) == ["pid_source - 1 < 9"]


def test_options_that_an_expression_does_not_go_with_are_refused() -> None:
    """A reduction takes states for one which the expression may tell apart."""
    for option in (("--symmetry",), ("--view",), ("--reduce", "symmetry")):
        done = call("check", "transactions/gist", "--invariant", "pid_source < 2", *option)
        assert (done.code, done.err) == (
            2, f"kafka-proto: {option[0]} is for the invariants of the model, not for 'pid_source < 2'; "
            "leave one of them out\n")
