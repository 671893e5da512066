"""What a report is made of: plots, escaped texts, styles, witnesses of other code, and what was recorded elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
from support.commands.command_line import call
from support.paths import DATA
from support.spark.spark_session import spark

from harness.campaign.cells import cells
from harness.campaign.checks import Point, Reached
from harness.campaign.clusters import _witnesses
from harness.campaign.report import markup, plots
from harness.record import Chosen
from harness.render.svg_style import scoped

FLAWED, REPAIRED, CALM = "s4-copied-tail", "s4-copied-tail-repaired", "happy-path"


def test_violations_of_other_code_are_told_by_their_rows() -> None:
    """A witness that does not fit the code any more is kept as it is, with the action that the row names."""
    trail = attrs.evolve(cells([FLAWED])[0].trail(3), choices=(Chosen("Gone(b1)"),))
    run = {"cell": "c", "seed": 3, "trail": "\n".join(trail.each_line()) + "\n", "reason": "as it was"}
    group = {"what": FLAWED, "property": "LogsAgreeUpToHwm", "action": "Gone", "faults": ["Crash"], "violations": 2,
             "runs": 2, "run": run}
    found = next(_witnesses([(group, True)]))
    assert (found.shrunk, found.replays, found.actions, found.faults) == (False, False, ("Gone",), ("Crash",))
    assert found.reason == "as it was" and found.has == found.had == 1


def test_plots_are_the_same_each_time_and_readable_without_colour() -> None:
    """Found, found without a fault, and silent have three marks; labels and counts are text in the page's colour."""
    marks = [plots.Mark(40, 100, "with <Crash>"), plots.Mark(4, 100, "without", is_hollow=True),
             plots.Mark(0, 9, "calm")]
    drawn = plots.rates(marks, "one", 'about "this"')
    assert drawn == plots.rates(marks, "one", 'about "this"')
    assert all(text in drawn for text in ("with &lt;Crash&gt;", "40 of 100", "0 of 9", "about &quot;this&quot;"))
    shapes = [re.findall(r"xlink:href=\"#(\w+)\"", plots.rates([mark], "one", "")) for mark in marks]
    assert len({used[-1] for used in shapes}) == 3 and drawn.startswith("<svg role=")
    assert "currentColor" in drawn and plots.INK not in drawn and "<style" not in drawn and "date" not in drawn
    curve = tuple(Point(n, 10 - n, n, 1_000.0 / n) for n in range(1, 9))
    some = [Reached(f"scenario-{n}", {}, (), 0, (), (), 5, 8, curve) for n in range(plots.PANELS + 1)]
    assert plots.curves(some, "two", "") == plots.curves(some, "two", "")
    assert f"scenario-{plots.PANELS - 1}" in plots.curves(some, "two", "")


def test_texts_are_escaped_and_styles_stay_where_they_belong() -> None:
    """Markup in a text is shown, not obeyed; each rule of the diagrams is for diagrams only."""
    row = markup.table(("name",), [("<b onload='x'>&",)])
    assert "&lt;b onload=&#x27;x&#x27;&gt;&amp;" in row and "<b " not in row
    rules = [line.strip() for line in scoped(".diagram").splitlines() if "{" in line and "@" not in line]
    assert len(rules) > 40 and all(rule.startswith(".diagram ") for rule in rules)
    assert all(one.strip().startswith(".diagram ") for rule in rules for one in rule.partition("{")[0].split(","))


def test_what_was_recorded_elsewhere_is_reported_without_a_replay(tmp_path: Path) -> None:
    """A history without a trail has its cluster and its reason, no command, and leaves no file for a witness."""
    spark()
    data = DATA / "jepsen"
    assert call("import", data / "lost-write.edn", "--as", "jepsen", "--out", tmp_path / "queue").code == 0
    done = call("report", tmp_path / "queue")
    assert done.code == 0, done.err
    assert "AckDurability in 1 run" in done.out and "recorded elsewhere, without a trail" in done.out
    assert "1 stored history judged again" in done.out and "all agree" in done.out
    page = (tmp_path / "queue" / "report.html").read_text(encoding="utf-8")
    assert "Recorded elsewhere, without a trail" in page and "kafka-proto replay" not in page
    assert not (tmp_path / "queue" / "report-witnesses").exists()
