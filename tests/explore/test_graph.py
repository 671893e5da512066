"""The command `graph`: whole state graphs against the model checker's, and the pictures of small ones."""

from __future__ import annotations

import gzip
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import call, files_below
from support.paths import DATA
from support.searches.encoded_graphs import text

from harness.cli import graph as command
from harness.explore.graph_file import Hidden, build_graph, hidden, without
from harness.model import FrozenMap, Refusal, find_model
from harness.render.graph_layout import LayoutLink, crossings, lay_out
from harness.render.graph_picture import picture

GRAPHS = sorted(DATA.glob("*.json.gz"))
SIZES = {
    "transactions": {"p": "txn-log-partitions", "t": "transactional-ids", "tp": "topic-partitions", "c": "clients",
                     "b": "brokers", "e": "elections"},
    "replication": {"R": "replicas", "L": "log-size", "M": "max-records", "E": "max-leader-epoch"},
    "compaction": {"M": "messages", "C": "compactions", "K": "keys", "V": "values", "crash": "crashes"},
}
"""What the letters of a graph's file name stand for."""
QUIRKS = {"BecomeFollowerTruncateToHighWatermark": "BecomeFollowerAndTruncateTo", "Producer": "Next"}
"""Actions whose name the model checker does not print, because of how the spec is worded."""
ONE_CLIENT = ("transactions/diary-01", "--set", "init=choose", "--size", "clients=1", "--size", "brokers=3")
FIGURE_4 = (*ONE_CLIENT, "--hide", "messages_discard", "--hide", "client.last_state", "--hide", "client.last_error")
SVG = "{http://www.w3.org/2000/svg}"


def read(path: Path) -> dict[str, Any]:
    data = json.loads(gzip.decompress(path.read_bytes()))
    assert isinstance(data, dict)
    return data


def arguments(path: Path) -> list[str]:
    """Return the arguments that ask for a reference graph, by its file name."""
    system, _, rest = path.name.removesuffix(".json.gz").partition("-" if "-" in path.name else "_")
    if system == "compaction":
        model, given = "compaction/pulsar", ["--set", "producer=true", "--set", "retain-null-key=false"]
        found = re.findall(r"([MCKV])(\d)", rest.partition("_")[0]) + re.findall(r"(crash)(\d)", rest)
    else:
        variant, _, sizes = rest.rpartition("_")
        model, given = f"{system}/{variant}", ["--set", "init=published"] if variant == "diary-01" else []
        found = re.findall(r"([a-zA-Z]+)(\d+)", sizes)
    return [model, *given, *(part for letter, n in found for part in ("--size", f"{SIZES[system][letter]}={n}"))]


@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_graph_file_has_the_model_checkers_states_and_edges(path: Path, tmp_path: Path) -> None:
    """What the command writes decodes to the reference: variables, initial states, states and labelled edges."""
    out = tmp_path / "graph.json.gz"
    reported = call("graph", *arguments(path), "--out", out, "--json").json
    ours, theirs = read(out), read(path)
    states, reference = ([text(state) for state in graph["states"]] for graph in (ours, theirs))

    assert set(ours) == {"vars", "init", "states", "edges"}
    assert ours["vars"] == sorted(theirs["vars"])
    assert {states[n] for n in ours["init"]} == {reference[n] for n in theirs["init"]}
    assert len(states) == len(set(states))
    assert set(states) == set(reference)
    edges = Counter((states[a], QUIRKS.get(label, label), states[b]) for a, label, b in ours["edges"])
    assert edges == Counter((reference[a], label, reference[b]) for a, label, b in theirs["edges"])
    counts = [reported[name] for name in ("states", "edges", "initial")]
    assert counts == [len(states), len(ours["edges"]), len(ours["init"])]


def test_graph_every_reference_graph_is_asked_for() -> None:
    """Seven graphs are compared, of all three protocols."""
    assert [len([path for path in GRAPHS if path.name.startswith(system)]) for system in SIZES] == [4, 2, 1]


def test_graph_file_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    """Neither the time nor the name of the file is in it; without .gz in its name it is plain JSON."""
    files = [tmp_path / name for name in ("one.json.gz", "other.json.gz", "plain.json")]
    for path in files:
        said = call("graph", *ONE_CLIENT, "--out", path).out
        assert said == f"transactions/diary-01: 36 states, 40 steps, depth 11, written to {path}\n"
    one, other, plain = (path.read_bytes() for path in files)
    assert one == other
    assert gzip.decompress(one) == plain


@pytest.mark.parametrize(
    ("asked", "states", "depth"), [(FIGURE_4, 10, 5), (ONE_CLIENT, 36, 11)], ids=["figure 4", "figure 5"]
)
def test_graph_figures_of_diary_01(asked: tuple[str, ...], states: int, depth: int, tmp_path: Path) -> None:
    """Figure 4 needs a view without last_state and last_error; for figure 5 the model checker gives 36, not 33."""
    for form in ("json", "dot", "svg"):
        reported = call("graph", *asked, "--as", form, "--out", tmp_path / f"figure.{form}", "--json").json
        assert (reported["states"], reported["depth"], reported["initial"]) == (states, depth, 1)
    dot = (tmp_path / "figure.dot").read_text(encoding="utf-8")
    assert len(re.findall(r"^  s\d+ \[", dot, re.M)) == states
    root = ET.fromstring((tmp_path / "figure.svg").read_text(encoding="utf-8"))
    names = [node.text for node in root.iter(f"{SVG}text") if node.get("class") == "name"]
    assert names == ["0 initial", *(str(n) for n in range(1, states))]


def test_graph_under_a_view_keeps_one_state_of_each_class(tmp_path: Path) -> None:
    """Every state has all its variables; no two agree in all that is not hidden."""
    out = tmp_path / "figure.json.gz"
    call("graph", *FIGURE_4, "--out", out)
    states = read(out)["states"]
    assert all(set(state) == set(read(out)["vars"]) for state in states)
    seen = set()
    for state in states:
        client = {name: value for name, value in state["client"]["c1"].items() if not name.startswith("last_")}
        seen.add(text({**state, "client": client, "messages_discard": None}))
    assert len(seen) == len(states) == 10


def test_graph_view_is_the_models_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--view hides what the model says, on top of --hide; a model that says nothing is refused."""
    monkeypatch.setattr(command, "_view_of", lambda model: ("messages_discard",))
    hidden = ("--view", "--hide", "client.last_state")
    reported = call("graph", *ONE_CLIENT, *hidden, "--out", tmp_path / "g", "--json").json
    assert reported["hidden"] == ["client.last_state", "messages_discard"]
    assert reported["states"] < 36
    monkeypatch.undo()
    viewless = ("replication/async-isr", "--view", "--out", tmp_path / "x")
    assert "has no view of its own" in call("graph", *viewless).refusal


def test_graph_hidden_fields_leave_records_and_maps() -> None:
    """The outermost records lose the field, wherever they are; what has no such field stays as it is."""
    model = find_model("transactions/diary-01").make({"clients": 1}, {}, history_variables=True)
    client = model.variables(model.initial_states()[0])["client"]
    (cut,) = without(client, frozenset(["pid"])).values()
    assert "pid" not in cut and "epoch" in cut
    assert without((FrozenMap({"a": 1}), 2), frozenset("a")) == (FrozenMap(), 2)
    assert without(client, frozenset(["nothing"])) == client
    assert hidden(model, ["client.pid", "messages", "client.tid"]) == Hidden(
        frozenset(["messages"]), {"client": frozenset(["pid", "tid"])}
    )


def built(*asked: str) -> Any:
    """Return the graph of diary 01 with one client."""
    model = find_model("transactions/diary-01").make({"clients": 1, "brokers": 3}, {"init": "choose"})
    return build_graph(model, hidden(model, asked), 500, lambda most: Refusal(f"more than {most}"))


def test_picture_tells_what_is_new_but_not_what_is_hidden() -> None:
    """A box has the changes since the state it was found from; several steps between two states are one arrow."""
    shown = picture(built())
    assert shown.boxes[1].lines == (
        "client[c1].state Ready -> SentInitPidRequest", "client[c1].tid None -> tid1",
        "messages + InitPidRequest c1->b1 tid=tid1",
    )
    assert "client[c1].last_error" in "\n".join("\n".join(box.lines) for box in shown.boxes)
    cut = picture(built("client.last_state", "client.last_error"))
    assert "last_error" not in "\n".join("\n".join(box.lines) for box in cut.boxes)
    assert len({(arrow.source, arrow.target) for arrow in shown.arrows}) == len(shown.arrows)
    assert [sum(arrow.first and arrow.target == box.number for arrow in shown.arrows) for box in shown.boxes] == [
        0, *(1 for _ in shown.boxes[1:])
    ]


def test_picture_has_steps_that_change_nothing_in_their_box() -> None:
    """A step from a state to itself is a line in the box, not an arrow."""
    model = find_model("replication/async-isr").make({"max-version": 1})
    shown = picture(build_graph(model, Hidden(), 500, lambda most: Refusal("more")))
    assert any("loop: LeaderRequestShrinkIsr" in box.text for box in shown.boxes)
    assert all(arrow.source != arrow.target for arrow in shown.arrows)


DRAWN = {
    "figure 4": FIGURE_4,
    "several initial states": ("transactions/diary-01", "--size", "clients=1", "--size", "brokers=3"),
    "steps within a layer": (
        "compaction/pulsar", "--set", "producer=true", *(f"--size={name}=1" for name in SIZES["compaction"].values())
    ),
    "steps back": ("replication/kip-320", "--size=log-size=1", "--size=max-records=1", "--size=max-leader-epoch=0"),
}


@pytest.mark.parametrize("asked", DRAWN.values(), ids=list(DRAWN))
def test_svg_of_a_graph_is_well_formed_and_nothing_overlaps(asked: tuple[str, ...], tmp_path: Path) -> None:
    """One XML document without anything to fetch; boxes and labels are clear of each other and on the page."""
    out = tmp_path / "graph.svg"
    reported = call("graph", *asked, "--as", "svg", "--out", out, "--json").json
    source = out.read_text(encoding="utf-8")
    assert "href" not in source and source.count("http") == 1 and "prefers-color-scheme: dark" in source
    root = ET.fromstring(source)
    group = next(root.iter(f"{SVG}g"))
    frames = [node for node in group.iter(f"{SVG}rect") if node.get("class") in ("box", "page")]
    assert len([node for node in frames if node.get("class") == "box"]) == reported["states"]
    assert len([node for node in group.iter(f"{SVG}rect") if node.get("class") == "inner"]) == reported["initial"]
    places = [tuple(float(node.get(key) or 0) for key in ("x", "y", "width", "height")) for node in frames]
    wide, high = (float(root.get(key) or 0) for key in ("width", "height"))
    for n, (x, y, width, height) in enumerate(places):
        assert x >= -0.1 and x + width <= wide and y >= 0 and y + height <= high
        for left, top, over, down in places[:n]:
            assert x >= left + over or left >= x + width or y >= top + down or top >= y + height
    words = [node.text or "" for node in group.iter(f"{SVG}text")]
    labels = [node.text or "" for node in group.iter(f"{SVG}text") if node.get("class") == "label"]
    assert len(labels) + sum(word.startswith("loop: ") for word in words) <= reported["edges"]
    assert len([node for node in group.iter(f"{SVG}path") if str(node.get("class")).startswith("tip")]) <= len(labels)


def test_svg_lines_run_beside_boxes() -> None:
    """Where a line crosses a layer it goes straight down, as far from all boxes as the gap between two of them."""
    sizes = [(0, 50.0, 20.0), (1, 80.0, 60.0), (1, 60.0, 20.0), (2, 40.0, 30.0)]
    ends = ((0, 1, 20), (0, 2, 20), (2, 3, 30), (3, 0, 30), (1, 2, 10))
    links = [LayoutLink(source, target, width, 10) for source, target, width in ends]
    layers = lay_out(sizes, links, 20.0)
    for n, item in enumerate(layers.items):
        for other in layers.items[:n]:
            if item.layer == other.layer:
                assert abs(item.x - other.x) >= (item.width + other.width) / 2
    up = layers.routes[3]
    assert up.is_up and up.items[0] == 0 and up.items[-1] == 3 and len(up.items) == 5
    assert all(layers.items[m].layer == layers.items[n].layer + 1 for n, m in pairwise(up.items))


def test_layout_undoes_crossings_that_need_not_be() -> None:
    """Two arrows that cross in the given order are drawn side by side."""
    sizes = [(0, 30.0, 10.0), (0, 30.0, 10.0), (1, 30.0, 10.0), (1, 30.0, 10.0)]
    layers = lay_out(sizes, [LayoutLink(0, 3, 10, 10), LayoutLink(1, 2, 10, 10)], 10.0)
    order = [sorted((n for n, item in enumerate(layers.items) if item.layer == layer),
                    key=lambda n: layers.items[n].x) for layer in range(3)]
    assert crossings(layers.items, order) == 0
    assert layers.items[0].x == pytest.approx(layers.items[3].x)


def test_dot_of_a_graph_is_quoted(tmp_path: Path) -> None:
    """Each line is a statement; quotes and backslashes in a text are escaped."""
    out = tmp_path / "graph.dot"
    call("graph", *ONE_CLIENT, "--as", "dot", "--out", out)
    first, *middle, last = out.read_text(encoding="utf-8").splitlines()
    assert (first, last) == ('digraph "transactions/diary-01" {', "}")
    label, rest = r'label="(?:[^"\\]|\\.)*"', "( peripheries=2| style=bold| constraint=false)*"
    for line in middle[2:]:
        assert re.fullmatch(rf"  s\d+( -> s\d+)? \[{label}{rest}\];", line)


REFUSED: list[tuple[tuple[str, ...], str]] = [
    ((), "missing argument"),
    (("transactions/nope", "--out", "g"), "there is no model 'transactions/nope'"),
    (("transactions/diary-01",), "missing option '--out'"),
    (("transactions/diary-01", "--size", "brokers=99", "--out", "g"), "must be between"),
    (("transactions/diary-01", "--as", "png", "--out", "g"), "there is no form 'png' of a graph; give one of js"),
    (("transactions/diary-01", "--hide", "nope", "--out", "g"), "has no variable 'nope' to hide; its variables are cl"),
    (("transactions/diary-01", "--hide", "client.nope", "--out", "g"), "has no record with a field 'nope' to hide"),
    (("transactions/diary-01", "--as", "svg", "--out", "g"), "more than 300 states at this size, too many to draw as"),
    (("transactions/diary-01", "--as", "dot", "--out", "g"), "use smaller sizes, hide variables with --hide"),
    (("transactions/diary-01", "--out", "."), "it is a folder"),
    (("transactions/diary-01", "--out", "file/g"), "cannot write into file: it is not a folder"),
]


@pytest.mark.parametrize(("asked", "said"), REFUSED, ids=[" ".join(asked) for asked, _ in REFUSED])
def test_graph_wrong_use_is_refused_in_one_sentence(
    asked: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was expected and what was found is said, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    assert said in call("graph", *asked).refusal
    assert files_below(tmp_path) == {"file": b"kept"}


def test_graph_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence has the number that is too many, and nothing is left behind."""
    monkeypatch.setattr(command, "MOST_STATES", 20)
    assert "has more than 20 states at this size" in call("graph", *ONE_CLIENT, "--out", tmp_path / "g").refusal
    assert files_below(tmp_path) == {}


def test_graph_interrupted_while_it_writes_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither half a file nor a change of the one that was there."""
    out = tmp_path / "g.json.gz"
    out.write_bytes(b"before")

    def interrupted(*_: Any) -> Any:
        yield "{"
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "graph_lines", interrupted)
    done = call("graph", *ONE_CLIENT, "--out", out)
    assert (done.code, done.sentence) == (130, "interrupted; nothing was written")
    assert files_below(tmp_path) == {"g.json.gz": b"before"}
