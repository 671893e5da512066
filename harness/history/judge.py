"""Judging recorded files: properties and refinement from the recorded states alone, and the record itself.

Nothing that a file says about itself is believed: invariants are evaluated again in every recorded state, and what was
recorded is compared with that. What a history cannot show, the properties that are judged on a fair ending, is taken
from the trail beside it where its replay gives the same digest, and otherwise named as not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import attrs

from harness.history.consistent import Oddity, departures, inconsistencies
from harness.history.refine import ROOM, Ids, Refined, Refiner, Trace
from harness.history.why_not import Explanation, explain
from harness.model import Model, Refusal
from harness.record import (
    Event,
    History,
    Recorder,
    Trail,
    header_of,
    history_of,
    model_of_history,
    read_history,
    read_trail,
)
from harness.record.files import compact, each_text, parse_line
from harness.record.history import FORMAT as HISTORY_FORMAT
from harness.record.trail import FORMAT as TRAIL_FORMAT
from harness.record.trail import faults_to_json, format_said
from harness.simulate.replay import DEADLOCK, replay_plain
from harness.simulate.tables import Tables

MOST_ODDITIES = 5
"""Findings about the record itself that are kept; the first says the most."""


@attrs.frozen
class Broken:
    """A property that fails: where first, why, and whether the file claims it."""

    name: str
    step: int
    reason: str
    claimed: bool


@attrs.frozen
class Judged:
    """What a file came to."""

    path: Path
    kind: str
    """`history` or `trail`."""
    model: str
    steps: int
    properties: int
    """How many invariants were evaluated in every state."""
    broken: tuple[Broken, ...]
    differs: tuple[str, ...]
    """Where the recorded verdict and the recorded states disagree."""
    odd: tuple[Oddity, ...]
    """What no run of the model is like, in the record itself."""
    departed: Oddity | None
    """The first step that the model's own actors would not take so."""
    refined: Refined | None
    """None where the model has no refinement."""
    explanation: Explanation | None
    unjudged: tuple[str, ...]
    """Claimed properties that recorded states do not show."""

    @property
    def findings(self) -> tuple[str, ...]:
        """What is wrong, as kinds: `property`, `refinement`, `verdict`, `record` and `actors`.

        `actors` alone is a run that the spec allows and that the model's own actors would not make.
        """
        found = {
            "property": any(broken.claimed for broken in self.broken),
            "refinement": self.explanation is not None,
            "verdict": bool(self.differs),
            "record": bool(self.odd),
            "actors": self.departed is not None,
        }
        return tuple(kind for kind, is_found in found.items() if is_found)

    @property
    def ok(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        refined = self.refined
        return {
            "file": str(self.path), "kind": self.kind, "model": self.model, "steps": self.steps, "ok": self.ok,
            "findings": list(self.findings), "properties": self.properties,
            "violated": [attrs.asdict(broken) for broken in self.broken], "differs": list(self.differs),
            "record": [attrs.asdict(oddity) for oddity in self.odd],
            "departed": None if self.departed is None else attrs.asdict(self.departed),
            "not_judged": list(self.unjudged),
            "refinement": None if refined is None else {
                "steps": refined.steps, "stutters": refined.stutters, "actions": dict(refined.actions),
                "extensions": dict(refined.extensions), "spec_states": len(refined.reached),
            },
            "explanation": None if self.explanation is None else self.explanation.to_json(),
        }


class Judge:
    """Judges files; those of one model at one size share what was learned about it."""

    def __init__(self) -> None:
        self._tables: dict[str, tuple[Tables, Refiner | None]] = {}

    def file(self, path: Path) -> Judged:
        """Judge a trail or a history. Raises Refusal."""
        first = parse_line(path, "trail or history", 1, next(each_text(path, "trail or history")))
        found = first.get("format")
        if found == HISTORY_FORMAT:
            return self._history(path)
        if found == TRAIL_FORMAT:
            return self._trail(path)
        said = format_said(first)
        raise Refusal(f"{path} is neither a trail nor a history: its first line {said}; give another file")

    def _history(self, path: Path) -> Judged:
        model = model_of_history(path)
        history = read_history(path, model)
        beside = path.with_name(path.name.removesuffix(".history.jsonl") + ".trail.jsonl")
        replayed = None
        if beside != path and beside.is_file() and _lasting(model, history.header["claims"]):
            trail = read_trail(beside)
            if _is_about(trail, history):
                tables, _ = self._of(history.header, model)
                replayed = _replayed(trail, tables, history.header["runtime"])
        return self._judge(path, "history", model, history, replayed)

    def _trail(self, path: Path) -> Judged:
        trail = read_trail(path)
        model = trail.build()
        header = header_of(trail, model, "plain")
        tables, _ = self._of(header, model)
        history = _replayed(trail, tables, "plain")
        judged = self._judge(path, "trail", model, history, history)
        if trail.violates is not None and trail.violates not in {broken.name for broken in judged.broken}:
            said = f"the trail says that it violates {trail.violates}; its replay does not"
            return attrs.evolve(judged, differs=(*judged.differs, said))
        return judged

    def _of(self, header: Mapping[str, Any], model: Model) -> tuple[Tables, Refiner | None]:
        key = compact({name: header[name] for name in ("model", "sizes", "settings", "network", "faults")})
        if key in self._tables and self._tables[key][0].used >= ROOM:
            del self._tables[key]
        if key not in self._tables:
            tables = Tables(model)
            tables.pinned = True
            self._tables[key] = tables, Refiner(model, tables) if model.refinement is not None else None
        return self._tables[key]

    def _judge(
        self, path: Path, kind: str, model: Model, history: History, replayed: History | None
    ) -> Judged:
        tables, refiner = self._of(history.header, model)
        trace = refiner.trace(history.events) if refiner is not None else plain_trace(tables, history.events)
        failing = list(evaluate(tables, trace.states))
        broken = list(_broken(failing, history.header["claims"]))
        differs = list(_differences(tables, history, failing, trace.states[-1]))
        lasting = _lasting(model, history.header["claims"])
        unjudged: tuple[str, ...] = ()
        if replayed is not None and replayed.digest == history.digest:
            broken += _lasting_broken(replayed)
            differs += _differs_from(replayed, history)
        else:
            unjudged = lasting
        refined = refiner.judge(trace) if refiner is not None else None
        explanation = None
        if refiner is not None and refined is not None and refined.failure is not None:
            explanation = explain(refiner, refined.failure)
        return Judged(
            path, kind, model.name, len(history.events) - 1, len(tables.invariants), tuple(broken), tuple(differs),
            tuple(islice(inconsistencies(model, history.events), MOST_ODDITIES)),
            next(departures(tables, history.events, trace.states), None), refined, explanation, unjudged,
        )


def plain_trace(tables: Tables, events: Iterable[Event]) -> Trace:
    """Return the states after each event as ids of tables."""
    states: list[Ids] = []
    for event in events:
        state = list(states[-1]) if states else [0] * len(tables.slots)
        for name, value in event.writes.items():
            state[tables.index[name]] = tables.intern_value(tables.index[name], value)
        states.append(tuple(state))
    return Trace(states, ())


def evaluate(tables: Tables, states: Iterable[Ids]) -> Iterable[dict[str, str]]:
    """Yield, for each state, the invariants that fail in it and why; one whose check fails on the state fails too."""
    before: Ids | None = None
    failing: dict[str, str] = {}
    for state in states:
        if state != before:
            try:
                failing = tables.failing(state)
            except Exception as error:
                failing = {"(properties)": f"they cannot be evaluated in this state: {type(error).__name__}: {error}"}
        before = state
        yield failing


def _broken(failing: Iterable[Mapping[str, str]], claims: Iterable[str]) -> Iterable[Broken]:
    """Yield each property that fails somewhere, where it first does."""
    claimed, seen = {*claims, "(properties)"}, set()
    for step, reasons in enumerate(failing):
        for name, reason in reasons.items():
            if name not in seen:
                seen.add(name)
                yield Broken(name, step, reason, name in claimed)


def _differences(
    tables: Tables, history: History, failing: list[dict[str, str]], last: Ids
) -> Iterable[str]:
    """Yield where what a history says about its states is not what they say."""
    for event, found in zip(history.events, failing, strict=True):
        if dict(event.violated) != found:
            said, true = (", ".join(sorted(names)) or "nothing" for names in (event.violated, found))
            if said == true:
                said, true = f"{said} for one reason", "it for another one"
            yield f"step {event.n} is recorded to violate {said}; its state violates {true}"
            break
    claims = set(history.header["claims"])
    first = next(((n, r) for n, r in enumerate(failing) if any(name in claims for name in r)), None)
    verdict = history.end["verdict"]
    kind = verdict.get("kind")
    if first is None and kind == "safety":
        yield f"the recorded verdict is that {verdict['violated']} fails; no state violates what is claimed"
    elif first is not None and kind != "safety":
        names = ", ".join(sorted(name for name in first[1] if name in claims))
        yield f"the recorded verdict is {_verdict(verdict)}; the state after step {first[0]} violates {names}"
    elif first is not None and (verdict["step"] != first[0] or verdict["violated"] not in first[1]):
        yield f"the recorded verdict is {_verdict(verdict)}; a claimed property first fails at step {first[0]}"
    elif kind == "deadlock" and (verdict["violated"] != DEADLOCK or tables.node(last).options):
        yield "the recorded verdict is a deadlock; in the last state something is possible"


def _verdict(verdict: Mapping[str, Any]) -> str:
    return "that nothing is violated" if verdict["ok"] else f"{verdict['violated']} at step {verdict['step']}"


def _lasting(model: Model, claims: Iterable[str]) -> tuple[str, ...]:
    """Return the claimed properties that are judged on how a run ends."""
    return tuple(name for name in claims if model.property(name).is_temporal)


def _replayed(trail: Trail, tables: Tables, runtime: str) -> History:
    recorder = Recorder()
    run = replay_plain(trail, recorder, tables)
    return history_of(header_of(trail, tables.model, runtime), recorder, run.verdict.to_json(), tables.model)


def _is_about(trail: Trail, history: History) -> bool:
    """Say whether a trail's header is that of a history."""
    header = history.header
    mine = [trail.model, dict(trail.sizes), dict(trail.settings), trail.network, faults_to_json(trail.faults)]
    return compact(mine) == compact([header[name] for name in ("model", "sizes", "settings", "network", "faults")])


def _lasting_broken(replayed: History) -> Iterable[Broken]:
    verdict = replayed.end["verdict"]
    if verdict.get("kind") in ("liveness", "deadlock"):
        yield Broken(verdict["violated"], verdict["step"], verdict["reason"], True)


def _differs_from(replayed: History, history: History) -> Iterable[str]:
    mine, verdict = history.end["verdict"], replayed.end["verdict"]
    if "liveness" in (mine.get("kind"), verdict.get("kind")) and mine != verdict:
        yield f"the recorded verdict is {_verdict(mine)}; the replay of the trail beside it says {_verdict(verdict)}"
