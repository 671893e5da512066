"""A run as a page in one file: all that is in it, what it loads (nothing), and what cannot be one."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import call
from support.demo.sessions import TXN, ran

from harness.demo.session import as_json, questions, recording
from harness.demo.session.live_session import of_trail
from harness.demo.session.recording import RecordedBranch, branches_of, recorded, recorded_trail
from harness.demo.session.snapshot import present, steps
from harness.demo.web.one_file import STATIC, page_of_trail, recording_in
from harness.model import Refusal, find_tour
from harness.record import Trail, tour_trail

Json = dict[str, Any]


def tour_of(name: str) -> Trail:
    return tour_trail(find_tour(name))


def unpacked(made: Json, branch: Json, n: int) -> tuple[Json, Json, list[Json]]:
    """Return the present, the state and the topics after step n of a branch, as the page puts them together."""
    pool = made["pool"]

    def row(places: dict[str, int]) -> Json:
        return {name: pool[place] for name, place in places.items()}

    state = branch["states"][n]
    return (row(branch["presents"][n]), {"actors": row(state["actors"]), "shared": pool[state["shared"]]},
            [pool[place] for place in branch["logs"][n]])


@pytest.mark.parametrize("name", ["rp-01", "commit"])
def test_a_recording_is_what_the_session_answers(name: str) -> None:
    """At every step: the present with its digest, states, topics; each step with its guards and place in the spec."""
    made = json.loads(recorded_trail(tour_of(name)))
    branch, pool = made["branches"][0], made["pool"]
    session = of_trail(tour_of(name))
    while session.refine():
        pass
    assert [pool[place] for place in branch["steps"]] == steps(session)
    for n in range(session.at, -1, -1):
        session.rewind(n)
        shown, state, logs = unpacked(made, branch, n)
        assert {**shown, "can_undo": True} == json.loads(as_json.text_of(present(session)))
        before = session.state(n - 1) if n else None
        assert state == json.loads(as_json.text_of(as_json.state_json(session.lanes, before, session.state(n), None)))
        assert logs == as_json.logs_json(session.model, session.state(n))
    session.forward(session.branch.length)
    for n in (1, session.at):
        assert {key: pool[place] for key, place in branch["about"][n - 1].items()} == questions.about(session, n)()


def test_a_recording_has_every_branch() -> None:
    """Of a session that left its path: each branch with its steps, also those that are kept ahead."""
    session = ran(TXN, 8)
    name, at = session.branch.name, 8
    while len(session.node.options) < 2:
        at -= 1
        session.rewind(at)
    if at == 8:
        session.rewind(7)
        at = 7
    ahead = session.branch.choice(at + 1).label
    session.take(label=next(option.label for option in session.node.options if option.label != ahead))
    branches, current = branches_of(session)
    made = json.loads(recorded(branches, current))
    assert [(one["name"], one["length"], one["from"], one["at"]) for one in made["branches"]] == [
        (name, 8, None, 0), ("branch 2", at + 1, name, at)]
    assert made["current"] == 1 and made["branches"][0]["steps"][:at] == made["branches"][1]["steps"][:at]
    assert unpacked(made, made["branches"][1], at + 1)[0]["digest"] == session.digest()
    assert made["branches"][1]["trail"] == session.trail().text()


def test_a_page_loads_nothing() -> None:
    """No address of elsewhere but names of SVG; what its scripts import is in it; its policy allows no network."""
    text = page_of_trail(tour_of("rp-01"))
    assert set(re.findall(r"https?://[^\"' <)]*", text)) <= {"http://www.w3.org/2000/svg"}
    assert re.findall(r'(?:src|href)="(?!data:|#)', text) == [] and "default-src 'none'" in text
    imports = json.loads(re.search(r'<script type="importmap">(.*)</script>', text)[1])["imports"]  # type: ignore[index]
    sources = {name: base64.b64decode(address.partition(",")[2]).decode() for name, address in imports.items()}
    assert len(sources) == len(list(STATIC.glob("*.js")))
    named = {name for source in sources.values() for name in re.findall(r'(?:from |import\()"([^"]*)"', source)}
    assert named <= set(imports)
    assert recording_in(text) == recorded_trail(tour_of("rp-01"))


def test_a_trail_that_is_no_page_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not fit its model, and one that is too long."""
    trail = ran(TXN, 30).trail()
    monkeypatch.setattr(recording, "MOST_RECORDED", 29)
    with pytest.raises(Refusal, match="holds at most 29 steps, this run has 30; shrink it"):
        recorded([RecordedBranch("trail", trail)])


def test_show_writes_a_page_of_a_trail_and_none_of_a_history(tmp_path: Path) -> None:
    """The same file each time; a history is refused in a sentence, and so is a trail whose labels do not fit."""
    trail, history, page = tmp_path / "t.trail.jsonl", tmp_path / "h.jsonl", tmp_path / "page.html"
    trail.write_text(tour_of("rp-01").text())
    assert call("show", str(trail), "--as", "html", "--out", str(page)).code == 0
    assert page.read_text() == page_of_trail(tour_of("rp-01"))
    history.write_text(questions.exported(tour_of("commit"), "history"))
    done = call("show", str(history), "--as", "html")
    assert done.code == 2 and "a page needs the trail of the run" in done.err
    first = tour_of("rp-01").choices[0].label
    trail.write_text(tour_of("rp-01").text().replace(first.partition("(")[0], "NoSuchAction"))
    done = call("show", str(trail), "--as", "html")
    assert done.code == 2 and done.out == "" and len(done.err.splitlines()) == 1
