"""What a session answers to the page, by name: readings, files and verbs, wherever the question comes from.

That is the demo's server, or, in a page without a server, a worker. What takes a while is returned as a function
without arguments, which may be called in a thread: all that it needs of the session was taken before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from harness.demo.session import as_json, questions, recording
from harness.demo.session.as_json import Json
from harness.demo.session.live_session import LiveSession
from harness.demo.session.snapshot import file_name
from harness.demo.session.violation_search import MOST_RUNS
from harness.demo.web.one_file import page_of_recording
from harness.model import Refusal
from harness.record.fields import COUNT, NAMES, NUMBERS, TEXT, TRUTH, FieldKind, check_given, optional

Asked = Mapping[str, str]
"""What stands in a question beside its name, as in the query of an address."""
Body = dict[str, Any]

# Readings


def state(session: LiveSession, asked: Asked) -> Callable[[], Json]:
    """Return the state after a step, of all actors or of one."""
    step, actor = number(asked, "step", session.at), asked.get("actor")
    after = session.shown_state(step)
    before = session.shown_state(step - 1) if step > 0 else None
    return lambda: {"step": step, **as_json.state_json(session.lanes, before, after, actor)}


def logs(session: LiveSession, asked: Asked) -> Callable[[], Json]:
    """Return the partitions' logs after a step."""
    step = number(asked, "step", session.at)
    after, model = session.state(step), session.model
    return lambda: {"step": step, "logs": as_json.logs_json(model, after)}


def why(session: LiveSession, asked: Asked) -> Callable[[], Json]:
    """Return why an action is not possible now."""
    action = asked.get("action", "")
    if not action or len(action) > 200:
        raise Refusal("expected the name of an action, as in ?action=NAME")
    return questions.why(session, action)


def properties(session: LiveSession, _: Asked) -> Callable[[], Json]:
    """Return the ranges of steps in which invariants fail."""
    found = questions.ranges(session)
    return lambda: found


def link(session: LiveSession, _: Asked) -> Callable[[], Json]:
    """Return a link that carries the trail up to the present."""
    trail = session.trail()
    return lambda: {"link": questions.link(trail)}


READINGS: dict[str, Callable[[LiveSession, Asked], Callable[[], Json]]] = {
    "state": state, "logs": logs, "why": why, "properties": properties, "link": link,
    "step": lambda session, asked: questions.about(session, number(asked, "n", session.at)),
}


def number(asked: Asked, name: str, default: int) -> int:
    """Return a whole number of a question. Raises Refusal."""
    given = asked.get(name)
    if given is None:
        return default
    if not given.isdecimal() or len(given) > 9:
        raise Refusal(f"expected a whole number for {name}, found {given[:40]!r}")
    return int(given)


# Files


@attrs.frozen
class NamedFile:
    """A file to save."""

    name: str
    text: str


def trail_file(session: LiveSession, _: Asked) -> Callable[[], NamedFile]:
    """Return the trail up to the present."""
    found = NamedFile(file_name(session), session.trail().text())
    return lambda: found


def export(session: LiveSession, asked: Asked) -> Callable[[], NamedFile]:
    """Return the run in another form; as a page with all its branches."""
    form, trail, name = asked.get("as", "text"), session.trail(), file_name(session).removesuffix(".trail.jsonl")
    if form != "html":
        ending = questions.ending_of_form(form)
        return lambda: NamedFile(f"{name}.{ending}", questions.exported(trail, form))
    branches, current = recording.branches_of(session)
    return lambda: NamedFile(f"{name}.html", page_of_recording(recording.recorded(branches, current), name))


FILES: dict[str, Callable[[LiveSession, Asked], Callable[[], NamedFile]]] = {"trail": trail_file, "export": export}


# Verbs


@attrs.frozen
class Fields:
    """The fields that a verb needs, and others that it takes."""

    needed: Mapping[str, FieldKind] = attrs.field(factory=dict)
    others: Mapping[str, FieldKind] = attrs.field(factory=dict)


def run(
    session: LiveSession, steps: int | None = None, until: str | None = None, speed: int | None = None
) -> None:
    """Let the strategy decide."""
    session.start(until or ("end" if steps else "violation"), steps, speed)


CHANGES: dict[str, tuple[Callable[..., None], Fields]] = {
    "pause": (LiveSession.pause, Fields()),
    "undo": (LiveSession.undo, Fields()),
    "rewind": (LiveSession.rewind, Fields({"to": COUNT})),
    "reopen": (LiveSession.reopen, Fields({"number": COUNT})),
    "branch": (LiveSession.name_branch, Fields({"name": TEXT})),
    "switch": (LiveSession.switch, Fields({"name": TEXT})),
    "tour": (LiveSession.tour, Fields({"name": TEXT})),
    "run": (run, Fields({}, {"steps": optional(COUNT), "until": optional(TEXT), "speed": optional(COUNT)})),
    "strategy": (LiveSession.set_strategy, Fields({}, {
        "strategy": TEXT, "seed": COUNT, "inject_faults": TRUTH, "speed": COUNT, "spares": TRUTH})),
    "open": (LiveSession.open, Fields({"what": TEXT}, {
        "sizes": NUMBERS, "settings": NAMES, "budget": optional(TEXT), "initial": COUNT})),
}
"""The verbs that take no steps, each as a function of the session and its fields."""
OTHERS: dict[str, Fields] = {
    "take": Fields({}, {"index": COUNT, "label": TEXT, "at": COUNT}), "forward": Fields({"to": COUNT}),
    "find": Fields({}, {"runs": COUNT, "seed": COUNT}), "stop": Fields(), "shrink": Fields(),
}
"""The verbs that take steps or time, which is for the owner of the session to arrange; `load` has a text."""


def body_of(verb: str, data: str | bytes) -> Body:
    """Return the JSON object of a verb, its fields checked. Raises Refusal."""
    fields = CHANGES[verb][1] if verb in CHANGES else OTHERS[verb]
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        raise Refusal("the request is not JSON; expected one JSON object") from None
    if not isinstance(body, dict):
        raise Refusal("expected one JSON object in the request")
    known = {**fields.needed, **fields.others}
    odd = [name for name in body if name not in known]
    if odd:
        raise Refusal(f"there is no field {odd[0][:60]!r} here; the fields are {', '.join(known) or 'none'}")
    lacking = [name for name in fields.needed if name not in body]
    if lacking:
        raise Refusal(f'the field "{lacking[0]}" is missing')
    try:
        check_given(body, known)
    except ValueError as error:
        raise Refusal(str(error)) from None
    if verb == "take" and ("index" in body) is ("label" in body):
        raise Refusal('expected either "index" or "label" of the step to take')
    return {"runs": MOST_RUNS, "seed": 0, **body} if verb == "find" else body


def broken_off(error: Exception) -> str:
    """Return in a sentence what went wrong outside any request."""
    return f"the protocol or the demo failed with {type(error).__name__}: {error}"
