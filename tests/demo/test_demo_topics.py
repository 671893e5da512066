"""The topics in a demo's session, through its server and in a terminal: as they are now, and as they were."""

from __future__ import annotations

from typing import Any

import pytest
from support.demo.served_site import Site
from support.demo.sessions import going, opened, run_script, snapshot, told, toured

from harness.demo.session.as_json import logs_json
from harness.demo.session.live_session import LiveSession
from harness.demo.terminal.terminal import console_of
from harness.model import View

INTERLEAVED = "exactly-once-interleaved"
WITHOUT = "transactions/diary-02"
"""A model that shows no topics."""


def logs(session: LiveSession, step: int) -> list[dict[str, Any]]:
    """Return the logs after a step."""
    return logs_json(session.model, session.state(step))


@pytest.fixture(scope="module")
def interleaved() -> LiveSession:
    """A session at a state in which a partition has an open record, a committed one, and what a consumer got."""
    for seed in range(40):
        session = going(opened(INTERLEAVED), 90, strategy="random", seed=seed, inject_faults=False)
        for step in range(session.at, 0, -1):
            for log in logs(session, step):
                if {entry["kind"] for entry in log["entries"]} >= {"open", "committed"}:
                    session.rewind(step)
                    return session
    raise AssertionError("no run has such a state")


def test_topics_are_those_of_the_step_that_is_asked_for(interleaved: LiveSession) -> None:
    """Each answer is the model's own function of that state, and what is in a log by a step is in it later."""
    session = interleaved
    assert session.model.logs is not None and snapshot(session)["has_logs"]
    before: dict[str, list[str]] = {}
    for step in range(session.at + 1):
        found = logs(session, step)
        assert [log["end"] for log in found] == [log.end for log in session.model.logs(View(session.state(step)))]
        texts = {log["partition"]: [entry["text"] for entry in log["entries"]] for log in found}
        assert all(texts[name][: len(known)] == known for name, known in before.items())
        before = texts
    assert sum(map(len, before.values())) > 3


def test_server_answers_with_topics(interleaved: LiveSession) -> None:
    """Of the present and of an earlier step; a step that is not there is refused; other models have none."""
    with Site(interleaved) as site:
        at = interleaved.at
        assert site.get("/api/logs") == {"step": at, "logs": logs(interleaved, at)}
        assert all(log["entries"] == [] for log in site.get("/api/logs?step=0")["logs"])
        assert "expected a step from 0 to" in site.refused(400, "GET", "/api/logs?step=999")
        site.post("/api/open", {"what": WITHOUT})
        assert site.get("/api/logs") == {"step": 0, "logs": []}
        site.post("/api/undo")


def test_terminal_shows_topics(interleaved: LiveSession) -> None:
    """Each record with what became of it; a mark stands before the record at its offset; producers come last."""
    console = console_of(interleaved)
    console.do("topics")
    parts = "\n".join(console.said).split("\n\n")
    assert len(parts) == len(logs(interleaved, interleaved.at)) == 4
    for log, part in zip(logs(interleaved, interleaved.at), parts, strict=True):
        head, *rows = part.splitlines()
        assert head == f"{log['partition']} at {log['holder']} after step {interleaved.at}"
        shown = [row.split()[:2] for row in rows if row.split()[0].isdecimal()]
        assert shown == [[str(entry["offset"]), entry["text"]] for entry in log["entries"]]
        for entry in log["entries"]:
            (row,) = (row for row in rows if row.split()[:2] == [str(entry["offset"]), entry["text"]])
            assert entry["kind"] == "plain" or entry["kind"] in row
            assert entry["note"] in row and all(f"seen by {who}" in row for who in entry["seen_by"])
        for mark in log["marks"]:
            (at,) = (n for n, row in enumerate(rows) if row.startswith("  -- ") and mark["name"] in row)
            assert sum(row.split()[0].isdecimal() for row in rows[:at]) == mark["offset"]
        assert [name in row for row, name in zip(rows[-len(log["details"]) :], log["details"], strict=True)]


def test_topics_of_an_earlier_step_and_of_a_model_that_has_none() -> None:
    """An empty log has its marks; what cannot be shown is refused in a sentence."""
    assert "T-0 at b2 after step 0\n  -- LSO, HW, r1" in told("run 40", "topics at 0", what=INTERLEAVED)
    for line, what, said in (("topics at x", INTERLEAVED, "topics [at N] takes no arguments"),
                             ("topics", WITHOUT, "has no topics")):
        code, _, err = run_script(line, what=what)
        assert (code, said in err) == (2, True)


def test_replicated_logs_are_shown_replica_by_replica() -> None:
    """A replica's log has its records with their epochs, and its high watermark."""
    assert opened(WITHOUT).model.logs is None
    leader, follower = logs(toured("rp-01", 9), 9)
    assert [(log["holder"], log["marks"][0]["offset"]) for log in (leader, follower)] == [("r1", 1), ("r2", 0)]
    assert [[entry["text"] for entry in log["entries"]] for log in (leader, follower)] == [["p1-1"], ["p1-1"]]
    assert leader["details"] == {"leader": "r1", "leader epoch": "0", "ISR": "r1, r2"}
