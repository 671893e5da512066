"""Runs as TLA+ modules of states: the text that the model checker accepted, and what belongs to which module.

The modules in `data` are what TLC was given, beside the published modules: for both it said that the invariant is
violated, after as many states as the run has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.commands.command_line import call, files_below
from support.paths import DATA
from support.searches.plain_search import search

from harness.model import NO_FAULTS, FrozenMap, Message, Model, Refusal, absent_if_none, find_model, model_specs
from harness.model.module import module_of
from harness.record import Chosen, EventRecorder, History, Trail, header_of
from harness.record.tla_values import tla_encode
from harness.render import tla
from harness.render.tla import tla_text
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import replay_plain
from kafka_proto.transactions.records import InitPidResponse, SpecError

TWO = {"clients": 2, "brokers": 2, "txn-log-partitions": 2, "transactional-ids": 2}
SMALL = {"messages": 1, "compactions": 1, "keys": 1, "values": 1}
GOLDEN: dict[str, tuple[str, dict[str, int], dict[str, str], str, int]] = {
    "WipedMetadata": ("transactions/diary-02", TWO, {}, "CommittedTidKnown", 5),
    "EmptyIsr": ("replication/kip-320", {}, {}, "IsrNonEmpty", 3),
    "LostRecord": ("replication/kip-101", {"log-size": 3, "max-records": 3}, {}, "WeakIsr", 12),
    "ReadTwice": ("compaction/pulsar", SMALL, {"producer": "true"}, "DuplicateNullKeyMessage", 5),
}
"""Model, sizes, settings, what is violated, and after how many states."""


@cache
def golden_trail(name: str) -> Trail:
    """Return a shortest counterexample, of the model without its history variables."""
    model, sizes, settings, violated, _ = GOLDEN[name]
    built = find_model(model).make(sizes, settings)
    path = search(built, (violated,)).path
    return trail_of(built, *(choice.label for choice in path), claims=(violated,), strategy="check", violates=violated)


def trail_of(model: Model, *labels: str, **more: Any) -> Trail:
    """Return a trail of some steps of a model."""
    return Trail(model.name, model.sizes, model.settings, model.network.name, NO_FAULTS,
                 choices=tuple(map(Chosen, labels)), **{"claims": (), **more})


def recorded(trail: Trail, history_variables: bool = False) -> tuple[History, Model]:
    """Replay a trail, with the model's history variables if asked."""
    model = find_model(trail.model).make(trail.sizes, trail.settings, history_variables=history_variables)
    recorder = EventRecorder()
    run = replay_plain(trail, recorder, Tables(model))
    return recorder.history(header_of(trail, model, "plain"), run.verdict.to_json(), model), model


@pytest.mark.parametrize("name", GOLDEN)
def test_tla_export_is_what_the_model_checker_accepted(name: str, tmp_path: Path) -> None:
    """Module and configuration are, byte for byte, those that TLC confirmed."""
    trail = golden_trail(name)
    path, out = tmp_path / "run.trail.jsonl", tmp_path / f"{name}.tla"
    trail.write(path)
    assert call("show", path, "--as", "tla", "--out", out).out == ""
    text, config = out.read_text(encoding="utf-8"), out.with_suffix(".cfg").read_text(encoding="utf-8")
    assert text == (DATA / f"{name}.tla").read_text(encoding="utf-8")
    assert text.endswith(f"\n{name}.cfg:\n\n{config}")
    *_, violated, states = GOLDEN[name]
    assert f"INVARIANTS TraceBegins {violated}\n" in config
    assert f"\nTraceLength == {states}\n" in text and len(trail.choices) == states - 1


def test_tla_export_of_a_history_is_that_of_its_trail(tmp_path: Path) -> None:
    """messages_discard is rebuilt from what each step received, as a model that keeps it has it."""
    trail = golden_trail("WipedMetadata")
    history, model = recorded(trail)
    kept, keeping = recorded(trail, history_variables=True)
    assert "discarded[b1]" not in history.events[0].writes and "discarded[b1]" in kept.events[0].writes
    text = tla.write(history, model)
    assert text == tla.write(kept, keeping)
    assert re.search(r"messages_discard \|-> \{\[type \|-> InitPidRequest", text)


@pytest.mark.parametrize(("value", "text"), [
    (1, "1"),
    (-1, "-1"),
    (True, "TRUE"),
    (None, "None"),
    (SpecError.NOT_COORDINATOR, "NotCoordinator"),
    ((), "<<>>"),
    ((1, ("x",)), "<<1, <<x>>>>"),
    (frozenset(), "{}"),
    (frozenset({"b", "a"}), "{a, b}"),
    (FrozenMap(), "<<>>"),
    (FrozenMap({"$str": 'a "b" \\'}), '"a \\"b\\" \\\\"'),
    (FrozenMap({"c1": None, "c2": 0}), "(c1 :> None @@ c2 :> 0)"),
    (FrozenMap({"pid": None, "epoch": -1}), "[epoch |-> -1, pid |-> None]"),
    (FrozenMap({"0": -1, "1": 5}), "(0 :> -1 @@ 1 :> 5)"),
    (FrozenMap({"2": 7}), "(2 :> 7)"),
    (FrozenMap({n: -n for n in range(1, 12)}), f"<<{', '.join(str(-n) for n in range(1, 12))}>>"),
    (FrozenMap({"1": "x", "2": "y"}), "<<x, y>>"),
    (InitPidResponse(SpecError.OK, 1, 0, source="b1", dest="c1"),
     "[type |-> InitPidResponse, source |-> b1, dest |-> c1, code |-> OK, pid |-> 1, pepoch |-> 0]"),
])
def test_tla_text_of_a_value(value: Any, text: str) -> None:
    """Maps over names of constants and over numbers are functions, over 1 to n sequences, others are records."""
    assert tla_text(value, ("c1", "c2")) == text


def test_tla_text_is_broken_where_it_does_not_fit() -> None:
    """What is too long for a line goes on below where it began; joined, it is what fits into one line."""
    value = FrozenMap({f"c{n}": FrozenMap({"state": "Ready", "log": tuple(range(12))}) for n in range(1, 4)})
    names = ("c1", "c2", "c3")
    text = tla_text(value, names, width=40, indent=10)
    first, *rest = text.split("\n")
    assert len(first) <= 30 and all(len(line) <= 40 and line.startswith(" " * 11) for line in rest)
    assert re.sub(r"\n\s+", " ", text) == tla_text(value, names)


SPECS = [spec.name for spec in model_specs() if "/actors" not in spec.name and not spec.may_fault]


@pytest.mark.parametrize("name", SPECS)
def test_every_spec_model_names_its_module(name: str) -> None:
    """The module has a place where it is published, its invariants are among the model's, and each of the model's can
    be asked about: only those have no text that say what a type is, as TypeOk cannot be evaluated as written (S9)."""
    model = find_model(name).make(history_variables=True)
    module = module_of(name, model.sizes, model.settings)
    assert module is not None and module.source
    known = {prop.name for prop in model.properties if prop.is_safety}
    texts = {*module.invariants, *module.definitions}
    assert texts <= known and known - texts <= {"MCTypeOk", "TypeOk"}
    assert not {*module.invariants} & {*module.definitions}
    assert module.as_written is (name != "transactions/repaired")


def test_tla_export_of_a_run_that_holds_asks_for_its_steps_only(tmp_path: Path) -> None:
    """Without a violation only the steps are checked; of this one TLC found no error, in five states."""
    model = find_model("transactions/diary-01").make({"clients": 1, "brokers": 1})
    labels = ("SendInitPidRequest(c1,b1) tid1", "ReceiveInitPidRequest(b1,c1) InitPidRequest c1->b1 tid=tid1",
              "CompleteInitPidRequest(b1,p1)",
              "ReceiveInitPidResponse(c1) InitPidResponse b1->c1 code=OK pid=1 pepoch=0")
    text = tla.write(*recorded(trail_of(model, *labels)), name="Answered")
    assert "INVARIANTS TraceBegins\n" in text
    assert '"No error has been found": confirmed, a behaviour of kafka_transactions.' in text
    assert text == (DATA / "Answered.tla").read_text(encoding="utf-8")


def test_tla_export_names_another_module(tmp_path: Path) -> None:
    """--module is for a module that somebody repaired or renamed; its constants are those of the published one."""
    model = find_model("transactions/diary-02").make({"clients": 1}, {"repair": "S1"})
    path = tmp_path / "run.trail.jsonl"
    trail_of(model, "SendInitPidRequest(c1) tid1").write(path)
    said = call("show", path, "--as", "tla").refusal
    assert "repairs S1, so it differs from the published kafka_transactions; name the module" in said
    text = call("show", path, "--as", "tla", "--module", "mended").out
    assert "---- MODULE Trace ----" in text and "EXTENDS Integers, TLC, mended\n" in text
    assert "Clients = {c1}" in text


@pytest.mark.parametrize(("out", "options", "said"), [
    ("a-b.tla", (), "'a-b' cannot be the name of a TLA+ module"),
    ("Kip320.tla", (), "cannot have the name Kip320 of the module"),
    ("Good.tla", ("--module", "no module"), "'no module' cannot be the name of a TLA+ module"),
    ("missing/../run.trail.jsonl/Good.tla", (), "it is not a folder"),
])
def test_tla_export_refuses_what_the_model_checker_would(
    out: str, options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    """One sentence, exit code 2, and no file."""
    path = tmp_path / "run.trail.jsonl"
    golden_trail("EmptyIsr").write(path)
    before = files_below(tmp_path)
    assert said in call("show", path, "--as", "tla", "--out", tmp_path / out, *options).refusal
    assert files_below(tmp_path) == before


def test_tla_export_of_a_model_without_a_module_is_refused() -> None:
    """A composition of actors was not written after a module, whatever somebody calls one."""
    model = find_model("kafka/4.0").make()
    history, model = recorded(trail_of(model, model.choices(model.initial_states()[0])[0].label))
    for extends in (None, "mine"):
        with pytest.raises(Refusal, match=r"kafka/4\.0 follows no known TLA\+ module"):
            tla.write(history, model, extends=extends)


# Values as the state graphs have them.


class Colour(StrEnum):
    RED = "Red"


@attrs.frozen
class Ping(Message):
    colour: Colour
    correlation: int | None = attrs.field(default=None, metadata=absent_if_none(), kw_only=True)


@attrs.frozen
class Pair:
    left: object
    right: object


@pytest.mark.parametrize(("value", "encoded"), [
    (1, 1),
    (True, True),
    (None, "None"),
    (Colour.RED, "Red"),
    ((1, ("x",)), [1, ["x"]]),
    (frozenset({"b", "a"}), {"$set": ["a", "b"]}),
    (frozenset({10, 2}), {"$set": [10, 2]}),
    (FrozenMap(), []),
    (FrozenMap({"b1": None}), {"b1": "None"}),
    (FrozenMap({n: -n for n in range(1, 12)}), [-n for n in range(1, 12)]),
    (Pair(None, FrozenMap({"x": ()})), {"left": "None", "right": {"x": []}}),
    (Ping(Colour.RED, source="a", dest="b"), {"type": "Ping", "source": "a", "dest": "b", "colour": "Red"}),
    (
        Ping(Colour.RED, source="a", dest="b", correlation=3),
        {"type": "Ping", "source": "a", "dest": "b", "colour": "Red", "correlation": 3},
    ),
])
def test_tla_encode_writes_values_as_the_graphs_do(value: object, encoded: object) -> None:
    """Each kind of value has the form that the graphs give it, also as JSON text."""
    assert tla_encode(value) == encoded
    assert json.loads(json.dumps(tla_encode(value))) == encoded


@pytest.mark.parametrize(("write", "value"), [
    *((write, value) for write in (tla_encode, tla_text) for value in (1.5, [1], {"a": 1})),
    (tla_encode, FrozenMap({0: "a"})), (tla_encode, FrozenMap({True: "a"})),
])
def test_what_tla_does_not_have_is_refused(write: Callable[[object], object], value: object) -> None:
    """Floats, mutable collections and maps with other keys are refused rather than written as something else."""
    with pytest.raises(TypeError):
        write(value)
