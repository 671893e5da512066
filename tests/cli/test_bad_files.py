"""Trails and histories that are damaged, edited, cut off or of another kind are refused in one sentence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import Outcome, call, refused

pytestmark = pytest.mark.usefixtures("empty_folder")
Lines = list[dict[str, Any]]
Edit = Callable[[Lines], object]


def with_line(n: int, /, **fields: Any) -> Edit:
    """An edit that sets fields of a line: of the header, of a choice, or of the end."""
    return lambda lines: lines[n].update(fields)


with_header, with_end = partial(with_line, 0), partial(with_line, -1)


def without_header(field: str) -> Edit:
    """An edit that removes a field of the header."""
    return lambda lines: lines[0].pop(field)


def with_more(field: str, /, **fields: Any) -> Edit:
    """An edit that sets some of the header's faults or sizes."""
    return lambda lines: lines[0].update({field: {**lines[0][field], **fields}})


with_faults, with_sizes = partial(with_more, "faults"), partial(with_more, "sizes")
HUGE = 10**30
HEADERS: list[tuple[str, Edit, str]] = [
    ("another version", with_header(version=9), "is of format version 9, this program reads version 1"),
    ("no version", without_header("version"), "is of format version null, this program reads version 1"),
    ("another format", with_header(format="kafka-proto/map"), 'says "format": "kafka-proto/map"'),
    ("an unknown model", with_header(model="transactions/nope"), "there is no model 'transactions/nope'"),
    ("a model that is gone", with_header(model="transactions/diary-02/actors"),
     "there is no model 'transactions/diary-02/actors' any more; use kafka/4.0 instead"),
    ("another that is gone", with_header(model="cluster"),
     "there is no model 'cluster' any more; use kafka/4.0 with log=replicated instead"),
    ("a model that is no text", with_header(model=["x"]), '"model" should be text, found ["x"]'),
    ("no model", without_header("model"), 'the field "model" is missing'),
    ("sizes that are a list", with_header(sizes=[1]), '"sizes" should be an object of whole numbers, found [1]'),
    ("sizes that are null", with_header(sizes=None), '"sizes" should be an object of whole numbers, found null'),
    ("an unknown size", with_sizes(brokrs=1), "has no size 'brokrs'"),
    ("a negative size", with_sizes(brokers=-1), "must be between"),
    ("a huge size", with_sizes(brokers=HUGE), "must be between"),
    ("a size that is no number", with_sizes(brokers="2"), '"sizes" should be an object of whole numbers'),
    ("a size that is half a number", with_sizes(brokers=1.5), '"sizes" should be an object of whole numbers'),
    ("a size that is a truth", with_sizes(brokers=True), '"sizes" should be an object of whole numbers'),
    ("settings that are text", with_header(settings="x"), '"settings" should be an object of texts'),
    ("an unknown setting", with_header(settings={"fix": "x"}), "has no setting 'fix'"),
    ("a wrong setting", with_header(settings={"repair": "S9"}), "setting repair of"),
    ("an unknown network", with_header(network="pigeon"), "runs on the network"),
    ("faults that are a list", with_header(faults=[]), '"faults" should be an object'),
    ("an unknown fault", with_header(faults={"flood": 1}), 'unknown field "flood"'),
    ("a fault that is no number", with_header(faults={"drop": "x"}), '"drop" should be a whole number, at least 0'),
    ("a fault less than none", with_header(faults={"drop": -1}), '"drop" should be a whole number, at least 0'),
    ("claims that are null", with_header(claims=None), '"claims" should be a list of texts'),
    ("an unknown claim", with_header(claims=["Nope"]), "has no property 'Nope' to claim"),
    ("an unknown mode", with_header(mode="slow"), '"mode" should be free or timed'),
    ("a seed that is null", with_header(seed=None), '"seed" should be a whole number, found null'),
    ("a scenario that is a number", with_header(scenario=1), '"scenario" should be text or null'),
]
FAULTS: list[tuple[str, Edit, str]] = [
    ("faults on nobody", with_faults(targets=["b9"]), "the faults name 'b9'"),
    ("a link to nobody", with_faults(links=[["b1", "c9"]]), "the faults name 'c9'"),
    ("a link of three", with_faults(links=[["b1", "c1", "c2"]]), '"links" should be a list of pairs of texts'),
    ("a rule without a kind", with_faults(rules=[{"nth": 1}]), 'the field "kind" is missing'),
    ("a rule of another kind", with_faults(rules=[{"kind": "eat"}]), '"kind" should be drop or duplicate'),
    ("a rule that is a list", with_faults(rules=[[]]), '"rules" should be a list of objects'),
    ("a timed fault of nobody", with_faults(timed=[{"kind": "pause", "who": ["b9"], "at_ms": 1}]), "name 'b9'"),
    ("a timed fault without a time", with_faults(timed=[{"kind": "pause", "who": ["b1"]}]), '"at_ms" is missing'),
    ("a pause of two", with_faults(timed=[{"kind": "pause", "who": ["b1", "b2"], "at_ms": 1}]), "should be 1 names"),
    ("a cut of one", with_faults(timed=[{"kind": "one_way", "who": ["b1"], "at_ms": 1}]), "should be 2 names"),
]
TRAILS: list[tuple[str, Edit, str]] = [
    *HEADERS,
    ("the format of a history", with_header(format="kafka-proto/history"), ""),
    ("an initial state out of range", with_header(initial=HUGE), "the trail starts in initial state"),
    ("a negative initial state", with_header(initial=-1), '"initial" should be a whole number, at least 0'),
    ("an initial state that is text", with_header(initial="0"), '"initial" should be a whole number, at least 0'),
    ("what it violates as a list", with_header(violates=[]), '"violates" should be text or null'),
    ("a choice without a label", lambda lines: lines[2].pop("choose"), 'line 3: expected choice 2 as {"n": 2,'),
    ("a label that is a number", with_line(2, choose=7), "line 3: expected choice 2"),
    ("choices out of order", with_line(2, n=7), "line 3: expected choice 2"),
    ("a time that is text", with_line(2, at_us="soon"), "line 3: expected choice 2"),
    ("a choice less", lambda lines: lines.pop(-2), "its end line says"),
    ("no end line", lambda lines: lines.pop(), "is cut off: a trail ends with an end line"),
    ("only a header", lambda lines: lines.__delitem__(slice(1, None)), "is cut off"),
    ("an end that is text", with_end(end="8"), '"end" should be a whole number, at least 0'),
    ("a fair ending that is text", with_end(fair_from="x"), '"fair_from" should be a whole number, at least 0 or null'),
    ("a fair ending before the start", with_end(fair_from=-1), '"fair_from" should be'),
    ("a fair ending after the end", with_end(fair_from=HUGE), '"fair_from" should be null or 0 to'),
    ("a cycle without a fair ending", with_end(fair_from=None, back_to=1), '"back_to" should be null, found 1'),
    ("a cycle before the fair ending", with_end(fair_from=3, back_to=2), '"back_to" should be null or 3 to'),
    ("a cycle after the end", with_end(fair_from=3, back_to=HUGE), '"back_to" should be null or 3 to'),
    ("a cycle that is a list", with_end(back_to=[]), '"back_to" should be'),
]
HISTORIES: list[tuple[str, Edit, str]] = [
    *HEADERS,
    ("the format of a trail", with_header(format="kafka-proto/trail"), ""),
    ("another size", with_sizes(brokers=3), "this is not an event of transactions/gist at the header's sizes"),
    ("properties that are a number", with_header(properties=3), '"properties" should be a list of texts'),
    ("no processes", without_header("processes"), 'the field "processes" is missing'),
    ("an event less", lambda lines: lines.pop(3), "its end line says"),
    ("an edited event", with_line(3, action="Nonsense"), "its events do not have the digest of its end line"),
    ("no end line", lambda lines: lines.pop(), "is cut off: a history ends with an end line"),
    ("no events", lambda lines: lines.__delitem__(slice(1, -1)), "is damaged: it has 0 events"),
    ("an end that is null", with_end(end=None), '"end" should be a whole number, at least 0'),
    ("a verdict that is text", with_end(verdict="bad"), '"verdict" should be an object'),
    ("an empty verdict", with_end(verdict={}), 'the field "ok" is missing'),
    ("a verdict without a reason", with_end(verdict={"ok": False, "violated": "X"}), 'the field "reason" is missing'),
]


def compact(line: Any) -> str:
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False)


def edited(source: Path, edit: Edit, name: str) -> Path:
    """Write an edited copy of a file into the folder of the test; a header's digest fits it again."""
    lines = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    edit(lines)
    if isinstance(lines[-1], dict) and "header" in lines[-1]:
        lines[-1]["header"] = hashlib.sha256(compact(lines[0]).encode()).hexdigest()
    path = Path(name)
    text = "".join(compact(line) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return path


def readers(path: Path, kind: str = "trail") -> Iterator[tuple[object, ...]]:
    """Every command that reads a trail, or two that read a history."""
    if kind == "trail":
        yield "replay", path
        yield "replay", path, "--runtime", "trio", "--json"
        yield "shrink", path, "--out", "short.jsonl"
        yield "show", path, "--as", "svg", "--out", "picture.svg"
    else:
        yield "show", path, "--as", "itf"
    yield "show", path


def test_file_without_an_edit_is_read(recorded: Path) -> None:
    """What makes the other tests' files bad is their edit alone."""
    for name in ("plain", "faulty", "cycle"):
        for kind in ("trail", "history"):
            path = edited(recorded / f"{name}.{kind}.jsonl", lambda lines: None, "edited.jsonl")
            assert path.read_bytes() == (recorded / f"{name}.{kind}.jsonl").read_bytes()
            assert call("show", path).code == 0


@pytest.mark.parametrize(("run", "kind", "edit", "said"), [
    pytest.param(run, kind, edit, said, id=f"{kind}: {what}") for run, kind, rows in (
        ("plain", "trail", TRAILS), ("plain", "history", HISTORIES), ("faulty", "trail", FAULTS),
        ("faulty", "history", FAULTS)) for what, edit, said in rows
])
def test_file_that_is_damaged_is_refused(run: str, kind: str, edit: Edit, said: str, recorded: Path) -> None:
    """Every command that reads such a file says what it found in it, where something else was expected."""
    path = edited(recorded / f"{run}.{kind}.jsonl", edit, "edited.jsonl")
    for command in readers(path, kind):
        assert said in refused(*command)


def test_edited_choice_is_refused_at_its_step(recorded: Path) -> None:
    """The refusal names the step, what the trail asks for, and what would be possible there, on both runtimes."""
    path = edited(recorded / "plain.trail.jsonl", with_line(3, choose="BecomeKing(b1)"), "edited.jsonl")
    for command in readers(path):
        sentence = refused(*command)
        assert "does not fit at step 3: it asks for 'BecomeKing(b1)', possible are: " in sentence
        assert "InitPidRequest" in sentence


def test_cycle_that_does_not_close_is_refused(recorded: Path) -> None:
    """A fair cycle must lead back to the state that it names."""
    lines = (recorded / "cycle.trail.jsonl").read_text(encoding="utf-8").splitlines()
    end = json.loads(lines[-1])
    assert end["fair_from"] < end["back_to"] < end["end"]
    path = edited(recorded / "cycle.trail.jsonl", with_end(back_to=end["end"] - 1), "edited.jsonl")
    assert f"leads back to step {end['end'] - 1}, but the states differ" in refused("replay", path)


@pytest.mark.parametrize("kind", ["trail", "history"])
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: b"", "is empty; a "),
        (lambda data: b"\n", "line 1: not JSON"),
        (lambda data: data[: len(data) // 2].rstrip(b"\n")[:-5], "not JSON, the "),
        (lambda data: data[: data.index(b"\n") - 5], "line 1: not JSON"),
        (lambda data: b"\n".join(data.splitlines()[:5]) + b"\n", "is cut off: a "),
        (lambda data: b"\n".join(data.splitlines()[:5]), "is cut off: a "),
        (lambda data: data.replace(b"gist", b"gi\xffst", 1), "is not UTF-8 text"),
        (lambda data: b"\xff\xfe" + data, "byte 0 is not UTF-8 text"),
        (lambda data: data + b"[]\n", "has one JSON object per line, this is not one"),
        (lambda data: data + data, ""),
        (lambda data: b"[" * 100_000 + b"\n" + data, "line 1: not JSON"),
        (lambda data: b"{}\n" + data, "format"),
        (lambda data: b"null", "has one JSON object per line, this is not one"),
        (lambda data: data.replace(b'"seed":', b'"seed":1e999,"was":', 1), '"seed" should be a whole number'),
        (lambda data: data.replace(b'"seed":', b'"seed":' + b"9" * 5000, 1), "line 1: not JSON"),
    ],
    ids=[
        "empty", "an empty line", "cut in a line", "cut in the header", "cut at a line end", "cut before a line end",
        "a byte of another encoding", "another encoding", "a list at the end", "twice", "deep", "no header", "null",
        "an infinite seed", "an endless seed",
    ],
)
def test_file_that_is_cut_off_or_garbled_is_refused(
    damage: Callable[[bytes], bytes], said: str, kind: str, recorded: Path
) -> None:
    """A file that was not written to its end, or was written by something else, is distinguished from a good one."""
    path = Path("damaged.jsonl")
    path.write_bytes(damage((recorded / f"plain.{kind}.jsonl").read_bytes()))
    assert said in refused("show", path)
    if kind == "trail":
        assert said in refused("replay", path)
        assert said in refused("shrink", path, "--out", "short.jsonl")


def test_each_kind_of_file_is_told_from_the_other(recorded: Path) -> None:
    """A history is no trail, and something else is neither."""
    assert 'is not a trail: its first line says "format": "kafka-proto/history"' in refused(
        "replay", recorded / "plain.history.jsonl"
    )
    Path("other.jsonl").write_text('{"format": "other"}\n', encoding="utf-8")
    assert "is neither a trail nor a history" in refused("show", "other.jsonl")


def test_trail_that_violates_nothing_cannot_be_shrunk(recorded: Path) -> None:
    """There is nothing to shrink, and no file is written."""
    assert "violates nothing" in refused("shrink", recorded / "faulty.trail.jsonl", "--out", "short.jsonl")


def test_refusals_name_no_more_than_the_file_says(recorded: Path) -> None:
    """A value of any length is shown in part only."""
    path = edited(recorded / "plain.trail.jsonl", with_header(model=["x" * 10_000]), "edited.jsonl")
    outcome: Outcome = call("replay", path)
    assert len(outcome.refusal) < 300
