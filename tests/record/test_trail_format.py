"""Trails of format version 2: labels name messages by the steps that sent them, and hold when those get a field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.runs.named_runs import registering
from support.toys import post_office

from harness.model import Faults, Refusal, find_model, register
from harness.record import Recorder, Trail, choices, read_trail
from harness.simulate.runs import session as session_module
from harness.simulate.runs.plan import everything
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.runtimes.trio_runtime import replay_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from harness.simulate.trails.replay import replay_plain, try_choices
from harness.simulate.trails.shrink import shrink

FAULTS = Faults(duplicate=3, delay=2, drop=1)
REPLAYS = pytest.mark.parametrize("replay", [replay_plain, replay_on_trio])


def know(stamped: bool) -> None:
    """Let the toy be found in one of its forms."""
    register(post_office.system(stamped))


toy_is_known = registering(post_office.system(stamped=False))
"""The toy as it was when the trails were recorded."""


def made(seed: int = 0, network: str = "bag", faults: Faults = FAULTS) -> Run:
    """A run of the toy under faults that copy, hold and lose messages."""
    tables = Tables(find_model("post").make(network=network, faults=faults))
    return run_plain(tables, everything(tables.model), RandomStrategy(seed), Recorder())


def failing() -> Run:
    """A run in which one letter is taken three times."""
    return next(run for run in map(made, range(200)) if not run.verdict.ok)


def saved(trail: Trail, folder: Path) -> Path:
    """Write a trail."""
    path = folder / "run.trail.jsonl"
    trail.write(path)
    return path


def as_version_1(trail: Trail, folder: Path) -> Path:
    """Write a trail as version 1 did: with every message in full."""
    header, *_, end = trail.lines()
    steps = [{"choose": chosen.label, "n": n} for n, chosen in enumerate(trail.choices, 1)]
    lines = [json.dumps({**json.loads(header), "version": 1}), *map(json.dumps, steps), end]
    return edited(folder / "old.trail.jsonl", lines)


def edited(path: Path, lines: list[str]) -> Path:
    """Write lines to a file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def chosen_in(path: Path) -> list[str]:
    """The labels of a trail as its file has them."""
    return [json.loads(line)["choose"] for line in path.read_text("utf-8").splitlines()[1:-1]]


def test_messages_are_named_by_the_steps_that_sent_them(tmp_path: Path) -> None:
    """Also in faults, in what they copy, hold and release; what is shown beside is the message in one line."""
    seen: set[str] = set()
    for seed in range(30):
        path = saved(made(seed).trail, tmp_path)
        for line in map(json.loads, path.read_text("utf-8").splitlines()[1:-1]):
            if "message" in line:
                seen.add(line["choose"].split("(")[0].split(" ")[0])
                assert line["message"].startswith("Letter ") and " @" in line["choose"], line
            else:
                assert line["choose"].startswith("Post("), line
    assert seen == {"Take", "Drop", "Duplicate", "Delay", "Release"}
    assert any("." in label.rpartition("@")[2] for label in chosen_in(path)), "the second message of a step"


@REPLAYS
@pytest.mark.parametrize("network", ["bag", "fifo"])
def test_trail_holds_when_its_messages_get_another_field(
    replay: Callable[..., Run], network: str, tmp_path: Path
) -> None:
    """Recorded with the old class, replayed with the new one: step for step the same actions of the same processes."""
    faults = FAULTS if network == "bag" else Faults(duplicate=2, reorder=2)
    for seed in range(20):
        know(stamped=False)
        run = made(seed, network, faults)
        path = saved(run.trail, tmp_path)
        know(stamped=True)
        again = replay(read_trail(path), Recorder())
        assert again.verdict == run.verdict
        assert [chosen.label.split(" ")[0] for chosen in again.trail.choices] == \
               [chosen.label.split(" ")[0] for chosen in run.trail.choices]
        assert all("stamp=none" in chosen.label for chosen in again.trail.choices if "Letter" in chosen.label)
        labels = chosen_in(path)
        assert chosen_in(saved(again.trail, tmp_path)) == labels


def test_saved_trail_shrinks_and_replays_loosely_with_the_new_field(tmp_path: Path) -> None:
    """Numbers of steps shift when steps are dropped; the short trail is numbered anew."""
    path = saved(failing().trail, tmp_path)
    know(stamped=True)
    trail = read_trail(path)
    tables = Tables(trail.build())
    assert try_choices(tables, trail, trail.choices).verdict.violated == "NotThrice"
    short = shrink(trail)
    assert short.has < short.had
    again = read_trail(saved(short.trail, tmp_path))
    assert replay_plain(again).verdict.violated == replay_on_trio(again).verdict.violated == "NotThrice"


def test_loose_replay_of_a_read_trail_drops_what_depends_on_a_choice_that_is_gone(tmp_path: Path) -> None:
    """References count lines of the file, so that those to other steps mean the same messages as before."""
    trail = read_trail(saved(made(1, faults=Faults()).trail, tmp_path))
    posted = next(n for n, chosen in enumerate(trail.choices, 1) if chosen.label == "Post(a)")
    nonsense = attrs.evolve(trail.choices[posted - 1], label="Nonsense(a)")
    wrong = (*trail.choices[: posted - 1], nonsense, *trail.choices[posted:])
    rest = try_choices(Tables(trail.build()), trail, wrong).trail.choices
    gone = [chosen for chosen in trail.choices if chosen.label.rpartition("@")[2] in (str(posted), f"{posted}.1")]
    assert len(gone) == 2 and len(rest) == len(trail.choices) - 3


def test_long_run_keeps_the_references_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Choices in the temporary file and in memory make one trail, as if all had been in memory."""
    short = list(made(5).trail.lines())
    monkeypatch.setattr(session_module, "LONG", 10)
    monkeypatch.setattr(choices, "BLOCK", 4)
    run = made(5)
    assert isinstance(run.trail.choices, choices.SpooledChoices) and len(run.trail.choices) > 8
    assert list(run.trail.lines()) == short
    assert replay_plain(run.trail, Recorder()).digest == run.digest
    know(stamped=True)
    assert replay_plain(run.trail).verdict == run.verdict


@REPLAYS
def test_version_1_is_read_and_written_as_version_2(replay: Callable[..., Run], tmp_path: Path) -> None:
    """With the same digest. It has its messages in full, so a new field of theirs is refused at its first message."""
    run = made(2)
    path = as_version_1(run.trail, tmp_path)
    again = replay(read_trail(path), Recorder())
    assert again.digest == run.digest
    assert list(again.trail.lines()) == list(run.trail.lines())
    know(stamped=True)
    sentence = r"does not fit at step \d+: it asks for '.* Letter .->office number=\d', possible"
    with pytest.raises(Refusal, match=sentence):
        replay(read_trail(path))


@pytest.mark.parametrize("version", [0, 3, "2", None, True])
def test_other_versions_are_refused_in_one_sentence(version: Any, tmp_path: Path) -> None:
    """Which is there, which are read, what to do."""
    header, *rest = made().trail.lines()
    path = edited(tmp_path / "x.trail.jsonl", [json.dumps({**json.loads(header), "version": version}), *rest])
    with pytest.raises(Refusal) as refused:
        read_trail(path)
    shown = json.dumps(version)
    assert str(refused.value) == (
        f"{path} is of format version {shown}, this program reads version 1 and 2; record it again or use the program "
        "that wrote it"
    )


def relabelled(trail: Trail, folder: Path, at: int, label: str) -> Trail:
    """Return a trail read from a file in which one label was edited."""
    lines = list(trail.lines())
    line = json.loads(lines[at])
    lines[at] = json.dumps({**line, "choose": label})
    return read_trail(edited(folder / "edited.trail.jsonl", lines))


@REPLAYS
@pytest.mark.parametrize("reference", ["@99", "@1.7", "@0", "@-1", "@", "@1.", "@x", "@1.0", "@01", "@" + "9" * 5000])
def test_reference_to_nothing_is_refused_with_what_was_possible(
    replay: Callable[..., Run], reference: str, tmp_path: Path
) -> None:
    """In a sentence that names the step, what it asks for, and what would be possible, messages in full."""
    trail = made(3, faults=Faults()).trail
    at = next(n for n, chosen in enumerate(trail.choices, 1) if chosen.label.startswith("Take("))
    wrong = relabelled(trail, tmp_path, at, f"Take(office) {reference}")
    with pytest.raises(Refusal) as refused:
        replay(wrong)
    said, asked = str(refused.value), f"Take(office) {reference}"
    assert said.startswith(f"the trail does not fit at step {at}: it asks for {asked!r}, possible are: ")
    assert "Take(office) Letter " in said


def test_reference_to_a_message_that_is_elsewhere_by_now_is_refused(tmp_path: Path) -> None:
    """It was sent, but taken before: the sentence has the message in full."""
    trail = made(3, faults=Faults()).trail
    takes = [n for n, chosen in enumerate(trail.choices, 1) if chosen.label.startswith("Take(")]
    first = chosen_in(saved(trail, tmp_path))[takes[0] - 1]
    sentence = rf"at step {takes[1]}: it asks for 'Take\(office\) Letter .* number=\d', possible"
    with pytest.raises(Refusal, match=sentence):
        replay_plain(relabelled(trail, tmp_path, takes[1], first))


def test_what_is_shown_beside_a_label_is_not_looked_at(tmp_path: Path) -> None:
    """`message` is for people: without it, or with another text, the run is the same."""
    run = made(4)
    lines = list(run.trail.lines())
    for text in ("another", 7, None):
        changed = [json.dumps({**json.loads(line), "message": text}) if "message" in line else line for line in lines]
        path = edited(tmp_path / "x.trail.jsonl", changed)
        assert replay_plain(read_trail(path), Recorder()).digest == run.digest
