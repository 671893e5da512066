"""What keeps growing: searches that have no end say so, and what it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from support.commands.command_line import call
from support.runs.named_runs import registering

from harness import model as m
from harness.cli import check_limits
from harness.explore.growth import growth


class Late(m.Process):
    """Turns switches; in one position of them all it may crash, and asks for ever afterwards."""

    name = "late"
    switches = tuple(f"switch[{n}]" for n in range(12))

    def steps(self, view: m.View) -> Iterable[m.Step]:
        """Ask, or turn a switch, or crash."""
        if view["crashed"]:
            yield m.Step("Ask", (), (("asked", view["asked"] + 1),))
            return
        for name in self.switches:
            yield m.Step("Turn", (name,), ((name, not view[name]),))
        if all(view[name] == (n % 2 == 0) for n, name in enumerate(self.switches)):
            yield m.Step("Crash", (), (("crashed", True),))


class Counter(m.Process):
    """Counts for ever; `most` ends it."""

    name = "counter"

    def __init__(self, most: int = 0) -> None:
        self.most = most

    def steps(self, view: m.View) -> Iterable[m.Step]:
        """Count, or turn a switch."""
        if not self.most or view["count"] < self.most:
            yield m.Step("Count", (), (("count", view["count"] + 1),))
        yield m.Step("Switch", (), (("switch", not view["switch"]),))


known = registering(m.System("growing", (
    m.ModelSpec("late", "grows where few of its states lead", lambda *_: m.Model(
        "late", (Late(),), ({**dict.fromkeys(Late.switches, False), "crashed": False, "asked": 0},)), {}),
    m.ModelSpec("counter", "counts for ever, or up to a size", lambda sizes, *_: m.Model(
        "counter", (Counter(sizes["most"]),), ({"count": 0, "switch": False},), sizes=sizes),
                {"most": m.Size(0, 0, 10_000)}),
)), autouse=False)


@pytest.mark.usefixtures("known")
def test_check_sees_growth_that_begins_late(tmp_path: Path) -> None:
    """Walks from the start do not lead there; those from the frontier of the search do."""
    assert growth(m.find_model("late").make()).parts == ()
    done = call("check", "late", "--states", "5000", "--json", "--out", tmp_path)
    assert done.code == 2
    assert [part["path"] for part in done.json["growing"]] == ["asked"]
    assert done.json["growing_timers"] == []


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("engine", ["python", "auto"])
def test_check_of_an_endless_spec_ends_and_says_what_keeps_growing(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A spec composition has no limit of its own: once it is long, what keeps growing ends it, with a sentence."""
    monkeypatch.setattr(check_limits, "MANY_LEVELS", 50)
    done = call("check", "counter", "--engine", engine, "--json", "--out", tmp_path)
    assert "as count keeps growing; bound it with --size, or limit the search" in done.refusal
    assert (done.json["verdict"], done.json["limit"]["name"]) == ("limited", "growth")
    assert [part["path"] for part in done.json["growing"]] == ["count"]
    bounded_one = call("check", "counter", "--size", "most=200", "--engine", engine, "--json", "--out", tmp_path)
    assert (bounded_one.code, bounded_one.json["distinct"]) == (0, 402)
    limited = call("check", "counter", "--engine", engine, "--states", "300", "--json", "--out", tmp_path).json
    assert limited["limit"] == {"name": "states", "value": 300}


def test_nothing_keeps_growing_in_specs() -> None:
    """No spec composition here grows without end: each is finite, or bounded by a constraint."""
    specs = [spec.make(history_variables=True) for spec in m.model_specs() if not spec.may_fault]
    assert len(specs) > 8
    assert {model.name: growth(model).parts for model in specs if growth(model).parts} == {}
