"""Bad input: one sentence on stderr, exit code 2, no traceback, and no file lost or half-written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Outcome, call, files_below

from harness.model import Refusal
from harness.record.files import write_atomically

GIST = ("simulate", "transactions/gist")
CHECK = ("check", "transactions/gist")
TEMPORAL = (*CHECK, "--property", "EventuallyAllClientsGetPid")
PULSAR = ("check", "compaction/pulsar")
Lines = list[dict[str, Any]]
Edit = Callable[[Lines], object]


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing that a command leaves in its folder goes unseen."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with trails and histories of a run without faults, one with faults, and one with a fair cycle."""
    folder = tmp_path_factory.mktemp("recorded")
    for name, what in (("plain", "s4-copied-tail"), ("faulty", "deaf-client"), ("cycle", "s5-stuck-abort")):
        made = call("simulate", what, "--seeds", 40, "--out", folder / name, "--json").json
        for kind in ("trail", "history"):
            Path(made[kind]).rename(folder / f"{name}.{kind}.jsonl")
    return folder


def refused(*arguments: object) -> str:
    """Return the sentence that refuses a command, after checking that no file was left or changed."""
    before = files_below(Path.cwd().parent)
    sentence = call(*arguments).refusal
    assert files_below(Path.cwd().parent) == before
    return sentence


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected a command"),
        (("frobnicate",), "no command 'frobnicate'; the commands are campaign, check, compare, conformance, demo,"),
        (("--frobnicate",), "no such option"),
        (("list", "xyzzy"), "no model, scenario or tour has 'xyzzy' in what it is called or about; kafka-proto list"),
        (("hunt", "nope"), "there is no scenario 'nope'"),
        (("hunt", "s4"), "did you mean s4-copied-tail or s4-copied-tail-repaired?"),
        (("hunt", "--seeds", "0"), "expected a whole number of at least 1, found '0'"),
        (("hunt", "--seeds", "many"), "expected a whole number of at least 1, found 'many'"),
        (("hunt", "--frobnicate"), "see kafka-proto hunt --help"),
        (("simulate",), "missing argument"),
        (("simulate", "transactions/nope"), "there is no model 'transactions/nope', nor a scenario of that name; see"),
        ((*GIST, "--size", "brokrs=2"), "has no size 'brokrs'; did you mean brokers? its sizes are clients, brokers"),
        ((*GIST, "--size", "brokers=-2"), "size brokers of transactions/gist must be between 1 and"),
        ((*GIST, "--size", "brokers=99999999999999999999"), "must be between 1 and"),
        ((*GIST, "--size", "brokers=two"), "size brokers must be a whole number, not 'two'"),
        ((*GIST, "--size", "brokers="), "size brokers must be a whole number"),
        ((*GIST, "--size", "brokers"), "expected NAME=N, found 'brokers'"),
        ((*GIST, "--size", "=3"), "expected NAME=N, found '=3'"),
        ((*GIST, "--set", "fix=S4"), "has no setting 'fix'; its settings are: repair"),
        ((*GIST, "--set", "repair=S9"), "must be a comma-separated list of"),
        ((*GIST, "--set", "repair=S4,S4"), "must be a comma-separated list of"),
        ((*GIST, "--set", "repair"), "expected NAME=VALUE, found 'repair'"),
        ((*GIST, "--seeds", "0"), "expected a whole number of at least 1, found '0'"),
        ((*GIST, "--seed", "-1"), "expected a whole number of at least 0, found '-1'"),
        ((*GIST, "--seed", "x"), "expected a whole number of at least 0, found 'x'"),
        ((*GIST, "--seed", "1", "--seeds", "2"), "either --seed S for one run or --seeds N for many, not both"),
        ((*GIST, "--seed", "1", "--strategy", "systematic"), "give --seeds N"),
        ((*GIST, "--strategy", "clever"), "is not one of 'random', 'pct', 'systematic'"),
        ((*GIST, "--steps", "0"), "expected a whole number of at least 1"),
        ((*GIST, "--runtime", "java"), "is not one of 'plain', 'trio'"),
        (("replay",), "missing argument"),
        (("replay", "nope.jsonl"), "there is no trail at nope.jsonl"),
        (("replay", "."), "cannot read the trail .: Is a directory"),
        (("shrink", "nope.jsonl"), "missing option '--out'"),
        (("shrink", "nope.jsonl", "--out", "short.jsonl"), "there is no trail at nope.jsonl"),
        (("show", "nope.jsonl"), "there is no trail or history at nope.jsonl"),
        (("show", ".", "--as", "text"), "cannot read the trail or history .: Is a directory"),
        (("show", "nope.jsonl", "--as", "nonsense"), "there is no form 'nonsense' of a run; give one of text, mermaid"),
        (("show", "nope.jsonl", "--module", "Kip320"), "but the form is text; give --as tla as well"),
        (("show", "nope.jsonl", "--width", "10"), "expected a whole number of at least 60, found '10'"),
        (("check",), "missing argument 'MODEL|SCENARIO'"),
        (("check", "transactions/nope"), "there is no model 'transactions/nope', nor a scenario of that name; see"),
        ((*CHECK, "--invariant", "Nope"), "has no invariant 'Nope'; its invariants are TypeOK, NoBadStateResponse"),
        ((*CHECK, "--invariant", "EventuallyAllClientsGetPid"), "has no invariant 'EventuallyAllClientsGetPid'"),
        ((*CHECK, "--property", "Nope"), "no temporal property 'Nope'; its temporal properties are EventuallyAll"),
        ((*CHECK, "--property", "TypeOK"), "TypeOK is an invariant, name it with --invariant"),
        (("check", "replication/kip-320", "--property", "TypeOk"), "no temporal property 'TypeOk'; it has none"),
        ((*TEMPORAL, "--symmetry"), "--symmetry takes several for one, so that a cycle need not be one; leave"),
        ((*TEMPORAL, "--view"), "leave --view or --property out"),
        ((*TEMPORAL, "--fingerprints"), "leave --fingerprints or --property out"),
        ((*TEMPORAL, "--fairness", "strong"), "'strong' is not one of 'spec', 'none', 'next'"),
        ((*PULSAR, "--view"), "compaction/pulsar has no view; leave --view out"),
        ((*PULSAR, "--symmetry"), "compaction/pulsar has no interchangeable names; leave --symmetry out"),
        ((*PULSAR, "--size", "compactions=0"), "size compactions of compaction/pulsar must be between 1 and 6, not 0"),
        ((*PULSAR, "--set", "producer=maybe"), "must be one of true, false, not 'maybe'"),
        ((*CHECK, "--size", "clients=7"), "size clients of transactions/gist must be between 1 and 6, not 7"),
        ((*CHECK, "--engine", "java"), "'java' is not one of 'auto', 'python', 'kernel'"),
        ((*CHECK, "--memory", "0"), "--memory takes gigabytes, more than 0, not 0; leave it out for no limit"),
        ((*CHECK, "--memory", "nan"), "--memory takes gigabytes, more than 0, not nan"),
        ((*CHECK, "--memory", "inf"), "--memory takes gigabytes, more than 0, not inf"),
        ((*CHECK, "--memory", "1e-12"), "--memory takes gigabytes, more than 0, not 1e-12"),
        ((*CHECK, "--memory", "much"), "'much' is not a valid float"),
        ((*CHECK, "--memory", "1e-7"), "the search needs more than the 1e-07 GB of memory that it was given, after"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_use_is_refused_in_one_sentence(arguments: tuple[str, ...], said: str) -> None:
    """What was expected and what was found is said, and nothing is written."""
    assert said in refused(*arguments)


def with_header(**fields: Any) -> Edit:
    """An edit that sets fields of the header."""
    return lambda lines: lines[0].update(fields)


def without_header(field: str) -> Edit:
    """An edit that removes a field of the header."""
    return lambda lines: lines[0].pop(field)


def with_faults(**fields: Any) -> Edit:
    """An edit that sets fields of the faults."""
    return lambda lines: lines[0].update(faults={**lines[0]["faults"], **fields})


def with_end(**fields: Any) -> Edit:
    """An edit that sets fields of the end line."""
    return lambda lines: lines[-1].update(fields)


def with_size(name: str, number: Any) -> Edit:
    """An edit that sets a size."""
    return lambda lines: lines[0].update(sizes={**lines[0]["sizes"], name: number})


def with_choice(n: int, /, **fields: Any) -> Edit:
    """An edit that sets fields of a choice."""
    return lambda lines: lines[n].update(fields)


HUGE = 10**30
HEADERS: list[tuple[str, Edit, str]] = [
    ("another version", with_header(version=3), "is of format version 3, this program reads version 1"),
    ("no version", without_header("version"), "is of format version null, this program reads version 1"),
    ("another format", with_header(format="kafka-proto/map"), 'says "format": "kafka-proto/map"'),
    ("an unknown model", with_header(model="transactions/nope"), "there is no model 'transactions/nope'"),
    ("a model that is no text", with_header(model=["x"]), '"model" should be text, found ["x"]'),
    ("no model", without_header("model"), 'the field "model" is missing'),
    ("sizes that are a list", with_header(sizes=[1]), '"sizes" should be an object of whole numbers, found [1]'),
    ("sizes that are null", with_header(sizes=None), '"sizes" should be an object of whole numbers, found null'),
    ("an unknown size", with_size("brokrs", 1), "has no size 'brokrs'"),
    ("a negative size", with_size("brokers", -1), "must be between"),
    ("a huge size", with_size("brokers", HUGE), "must be between"),
    ("a size that is no number", with_size("brokers", "2"), '"sizes" should be an object of whole numbers'),
    ("a size that is half a number", with_size("brokers", 1.5), '"sizes" should be an object of whole numbers'),
    ("a size that is a truth", with_size("brokers", True), '"sizes" should be an object of whole numbers'),
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
    ("a label that is a number", with_choice(2, choose=7), "line 3: expected choice 2"),
    ("choices out of order", with_choice(2, n=7), "line 3: expected choice 2"),
    ("a time that is text", with_choice(2, at_us="soon"), "line 3: expected choice 2"),
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
    ("another size", with_size("brokers", 3), "this is not an event of transactions/gist at the header's sizes"),
    ("properties that are a number", with_header(properties=3), '"properties" should be a list of texts'),
    ("no processes", without_header("processes"), 'the field "processes" is missing'),
    ("an event less", lambda lines: lines.pop(3), "its end line says"),
    ("an edited event", with_choice(3, action="Nonsense"), "its events do not have the digest of its end line"),
    ("no end line", lambda lines: lines.pop(), "is cut off: a history ends with an end line"),
    ("no events", lambda lines: lines.__delitem__(slice(1, -1)), "is damaged: it has 0 events"),
    ("an end that is null", with_end(end=None), '"end" should be a whole number, at least 0'),
    ("a verdict that is text", with_end(verdict="bad"), '"verdict" should be an object'),
    ("an empty verdict", with_end(verdict={}), 'the field "ok" is missing'),
    ("a verdict without a reason", with_end(verdict={"ok": False, "violated": "X"}), 'the field "reason" is missing'),
]


def edited(source: Path, edit: Edit, name: str) -> Path:
    """Write an edited copy of a file into the folder of the test."""
    lines = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    edit(lines)
    path = Path(name)
    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return path


def readers(path: Path) -> Iterator[tuple[object, ...]]:
    """Every command that reads a trail."""
    yield "replay", path
    yield "replay", path, "--runtime", "trio", "--json"
    yield "shrink", path, "--out", "short.jsonl"
    yield "show", path
    yield "show", path, "--as", "svg", "--out", "picture.svg"


def test_file_without_an_edit_is_read(recorded: Path) -> None:
    """What makes the other tests' files bad is their edit alone."""
    for name in ("plain", "faulty", "cycle"):
        for kind in ("trail", "history"):
            path = edited(recorded / f"{name}.{kind}.jsonl", lambda lines: None, "edited.jsonl")
            assert path.read_bytes() == (recorded / f"{name}.{kind}.jsonl").read_bytes()
            assert call("show", path).code == 0


@pytest.mark.parametrize(("edit", "said"), [row[1:] for row in TRAILS], ids=[row[0] for row in TRAILS])
def test_trail_that_is_damaged_is_refused(edit: Edit, said: str, recorded: Path) -> None:
    """Every command that reads a trail says what it found in it, where something else was expected."""
    path = edited(recorded / "plain.trail.jsonl", edit, "edited.jsonl")
    for command in readers(path):
        assert said in refused(*command)


@pytest.mark.parametrize(("edit", "said"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_faults_that_cannot_be_are_refused(edit: Edit, said: str, recorded: Path) -> None:
    """Faults of other kinds, or on somebody that the model does not have, are named: in trails and in histories."""
    for kind in ("trail", "history"):
        path = edited(recorded / f"faulty.{kind}.jsonl", edit, "edited.jsonl")
        assert said in refused("show", path)
    assert said in refused("replay", edited(recorded / "faulty.trail.jsonl", edit, "edited.jsonl"))


@pytest.mark.parametrize(("edit", "said"), [row[1:] for row in HISTORIES], ids=[row[0] for row in HISTORIES])
def test_history_that_is_damaged_is_refused(edit: Edit, said: str, recorded: Path) -> None:
    """Whatever it is shown as, a damaged history is refused."""
    path = edited(recorded / "plain.history.jsonl", edit, "edited.jsonl")
    for form in ("text", "itf"):
        assert said in refused("show", path, "--as", form)


def test_edited_choice_is_refused_at_its_step(recorded: Path) -> None:
    """The refusal names the step, what the trail asks for, and what would be possible there, on both runtimes."""
    path = edited(recorded / "plain.trail.jsonl", with_choice(3, choose="BecomeKing(b1)"), "edited.jsonl")
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
        (lambda data: data + b"[]\n", "has one JSON object per line, this is none"),
        (lambda data: data + data, ""),
        (lambda data: b"[" * 100_000 + b"\n" + data, "line 1: not JSON"),
        (lambda data: b"{}\n" + data, "format"),
        (lambda data: b"null", "has one JSON object per line, this is none"),
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
    assert 'is no trail: its first line says "format": "kafka-proto/history"' in refused(
        "replay", recorded / "plain.history.jsonl"
    )
    Path("other.jsonl").write_text('{"format": "other"}\n', encoding="utf-8")
    assert "is neither a trail nor a history" in refused("show", "other.jsonl")


def test_trail_that_violates_nothing_cannot_be_shrunk(recorded: Path) -> None:
    """There is nothing to shrink, and no file is written."""
    assert "violates nothing" in refused("shrink", recorded / "faulty.trail.jsonl", "--out", "short.jsonl")


def unwritable() -> list[str]:
    """Places that nobody can write to, root included: below a file, and where the system has its own files."""
    return ["file/below", "file", "file/deep/below", *(["/proc/nope"] if Path("/proc/self").exists() else [])]


@pytest.mark.parametrize("out", unwritable())
@pytest.mark.parametrize("command", [
    ("hunt", "s4-copied-tail", "--seeds", 1_000_000), ("simulate", "s4-copied-tail", "--seeds", 1_000_000), CHECK,
], ids=lambda command: str(command[0]))
def test_folder_that_cannot_be_written_is_refused_before_any_run(command: tuple[object, ...], out: str) -> None:
    """The work is not done first and lost then."""
    Path("file").write_text("precious\n", encoding="utf-8")
    sentence = refused(*command, "--out", out)
    assert sentence.startswith(f"cannot write into {out}: ")
    assert "give another place with --out" in sentence


SAVED = (*CHECK, "--size", "clients=1", "--engine", "python", "--checkpoint", "saved")


@pytest.mark.parametrize("folder", unwritable())
def test_checkpoint_that_cannot_be_written_is_refused_before_the_search(folder: str) -> None:
    """Not after half a minute, when it is to be written."""
    Path("file").write_text("precious\n", encoding="utf-8")
    sentence = refused(*CHECK, "--checkpoint", folder)
    assert sentence.startswith(f"cannot write the checkpoint in {folder}: ")
    assert "give another folder with --checkpoint" in sentence


@pytest.mark.parametrize(("asked", "said"), [
    (("check", "transactions/repaired", *SAVED[2:]), 'its model is "transactions/gist", here it is "transactions/rep'),
    ((*SAVED, "--size", "brokers=1"), "its sizes is brokers=2, clients=1"),
    ((*SAVED, "--set", "repair=S4"), "its settings is repair="),
    ((*SAVED, "--invariant", "TypeOK"), "its invariants is ["),
    ((*SAVED, "--deadlock"), "its deadlock is false, here it is true"),
    ((*SAVED, "--symmetry"), "its symmetry is false, here it is true"),
    ((*SAVED, "--fingerprints"), "its fingerprints is false, here it is true"),
    ((*SAVED, "--view"), "its "),
    ((*SAVED, "--engine", "kernel"), "the checkpoint was made by --engine python; go on with that"),
], ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else "")
def test_checkpoint_of_another_search_is_refused(asked: tuple[str, ...], said: str) -> None:
    """What differs is said, and the checkpoint stays: the search that it belongs to goes on from it."""
    first = call(*SAVED, "--json").json
    assert said in refused(*asked)
    assert call(*SAVED, "--json").json["distinct"] == first["distinct"]


def in_manifest(**fields: Any) -> Callable[[bytes], bytes]:
    """A damage that sets fields of the manifest, or removes those that are set to None."""
    def damaged(data: bytes) -> bytes:
        manifest = {**json.loads(data), **fields}
        return json.dumps({name: value for name, value in manifest.items() if value is not None}).encode()
    return damaged


@pytest.mark.parametrize(("name", "damage", "said"), [
    ("checkpoint.json", lambda data: b"", "it is not JSON, but cut off or damaged"),
    ("checkpoint.json", lambda data: data[: len(data) // 2], "it is not JSON, but cut off or damaged"),
    ("checkpoint.json", lambda data: b"\xff" + data, "it is not JSON, but cut off or damaged"),
    ("checkpoint.json", lambda data: b"[" * 100_000, "it is not JSON, but cut off or damaged"),
    ("checkpoint.json", lambda data: b"[]", "is no checkpoint of this program"),
    ("checkpoint.json", lambda data: b"{}", "is no checkpoint of this program"),
    ("checkpoint.json", in_manifest(version=2), "is of format version 2, this program reads version 1"),
    ("checkpoint.json", in_manifest(version=None), "is of format version null, this program reads version 1"),
    ("checkpoint.json", in_manifest(digest=None), "is damaged; remove saved and start anew"),
    ("checkpoint.json", in_manifest(position="x"), "is damaged; remove saved and start anew"),
    ("checkpoint.json", in_manifest(asked=[]), "is damaged; remove saved and start anew"),
    ("level", lambda data: None, "of the checkpoint is missing or damaged; remove saved and start anew"),
    ("level", lambda data: data[:-1], "of the checkpoint is missing or damaged; remove saved and start anew"),
    ("level", lambda data: data + b"12345678", "of the checkpoint is missing or damaged; remove saved and start anew"),
    ("level", lambda data: data[::-1], "of the checkpoint is missing or damaged; remove saved and start anew"),
])
def test_checkpoint_that_is_damaged_is_refused(name: str, damage: Callable[[bytes], bytes | None], said: str) -> None:
    """Whatever happened to one of its files, it is said, and the folder stays as it is."""
    assert call(*SAVED).code == 1
    path = next(Path("saved").glob(f"{name}*"))
    after = damage(path.read_bytes())
    if after is None:
        path.unlink()
    else:
        path.write_bytes(after)
    assert said in refused(*SAVED)


@pytest.mark.parametrize("out", ["file/below", ".", *unwritable()[3:]])
def test_file_that_cannot_be_written_is_refused(out: str, recorded: Path) -> None:
    """A folder, or a place below a file, is no file to write."""
    Path("file").write_text("precious\n", encoding="utf-8")
    target = f"{out}/x" if out == "/proc/nope" else out
    for command in (("shrink", recorded / "plain.trail.jsonl"), ("show", recorded / "plain.trail.jsonl")):
        assert refused(*command, "--out", target).startswith("cannot write")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_device_is_refused(recorded: Path) -> None:
    """What cannot be written to the end is said, and the device stays what it is."""
    assert "No space left on device" in refused("show", recorded / "plain.trail.jsonl", "--out", "/dev/full")
    assert Path("/dev/full").is_char_device()


def test_interrupted_writing_leaves_the_old_file(tmp_path: Path) -> None:
    """A file is replaced as a whole or not at all, and nothing is left beside it."""
    path = tmp_path / "here" / "kept"
    write_atomically(path, ["old"])

    def interrupted() -> Iterator[str]:
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, interrupted())
    assert files_below(path.parent) == {"kept": b"old\n"}


def test_writing_follows_links_and_keeps_devices(tmp_path: Path) -> None:
    """A link still points to its file afterwards, and a device is written to, not replaced."""
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    write_atomically(link, ["text"])
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "text\n"
    write_atomically(Path(os.devnull), ["text"])
    assert not Path(os.devnull).is_file()


def test_writing_through_links_in_a_circle_is_refused(tmp_path: Path) -> None:
    """Links that lead nowhere are one sentence, too."""
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(Refusal, match="cannot write"):
        write_atomically(tmp_path / "a", ["text"])


def test_refusals_name_no_more_than_the_file_says(recorded: Path) -> None:
    """A value of any length is shown in part only."""
    path = edited(recorded / "plain.trail.jsonl", with_header(model=["x" * 10_000]), "edited.jsonl")
    outcome: Outcome = call("replay", path)
    assert len(outcome.refusal) < 300
