"""What there is to see of a session, as JSON: everything, the present, or what is new since the last look."""

from __future__ import annotations

import json
import shlex

from harness.demo.session import as_json
from harness.demo.session.as_json import Json
from harness.demo.session.live_session import LiveSession
from harness.demo.session.strategy_runner import STRATEGIES
from harness.demo.session.why_disabled import refusals
from harness.model import find_tour
from harness.render.timeline import ENVIRONMENT
from harness.simulate.runs.run import Verdict


def snapshot_text(session: LiveSession, catalogue: str) -> str:
    """Return all of a session, its steps up to the present included, as JSON text with the catalogue."""
    around = as_json.text_of(frame(session)).removesuffix("}")
    now = as_json.text_of(present(session))
    return f'{around},"catalogue":{catalogue},"steps":[{_texts(session, 0)}],"present":{now}}}'


def change_text(session: LiveSession, keep: int) -> str:
    """Return what is new after a step that is still the same, as JSON text."""
    around = as_json.text_of({
        "version": session.version, "keep": keep, "ahead": session.branch.length - session.at,
        "branches": branches(session), "tour": tour(session), "present": present(session),
        **({"lifelines": lifelines(session)} if session.model.tells else {}),
    }).removesuffix("}")
    return f'{around},"steps":[{_texts(session, keep)}]}}'


def steps(session: LiveSession, after: int = 0, to: int | None = None) -> list[Json]:
    """Return the steps after one of them, up to another one or the present."""
    found: list[Json] = json.loads(f"[{_texts(session, after, to)}]")
    return found


def _texts(session: LiveSession, after: int, to: int | None = None) -> str:
    records = session.branch.records[after + 1 : (session.at if to is None else to) + 1]
    return ",".join(f'{record.text[:-1]},"spec":{session.spec_of(record.n)}}}' for record in records)


def frame(session: LiveSession) -> Json:
    """Return what is shown around the steps: the model and its parts, branches, the tour."""
    model, plan, judge = session.model, session.plan, session.judge()
    lanes = lifelines(session)
    return {
        "version": session.version, "epoch": session.epoch, "model": model.name, "title": session.opened.title,
        "scenario": plan.scenario, "sizes": dict(model.sizes), "settings": dict(model.settings),
        "network": model.network.name, "mode": plan.mode, "lifelines": lanes, "budget": session.opened.budget,
        "kinds_of_lifeline": {name: as_json.kind_of_lifeline(model, name) for name in lanes},
        "possible_faults": as_json.possible_faults(model), "links": as_json.links(model),
        "has_logs": model.logs is not None, "is_recorded": model.tells,
        "is_live": session.is_fed,
        "properties": [
            {"name": prop.name, "form": prop.form, "claimed": prop.name in plan.claims, "title": prop.source}
            for prop in model.properties
        ],
        "actions": _actions(session), "strategies": list(STRATEGIES),
        "spec": {"model": judge.refiner.spec.name, "actions": judge.actions()} if judge is not None else None,
        "initial": {"number": session.opened.initial, "count": session.tables.initial_count,
                    "sent": [as_json.message_json(sent) for sent in session.branch.records[0].moved.sent]},
        "ahead": session.branch.length - session.at, "branches": branches(session), "tour": tour(session),
        "number": session.number, "sessions": [kept.to_json() for kept in session.kept_sessions.listed()],
    }


def lifelines(session: LiveSession) -> list[str]:
    """Return the names of all lifelines."""
    return [*session.lanes, ENVIRONMENT]


def _actions(session: LiveSession) -> list[str]:
    """Return the names of the model's actions, as far as its formulas, the mapping and the run so far name them."""
    model, judge = session.model, session.judge()
    named = set(model.fairness) | {option.action for option in session.node.options}
    named |= {record.step.action for record in session.branch.records if record.step is not None}
    if judge is not None:
        named |= {action for actions in judge.refiner.refinement.by.values() for action in actions}
    return sorted(named)


def branches(session: LiveSession) -> list[Json]:
    """Return the branches, the oldest first."""
    return [
        {"name": branch.name, "length": branch.length, "from": branch.origin, "at": branch.fork,
         "current": branch is session.branch}
        for branch in session.branches.values()
    ]


def tour(session: LiveSession) -> Json | None:
    """Return the tour that is under way, or None."""
    shown, branch = session.toured, session.toured_on
    if shown is None or branch is None:
        return None
    return {
        "name": shown.name, "title": shown.title, "length": len(shown.steps), "branch": branch.name,
        "captions": [{"at": at, "text": text} for at, text in shown.captions], "about": about_tour(session),
        "shows_logs": shown.shows_logs, "then": {"name": shown.then, "title": find_tour(shown.then).title}
        if shown.then else None,
    }


def about_tour(session: LiveSession) -> str:
    """Return in a sentence how large the cluster of a tour is, and which faults there can be."""
    model = session.model
    sizes = ", ".join(f"{name} {size}" for name, size in model.sizes.items() if size)
    settings = "".join(f", {name}={value}" for name, value in model.settings.items() if value)
    faults = [kind for kind, can in as_json.possible_faults(model).items() if can]
    said = f"faults are on: {', '.join(faults)}" if faults else "faults are off"
    return f"The cluster of this tour has {sizes}{settings}; {said}."


def present(session: LiveSession) -> Json:
    """Return the state that the session is in, and what can be done there."""
    record, runner, model = session.record, session.runner, session.model
    view = session.view()
    ready = [m for process in model.processes for m in model.arrivals(process, view)]
    state = dict(zip(session.tables.slots, record.state, strict=True))
    found: Json = {
        "step": session.at, "at_us": record.chosen.at_us,
        "enabled": [
            as_json.enabled_json(n, option, session.lanes, session.in_flight)
            for n, option in enumerate(session.node.options)
        ] + session.deeds(),
        "in_flight": as_json.in_flight_json(session.in_flight, ready),
        "gates": as_json.gates(model, state, record.telling),
        "properties": _properties(session), "witnessed": sorted(record.witnessed),
        "running": runner.running, "strategy": runner.name, "seed": runner.seed, "speed": runner.speed,
        "until": runner.until, "inject_faults": runner.inject_faults, "spares": runner.spares,
        "outcome": runner.outcome, "over": session.over() or runner.trouble,
        "ending": _ending(session), "violation": _violation(session, session.violation),
        "can_undo": session.can_undo, "digest": session.digest(), "budget_left": _budget(session),
    }
    return {**found, "not": refusals(model, found, session.lanes)}


def _budget(session: LiveSession) -> Json:
    if not session.model.faulty:
        return {}
    return {kind: left for kind, left in session.view()["budget"].items() if left}


def _properties(session: LiveSession) -> Json:
    """Return how each invariant fares, and what each temporal property still waits for."""
    record, found = session.record, {}
    for prop in session.model.properties:
        if prop.is_safety:
            reason = record.failing.get(prop.name)
            found[prop.name] = {"ok": reason is None, "reason": reason, "since": record.since.get(prop.name)}
        elif prop.is_temporal and prop.leads_to is None:
            pending = session.tables.predicate(prop, session.node)
            found[prop.name] = {"ok": True, "reason": None, "since": None, "pending": pending}
    verdict = session.violation
    if verdict is not None and verdict.violated in found and verdict.kind == "liveness":
        found[verdict.violated] |= {"ok": False, "reason": verdict.reason, "since": verdict.step}
    return found


def _ending(session: LiveSession) -> Json | None:
    ending = session.branch.ending
    if ending is None or ending.fair_from is None:
        return None
    return {"fair_from": ending.fair_from, "back_to": ending.back_to, "text": ending.text}


def _violation(session: LiveSession, verdict: Verdict | None) -> Json | None:
    if verdict is None:
        return None
    return {
        "property": verdict.violated, "reason": verdict.reason, "step": verdict.step, "kind": verdict.kind,
        "replay": f"kafka-proto replay {shlex.quote(file_name(session))}", "shrunk": session.branch.shrunk,
    }


def file_name(session: LiveSession) -> str:
    """Return what a file with the trail of a session is called."""
    what = session.plan.scenario or session.model.name
    return f"{what.replace('/', '-')}.trail.jsonl"
