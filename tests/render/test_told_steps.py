"""A process may tell what its steps show: lifelines and messages of its own, in every form; any model can."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import pytest

import harness.model as m
from harness.record import EventRecorder, Trail, header_of
from harness.record.choices import Chosen, ChosenInput
from harness.render import render
from harness.render.timeline import Folded, timeline_of
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import Replay

LANES = ("client", "server")


@attrs.frozen
class Told(m.Process):
    """A server that is given numbers, and tells of them as requests; even ones are minor, 3 is held until 5."""

    name: str = "server"

    def outside(self, view: m.View, value: m.Value) -> Iterable[m.Step]:
        assert isinstance(value, int)

        def told() -> m.Telling:
            asked = m.ShownMessage("Ask", (("number", str(value)),), source="client", dest="server")
            answer = m.ShownMessage("Ask: ok", (), source="server", dest="client")
            sent = [m.ToldMessage(f"{value}", asked, None, value % 2 == 0)]
            fates = [(f"{value}", "held" if value == 3 else m.DELIVERED)]
            if value == 5:
                fates += [("3", "released"), ("3", m.DELIVERED)]
            elif value != 3:
                sent.append(m.ToldMessage(f"{value}a", answer, None, value % 2 == 0))
                fates.append((f"{value}a", m.DELIVERED))
            gates = {"server": m.Gate("paused")} if value == 3 else {}
            return m.Telling("client", "", LANES, tuple(sent), tuple(fates), ("counted",) if value == 5 else (), gates,
                             is_minor=value % 2 == 0)

        yield m.Step("Took", (str(value),), (("count", view["count"] + value),), kind=m.Kind.INPUT, told=told)


@pytest.fixture(name="run")
def _run() -> tuple[m.Model, object]:
    model = m.Model("toy", (Told(),), ({"count": 0},), tells=True)
    choices = tuple(Chosen(f"Took({n})", input=ChosenInput.of("server", n)) for n in (1, 2, 4, 3, 6, 5))
    trail = Trail("toy", {}, {}, "unordered-set", m.NO_FAULTS, (), choices, strategy="outside")
    recorder = EventRecorder()
    session = Replay(Tables(model), trail, recorder)
    while (n := session.decide()) >= 0:
        session.take(n)
    return model, recorder.history(header_of(trail, model, "plain"), session.finish().verdict.to_json(), model)


def test_text_has_its_arrows_fates_and_folds(run: tuple[m.Model, object]) -> None:
    """At once, held, released later; what is minor makes a line, or stands there where all is asked for."""
    model, history = run
    text = render(history, model, "text", 80)  # type: ignore[arg-type]
    lines = [" ".join(line.replace("|", " ").replace(":  ", " ").split()) for line in text.splitlines()]
    at = lines.index("client server")
    assert lines[at + 1 : at + 9] == [
        "1 -> server Ask number=1", "<- server Ask: ok", "2 ... 2 steps: 2 Ask", "4 ~> server Ask number=3 (held)",
        "5 ... 1 step: Ask", "6 -> server Ask number=3 (was held since step 4)", "-> server Ask number=5", "counted"]
    whole = render(history, model, "text", 80, whole=True)  # type: ignore[arg-type]
    assert "number=2" in whole and "..." not in whole


def test_the_timeline_has_its_lifelines_flights_and_statuses(run: tuple[m.Model, object]) -> None:
    """Flights of minor messages are left out; a lifeline is paused while the telling says so."""
    model, history = run
    timeline = timeline_of(history, model)  # type: ignore[arg-type]
    assert timeline.columns == LANES
    assert [(flight.message.brief(), flight.end) for flight in timeline.flights] == [
        ("Ask client->server number=1", "received"), ("Ask: ok server->client", "received"),
        ("Ask client->server number=3", "received"), ("Ask client->server number=5", "received")]
    assert [isinstance(row, Folded) for row in timeline.shown()] == [False, False, True, False, True, False]
    assert timeline.rows[4].status == {"server": "paused"} and timeline.rows[6].status == {}


@pytest.mark.parametrize("form", ["mermaid", "svg", "shiviz", "log"])
def test_other_forms_have_the_same_messages(form: str, run: tuple[m.Model, object]) -> None:
    model, history = run
    text = render(history, model, form)  # type: ignore[arg-type]
    assert all(f"number={n}" in text for n in (1, 3, 5)) and "number=2" not in text
