"""What a person asks about a session, beyond what is always shown: reasons, guards, ranges, other forms of the run.

What takes a while is returned as a function without arguments, which may be called in a thread: all that it needs of
the session was taken before.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable

from harness.demo.session.as_json import Json
from harness.demo.session.branches import Ending
from harness.demo.session.explanations import guards
from harness.demo.session.live_session import LiveSession, ending_of
from harness.demo.session.snapshot import steps
from harness.model import Refusal, unknown
from harness.record import EventRecorder, Trail, header_of, trail_of_text
from harness.record.files import compact
from harness.render import FORMS, render
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import DEADLOCK, replay_plain
from harness.simulate.trails.shrink import Shrunk, shrink

EXPORTS = {"svg": "svg", "text": "txt", "mermaid": "mmd", "itf": "itf.json", "shiviz": "shiviz.log", "log": "log",
           "tla": "tla", "history": "history.jsonl"}
"""The forms in which a run can be saved, and how their files end."""
LINK = "#trail="
"""What a link has before its trail."""
LINKS = (LINK, "#s=")
"""What links have there, those that were made before included."""
LONGEST_LINK = 32_000
"""Characters of a link: beyond, browsers and chats cut it."""
LARGEST_TRAIL = 8 * 1024 * 1024
MOST_ASKED = 300
"""States on the way to the present that are looked at for what was possible there."""


def why(session: LiveSession, action: str) -> Callable[[], Json]:
    """Return what finds out why an action of the model or of its spec is not possible now."""
    judge, explainer = session.judge(), session.explainer
    first = max(0, session.at + 1 - MOST_ASKED)
    passed = [record.state for record in session.branch.records[first : session.at + 1]]
    spec = [judge.values(n) for n in range(first, session.at + 1)] if judge is not None else []
    spec_passed = [values for values in spec if values is not None] if spec and spec[-1] is not None else []
    return lambda: explainer.why(action, passed, spec_passed)


def about(session: LiveSession, step: int) -> Callable[[], Json]:
    """Return what finds all there is about a step: its guards, those of the spec, why it is outside. Raises Refusal."""
    record, judge, explainer = session.record_of(step), session.judge(), session.explainer
    taken = record.step
    if taken is None or step > session.at:
        raise Refusal(f"expected a step from 1 to {session.at}, found {step}")
    shown = steps(session, step - 1, step)[0]
    process = next((process for process in session.model.processes if process.name == record.process), None)
    spec = judge.step_of_spec(step) if judge is not None else None
    was, now = (judge.values_before(step), judge.values(step)) if judge is not None else (None, None)
    before = session.state(step - 1)

    def answer() -> Json:
        found: Json = {"step": shown, "guards": [], "spec_guards": [], "explanation": None}
        if process is not None:
            found["guards"] = guards(process, before, taken)
        if spec is not None:
            found["spec_guards"] = guards(*spec)
        if (shown["spec"] or {}).get("kind") == "outside" and was is not None and now is not None:
            found["explanation"] = explainer.explain(step, taken.action, taken.label, was, now)
        return found

    return answer


def ranges(session: LiveSession) -> Json:
    """Return for each invariant the ranges of steps, both ends included, in which it fails on this branch."""
    found: dict[str, list[list[int]]] = {prop.name: [] for prop in session.tables.invariants}
    for record in session.branch.records:
        for name in record.failing:
            spans = found[name]
            if spans and spans[-1][1] == record.n - 1:
                spans[-1][1] = record.n
            else:
                spans.append([record.n, record.n])
    return {"branch": session.branch.name, "length": session.branch.length, "failing": found}


def ending_of_form(form: str) -> str:
    """Return how the files of a form end. Raises Refusal."""
    if form not in EXPORTS:
        raise Refusal(unknown(f"there is no form {form[:40]!r} of a run", form[:40], EXPORTS, "the forms are"))
    return EXPORTS[form]


def exported(trail: Trail, form: str) -> str:
    """Return the run of a trail in another form, after a replay. Raises Refusal."""
    ending_of_form(form)
    model, recorder = trail.build(), EventRecorder(keep=form == "history")
    run = replay_plain(trail, recorder, Tables(model))
    header = header_of(trail, model, "trio")
    history = recorder.history(header, run.verdict.to_json(), model)
    if form == "history":
        return "\n".join([compact(header), *recorder.lines, compact(dict(history.end))]) + "\n"
    assert form in FORMS
    return render(history, model, form, fair_from=trail.fair_from)


def link(trail: Trail) -> str:
    """Return a trail as what comes after the address of the page. Raises Refusal if it is too long."""
    packed = zlib.compress("\n".join(trail.each_line()).encode(errors="backslashreplace"), 9)
    found = LINK + base64.urlsafe_b64encode(packed).decode().rstrip("=")
    if len(found) > LONGEST_LINK:
        raise Refusal(f"the run of {len(trail.choices):,} steps is too long for a link; save its trail instead")
    return found


def trail_of(text: str) -> Trail:
    """Return the trail that is a text, or that is in a link. Raises Refusal."""
    text = text.strip()
    if text.startswith("{") or not text:
        return trail_of_text("the trail", text)
    packed = text.rpartition(next((mark for mark in LINKS if mark in text), LINK))[2]
    try:
        data = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        unpacker = zlib.decompressobj()
        whole = unpacker.decompress(data, LARGEST_TRAIL)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise ValueError
        unpacked = whole.decode()
    except (ValueError, binascii.Error, zlib.error):
        expected = f"expected JSON Lines, or what follows {LINK}"
        raise Refusal(f"this is neither a trail nor a link to one; {expected}") from None
    return trail_of_text("the link's trail", unpacked)


def shrunk(trail: Trail) -> tuple[Shrunk, Ending | None]:
    """Return a shorter trail that violates the same at the same sizes, and how it ends. Raises Refusal."""
    if trail.violates is None:
        raise Refusal("no claim is violated up to here, so there is nothing to shrink")
    if trail.fairness is not None or trail.violates == DEADLOCK:
        raise Refusal("this was found by a search, which found no shorter run; there is nothing to shrink")
    found = shrink(trail, keep_sizes=True)
    return found, ending_of(found.trail)
