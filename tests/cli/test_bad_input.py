"""Bad input: one sentence on stderr, exit code 2, no traceback, and no file lost or half-written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import call, files_below, refused

from harness.model import Refusal
from harness.record.files import write_atomically

pytestmark = pytest.mark.usefixtures("empty_folder")
GIST = ("simulate", "transactions/gist")
CHECK = ("check", "transactions/gist")
TEMPORAL = (*CHECK, "--property", "EventuallyAllClientsGetPid")
PULSAR = ("check", "compaction/pulsar")


@pytest.mark.parametrize(("arguments", "said"), [
    (("frobnicate",), "no command 'frobnicate'; the commands are campaign, check, compare, conformance, demo,"),
    (("--frobnicate",), "no such option"),
    (("list", "xyzzy"), "no model, scenario or tour matches 'xyzzy'; kafka-proto list"),
    (("hunt", "nope"), "there is no scenario 'nope'"),
    (("hunt", "s4"), "did you mean s4-copied-tail or s4-copied-tail-repaired?"),
    (("hunt", "--seeds", "0"), "expected a whole number of at least 1, found '0'"),
    (("hunt", "--seeds", "many"), "expected a whole number of at least 1, found 'many'"),
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
    ((*CHECK, "--property", "TypeOK"), "TypeOK is an invariant, give it with --invariant"),
    (("check", "replication/kip-320", "--property", "TypeOk"), "no temporal property 'TypeOk'; it has none"),
    ((*TEMPORAL, "--symmetry"), "--symmetry: it merges states, and a cycle of merged states may not be real; leave"),
    ((*TEMPORAL, "--view"), "leave --view or --property out"),
    ((*TEMPORAL, "--fingerprints"), "leave --fingerprints or --property out"),
    (("check", "transactions/gist", "--fairness", "strong"), "fairness must be one of spec, none, action, weak"),
    ((*TEMPORAL, "--fairness", "strong"), "fairness must be one of spec, none, action, weak, next, or weak,ACTION"),
    ((*PULSAR, "--view"), "compaction/pulsar has no view; leave --view out"),
    ((*PULSAR, "--symmetry"), "compaction/pulsar has no interchangeable names; leave --symmetry out"),
    ((*PULSAR, "--size", "compactions=0"), "size compactions of compaction/pulsar must be between 1 and 6, not 0"),
    ((*PULSAR, "--set", "producer=maybe"), "must be one of true, false, not 'maybe'"),
    ((*CHECK, "--size", "clients=7"), "size clients of transactions/gist must be between 1 and 6, not 7"),
    (("check", "kafka/4.0", "--engine", "python", "--reduce", "numbers"),
     "--engine python does not support --reduce numbers; give --engine plain, or leave it out"),
    ((*CHECK, "--engine", "java"), "'java' is not one of 'auto', 'python', 'kernel'"),
    ((*CHECK, "--memory", "0"), "--memory takes gigabytes, more than 0, not 0; leave it out for most of what is free"),
    ((*CHECK, "--memory", "nan"), "--memory takes gigabytes, more than 0, not nan"),
    ((*CHECK, "--memory", "inf"), "--memory takes gigabytes, more than 0, not inf"),
    ((*CHECK, "--memory", "1e-12"), "--memory takes gigabytes, more than 0, not 1e-12"),
    ((*CHECK, "--memory", "much"), "'much' is not a valid float"),
    (("simulat", "s4-copied-tail"), "there is no command 'simulat'; did you mean simulate? see kafka-proto --help"),
    (("simulate", "s4-copied-tial"), "'s4-copied-tial', nor a scenario of that name; did you mean s4-copied-tail"),
    (("simulate", "gist"), "there is no model 'gist', nor a scenario of that name; did you mean transactions/gist?"),
    (("hunt", "rp01"), "no scenario 'rp01'; did you mean rp-01-truncate-to-high-watermark or rp-01-truncate-to-high"),
    (("verify", "fencing-batle", "--seeds", "1"), "nor a scenario of that name; did you mean fencing-battle"),
    (("demo", "comit"), "nor a scenario or a tour of that name; did you mean commit?"),
    (("graph", "diary-1", "--out", "g"), "there is no model 'diary-1'; did you mean transactions/diary-01"),
    (("graph", "s4-copied-tail", "--out", "g"), "is a scenario, not a model; give its model, transactions/gist"),
    (("graph", "transactions/diary-01", "--as", "sgv", "--out", "g"), "did you mean svg?"),
    (("graph", "transactions/diary-01", "--hide", "cleint", "--out", "g"), "did you mean client?"),
    (("show", "x.jsonl", "--as", "mermade"), "did you mean mermaid?"),
    (("check", "transactions/gist", "--invariant", "TypeOk"), "did you mean TypeOK? its invariants are"),
    (("check", "transactions/gist", "--property", "EventuallyAllClientGetPid"), "did you mean EventuallyAllCl"),
    (("simulate", "transactions/gist", "--set", "repairs=S4"), "did you mean repair?"),
    (("simulate", "transactions/gist", "--set", "repair=s4"), "list of S1, S3, S4, S5, not 's4'; did you mean S4?"),
    (("simulate", "transactions/gist", "--strategy", "guide"), "; did you mean guided? see kafka-proto simulate"),
    (("simulate", "transactions/gist", "--seedz", "2"), "did you mean --seed, --seeds or --set? see"),
    (("hunt", "--jsn"), "no such option '--jsn'; did you mean --json or --log-json? see kafka-proto hunt --help"),
    (("report", "x", "--rejudge"), "did you mean --no-rejudge?"),
    (("import", "x", "--as", "jepsn"), "did you mean jepsen?"),
    (("demo", "transactions/gist", "--faults", "generos"), "did you mean generous?"),
], ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_wrong_use_is_refused_in_one_sentence(arguments: tuple[str, ...], said: str) -> None:
    """What was expected and what was found is said, or what may have been meant, and nothing is written."""
    assert said in refused(*arguments)


def unwritable() -> list[str]:
    """Places that nobody can write to, root included: below a file, and where the system has its own files."""
    return ["file/below", "file", "file/deep/below", *(["/proc/nope"] if Path("/proc/self").exists() else [])]


@pytest.mark.parametrize("folder", unwritable())
@pytest.mark.parametrize(("command", "option", "said"), [
    (("hunt", "s4-copied-tail", "--seeds", 1_000_000), "--out", "into"),
    (("simulate", "s4-copied-tail", "--seeds", 1_000_000), "--out", "into"), (CHECK, "--out", "into"),
    (CHECK, "--checkpoint", "the checkpoint in"),
], ids=("hunt", "simulate", "check", "checkpoint"))
def test_folder_that_cannot_be_written_is_refused_before_any_run(
    command: tuple[object, ...], option: str, said: str, folder: str
) -> None:
    """The work is not done first and lost then."""
    Path("file").write_text("precious\n", encoding="utf-8")
    sentence = refused(*command, option, folder)
    assert sentence.startswith(f"cannot write {said} {folder}: ")
    assert f"give another {'place' if option == '--out' else 'folder'} with {option}" in sentence


SAVED = (*CHECK, "--size", "clients=1", "--engine", "python", "--checkpoint", "saved")


@pytest.mark.parametrize(("asked", "said"), [
    (("check", "transactions/repaired", *SAVED[2:]), 'its model is "transactions/gist", here it is "transactions/rep'),
    ((*SAVED, "--size", "brokers=1"), "its sizes is brokers=2, clients=1"),
    ((*SAVED, "--set", "repair=S4"), "its settings is repair="),
    ((*SAVED, "--invariant", "TypeOK"), "its invariants is ["),
    ((*SAVED, "--deadlock"), "its deadlock is false, here it is true"),
    ((*SAVED, "--symmetry"), "its symmetry is false, here it is true"),
    ((*SAVED, "--reduce", "symmetry"), "its symmetry is false, here it is true"),
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
    ("checkpoint.json", lambda data: b"[]", "is not a checkpoint of this program"),
    ("checkpoint.json", lambda data: b"{}", "is not a checkpoint of this program"),
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
