"""Judging recorded files: properties and refinement from the recorded states alone, and the record itself.

Nothing that a file says about itself is believed: invariants are evaluated again in every recorded state, and what was
recorded is compared with that. What a history cannot show, the properties that are judged on a fair ending, is taken
from the trail beside it where its replay gives the same digest, and otherwise named as not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from harness.model import Model
from harness.record import (
    Event,
    EventRecorder,
    History,
    Recorder,
    Trail,
    header_of,
    model_of_history,
    open_history,
    read_trail,
)
from harness.record.files import compact
from harness.record.trail import is_trail, run_fields
from harness.simulate.runs.protocol_errors import KIND as RAISED_KIND
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import replay_plain
from harness.verify.explanation import Explanation, explain
from harness.verify.isolation.anomalies import Breach
from harness.verify.isolation.clients import Clients
from harness.verify.judge_cache import KnownEvent, Place, Recall
from harness.verify.refinement import ROOM, Refined, Refiner
from harness.verify.scan import Broken, Scan, verdict_text
from harness.verify.well_formed import Oddity

BUILT_FROM = ("model", "sizes", "settings", "network", "faults")
"""What a header says of the model."""
NO_FILE = Path("-")
"""Where a history is from that lies in no file."""


@attrs.frozen
class JudgedFile:
    """The outcome of judging a file."""

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
    """None if the model has no refinement."""
    explanation: Explanation | None
    unjudged: tuple[str, ...]
    """Claimed properties that recorded states do not show."""
    isolation: tuple[Breach, ...] = ()
    """What clients saw that no system of the promised level shows, from their operations alone."""
    left_out: Mapping[str, str] = {}
    """Of what clients saw: what is not judged, and why."""

    @property
    def findings(self) -> tuple[str, ...]:
        """What is wrong, as kinds: `property`, `refinement`, `verdict`, `record`, `isolation` and `actors`.

        `actors` alone is a run that the spec allows and that the model's own actors would not make.
        """
        found = {
            "property": any(broken.claimed for broken in self.broken),
            "refinement": self.explanation is not None,
            "verdict": bool(self.differs),
            "record": bool(self.odd),
            "isolation": bool(self.isolation),
            "actors": self.departed is not None,
        }
        return tuple(kind for kind, is_found in found.items() if is_found)

    @property
    def ok(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        refined, departed = self.refined, self.departed
        return {
            "file": str(self.path), "kind": self.kind, "model": self.model, "steps": self.steps, "ok": self.ok,
            "findings": list(self.findings), "properties": self.properties,
            "violated": [attrs.asdict(broken) for broken in self.broken], "differs": list(self.differs),
            "record": [attrs.asdict(oddity) for oddity in self.odd],
            "departed": None if departed is None else {"step": departed.step, "sentence": departed.sentence},
            "isolation": [one.to_json() for one in self.isolation], "left_out": dict(self.left_out),
            "not_judged": list(self.unjudged),
            "refinement": None if refined is None else {
                "steps": refined.steps, "stutters": refined.stutters, "actions": dict(refined.actions),
                "extensions": dict(refined.extensions), "spec_states": len(refined.reached),
            },
            "explanation": None if self.explanation is None else self.explanation.to_json(),
        }


@attrs.frozen
class Replayed:
    """The outcome of replaying a trail."""

    digest: str
    verdict: Mapping[str, Any]


class FileJudge:
    """Judges files; those of one model at one size share what was learned about it."""

    def __init__(self) -> None:
        self._tables: dict[str, tuple[Tables, Refiner | None]] = {}

    def file(self, path: Path) -> JudgedFile:
        """Judge a trail or a history. Raises Refusal."""
        return self._trail(path) if is_trail(path) else self._history(path)

    def recorded(self, history: History, model: Model, path: Path = NO_FILE) -> JudgedFile:
        """Judge a history that was read from somewhere else than a file of its own, by its states."""
        scan = Scan(*self._of(history.header, model), history.header)
        return _judged(scan, history.events, path, "history", history.header, history.end, None)

    def _history(self, path: Path) -> JudgedFile:
        model = model_of_history(path)
        header, end, events = open_history(path, model)
        beside = path.with_name(path.name.removesuffix(".history.jsonl") + ".trail.jsonl")
        replayed = None
        wanted = _lasting(model, header["claims"]) or end["verdict"].get("kind") == RAISED_KIND
        if beside != path and beside.is_file() and wanted:
            trail = read_trail(beside)
            if _is_about(trail, header):
                replayed = self._replayed(trail, header, model, Recorder(keep=False))
        return self._judge(path, "history", model, header, end, events, replayed)

    def _trail(self, path: Path) -> JudgedFile:
        trail = read_trail(path)
        model = trail.build()
        header = header_of(trail, model, "plain")
        recorder = EventRecorder()
        replayed = self._replayed(trail, header, model, recorder)
        history = recorder.history(header, replayed.verdict, model)
        judged = self._judge(path, "trail", model, header, history.end, history.events, replayed, not model.tells)
        if trail.violates is not None and trail.violates not in {broken.name for broken in judged.broken}:
            said = f"the trail says that it violates {trail.violates}; its replay does not"
            return attrs.evolve(judged, differs=(*judged.differs, said))
        return judged

    def _replayed(self, trail: Trail, header: Mapping[str, Any], model: Model, recorder: Recorder) -> Replayed:
        tables, _ = self._of(header, model)
        run = replay_plain(trail, recorder, tables)
        return Replayed(recorder.digest(), run.verdict.to_json())

    def _of(self, header: Mapping[str, Any], model: Model) -> tuple[Tables, Refiner | None]:
        key = compact({name: header[name] for name in BUILT_FROM})
        if key in self._tables and self._tables[key][0].used >= ROOM:
            del self._tables[key]
        if key not in self._tables:
            tables = Tables(model)
            self._tables[key] = tables, Refiner(model, tables) if model.refinement is not None else None
        return self._tables[key]

    def _judge(
        self, path: Path, kind: str, model: Model, header: Mapping[str, Any], end: Mapping[str, Any],
        events: Iterable[Event], replayed: Replayed | None, asks: bool = True,
    ) -> JudgedFile:
        scan, clients = Scan(*self._of(header, model), header, asks), Clients(model)
        judged = _judged(scan, clients.seeing(events), path, kind, header, end, replayed)
        return attrs.evolve(judged, isolation=clients.breaches(), left_out=clients.left_out)


class Rejudge:
    """Judges many histories of one model at one size, and remembers what it saw of their steps.

    What it says is what `FileJudge.recorded` says of the same history.
    """

    def __init__(self, model: Model) -> None:
        tables = Tables(model)
        self.model = model
        self.recall = Recall(model, tables, Refiner(model, tables, True) if model.refinement is not None else None)

    def recorded(self, history: History) -> JudgedFile:
        """Judge a history without what is remembered, and remember only what the tables do."""
        scan = Scan(self.recall.tables, self.recall.refiner, history.header)
        return _judged(scan, history.events, NO_FILE, "history", history.header, history.end, None)

    def moves(
        self, header: Mapping[str, Any], end: Mapping[str, Any],
        moves: Iterable[tuple[int, int | None, KnownEvent, Mapping[str, str]]],
    ) -> JudgedFile:
        """Judge a run given as the number, time, move, and failing invariants of each event, numbered from 0 on."""
        recall = self.recall
        scan = Scan(recall.tables, recall.refiner, header)
        take, see = scan.take, recall.see
        place: Place | None = None
        for n, at_us, move, violated in moves:
            if place is None:
                seen, place = recall.start(move)
            else:
                found = place.met.get(move)
                seen, place = found if found is not None else see(place, move)
            take(n, at_us, move.op, violated, seen)
        return _judged(scan, (), NO_FILE, "history", header, end, None)


def _judged(
    scan: Scan, events: Iterable[Event], path: Path, kind: str, header: Mapping[str, Any], end: Mapping[str, Any],
    replayed: Replayed | None,
) -> JudgedFile:
    """Look at the last events of a run, and return its outcome."""
    for event in events:
        scan.look(event)
    refiner, tables, model = scan.refiner, scan.tables, scan.tables.model
    broken, differs = list(scan.broken.values()), list(scan.differences(end["verdict"]))
    unjudged: tuple[str, ...] = ()
    if replayed is not None and replayed.digest == end["digest"]:
        broken += _lasting_broken(replayed)
        differs += _differs_from(replayed, end["verdict"])
    else:
        unjudged = _lasting(model, header["claims"])
        if end["verdict"].get("kind") == RAISED_KIND:
            unjudged += (end["verdict"]["violated"],)
    refined = refiner.judge(scan.trace) if refiner is not None else None
    explanation = None
    if refiner is not None and refined is not None and refined.failure is not None:
        explanation = explain(refiner, refined.failure)
    return JudgedFile(
        path, kind, model.name, scan.steps, len(tables.invariants), tuple(broken), tuple(differs), scan.odd,
        scan.departed, refined, explanation, unjudged,
    )


def _lasting(model: Model, claims: Iterable[str]) -> tuple[str, ...]:
    """Return the claimed properties that are judged on how a run ends."""
    return tuple(name for name in claims if model.property(name).is_temporal)


def _is_about(trail: Trail, header: Mapping[str, Any]) -> bool:
    """Say whether a trail's header is that of a history."""
    mine = run_fields(trail)
    return all(compact(mine[name]) == compact(header[name]) for name in BUILT_FROM)


def _lasting_broken(replayed: Replayed) -> Iterable[Broken]:
    verdict = replayed.verdict
    if verdict.get("kind") in ("liveness", "deadlock", RAISED_KIND):
        yield Broken(verdict["violated"], verdict["step"], verdict["reason"], True)


def _differs_from(replayed: Replayed, mine: Mapping[str, Any]) -> Iterable[str]:
    verdict = replayed.verdict
    if "liveness" in (mine.get("kind"), verdict.get("kind")) and mine != verdict:
        recorded = f"the recorded verdict is {verdict_text(mine)}"
        yield f"{recorded}; the replay of the trail next to it says {verdict_text(verdict)}"
