"""What a person asks about a session: guards, reasons, ranges; links, exports and shrinking."""

from __future__ import annotations

import pytest
from support.demo.sessions import TXN, found_violation, going, opened, ran, toured

from harness.demo.session import questions
from harness.demo.session.as_json import state_json
from harness.demo.session.snapshot import present
from harness.model import Refusal
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import spelled_out


def test_link_carries_the_model_and_the_trail() -> None:
    """It is read back whole, and refused where it is too long, damaged, or not a link."""
    trail = ran(TXN, 30).trail()
    link = questions.link(trail)
    read = questions.trail_of(link.removeprefix("#trail="))
    assert questions.trail_of(f"http://127.0.0.1:8642/{link}") == read
    assert questions.trail_of(link.replace("#trail=", "#s=")) == read, "links that were made before"
    assert spelled_out(read, Tables(read.build())) == trail
    for wrong in (link[:-9], link[:40] + "A" + link[41:], "hello", "#trail=", "#trail=%%%", "#s=%%%"):
        with pytest.raises(Refusal):
            questions.trail_of(wrong)


def test_link_of_a_long_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What browsers would cut is saved as a file instead."""
    monkeypatch.setattr(questions, "LONGEST_LINK", 100)
    with pytest.raises(Refusal, match="save its trail instead"):
        questions.link(ran(TXN, 30).trail())


def test_violation_is_shrunk_into_a_branch_of_its_own() -> None:
    """The shorter run violates the same, at the same sizes; the long one is still there."""
    session = found_violation()
    assert session.violation is not None
    violated, long = session.violation.violated, session.branch
    found, ending = questions.shrunk(session.trail())
    session.add_shrunk(found, ending, long)
    session.forward(session.branch.length)
    assert session.violation is not None and session.violation.violated == violated
    assert session.at == found.has <= found.had == long.length
    assert present(session)["violation"]["shrunk"]["length"] == session.at
    session.undo()
    session.undo()
    assert session.branch is long and session.at == long.length
    with pytest.raises(Refusal, match="nothing to shrink"):
        questions.shrunk(opened().trail())


def test_guards_of_a_step_are_told_with_what_they_read() -> None:
    """For the actor's own turn and for the step of the spec that it is."""
    session = toured("commit")
    session.refine()
    reported = [questions.about(session, n)() for n in range(1, session.at + 1)]
    with_values = [about for about in reported if any(guard["values"] for guard in about["guards"])]
    assert len(with_values) > len(reported) // 2
    spec = [about for about in reported if about["step"]["spec"]["kind"] == "step"]
    assert len(spec) == 2 and all(about["spec_guards"] for about in spec)
    with pytest.raises(Refusal, match="expected a step from 1"):
        questions.about(session, 0)


def test_action_that_is_not_possible_is_told_why() -> None:
    """The guard that fails with its values; after the step that was lacking it is possible."""
    session = opened("transactions/diary-02")
    name = "CommitTxnLogAppend"
    reported = questions.why(session, name)()
    assert reported["model"]["enabled"] == [] and reported["spec"] is None
    assert "its guard fails: diary_02.py" in reported["model"]["not"][0]["why"]
    assert "entry = None" in reported["model"]["not"][0]["why"]
    for _ in range(60):
        going(session, until=f"action:{name}")
        if session.record.step is not None and session.record.step.action == name:
            break
    session.rewind(session.at - 1)
    assert questions.why(session, name)()["model"]["enabled"]
    assert questions.why(session, "Nonsense")()["model"] == {
        "name": "transactions/diary-02", "seen": False, "enabled": [], "not": [], "more": 0
    }


def test_failing_properties_have_ranges_and_lights() -> None:
    """A property that fails says since when, and the ranges cover just the steps in which it does."""
    session = toured("rp-01")
    light = present(session)["properties"]["AckDurability"]
    assert (light["ok"], light["since"]) == (False, 16)
    failing = questions.ranges(session)["failing"]
    assert failing["AckDurability"] == [[16, 16]]
    ends = sorted(name for name, spans in failing.items() if spans and spans[-1][1] == 16)
    assert ends == sorted(session.record.failing)


def test_step_tells_what_it_changed_in_the_state() -> None:
    """Slot by slot and field by field, before and after; what did not change has no before."""
    session = opened()
    session.take(label="InitTransactions(c1)")
    shown = state_json(session.lanes, session.state(0), session.state(1), "c1")
    (slot,) = [slot for slot in shown["actors"]["c1"] if slot["slot"] == "c1"]
    changed = [field for field in slot["fields"] if field["changed"]]
    assert [field["name"] for field in changed] == ["producer", "connections", "operation"]
    assert [(field["was"], field["text"]) for field in changed][::2] == [
        ("<tid1>", "<tid1 status=INITIALIZING is_sent=True>"), ('""', "init")]
    assert list(shown["actors"]) == ["c1"]
