"""The demo in a terminal: sessions that are left, searches for a violation, what runs come to, faults left alone."""

from __future__ import annotations

import re
from pathlib import Path

from support.commands.pseudo_terminal import INTERRUPT, Person
from support.demo.sessions import TXN, run_script, told


def test_session_that_is_left_is_listed_and_reopened() -> None:
    """Its steps are there again, go on, and undo leads back over what was opened."""
    out = told("1", "2", "open happy-path", "1", "sessions", "reopen 1", "sessions", "1", "undo", "undo", "where")
    assert f"  1  {TXN}: step 2 of 2" in out and "  2  happy-path: step 1 of 1" in out
    _, _, after = out.partition("> reopen 1")
    assert "at step 2 of 2, no violation" in after
    assert "step 1 of 1 branch main" in " ".join(after.split("> where")[1].split())
    code, out, err = run_script("sessions", "reopen 7")
    assert code == 2 and "no other session was stepped" in out
    assert "there is no session 7 to reopen; kept are none" in err


def test_violation_is_found_and_shrunk() -> None:
    """The hit is shown, with the strategy and the seed; undo leads back to the run that was made by hand."""
    out = told("1", "find 900", "shrink", "undo", "undo", "undo", "where", what="s4-copied-tail")
    assert "violates LogsAgreeUpToHwm: " in out and "; shrink makes it shorter, undo leads back" in out
    assert "they are the branch shrunk" in out
    assert "step 1 of 1 branch main" in " ".join(out.split("> where")[1].split())


def test_search_without_a_hit_says_how_much_it_tried() -> None:
    """And nothing else is shown than before."""
    code, out, err = run_script("find 3", "find 0", what="happy-path")
    assert code == 2 and "no violation in 3 runs (" in out and "expected at least 1 run to search, found 0" in err


def test_search_at_the_terminal_shows_how_far_it_is_and_is_given_up(tmp_path: Path) -> None:
    """Ctrl-C ends it, and the keys are free meanwhile."""
    with Person("demo", "--terminal", TXN, folder=tmp_path) as person:
        person.wait("can happen")
        person.say("find 1000000", "of 1,000,000 runs,", "a second, at most", "Ctrl-C gives up")
        person.type(INTERRUPT, "gave up looking for a violation")
        assert person.still_sees("gave up looking for a violation", 1), "what was given up does not report any more"
        person.say("1", "step 1,")
        person.say("quit")
        assert person.ended() == 0


def test_run_says_what_it_came_to() -> None:
    """That no property broke, in how many steps, and why it went no further."""
    out = told("run", what="happy-path")
    assert ": no property broke in 14 steps: no step is possible any more" in out


def test_run_leaves_faults_alone_on_request() -> None:
    """Neither Restart nor Heal of what was crashed and cut by hand, until it is switched off."""
    lines = ("crash b2", "partition b1 c1", "spare on", "run 80 until end", "spare off", "run 80 until end", "spare")
    code, out, err = run_script(*lines)
    spared, _, mended = out.partition("> spare off")
    assert "Restart(b2) [heal]" not in spared and "Heal(b1,c1) [heal]" not in spared
    assert "Restart(b2) [heal]" in mended or "Heal(b1,c1) [heal]" in mended
    assert code == 2 and "expected spare on or spare off" in err


def test_why_not_blames_the_spent_budget() -> None:
    """After the only election while somebody leads, the loop that the budget ends is named, and not that one leads."""
    lines = ("ControllerElectLeader(r2)", "ControllerElectLeader(r1)", "why ControllerElectLeader")
    out = told(*lines, what="replication/kip-320/actors")
    answer = out.partition("> why")[2]
    assert re.findall(r"not ControllerElectLeader\((r\d)\)", answer) == ["r1", "r2"]
    for said in ("for replica in self.replicas if local.elections else ()", "local.elections = 0"):
        assert answer.count(said) == 2
    assert "q.leader is None" not in out


def test_tour_says_its_sizes_and_that_faults_are_off() -> None:
    """As soon as it is opened."""
    out = told("tour commit")
    assert "The cluster of this tour has producers 1, brokers 2" in out
    assert "faults are off." in out
