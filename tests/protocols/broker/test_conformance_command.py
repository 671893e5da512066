"""The command `kafka-proto conformance`, found through its entry point as any protocol's command is."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from support.commands.command_line import call
from support.paths import RECORDED, ROOT

from harness.cli import protocol_commands
from kafka_proto.conformance import command, files

FILE = RECORDED / "kafka.json.gz"
ENTRY = EntryPoint("conformance", "kafka_proto.conformance.command:conformance", "harness.commands")


LOADED = cache(files.load)
"""Files that are read once: thousands of records each."""


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is there whether or not this checkout is the one that is installed."""
    monkeypatch.setattr(command, "load", LOADED)

    def declared(group: str, name: str = "conformance") -> list[EntryPoint]:
        return [ENTRY][: name == "conformance"]

    monkeypatch.setattr(protocol_commands, "entry_points", declared)


def test_entry_point_is_declared() -> None:
    """The package declares what the fixture stands for."""
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'[project.entry-points."{ENTRY.group}"]\n{ENTRY.name} = "{ENTRY.value}"' in declared


def test_table_and_verdicts() -> None:
    """A table by release, level and family; with --json each record's verdict."""
    made = call("conformance", "--situation", "commit_one", "--release", "4.4.0")
    assert made.code == 0 and made.out.splitlines()[-1].split() == ["all", "11", "11", "0"]
    verdicts = call("conformance", "--situation", "commit_one", "--family", "tv2", "--json").json["records"]
    newer = [(release, level) for release in ("4.0.0", "4.1.1", "4.2.0", "4.3.1", "4.4.0") for level in (1, 2)]
    assert {(one["broker_version"], one["transaction_version"]) for one in verdicts} == {("4.0.0", 0), *newer}
    assert all(one == {**one, "equal": True, "differences": [], "family": "tv2"} for one in verdicts)


def test_brokers_are_one_or_as_many_as_replicate(tmp_path: Path) -> None:
    """The same records on three brokers with replicated logs; two cannot have three replicas."""
    some = call("conformance", "--situation", "commit_one", "--release", "4.4.0", "--brokers", 3)
    assert some.code == 0 and some.out.splitlines()[-1].split() == ["all", "11", "11", "0"]
    for number in ("2", "6", "many"):
        refused = call("conformance", "--situation", "commit_one", "--brokers", number).refusal
        assert refused == f"--brokers must be 1, or 3 to 5 with replicated logs, not '{number}'"
    both = call("conformance", "--release", "4.4.0", "--brokers", 3, "--broker", "127.0.0.1:9092").refusal
    assert both == "--brokers is for playing in process; leave it or --broker out"


def test_difference_is_printed_and_fails(tmp_path: Path) -> None:
    """Exit code 1, with the step, what was recorded, and what was found."""
    record = files.load(FILE)[0]
    record["steps"][0]["response"]["error"] = "PRODUCER_FENCED"
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps({"records": [record]}), encoding="utf-8")
    made = call("conformance", changed)
    assert made.code == 1
    assert made.out.splitlines()[-1] == "  step 1.response.error: expected 'PRODUCER_FENCED', found 'NONE'"


@pytest.mark.parametrize("situation", ["too_large_plain", "find_coordinator"])
def test_records_about_bytes_need_the_codec(monkeypatch: pytest.MonkeyPatch, situation: str) -> None:
    """Without the extra `gateway` they are left out, and that is said; the others are played."""
    asked = ("conformance", "--release", "4.4.0", "--situation")
    whole = call(*asked, situation)
    played = whole.out.splitlines()[-1].split()[1]
    assert whole.code == 0 and "not played" not in whole.out
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    left = call(*asked, situation)
    assert left.code == 0
    assert left.out.splitlines()[-1] == (f"{played} not played: they hold bytes of the wire protocol, which need the "
                                         "extra `gateway`: pip install 'kafka-proto[gateway]'")
    others = call(*asked, "topic_deleted_commit", "--family", "tv2")
    assert others.out.splitlines()[-1].split() == ["all", "2", "2", "0"]


def test_bad_input_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A release or family that is not there, a file that is none, and an installation without recordings."""
    refused = call("conformance", "--release", "9.9.9").refusal
    assert "no record has '9.9.9' for --release; there are 3.5.2, 3.6.2, 3.7.2, " in refused
    assert "cannot read absent.json: No such file or directory" in call("conformance", "absent.json").refusal
    monkeypatch.setattr(files, "__file__", str(tmp_path / "kafka_proto" / "conformance" / "files.py"))
    assert "there are no recorded situations here; name a file, or set KAFKA_PROTO_GROUND_TRUTH" in call(
        "conformance").refusal
    assert "did you mean conformance?" in call("conformanse").refusal
