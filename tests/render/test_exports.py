"""Every form of a history: text, Mermaid, SVG, ITF and ShiViz, for runs that hold, fail, and suffer faults."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import itf_py
import pytest
from support.runs.named_runs import write_history_of
from support.runs.rendered_runs import RUNS, Case, Talk, case

from harness.model import FrozenMap, Gate, Refusal
from harness.record import read_history
from harness.render import FORMS as ALL_FORMS
from harness.render import render
from harness.render.changes import brief, brief_message, changes
from harness.render.mermaid import escape
from harness.render.shiviz import PARSER, clocks
from harness.render.timeline import ENVIRONMENT, RECEIVED

SVG = "{http://www.w3.org/2000/svg}"
FORMS = tuple(form for form in ALL_FORMS if form != "tla")
"""Those that every run has; `test_tla_export` is about the other one."""


@pytest.fixture(params=RUNS)
def it(request: pytest.FixtureRequest) -> Case:
    """Each of the runs."""
    return case(request.param)


@pytest.mark.parametrize("form", FORMS)
def test_render_of_a_history_read_back_is_the_same(it: Case, form: str, tmp_path: Path) -> None:
    """A history that was written to a file and read back renders exactly as the one in memory."""
    path = write_history_of(it.run, tmp_path / "history.jsonl", it.model)
    assert render(read_history(path, it.model), it.model, form) == render(it.history, it.model, form)


@pytest.mark.parametrize("width", [40, 57, 80, 100, 160])
def test_text_is_never_wider_than_asked(it: Case, width: int) -> None:
    """No line of the timeline is longer than the width, whatever the number of actors."""
    assert max(map(len, it.render("text", width).splitlines())) <= width


def test_text_shows_every_step_message_and_change(it: Case) -> None:
    """The timeline has a line per step with the spec's name, a line per message, and one per changed slot."""
    text = it.render("text", 400)
    for row in it.timeline().rows[1:]:
        assert re.search(rf"^ *{row.n} +(ok )?\d+/\d+ .*{re.escape(row.event.name)}", text, re.M), row.event.name
        for flight in row.sent:
            assert brief_message(flight.message, flight.dest)[:100] in text
        for change in row.changes:
            assert change[:100] in text
    assert f"digest:     {it.history.digest}" in text
    assert str(it.history.header["model"]) in text and f"seed {it.run.trail.seed}" in text


@pytest.mark.parametrize("it", ["fails", "rules"], indirect=True)
def test_text_tells_the_truth_of_every_invariant_at_every_step(it: Case) -> None:
    """A step where all hold says ok; one where some fail has a mark per invariant, and the reason where it begins."""
    text = it.render("text", 400)
    count = len(it.history.header["properties"])
    for event in it.history.events[1:]:
        held = f"ok {count}/{count}" if not event.violated else f" {count - len(event.violated)}/{count}"
        assert re.search(rf"^ *{event.n} +{held} ", text, re.M)
    begins = it.timeline().rows[it.run.verdict.step or 0]
    assert it.run.verdict.violated in begins.began
    marks = "".join("x" if p in begins.event.violated else "+" for p in it.history.header["properties"])
    assert re.search(rf"{re.escape(marks)} FAILS \d+ {it.run.verdict.violated}: ", text)
    assert f"verdict:    violates {it.run.verdict.violated} at step {it.run.verdict.step}" in text


def test_text_puts_steps_in_their_actors_column() -> None:
    """An action stands at the lifeline of its process, or of its first argument that is an address."""
    it = case("fails")
    lines = it.render("text").splitlines()
    names = next(line for line in lines if line.split() == list(it.model.addresses))
    commit = next(line for line in lines if "CommitTxnLogAppend(b2" in line or "CommitTxnLogAppend(b1" in line)
    broker = commit[commit.index("(") + 1 :][:2]
    assert commit.index("CommitTxnLogAppend") == names.index(broker)


def test_text_marks_lost_held_and_copied_messages() -> None:
    """What a fault or a rule does to a message can be read off its arrow."""
    faults, rules = case("faults").render("text"), case("rules").render("text")
    assert "(dropped)" in faults and "(held)" in faults and "(a copy)" in faults
    assert "x> Ping" in rules and "(lost)" in rules and "~> Ping" in rules and "(a copy)" in rules
    assert "gate[end]: up->down" in faults or "gate[node-2]: up->down" in faults
    assert "deaf_to" not in faults and "budget" not in faults and "inbox[" not in faults


def test_text_draws_no_lifeline_while_an_actor_is_down() -> None:
    """Between a crash and its restart the actor's lifeline is a gap."""
    it = case("faults")
    text = it.render("text", 200).splitlines()
    names = next(line for line in text if line.split() == ["end", "node-2", ENVIRONMENT])
    for row in it.timeline().rows[1:]:
        line = next(line for line in text if re.match(rf" *{row.n} ", line) and "/" in line[:14])
        for name, status in row.status.items():
            if name != row.column and row.column == ENVIRONMENT:
                assert line[names.index(name)] == {"up": "|", "paused": ":", "down": " "}[status]


@pytest.mark.parametrize("form", ["text", "mermaid", "svg"])
def test_fair_ending_is_marked_where_it_begins(form: str) -> None:
    """The caller may say where the fair ending begins; nothing is marked where that is unknown."""
    it = case("starves")
    assert it.run.trail.fair_from is not None
    assert "fair ending" in it.render(form)
    assert "fair ending" not in render(it.history, it.model, form)


def test_mermaid_has_every_step_and_nothing_to_choke_on(it: Case) -> None:
    """Each step is an arrow or a note with its number; free text is escaped, odd names are aliases."""
    text = it.render("mermaid")
    lines = text.splitlines()
    assert lines[0] == "sequenceDiagram"
    for row in it.timeline().rows[1:]:
        sign = "->> |-->> " if row.received is not None else "Note over "
        assert re.search(rf"({sign}).*: {row.n} {re.escape(escape(row.event.action))}", text), row.event.name
    for line in lines[1:]:
        assert re.match(r"  (participant \w+( as .*)?|Note over \w+(,\w+)?: .+|\w+(->>|-->>|-x|--\)) \w+: .+)$", line)
        free = re.sub(r"#\w+;|<br/>", "", line.split(": ", 1)[-1])
        assert not re.search(r"[;#%$\\&]", free) and "<" not in free
    assert not re.search(r"participant (end|node-2)$", text, re.M)


def test_mermaid_draws_lost_messages_with_a_cross_and_notes_the_violation() -> None:
    """A lost message is an arrow `-x` in the step that loses it; a violation is a note over all columns."""
    assert re.search(r"-x p\d_: \d+ lost", case("rules").render("mermaid"))
    it = case("fails")
    assert f"Note over c1,b2: step {it.run.verdict.step} FAILS LogsAgreeUpToHwm" in it.render("mermaid")


def test_svg_is_well_formed_and_shows_every_step(it: Case) -> None:
    """The picture is one XML document without anything to fetch, with a row and a mark per step."""
    text = it.render("svg")
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg" and "href" not in text and text.count("http") == 1 and "<script" not in text
    titles = {title.text for title in root.iter(f"{SVG}title")}
    marks = [node.text for node in root.iter(f"{SVG}text") if node.get("class") == "number"]
    for row in it.timeline().rows[1:]:
        assert f"{row.n} {row.label}" in titles
        assert str(row.n) in marks
    for row in it.timeline().rows:
        for began in row.began:
            assert f"step {row.n} FAILS {began}" in text
    assert it.history.digest in text and "prefers-color-scheme: dark" in text


def test_svg_texts_do_not_overlap_and_stay_on_the_page(it: Case) -> None:
    """No two texts of the picture overlap, by the widths of their monospaced letters."""
    root = ET.fromstring(it.render("svg"))
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    boxes = []
    for node in root.iter(f"{SVG}text"):
        css = node.get("class", "")
        words = "".join(part for part in node.itertext()) if len(node) == 0 else node[0].tail or ""
        size = 14 if "title" in css else 13 if "heading" in css else 10 if "label" in css or "number" in css else 11
        x, y, wide = float(node.get("x") or 0), float(node.get("y") or 0), len(words) * size * 0.602
        if node.get("text-anchor") == "end":
            x -= wide
        if css in ("heading", "number"):
            x -= wide / 2
        boxes.append((x, y - size * 0.72, x + wide, y + size * 0.12, words))
        assert x >= 0 and x + wide <= width + 1 and y <= height, words
    boxes.sort(key=lambda box: box[1])
    for n, (left, _, right, low, words) in enumerate(boxes):
        for other in boxes[n + 1 :]:
            if other[1] >= low:
                break
            assert other[0] >= right or other[2] <= left, (words, other[4])


def test_svg_shows_a_crash_as_a_gap_in_the_lifeline() -> None:
    """The lifeline of an actor that crashed and restarted has two parts at least."""
    it = case("faults")
    crashed = next(row.column for row in it.timeline().rows if row.event.action == "Crash")
    root = ET.fromstring(it.render("svg"))
    names = [n for n in root.iter(f"{SVG}text") if n.get("class") == "heading" and n.text == crashed]
    x = names[0].get("x")
    lines = [p.get("d", "") for p in root.iter(f"{SVG}path") if str(p.get("class")).startswith("life")]
    assert sum(line.startswith(f"M{x},") and "V" in line for line in lines) >= 2


@pytest.mark.parametrize("it", [name for name in RUNS if name != "actors"], indirect=True)
def test_itf_reads_back_with_the_models_own_variables(it: Case) -> None:
    """The trace has a state per event, whose variables are the model's."""
    trace = itf_py.trace_from_json(json.loads(it.render("itf")))
    states = list(it.history.states())
    assert len(trace.states) == len(states) == len(it.run.trail.choices) + 1
    assert trace.vars == list(it.model.variables(states[0]))
    for state, event in zip(trace.states, it.history.events, strict=True):
        assert state.meta["index"] == event.n and state.meta["action"] == event.name
        assert set(state.values) == set(trace.vars)


def test_itf_values_are_those_of_the_run() -> None:
    """Integers, records, sequences, sets of messages and missing values come back as what they were."""
    it = case("fails")
    trace = itf_py.trace_from_json(json.loads(it.render("itf")))
    assert trace.states[0].values["client"]["c1"].tc == "None"
    assert trace.meta["status"] == "violation"
    for state, values in zip(it.history.states(), trace.states, strict=True):
        variables = it.model.variables(state)
        assert values.values["pid_source"] == state["pid_source"]
        assert values.values["client"]["c1"].state == state["client[c1]"].state
        assert [e.tid for e in values.values["tc_log"]["b1"]["p1"]] == [e.tid for e in state["tc_log[b1][p1]"]]
        assert {(m.type, m.source) for m in values.values["messages"]} == {
            (m.type, m.source) for m in variables["messages"]
        }
    last = trace.states[-1]
    assert "LogsAgreeUpToHwm" in last.meta["violated"]


def test_shiviz_clocks_are_vector_clocks(it: Case) -> None:
    """A host's own component counts its events; a receive knows all that its send knew."""
    timeline = it.timeline()
    found = clocks(timeline)
    at = {row.n: clock for row, clock in zip(timeline.rows[1:], found, strict=True)}
    count: dict[str, int] = {}
    for row in timeline.rows[1:]:
        count[row.column] = count.get(row.column, 0) + 1
        assert at[row.n][row.column] == count[row.column]
        assert all(time <= count.get(host, 0) for host, time in at[row.n].items())
    for flight in timeline.flights:
        if flight.end == RECEIVED and flight.ended_at is not None and flight.sent_at:
            sent, received = at[flight.sent_at], at[flight.ended_at]
            assert all(received.get(host, 0) >= time for host, time in sent.items())
            assert sent != received


def test_shiviz_log_is_read_by_its_own_parser_expression(it: Case) -> None:
    """The first line parses what follows the empty delimiter line, event by event."""
    first, second, log = it.render("shiviz").split("\n", 2)
    assert first == PARSER and second == ""
    events = re.findall(first.replace("(?<", "(?P<"), log)
    assert len(events) == len(it.history.events) - 1
    for (event, host, clock), row in zip(events, it.timeline().rows[1:], strict=True):
        assert event.startswith(f"{row.n} {row.event.name}") and host == row.column
        assert json.loads(clock)[host] >= 1


def test_every_message_has_one_fate(it: Case) -> None:
    """What is under way at the end of the timeline is what the last state has in its inboxes."""
    timeline = it.timeline()
    *_, last = it.history.states()
    waiting = [m for mine in it.model.inboxes.values() for i in mine for m in i.network.contents(last[i.slot])]
    for a in it.model.addresses:
        waiting += last.get(f"held[{a}]", ())
    under_way = [flight.message for flight in timeline.flights if flight.ended_at is None]
    assert sorted(m.brief() for m in waiting) == sorted(m.brief() for m in under_way)
    received = [row for row in timeline.rows if row.received is not None]
    assert len(received) == sum(e.received is not None and e.kind != "fault" for e in it.history.events)


def test_changes_name_only_what_differs() -> None:
    """Records show changed fields, logs what was added and cut off, gates their status, the network nothing."""
    before = {
        "client[c1]": Talk(0, (1,)), "log[b1]": ("a", "b"), "gate[b1]": Gate(), "inbox[b1]": (), "b1": Talk(1),
        "disk[b1]": FrozenMap({"said": 0}), "known": FrozenMap({"p1": "b1", "p2": None}), "some": frozenset("xy"),
        "turns": FrozenMap({10: 1, 9: 1}),
    }
    writes = {
        "client[c1]": Talk(2, (1,)), "log[b1]": ("a", "c"), "gate[b1]": Gate("down"), "inbox[b1]": ("m",),
        "b1": Talk(1, (4, 5)), "disk[b1]": FrozenMap({"said": 1}), "known": FrozenMap({"p2": "b2", "p3": ""}),
        "some": frozenset("yz"), "turns": FrozenMap({11: 1, 10: 2, 9: 2}),
    }
    assert changes(before, writes) == (
        "b1: heard + 4, heard + 5",
        "client[c1]: said 0->2",
        "disk[b1]: flushed said",
        "gate[b1]: up->down",
        "known: [p1] - b1, [p2] None->b2, [p3] + \"\"",
        "log[b1]: - b, + c",
        "some: - x, + z",
        "turns: [9] 1->2, [10] 1->2, [11] + 1",
    )
    assert brief(Talk(3, (1, 2))) == "<said=3 heard=(1, 2)>" and brief(Talk()) == "<Talk>"


def test_render_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    """Another form, a narrow page and a history read without its model are refused with what to do."""
    it = case("fails")
    with pytest.raises(Refusal, match="no form 'png'"):
        it.render("png")
    with pytest.raises(Refusal, match="at least 40"):
        it.render("text", 39)
    path = write_history_of(it.run, tmp_path / "history.jsonl", it.model)
    for form in ALL_FORMS:
        with pytest.raises(Refusal, match="without its model"):
            render(read_history(path), it.model, form)
