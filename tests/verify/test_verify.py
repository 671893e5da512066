"""`kafka-proto verify`: recorded files judged from what they say happened, edited ones and bad ones too."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from support.commands.command_line import call
from support.runs import history_edits
from support.runs.history_edits import compact, events_of, replays, written
from support.runs.made_runs import run_on_trio
from support.runs.named_runs import run_of, write_history_of
from support.toys.toy_histories import Edit, Line, edited, recorded

from harness.model import Faults
from harness.record import Recorder, open_history
from harness.simulate.runs.plan import resolve
from harness.simulate.runs.run import Run
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from harness.verify.judge import FileJudge, JudgedFile
from harness.verify.scan import Scan

LASTING = ("EventuallyAllClientsGetPid", "EventuallyOneClientAddsAllPartitions")


def judged(path: Path) -> JudgedFile:
    return FileJudge().file(path)


def swap(n: int) -> Edit:
    def edit(events: list[Line]) -> None:
        events[n], events[n + 1] = events[n + 1], events[n]

    return edit


def test_right_run_is_accepted_as_history_and_as_trail(history: Path) -> None:
    """Both files of a run are judged alike: nothing is found, and the steps are counted."""
    trail = history.with_name("run.trail.jsonl")
    for path in (history, trail):
        outcome = call("verify", path, "--json")
        (one,) = outcome.json["files"]
        assert (outcome.code, one["ok"], one["findings"]) == (0, True, [])
        assert one["steps"] == one["refinement"]["steps"] == len(events_of(history)) - 1
        taken = sum(one["refinement"]["actions"].values()) + sum(one["refinement"]["extensions"].values())
        assert one["refinement"]["stutters"] + taken >= one["steps"]
    said = call("verify", history).out
    assert said.startswith(f"{history}: ok (") and "1 invariant evaluated in each state" in said


def test_run_on_trio_is_judged_from_its_history_alone(tmp_path: Path) -> None:
    """The runtime does not matter, nor is the trail needed."""
    model, plan = resolve("toy-crashing")
    run = run_on_trio(Tables(model), plan, RandomStrategy(5), Recorder())
    assert judged(write_history_of(run, tmp_path / "trio.history.jsonl", model, "trio")).findings == ()


def test_flawed_run_fails_property_and_refinement_with_an_explanation(tmp_path: Path) -> None:
    """The property, its reason and step, and the step that the spec does not allow with the guard that fails."""
    path = tmp_path / "flawed.history.jsonl"
    recorded(path, "confirms-too-much")
    outcome = call("verify", path)
    assert outcome.code == 1
    assert "violates ConfirmedIsHeld at step" in outcome.out
    assert "is not a step of the spec: Serve(f1)" in outcome.out
    assert 'if known > view["copy[f1]"]' in outcome.out
    assert max(len(line) for line in outcome.out.splitlines()[1:]) <= 100
    assert judged(path).findings == ("property", "refinement")


def kinds_of(paths: Iterable[Path], run: Run) -> Counter[str]:
    """Count edited files by their strongest finding; those without any must be runs of the model, step by step."""
    counts: Counter[str] = Counter()
    for path in paths:
        one = judged(path)
        if one.ok:
            assert replays(path, run)
        kinds = (kind for kind in ("refinement", "property", "record", "actors") if kind in one.findings)
        counts[next(kinds, "legal")] += 1
    return counts


def one_too_high(events: list[Line]) -> list[Callable[[], list[Line]]]:
    """Each number that a step leaves in the local state of an actor, but that of its request, one higher."""
    return [edit for edit in history_edits.numbers_of_states(events)
            if edit.args[1] and edit.args[2][1] in ("reg", "f1") and edit.args[2][2] != "number"]


@pytest.mark.parametrize(("family", "kinds"), [
    (history_edits.swapped, {"legal": 5, "refinement": 4, "record": 20, "actors": 2}),
    (history_edits.dropped, {"legal": 1, "refinement": 5, "record": 25, "actors": 1}),
    (one_too_high, {"refinement": 34, "property": 2, "actors": 2}),
])
def test_edits_are_found_or_are_legal(
    family: Callable[[list[Line]], list[Callable[[], list[Line]]]], kinds: dict[str, int], tmp_path: Path
) -> None:
    """Two neighbouring events in the other order, a run without one of its events, a number of an actor's state that
    is one too high: found for what they say, or another run of the model."""
    path = tmp_path / "run.history.jsonl"
    run = recorded(path)
    other = path.with_name("edited.history.jsonl")
    assert kinds_of((written(path, edit(), other) for edit in family(events_of(path))), run) == kinds


def test_offset_that_was_never_confirmed_fails_property_and_refinement(history: Path) -> None:
    """A confirmation that is one too high: the property that it breaks, and the guard that it passed by."""
    n = next(n for n, event in enumerate(events_of(history)) if event.get("writes", {}).get("reg", {}).get("confirmed"))

    def higher(events: list[Line]) -> None:
        events[n]["writes"]["reg"]["confirmed"] += 1

    one = judged(edited(history, higher))
    assert {"property", "refinement"} <= set(one.findings)
    assert one.explanation is not None and one.explanation.step == n
    assert 'if known > view["copy[f1]"]' in one.explanation.why[-1]


def test_legal_edit_is_reported_as_legal(tmp_path: Path) -> None:
    """Steps that do not touch each other may change places: the file is another run, and nothing is found."""
    path = tmp_path / "plain.history.jsonl"
    recorded(path, faults=Faults(drop=1))
    events = events_of(path)
    n = next(n for n in range(1, len(events)) if {events[n]["action"], events[n + 1]["action"]} == {"Set", "Ask"})
    other = edited(path, swap(n))
    assert other.read_bytes() != path.read_bytes()
    assert judged(other).findings == ()
    assert call("verify", other).out.startswith(f"{other}: ok (")


def test_step_that_the_actors_would_not_take_is_told_apart(history: Path) -> None:
    """What the spec allows and the model's own actors do not do is a finding of its own."""

    one = judged(edited(history, lambda events: first(events, "Set").update(detail="by hand")))
    assert one.findings == ("actors",)
    assert one.departed is not None and one.departed.sentence == "reg does not do this in the state before it"


def test_operation_that_never_began_is_found(history: Path) -> None:
    """An operation that takes more than one step ends once for each time that it began."""
    outcomes = ["invoke", "ok", "fail"]

    def edit(events: list[Line]) -> None:
        asked = [event for event in events if event.get("action") == "Ask"]
        for event, outcome in zip(asked, outcomes, strict=False):
            event["op"] = {"process": "f1", "name": "fetch", "outcome": outcome, "value": None}

    (oddity,) = judged(edited(history, edit)).odd
    assert oddity.sentence == "it ends fetch of f1, which had not begun"
    outcomes.pop()
    assert judged(edited(history, edit)).odd == ()


def test_recorded_violation_is_compared_with_the_states(tmp_path: Path) -> None:
    """What a file says about itself is not believed: neither in its events nor in its verdict."""
    path = tmp_path / "flawed.history.jsonl"
    recorded(path, "confirms-too-much")

    def forget(events: list[Line]) -> None:
        for event in events:
            event.pop("violated", None)

    one = judged(edited(path, forget))
    assert one.findings == ("property", "refinement", "verdict")
    assert "is recorded to violate nothing; its state violates ConfirmedIsHeld" in one.differs[0]
    text = path.read_text(encoding="utf-8").splitlines()
    end = {**json.loads(text[-1]), "verdict": {"ok": True}}
    path.write_text("\n".join([*text[:-1], compact(end), ""]), encoding="utf-8")
    assert "the recorded verdict is that nothing is violated; the state after step" in judged(path).differs[0]


def test_violation_that_is_made_up_is_found(history: Path) -> None:
    """A right run that is recorded as violating."""
    text = history.read_text(encoding="utf-8").splitlines()
    verdict = {"ok": False, "violated": "ConfirmedIsHeld", "reason": "because", "step": 2, "kind": "safety"}
    history.write_text("\n".join([*text[:-1], compact({**json.loads(text[-1]), "verdict": verdict}), ""]))
    assert judged(history).findings == ("verdict",)


def test_lasting_property_is_taken_from_the_trail_or_not_judged(tmp_path: Path) -> None:
    """What only a fair ending shows needs the trail beside the history, whose replay is the same run."""
    assert call("simulate", "s2-stuck-replica", "--seeds", 30, "--out", tmp_path, "--json").code == 0
    (path,) = tmp_path.glob("*.history.jsonl")
    one = judged(path)
    assert [broken.name for broken in one.broken if broken.claimed] == ["EventuallyAllClientsGetPid"]
    assert one.unjudged == ()
    next(tmp_path.glob("*.trail.jsonl")).unlink()
    alone = judged(path)
    assert (alone.findings, alone.unjudged) == ((), LASTING)
    outcome = call("verify", path)
    assert f"not judged without the trail next to it: {', '.join(LASTING)}" in " ".join(outcome.out.split())
    assert "has no refinement: its steps are not checked against a spec" in outcome.out


def test_folder_is_judged_file_by_file(tmp_path: Path) -> None:
    """Every run in a folder is judged once: a history beside its trail, a trail alone."""
    for seed, name in enumerate(("a", "b", "deep/c")):
        recorded(tmp_path / f"{name}.history.jsonl", seed=seed)
    (tmp_path / "b.history.jsonl").unlink()
    outcome = call("verify", tmp_path, "--json")
    assert outcome.code == 0
    names = [Path(one["file"]).relative_to(tmp_path).as_posix() for one in outcome.json["files"]]
    assert sorted(names) == ["a.history.jsonl", "b.trail.jsonl", "deep/c.history.jsonl"]


def test_bad_file_in_a_folder_does_not_keep_the_others_from_being_judged(tmp_path: Path) -> None:
    """The others are judged, the bad one is named, and the exit code is that of bad input."""
    recorded(tmp_path / "a.history.jsonl")
    (tmp_path / "b.history.jsonl").write_text("{}\n", encoding="utf-8")
    outcome = call("verify", tmp_path)
    assert "a.history.jsonl: ok" in outcome.out
    assert "b.history.jsonl is neither a trail nor a history" in outcome.refusal


def test_simulated_runs_are_held_against_the_spec() -> None:
    """With --seeds a scenario or model is simulated: each action with its count and share, then the first failure."""
    outcome = call("verify", "toy-crashing", "--seeds", 60)
    assert outcome.code == 0
    assert outcome.out.startswith("toy-crashing: all of 60 runs follow the spec\n")
    for action in ("Set", "Copy", "Confirm", "Forget  (extension)"):
        assert f"%  {action}\n" in outcome.out
    flawed = call("verify", "toy/actors", "--set", "flaw=confirms-too-much", "--seeds", 4, "--json")
    assert flawed.code == 1
    (result,) = flawed.json["simulated"]
    assert (result["failed"], result["seed"], result["explanation"]["step"]) == (4, 0, 3)


def test_runs_with_every_kind_of_fault_are_held_against_the_spec() -> None:
    """As `simulate` has them, in both modes: nothing of the repaired model is violated or leaves its spec."""
    model = "compaction/pulsar/actors"
    asked = ("--faults", "all,crash=2", "--target", "broker", "--target", "r1", "--steps", 120, "--seeds", 10, "--json")
    found = []
    for mode in ("free", "timed"):
        (made,) = call("verify", model, *asked, "--mode", mode).json["simulated"]
        assert (made["runs"], made["failed"], made["violated"]) == (10, 0, {})
        assert {"Drop", "Crash", "Restart", "SkewClock"} <= made["by_action"].keys()
        found.append(made["steps"])
    assert found[0] != found[1]
    (without,) = call("verify", model, "--faults", "none", "--seeds", 10, "--json").json["simulated"]
    assert "Crash" not in without["by_action"]
    refused = call("verify", model, "--seeds", 1, "--faults", "crsh=1")
    assert refused.code == 2 and "there is no kind of fault 'crsh'" in refused.refusal


def test_faults_are_for_simulated_runs(history: Path) -> None:
    """A recorded run has had its faults."""
    refused = call("verify", history, "--faults", "all")
    assert refused.code == 2 and "are for simulated runs" in refused.refusal


def test_state_that_is_no_state_is_a_finding_not_an_error(history: Path) -> None:
    """A slot that holds what its actor never has: properties and mapping cannot be evaluated, and say so."""

    one = judged(edited(history, lambda events: first(events, "Set")["writes"].update(reg=7)))
    assert {"property", "refinement", "actors"} <= set(one.findings)
    assert one.explanation is not None
    assert "the mapping fails on this state with AttributeError" in one.explanation.why[0]


def test_fault_that_cannot_be_is_found(history: Path) -> None:
    """A crash of who is down already, and a step of who is down, are no steps of any run: the record says so."""

    def twice(events: list[Line]) -> None:
        n = next(n for n, event in enumerate(events) if event.get("action") == "Crash")
        events.insert(n, events[n])

    (oddity, *_) = judged(edited(history, twice)).odd
    assert (oddity.rule, oddity.sentence) == (
        "EnvironmentCanDoThis", "fate[f1] cannot do this in the state before it"
    )

    def while_down(events: list[Line]) -> None:
        n = next(n for n, event in enumerate(events) if event.get("action") == "Crash")
        events.insert(n + 1, {**first(events, "Ask"), "sent": [], "writes": {"f1": events[n]["writes"]["f1"]}})

    found = {oddity.rule for oddity in judged(edited(history, while_down)).odd}
    assert "DownIsSilent" in found


def first(events: list[Line], action: str) -> Line:
    return next(event for event in events if event.get("action") == action)


def flushed(events: list[Line]) -> Line:
    return next(event for event in events if "disk[f1]" in event.get("writes", {}) and event["process"] == "f1")


@pytest.mark.parametrize(("edit", "rule", "said"), [
    (lambda events: first(events, "Serve")["received"].update(number=77),
     "TakenWasUnderWay", "takes a message that is not under way to it"),
    (lambda events: first(events, "Set")["writes"].update(f1=events[0]["initial"]["f1"]),
     "OwnStateOnly", "^reg writes f1, which it does not own$"),
    (lambda events: [event.update(at_us=100 - n) for n, event in enumerate(events)],
     "TimeGoesOn", "is before that of the step before it"),
    (lambda events: flushed(events)["writes"].update(
        {"disk[f1]": dict.fromkeys(flushed(events)["writes"]["disk[f1]"], 9)}), "DiskIsWhatWasHeld", ""),
    (lambda events: events[0]["initial"]["budget"].update(drop=events[0]["initial"]["budget"]["drop"] + 1),
     "StartsInInitialState", ""),
], ids=["a message never sent", "another's state", "time that goes back", "a flush of nothing", "a start that is none"])
def test_what_no_run_does_is_found(edit: Edit, rule: str, said: str, history: Path) -> None:
    """A message is taken while it is on its way, an actor writes its own state, virtual time goes on, a disk holds what
    its actor held when it flushed, and a run starts in an initial state of its model."""
    one = judged(edited(history, edit))
    assert "record" in one.findings and one.odd[0].rule == rule and re.search(said, one.odd[0].sentence)


@pytest.mark.usefixtures("settled")
def test_history_is_judged_alike_where_tables_start_over(tmp_path: Path) -> None:
    """One pass in bounded memory finds what tables that keep everything find, of a right run and of a wrong one."""
    model, _ = resolve("leaders-move")
    right = write_history_of(run_of("leaders-move", 1), tmp_path / "right.history.jsonl")
    for path, found in ((right, 0), (edited(right, swap(20)), 1)):
        scans = []
        for budget in (1, 1_000_000_000):
            header, end, events = open_history(path, model)
            scan = Scan(Tables(model, budget=budget), None, header)
            for event in events:
                scan.look(event)
            scans.append((scan.steps, scan.broken, scan.departed, scan.odd, scan.differences(end["verdict"])))
            assert scan.tables.renewals == (scan.steps + 1 if budget == 1 else 0)
        assert scans[0] == scans[1]
        assert (scans[0][2] is not None) == bool(found)


def test_interrupt_keeps_what_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends a folder early: what was judged is printed, and the sentence says how many files that were."""
    for seed in range(5):
        recorded(tmp_path / f"{seed}.history.jsonl", seed=seed)
    file = FileJudge.file

    def interrupted(judge: FileJudge, path: Path) -> JudgedFile:
        if path.name == "3.history.jsonl":
            signal.raise_signal(signal.SIGINT)
        return file(judge, path)

    monkeypatch.setattr(FileJudge, "file", interrupted)
    outcome = call("verify", tmp_path, "--json")
    assert outcome.code == 130
    assert (outcome.json["interrupted"], len(outcome.json["files"])) == (True, 3)
    assert outcome.err == "kafka-proto: interrupted; 3 of 5 files were judged\n"
