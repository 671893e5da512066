"""A session of real clients in the demo: its recorded inputs are the steps, lanes are clients and brokers."""

from __future__ import annotations

import io
import json
import sys

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.commands.command_line import call
from support.paths import ROOT

from harness.demo.session import as_json
from harness.demo.session.live_session import LiveSession, of_trail
from harness.demo.session.recording import recorded_trail
from harness.demo.session.snapshot import snapshot_text
from harness.record import Recorder, read_trail
from harness.simulate.trails.replay import replay_plain

LATE = ROOT / "docs" / "examples" / "gateway" / "late-end.trail.jsonl"


@pytest.fixture(name="session")
def _session() -> LiveSession:
    return of_trail(read_trail(LATE))


def seen(session: LiveSession) -> dict[str, object]:
    found: dict[str, object] = json.loads(snapshot_text(session, "{}"))
    return found


def test_it_opens_at_its_end_with_clients_and_brokers(session: LiveSession) -> None:
    """The digest is the replay's, the violation is there, and each step stands on the lifeline that acted."""
    shown = seen(session)
    assert shown["lifelines"] == ["test", "b1", "environment"] and shown["is_recorded"]
    assert session.digest() == replay_plain(read_trail(LATE), Recorder(keep=False)).digest
    assert session.violation is not None and session.violation.violated == "MarkerAttribution"
    steps = shown["steps"]
    assert isinstance(steps, list) and len(steps) == 22
    assert [step["process"] for step in steps[:2]] == ["environment", "environment"]
    produce = steps[7]
    assert produce["process"] == "test" and not produce["minor"] and steps[4]["minor"]
    assert [(one["from"], one["to"], one["type"]) for one in produce["sent"]] == [
        ("test", "b1", "Produce"), ("b1", "test", "Produce: ok")]
    assert produce["sent"][0]["fields"] == {
        "t-0": "[a]", "producer": "0", "epoch": "0", "sequence": "0", "transaction": "app#1"}
    late = steps[17]
    assert late["process"] == "b1" and late["label"] == "late EndTxn commit" and "MarkerAttribution" in late["failing"]
    held = steps[9]["sent"][0]["id"]
    assert {"id": held, "how": "held"} in steps[9]["taken"]
    assert [each for each in late["taken"] if each["id"] == held] == [
        {"id": held, "how": "released"}, {"id": held, "how": "delivered"}]


def test_it_rewinds_and_steps_along_what_was_recorded(session: LiveSession) -> None:
    """Where it was before, the only possible step is the next recorded input, under the name of what came."""
    end = session.digest()
    session.rewind(10)
    (enabled,) = json.loads(snapshot_text(session, "{}"))["present"]["enabled"]
    assert enabled["action"] == "EndTxn commit" and enabled["process"] == "test"
    in_flight = json.loads(snapshot_text(session, "{}"))["present"]["in_flight"]
    assert [(one["type"], one["state"]) for one in in_flight] == [("EndTxn commit", "held")]
    session.take(label=enabled["label"])
    assert session.at == 11 and list(session.branches) == ["trail"]
    session.start("end")
    session.run()
    assert session.at == 22 and session.digest() == end and session.over() == "the recorded session ends here"
    session.rewind(0)
    session.forward(22)
    assert session.digest() == end and session.trail().text() == of_trail(session.trail()).trail().text()


def test_topics_have_what_became_of_records_leaders_and_readers(session: LiveSession) -> None:
    """Committed and aborted records by transaction, open ones on the way, marks, leader and ISR."""
    first, second, transactions = as_json.logs_json(session.model, session.state(22))
    assert [(entry["text"], entry["kind"], entry["note"]) for entry in first["entries"]] == [
        ("a", "committed", "app#1"), ("COMMIT", "commit marker", "app#1"), ("x", "committed", "app#3"),
        ("COMMIT", "commit marker", "app#1")]
    assert [entry["kind"] for entry in second["entries"]] == ["aborted", "abort marker"] * 2
    assert first["facts"] == {"leader": "b1", "leader epoch": "0", "ISR": "b1"}
    assert [(entry["text"], entry["note"]) for entry in transactions["entries"]] == [("CompleteAbort", "app e0")]
    before = as_json.logs_json(session.model, session.state(17))[0]
    assert before["entries"][2]["kind"] == "open"
    assert {mark["label"]: mark["offset"] for mark in before["marks"]} == {"LSO": 2, "HW": 3}


def test_the_page_in_one_file_and_the_terminal_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both step through the same: the file is a recording, the terminal prints the steps."""
    recording = json.loads(recorded_trail(read_trail(LATE)))
    assert recording["session"]["lifelines"] == ["test", "b1", "environment"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("rewind 9\nforward 10\n"))
    said = call("demo", "--terminal", LATE)
    assert said.code == 0, said.err
    assert "-> b1 Produce t-0=[a] producer=0 epoch=0 sequence=0 transaction=app#1" in said.out
    assert said.out.count("~> b1 EndTxn commit producer=0 epoch=0 transaction=app#1 (held)") == 2
