"""Input from outside is a recorded choice: a run is made again, judged, shown and shrunk without whoever gave it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.commands.command_line import call
from support.runs.named_runs import registering, strategy_of, write_history_of
from support.toys import outside_input
from support.toys.outside_input import BAD, NOTHING, RAISES, TWO_WAYS, Order

from harness.model import NO_FAULTS, Faults, Kind, Refusal, Value, View, find_model
from harness.record import Chosen, Recorder, Trail, read_history, read_trail
from harness.record import choices as choices_module
from harness.simulate.runs.plan import Plan, everything
from harness.simulate.runs.protocol_errors import RAISED
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import Session, drive, run_plain
from harness.simulate.runtimes.trio_runtime import drive_on_trio, replay_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import NAMES, Strategies
from harness.simulate.strategies.strategy import RandomStrategy
from harness.simulate.trails.replay import replay_plain, try_choices
from harness.simulate.trails.shrink import shrink
from harness.verify.refinement import Refiner
from harness.verify.well_formed import departure, wrong_with

FAULTS = Faults(crash=1, duplicate=1, targets=("gate",))
PAYLOADS: tuple[Value, ...] = (b"one", bytes(range(40)), Order(2), b"one")
REPLAYS = pytest.mark.parametrize("replay", [replay_plain, replay_on_trio])


outside_is_known = registering(outside_input.system())


def begun(seed: int = 0, faults: Faults = NO_FAULTS, **changes: Any) -> Session:
    """A run at its beginning."""
    tables = Tables(find_model("outside").make(faults=faults))
    plan = attrs.evolve(everything(tables.model), **changes)
    return Session(tables, plan, RandomStrategy(seed), Recorder())


def fed(seed: int = 0, values: tuple[Value, ...] = PAYLOADS, faults: Faults = NO_FAULTS, **changes: Any) -> Run:
    """A run that is given values, each after two other steps, whenever the gate is up."""
    session, left = begun(seed, faults, **changes), list(values)
    while session.may_go_on:
        if left and session.steps % 3 == 2:
            try:
                session.give("gate", left[0])
                left.pop(0)
                continue
            except Refusal:  # it is down
                assert session.tables.model.faults != NO_FAULTS
        if (n := session.decide()) < 0:
            break
        session.take(n)
    return drive(session)


def saved(run: Run, folder: Path) -> tuple[Path, Path]:
    """Write a run's trail and history."""
    trail, history = folder / "run.trail.jsonl", folder / "run.history.jsonl"
    run.trail.write(trail)
    return trail, write_history_of(run, history)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The trail and the history of a run that is given values."""
    return saved(fed(), tmp_path)


def test_input_is_a_line_of_the_trail_with_its_value(files: tuple[Path, Path]) -> None:
    """The line has the label, the process and the value as a history writes it; a step later refers to what it sent."""
    lines = [json.loads(line) for line in files[0].read_text("utf-8").splitlines()]
    assert lines[3] == {
        "choose": "Accept(gate) 0x6f6e65 (3 bytes)", "input": {"process": "gate", "value": {"$bytes": "b25l"}}, "n": 3,
    }
    assert {line["input"]["value"].get("$type") for line in lines if "input" in line} == {None, "Order"}
    keeps = [line["choose"] for line in lines if line.get("choose", "").startswith("Keep(")]
    assert len(keeps) == 5 and "Keep(store) @3" in keeps
    again = read_trail(files[0])
    assert list(again.lines()) != [] and replay_plain(again).trail == fed().trail


@REPLAYS
@pytest.mark.parametrize("mode", ["free", "timed"])
@pytest.mark.parametrize("faults", [Faults(), FAULTS], ids=["none", "faults"])
def test_run_is_made_again_without_whoever_gave_the_input(
    replay: Callable[..., Run], mode: str, faults: Faults, tmp_path: Path
) -> None:
    """On both runtimes, from the file, with the same digest, verdict and witnesses."""
    inputs = 0
    for seed in range(8):
        run = fed(seed, faults=faults, mode=mode)
        path, _ = saved(run, tmp_path)
        again = replay(read_trail(path), Recorder())
        assert (again.digest, again.verdict, again.witnessed) == (run.digest, run.verdict, run.witnessed)
        assert list(again.trail.lines()) == list(run.trail.lines())
        inputs += sum(chosen.input is not None for chosen in run.trail.choices)
    assert inputs > 8


def test_input_can_be_given_between_steps_on_trio() -> None:
    """Whatever drove a run before, its session takes input; the other runtime gives the same digest for the trail."""
    session = begun()
    session.give("gate", b"first")
    run = drive_on_trio(session)
    assert replay_plain(run.trail, Recorder()).digest == run.digest


def test_event_of_an_input_is_of_its_own_kind_and_has_the_value(files: tuple[Path, Path]) -> None:
    """With the model the value is the protocol's own; the rules of every run, and the model's own actors, accept it,
    but none that is another one than what the actor took."""
    model = read_trail(files[0]).build()
    history = read_history(files[1], model)
    inputs = [event for event in history.events if event.kind == Kind.INPUT]
    assert [event.input for event in inputs] == list(PAYLOADS)
    assert [event.op for event in inputs][2] == {"process": "gate", "name": "accept", "outcome": "ok", "value": 2}
    state: dict[str, Value] = {}
    for event in history.events:
        assert list(wrong_with(model, state, event)) == []
        if event.kind == Kind.INPUT:
            assert departure(model, View(state), event) is None
            assert departure(model, View(state), attrs.evolve(event, input=b"another")) is not None
        state.update(event.writes)
    assert [event.input for event in read_history(files[1]).events if event.kind == "input"][:2] == list(PAYLOADS[:2])


def test_command_line_replays_verifies_and_shows_such_a_run(files: tuple[Path, Path]) -> None:
    """Nothing in it is odd, the refinement allows it, and every picture has it."""
    trail, history = files
    assert call("replay", trail).code == call("replay", trail, "--runtime", "trio").code == 0
    outcome = call("verify", history, "--json")
    assert (outcome.code, outcome.err) == (0, ""), outcome.out
    for form in ("text", "mermaid", "svg", "itf", "shiviz"):
        outcome = call("show", trail, "--as", form)
        assert (outcome.code, outcome.err) == (0, ""), form
        assert "Accept(gate)" in outcome.out or form in ("itf", "shiviz")
    assert "Accept(gate) 0x6f6e65 (3 bytes) [accept ok] [input]" in " ".join(call("show", trail).out.split())


def test_run_with_input_is_held_against_the_spec(files: tuple[Path, Path]) -> None:
    """An input is a step like any other there: here a stutter, as the store has not got it yet."""
    model = read_trail(files[0]).build()
    refined = Refiner(model).check(read_history(files[1], model))
    assert refined.failure is None and refined.actions == {"Grow": 5}
    assert refined.pairs["Accept", ""] == 4


def test_input_that_violates_is_judged_and_shrinks_to_itself(tmp_path: Path) -> None:
    """Inputs and other steps that the violation does not need are dropped; the trail still replays from its file."""
    run = fed(3, (b"one", BAD, b"two"))
    assert run.verdict.violated == "NothingBad"
    path, _ = saved(run, tmp_path)
    short = shrink(read_trail(path))
    assert [chosen.label.split(" ")[0] for chosen in short.trail.choices] == ["Accept(gate)", "Keep(store)"]
    assert short.had > short.has == 2 and not short.proved
    short.trail.write(path)
    assert replay_on_trio(read_trail(path)).verdict.violated == "NothingBad"


def test_loose_replay_drops_what_an_input_had_made_possible(files: tuple[Path, Path]) -> None:
    """Where a choice is gone, choices that refer to what others sent still mean the same messages."""
    trail = read_trail(files[0])
    first = next(n for n, chosen in enumerate(trail.choices) if chosen.input is not None)
    kept = try_choices(Tables(trail.build()), trail, trail.choices).trail.choices
    rest = try_choices(Tables(trail.build()), trail, (*kept[:first], *kept[first + 1 :])).trail
    assert sum(chosen.label.startswith("Keep(") for chosen in rest.choices) == 4


def test_exception_of_protocol_code_that_is_given_input_is_a_finding(tmp_path: Path) -> None:
    """The trail ends with the input, and replays to the same exception."""
    session = begun()
    session.give("gate", RAISES)
    assert session.decide() == -1
    run = session.finish()
    assert run.verdict.violated == RAISED and "no request" in (run.verdict.reason or "")
    path, _ = saved(run, tmp_path)
    for replay in (replay_plain, replay_on_trio):
        again = replay(read_trail(path), Recorder())
        assert (again.verdict, again.digest) == (run.verdict, run.digest)


@pytest.mark.parametrize(("process", "value", "sentence"), [
    ("gate", NOTHING, r'gate cannot take the input \{"\$bytes":""\} in the state that the run is in'),
    ("store", b"x", r"store cannot take the input .* in the state that the run is in"),
    ("gate", TWO_WAYS, r"gate can take the input .* in 2 ways, and should in one: Accept\(gate\) .*; Reject\(gate\) "),
    ("gat", b"x", r"outside has no process 'gat' that could be given something; did you mean gate\?|gat"),
    ("gate", [1], r"gate cannot be given this: list is not a protocol value"),
    ("gate", "\ud800", r"gate cannot be given this: "),
    ("gate", Faults(), r"the input of gate is not a value of this model: unknown type 'Faults'"),
])
def test_what_cannot_be_given_is_refused_in_a_sentence(process: str, value: Value, sentence: str) -> None:
    """And the run goes on as if nobody had asked."""
    session = begun()
    with pytest.raises(Refusal, match=sentence):
        session.give(process, value)
    assert drive(session).digest == drive(begun()).digest


def test_nothing_is_given_to_a_run_that_is_over_or_to_who_is_down() -> None:
    """The main part is over, or the process crashed: both are refused."""
    session = begun(steps=2)
    while (n := session.decide()) >= 0:
        session.take(n)
    with pytest.raises(Refusal, match="the run is over, so gate cannot be given anything"):
        session.give("gate", b"x")
    crashing = begun(faults=Faults(crash=1, targets=("gate",)))
    crash = next(n for n, option in enumerate(crashing.node.options) if option.action == "Crash")
    crashing.take(crash)
    with pytest.raises(Refusal, match="gate cannot take the input"):
        crashing.give("gate", b"x")


def refused(trail: Trail, n: int, chosen: Chosen, sentence: str, replay: Callable[..., Run]) -> None:
    """Replace a choice and expect a refusal."""
    choices = (*trail.choices[:n], chosen, *trail.choices[n + 1 :])
    with pytest.raises(Refusal, match=sentence):
        replay(attrs.evolve(trail, choices=choices))


@REPLAYS
def test_edited_inputs_are_refused_at_their_step(replay: Callable[..., Run], files: tuple[Path, Path]) -> None:
    """Another step than the label says, a value that is not taken, nobody's input, a value that is none."""
    trail = read_trail(files[0])
    n = next(n for n, chosen in enumerate(trail.choices) if chosen.input is not None)
    chosen = trail.choices[n]
    assert chosen.input is not None
    came = chosen.input
    refused(trail, n, attrs.evolve(chosen, label="Other(gate) x"),
            rf"does not fit at step {n + 1}: it asks for 'Other\(gate\) x', but that input leads to 'Accept", replay)
    empty = attrs.evolve(came, text='{"$bytes":""}')
    refused(trail, n, attrs.evolve(chosen, input=empty), rf"at step {n + 1}: gate cannot take the input", replay)
    refused(trail, n, attrs.evolve(chosen, input=attrs.evolve(came, process="nobody")), "has no process", replay)
    for text in ('{"$bytes":7}', '{"$type":"Gone"}', '{"$set":[[1],{"a":NaN}]}'):
        wrong = attrs.evolve(chosen, input=attrs.evolve(came, text=text))
        refused(trail, n, wrong, "the input of gate is not a value of this model", replay)


def test_input_in_a_fair_ending_is_refused() -> None:
    """Fairness asks for no input, so a trail whose fair ending has one is none."""
    run = fed()
    assert run.trail.fair_from is not None
    chosen = next(chosen for chosen in run.trail.choices if chosen.input is not None)
    choices = (*run.trail.choices, chosen)
    with pytest.raises(Refusal, match="that is not fair"):
        replay_plain(attrs.evolve(run.trail, choices=choices))


@pytest.mark.parametrize(("line", "sentence"), [
    ('"input":7', r'line 4: "input" should be an object, found 7'),
    ('"input":{"value":1}', r'line 4: the field "process" is missing'),
    ('"input":{"process":"gate"}', r'line 4: the field "value" is missing'),
])
def test_damaged_input_of_a_trail_names_its_line(line: str, sentence: str, files: tuple[Path, Path]) -> None:
    """What is there instead is said."""
    path, _ = files
    lines = path.read_text("utf-8").splitlines()
    lines[3] = f'{{"choose":"Accept(gate)",{line},"n":3}}'
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(Refusal, match=sentence):
        read_trail(path)


def test_long_run_with_inputs_keeps_them_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs of choices that went to the temporary file are read back from there."""
    monkeypatch.setattr(choices_module, "BLOCK", 8)
    session = begun(steps=20_000)
    for number in range(30):
        session.give("gate", bytes([number, 7]))
    run = session.finish()
    assert run.trail.choices[17].input is not None
    path, _ = saved(run, tmp_path)
    assert replay_plain(read_trail(path), Recorder()).digest == run.digest


@pytest.mark.parametrize("name", NAMES)
def test_no_strategy_invents_input(name: str) -> None:
    """Runs of every strategy have none."""
    tables, source = Tables(find_model("outside").make(faults=FAULTS)), Strategies(name)
    for seed in range(5):
        run = run_plain(tables, Plan(()), strategy_of(source, seed))
        assert all(chosen.input is None for chosen in run.trail.choices)


def test_strategy_that_watches_its_run_sees_the_input() -> None:
    """The guided strategy counts a step that nobody picked like any other."""
    tables, source = Tables(find_model("outside").make()), Strategies("guided")
    for seed in range(4):
        session = Session(tables, Plan(()), strategy_of(source, seed), Recorder())
        session.give("gate", bytes([seed, 7]))
        run = drive(session)
        assert run.witnessed == {"SomethingTaken"}
        assert replay_plain(run.trail, Recorder()).digest == run.digest
