"""Finding one's way on the command line: mistyped names are answered with those that were meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import call

from harness.model import did_you_mean, unknown
from harness.model.similar import similar

MODELS = ("transactions/diary-01", "transactions/gist", "transactions/repaired", "transactions/repaired/actors")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command run in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("name", "known", "meant"), [
    ("transactions/gits", MODELS, ("transactions/gist",)),
    ("gits", MODELS, ("transactions/gist",)),
    ("diary-1", MODELS, ("transactions/diary-01",)),
    ("Transactions/GIST", MODELS, ("transactions/gist",)),
    ("repaired/actor", MODELS, ("transactions/repaired/actors",)),
    ("transactions/nope", MODELS, ()),
    ("nobody", MODELS, ()),
    ("txn_log_partitions", ("brokers", "txn-log-partitions"), ("txn-log-partitions",)),
    ("typeok", ("TypeOK", "TypeOKAgain"), ("TypeOK",)),
    ("e", ("election", "crash"), ()),
    ("--", ("election", "--crash"), ()),
    ("s", ("ss", "sss", "ssss", "sssss"), ("ss",)),
    ("crash", ("crash-1", "crash-2", "crash-3", "crash-4"), ("crash-1", "crash-2", "crash-3")),
])
def test_names_that_were_meant_are_found(name: str, known: tuple[str, ...], meant: tuple[str, ...]) -> None:
    """Slips of the finger, of case and of punctuation are seen through; where nothing is alike, nothing is offered."""
    assert similar(name, known) == meant


def test_question_lists_what_may_have_been_meant() -> None:
    """One name, two, or three; a short list of what is known follows, a long one does not."""
    assert did_you_mean("ab", ["abc"]) == "did you mean abc?"
    assert did_you_mean("ab", ["abc", "abd"]) == "did you mean abc or abd?"
    assert did_you_mean("ab", ["abc", "abd", "abe", "abf"]) == "did you mean abc, abd or abe?"
    assert did_you_mean("x", ["abc"]) == ""
    assert unknown("no ab", "ab", ["abc", "xyz"], "there are") == "no ab; did you mean abc? there are abc, xyz"
    assert unknown("no q", "q", ["abc", "xyz"], "there are") == "no q; there are abc, xyz"
    assert unknown("no q", "q", [], "there are") == "no q; there are none"
    many = [f"other-{n}" for n in range(20)]
    assert unknown("no ab", "ab", ["abc", *many], "there are") == "no ab; did you mean abc?"
    assert unknown("no ab", "ab", ["abc", *many], "", "the list") == "no ab; did you mean abc? see the list"
    assert unknown("no q", "q", ["abc", *many], "", "the list") == "no q; see the list"


@pytest.mark.parametrize(("arguments", "said"), [
    (("simulat", "s4-copied-tail"), "there is no command 'simulat'; did you mean simulate? see kafka-proto --help"),
    (("simulate", "s4-copied-tial"), "'s4-copied-tial', nor a scenario of that name; did you mean s4-copied-tail"),
    (("simulate", "gist"), "there is no model 'gist', nor a scenario of that name; did you mean transactions/gist?"),
    (("hunt", "rp01"), "no scenario 'rp01'; did you mean rp-01-truncate-to-high-watermark or rp-01-truncate-to-high"),
    (("verify", "fencing-batle", "--seeds", "1"), "nor a scenario of that name; did you mean fencing-battle"),
    (("demo", "figure3"), "nor a scenario or a tour of that name; did you mean figure-1 or figure-2?"),
    (("graph", "diary-1", "--out", "g"), "there is no model 'diary-1'; did you mean transactions/diary-01"),
    (("graph", "s4-copied-tail", "--out", "g"), "but a scenario, of the model transactions/gist; give that one"),
    (("graph", "transactions/diary-01", "--as", "sgv", "--out", "g"), "did you mean svg?"),
    (("graph", "transactions/diary-01", "--hide", "cleint", "--out", "g"), "did you mean client?"),
    (("show", "x.jsonl", "--as", "mermade"), "did you mean mermaid?"),
    (("simulate", "transactions/gist", "--size", "broker=2"), "did you mean brokers?"),
    (("simulate", "transactions/gist", "--set", "repairs=S4"), "did you mean repair?"),
    (("simulate", "transactions/gist", "--set", "repair=s4"), "list of S1, S3, S4, S5, not 's4'; did you mean S4?"),
    (("simulate", "transactions/gist", "--strategy", "guide"), "; did you mean guided? see kafka-proto simulate"),
    (("simulate", "transactions/gist", "--seedz", "2"), "did you mean --seed, --seeds or --set? see"),
    (("hunt", "--jsn"), "no such option '--jsn'; did you mean --json? see kafka-proto hunt --help"),
    (("report", "x", "--rejudge"), "did you mean --no-rejudge?"),
    (("import", "x", "--as", "jepsn"), "did you mean jepsen?"),
    (("demo", "transactions/gist", "--faults", "generos"), "did you mean generous?"),
])
@pytest.mark.usefixtures("here")
def test_mistyped_name_is_answered_with_the_one_that_was_meant(arguments: tuple[str, ...], said: str) -> None:
    """Wherever the command line takes a name, a slip gets a question, in one sentence with exit code 2."""
    assert said in call(*arguments).refusal
    assert list(Path.cwd().iterdir()) == []
