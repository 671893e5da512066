"""Sessions that are left and reopened, searches for a violation, runs that leave faults alone, and what is refused."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("starlette")
pytest.importorskip("hypercorn")

from support.commands.command_line import PATIENCE_S
from support.demo.served_site import Json, Site, Tab, tabs

TXN = "kafka/4.0"
FLAWED = "s4-copied-tail"


def labels(site: Site) -> list[str]:
    """Return the labels of the steps that were taken."""
    return [record.chosen.label for record in site.session.branch.records[1 : site.session.at + 1]]


def searched(tab: Tab) -> Json:
    """Take events until a search is over; return what the server reported last of it."""
    until = time.monotonic() + PATIENCE_S
    while tab.found is None or tab.found["on"]:
        assert time.monotonic() < until
        tab.event()
    return tab.found


def test_run_made_by_hand_is_kept_when_something_else_is_opened(site: Site) -> None:
    """The list has it, reopening brings it back with its branches and its digest, and steps go on there."""
    for n in range(5):
        site.post("/api/take", {"index": 0, "at": n})
    site.post("/api/rewind", {"to": 2})
    assert "expected a step from 2 to 5" in site.refused(400, "POST", "/api/forward", '{"to": 1}')
    site.post("/api/take", {"index": 1, "at": 2})
    made, digest = labels(site), site.session.digest()
    site.post("/api/open", {"what": "happy-path"})
    site.post("/api/take", {"index": 0})
    site.post("/api/tour", {"name": "commit"})
    with tabs(site) as (tab,):
        tab.event()
        kept = tab.picture["sessions"]
        assert [(one["what"], one["steps"], one["branches"]) for one in kept] == [("happy-path", 1, 1), (TXN, 3, 2)]
        shown = tab.until(site.post("/api/reopen", {"number": kept[1]["number"]}))
        assert [step["label"] for step in shown["steps"]] == made and shown["present"]["digest"] == digest
        assert {branch["name"]: branch["length"] for branch in shown["branches"]} == {"main": 5, "branch 2": 3}
        assert [one["what"] for one in shown["sessions"]] == ["happy-path"]
        site.post("/api/take", {"index": 0, "at": 3})
        assert len(labels(site)) == 4
    assert "no session 99 to reopen; kept are" in site.refused(400, "POST", "/api/reopen", '{"number": 99}')


def test_undo_leads_back_over_what_was_opened(site: Site) -> None:
    """Step, open, step, reopen: undo takes each back in turn, to where nothing is left to undo."""
    site.post("/api/take", {"index": 0})
    first = labels(site)
    site.post("/api/open", {"what": "happy-path"})
    site.post("/api/take", {"index": 0})
    second = labels(site)
    site.post("/api/reopen", {"number": 1})
    assert labels(site) == first
    site.post("/api/undo")
    assert (site.session.plan.scenario, labels(site)) == ("happy-path", second)
    site.post("/api/undo")
    assert (site.session.plan.scenario, labels(site)) == ("happy-path", [])
    site.post("/api/undo")
    assert (site.session.model.name, labels(site)) == (TXN, first)
    site.post("/api/undo")
    assert labels(site) == []
    assert "nothing to undo" in site.refused(400, "POST", "/api/undo", "")


def test_trail_that_is_refused_leaves_the_session_as_it_is(site: Site) -> None:
    """Nothing is put away for what cannot be opened."""
    site.post("/api/take", {"index": 0})
    before = (site.session.number, site.session.digest(), site.session.kept_sessions.listed())
    site.refused(400, "POST", "/api/open", '{"what": "nope"}')
    site.refused(400, "POST", "/api/load", "{}")
    assert (site.session.number, site.session.digest(), site.session.kept_sessions.listed()) == before


def test_violation_is_found_shown_and_shrunk(site: Site) -> None:
    """The hit is a session of its own; the run that was made by hand is kept beside it."""
    site.post("/api/open", {"what": FLAWED})
    site.post("/api/take", {"index": 0})
    with tabs(site) as (tab,):
        site.post("/api/find", {"runs": 600})
        reported = searched(tab)
        assert reported["found"] and reported["tried"] <= reported["runs"] == 600
        assert reported["outcome"].startswith(f"run {reported['tried']} violates LogsAgreeUpToHwm: ")
        present = tab.picture["present"]
        assert present["violation"]["property"] == "LogsAgreeUpToHwm"
        assert [(one["what"], one["steps"]) for one in tab.picture["sessions"]] == [(FLAWED, 1)]
        steps = len(tab.picture["steps"])
        violation = tab.until(site.post("/api/shrink"))["present"]["violation"]
        assert violation["property"] == "LogsAgreeUpToHwm" and violation["shrunk"]["steps_before"] == steps
        assert violation["shrunk"]["length"] == len(tab.picture["steps"]) <= steps
    for _ in range(2):
        site.post("/api/undo")
    assert len(labels(site)) == 1


def test_search_without_a_hit_says_how_much_it_tried(site: Site) -> None:
    """In a sentence that names the strategies, and that faults were off."""
    with tabs(site) as (tab,):
        site.post("/api/find", {"runs": 4})
        reported = searched(tab)
    assert (reported["tried"], reported["found"]) == (4, False) and reported["steps"] > 4
    assert reported["outcome"] == (
        f"no violation in 4 runs ({reported['steps']:,} steps) with random, pct, guided; faults were off"
    )
    assert site.session.at == 0


def test_search_is_stopped(site: Site) -> None:
    """On request, or because something else is opened; meanwhile it says how far it is, and verbs are carried out."""
    for stop, body in (("/api/stop", {}), ("/api/open", {"what": "happy-path"})):
        with tabs(site) as (tab,):
            site.post("/api/find", {"runs": 1_000_000})
            assert "stop it first" in site.refused(400, "POST", "/api/find", "{}")
            while tab.found is None or not tab.found["on"] or not tab.found["tried"]:
                tab.event()
            assert tab.found["seconds_left"] > 0 and tab.found["rate"] > 0
            site.post("/api/take", {"index": 0})
            site.post(stop, body)
            reported = searched(tab)
            assert reported["outcome"].startswith("the search was stopped; no violation in ") and not reported["found"]
    assert "at least 1 run" in site.refused(400, "POST", "/api/find", '{"runs": 0}')


@pytest.mark.parametrize("spares", [True, False])
def test_run_leaves_the_faults_of_a_person_alone(site: Site, spares: bool) -> None:
    """Neither healed nor restarted, while the strategy's own faults are; without the setting all are mended."""
    for label in ("Partition(b1,c1)", "Crash(b2)"):
        site.post("/api/take", {"label": label})
    site.post("/api/strategy", {"spares": spares, "inject_faults": True, "seed": 3})
    site.post("/api/run", {"until": "step:400", "speed": 0})
    with tabs(site) as (tab,):
        steps = tab.until_paused()["steps"]
    taken = [step["label"] for step in steps]
    mended = {label for label in taken if label.startswith(("Heal(", "Restart("))}
    assert len(mended - {"Heal(b1,c1)", "Restart(b2)"}) >= 2
    assert ({"Heal(b1,c1)", "Restart(b2)"} <= mended) is not spares
    assert bool({"Heal(b1,c1)", "Restart(b2)"} & mended) is not spares


def test_fault_of_a_strategy_that_is_chosen_again_by_hand_is_the_persons(site: Site) -> None:
    """After going back, clicking the step that a run had taken makes it one's own."""
    site.post("/api/strategy", {"inject_faults": True, "seed": 1})
    site.post("/api/run", {"until": "action:Crash", "speed": 0})
    with tabs(site) as (tab,):
        steps = tab.until_paused()["steps"]
        assert not site.session.record.own_faults
        site.post("/api/rewind", {"to": len(steps) - 1})
        site.post("/api/take", {"label": steps[-1]["label"]})
    (kept,) = site.session.record.own_faults
    assert kept == ("Restart", tuple(steps[-1]["args"]), "")


def outcome(site: Site, **how: object) -> str:
    """Run, and return the outcome of it."""
    with tabs(site) as (tab,):
        tab.until(site.post("/api/run", {"speed": 0, **how}))
        said = tab.until_paused()["present"]["outcome"]
    assert said is None or isinstance(said, str)
    return said or ""


def test_run_says_what_it_came_to(site: Site) -> None:
    """Which property broke, or that none did, in how many steps, and why it went no further."""
    site.post("/api/open", {"what": "happy-path"})
    said = outcome(site)
    steps = site.session.at
    assert said == f"no property broke in {steps} steps: no step is possible any more"
    assert outcome(site, until="action:Crash") == "Crash did not happen in 0 steps: no step is possible any more"
    site.post("/api/rewind", {"to": 0})
    assert outcome(site, steps=2) == ""
    assert outcome(site, steps=2, until="violation") == (
        "no property broke in 2 steps: that is how many it was to take"
    )
    action = site.session.node.options[0].action
    assert outcome(site, until=f"action:{action}") == f"{action} happened at step {site.session.at}"
    site.post("/api/open", {"what": FLAWED})
    site.post("/api/strategy", {"strategy": "pct", "seed": 6})
    assert outcome(site) == f"LogsAgreeUpToHwm broke at step {site.session.at}"


def test_run_that_is_stopped_says_so(site: Site) -> None:
    """By a person, after the steps that it took."""
    site.post("/api/open", {"what": "replication/kip-320/actors"})
    with tabs(site) as (tab,):
        tab.until(site.post("/api/run", {"speed": 1}))
        tab.until(site.post("/api/pause"))
        said = tab.picture["present"]["outcome"]
    assert said == f"no property broke in {site.session.at} step{'s' * (site.session.at != 1)}: it was stopped"


def test_run_with_nothing_but_a_persons_faults_to_mend_says_so(site: Site) -> None:
    """It ends instead of waiting for ever."""
    site.post("/api/open", {"what": "happy-path", "budget": "generous"})
    site.post("/api/strategy", {"spares": True})
    site.post("/api/take", {"label": "Pause(c1)"})
    said = outcome(site)
    assert said.endswith("only your own faults could be mended, and those are left alone")


@pytest.mark.parametrize(("where", "ok"), [
    ("cross-site", False), ("same-site", False), ("same-origin", True), ("none", True),
])
def test_verb_from_another_sites_page_is_refused(site: Site, where: str, ok: bool) -> None:
    """Even where the browser sends no Origin; following a link to the page itself is no verb."""
    headers = {"Sec-Fetch-Site": where}
    status, body, _ = site.ask("POST", "/api/take", '{"index": 0}', headers)
    assert (status == 200) is ok and (ok or (status == 403 and b"another site's page" in body))
    assert site.session.at == int(ok)
    assert site.ask("GET", "/", None, headers)[0] == 200


def test_tour_says_its_sizes_and_that_faults_are_off(site: Site) -> None:
    """For each tour its own."""
    with tabs(site) as (tab,):
        for name in ("commit", "rp-01"):
            shown = tab.until(site.post("/api/tour", {"name": name}))
            sizes = ", ".join(f"{size} {number}" for size, number in shown["sizes"].items() if number)
            assert shown["tour"]["about"].startswith(f"The cluster of this tour has {sizes}")
            assert shown["tour"]["about"].endswith("; faults are off.")
