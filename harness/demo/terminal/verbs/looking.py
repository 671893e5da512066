"""The verbs of a demo in a terminal that look at something and change nothing: states, messages, properties, steps."""

from __future__ import annotations

from collections.abc import Iterable

from harness.demo.session import as_json
from harness.demo.session.as_json import Json
from harness.demo.terminal.console import Console, Verb, either, first, nothing
from harness.demo.terminal.verbs.stepping import numbered
from harness.model import OPEN, EntryKind, Refusal, tours
from harness.record.wording import counted
from harness.render.changes import brief

TO_OTHERS = (("crash", "crash"), ("pause", "pause"), ("partition", "partition"), ("one_way", "cut"))
TO_MESSAGES = (("drop", "drop"), ("duplicate", "duplicate"), ("delay", "hold"))


def table(rows: Iterable[tuple[str, str]], indent: str = "  ") -> list[str]:
    """Return two columns as lines."""
    rows = list(rows)
    width = max((len(left) for left, _ in rows), default=0)
    return [f"{indent}{left:{width}}  {right}".rstrip() for left, right in rows]


def help_(console: Console, words: list[str]) -> None:
    """Tell of all verbs, or of some."""
    for word in words:
        if word not in console.verbs:
            raise Refusal(f"there is no verb {word!r}; help lists them")
    shown = [console.verbs[word] for word in words] or list(console.verbs.values())
    if words:
        console.said = table((verb.usage, verb.says) for verb in shown)
        return
    width = max(len(verb.usage) for verb in shown)
    console.said = [f"{'N or LABEL':{width + 2}}  take step N of those that are possible, or the one of that label"]
    for group in dict.fromkeys(verb.group for verb in shown):
        rows = [(f"{verb.usage:{width}}", verb.says) for verb in shown if verb.group == group]
        console.said += ["", group, *table(rows)]
    console.said += ["", "keys", *table([
        (f"{'Tab':{width}}", "completes a word; Up and Down bring earlier lines back"),
        (f"{'Enter':{width}}", "on an empty line: the next kept step"),
        (f"{'PageUp, PageDown':{width}}", "move through the run, or through a text such as this; Escape goes back"),
        (f"{'Ctrl-C':{width}}", "stops a run; twice, it leaves"),
    ])]


def steps(console: Console, words: list[str]) -> None:
    """List what can happen now; faults on request."""
    if words not in ([], ["all"]):
        raise Refusal(f"expected steps or steps all, found {' '.join(words)!r}")
    shown, faults = listed(console)
    if words:
        console.said = [step_line(option, option["label"]) for option in console.present()["enabled"]]
    else:
        console.said = [step_line(option, option["label"]) for option in shown]
        console.said += faults
    console.said = console.said or ["no step is possible any more"]


def step_line(option: Json, text: str) -> str:
    return f"{option['index'] + 1:>3}  {text}"


def listed(console: Console) -> tuple[list[Json], list[str]]:
    """Return the steps that are listed one by one, and a line with the faults that are possible, if any."""
    options = console.present()["enabled"]
    verbs = {option["verb"] for option in options if option["kind"] == "fault"}
    to_others = [name for verb, name in TO_OTHERS if verb in verbs]
    to_messages = [name for verb, name in TO_MESSAGES if verb in verbs]
    said = [f"{', '.join(to_others)} somebody"] if to_others else []
    said += [f"{', '.join(to_messages)} a message"] if to_messages else []
    shown = [option for option in options if option["kind"] != "fault"]
    return shown, [f"     faults: {'; '.join(said)}"] if said else []


def messages(console: Console, words: list[str]) -> None:
    in_flight = console.present()["in_flight"]
    console.said = [f"{f'm{n}':>4}  {message_line(message)}" for n, message in enumerate(in_flight, 1)]
    console.said = console.said or ["no message is under way"]


def message_line(message: Json) -> str:
    """Return a message in one line."""
    state = "" if message["state"] == "under way" else f" ({message['state']})"
    return f"{message['from']}->{message['to']} {message['type']} {message['brief']}".rstrip() + state


def message(console: Console, words: list[str]) -> None:
    """Show the fields of a message under way."""
    found = console.message(" ".join(words) or "nothing")
    console.said = [message_line({**found, "brief": ""}).rstrip(), *table(found["fields"].items())]
    if found.get("copy_of"):
        console.said.append("  (a copy)")


def state(console: Console, words: list[str]) -> None:
    """Show the state of an actor, or of all, now or at an earlier step."""
    session = console.session
    at = session.at
    if words[-2:-1] == ["at"]:
        if not words[-1].isdecimal():
            raise Refusal(f"expected state A at N, found {' '.join(words)!r}")
        at, words = int(words[-1]), words[:-2]
    if len(words) > 1 or (words and words[0] not in session.lanes):
        raise Refusal(f"expected one of {', '.join(session.lanes)}, found {' '.join(words)!r}")
    now = session.shown_state(at)
    before = session.shown_state(at - 1) if at else None
    found = as_json.state_json(session.lanes, before, now, words[0] if words else None)
    groups = [*found["actors"].items(), *([("shared", found["shared"])] if not words and found["shared"] else [])]
    console.said = []
    for name, slots in groups:
        shown = [slot for slot in slots if slot["changed"] or slot["text"] != brief(OPEN)]  # an open gate says nothing
        console.said += [f"{name} after step {at}", *(line for slot in shown for line in _slot_lines(name, slot)), ""]
    console.said.pop()


def _slot_lines(owner: str, slot: Json) -> list[str]:
    """Return the lines of a slot: a field each where it is a record, with what the step changed."""
    if "fields" in slot and (slot["slot"] == owner or "part" in slot):
        prefix = f"{slot['part']}." if "part" in slot else ""
        return table((prefix + field["name"], field["text"] + _was(field)) for field in slot["fields"])
    return [f"  {slot['slot']}: {slot['text']}{_was(slot)}"]


def _was(slot: Json) -> str:
    return f"   (was {slot['was']})" if slot["changed"] else ""


def states_of(console: Console, words: list[str]) -> Iterable[str]:
    return console.session.lanes if not words else ("at",) if len(words) == 1 else ()


def topics(console: Console, words: list[str]) -> None:
    """Show the logs: records, marks, what is known of their producers; now or at an earlier step."""
    session = console.session
    at = session.at
    if words[:1] == ["at"] and len(words) == 2 and words[1].isdecimal():
        at, words = int(words[1]), []
    nothing(words, "topics [at N]")
    if session.model.logs is None:
        raise Refusal(f"{session.model.name} has no topics; only kafka/* models have")
    console.said = []
    for log in as_json.logs_json(session.model, session.state(at)):
        console.said += [f"{log['partition']} at {log['holder']} after step {at}", *table(_log_rows(log)), ""]
    console.said.pop()


def _log_rows(log: Json) -> Iterable[tuple[str, str]]:
    """Yield the lines of a log: a mark stands before the record at its offset."""
    left = list(log["marks"])
    for entry in (*log["entries"], None):
        offset = entry["offset"] if entry is not None else log["end"]
        here = [mark for mark in left if mark["offset"] <= offset or entry is None]
        left = [mark for mark in left if mark not in here]
        if here:
            yield f"-- {', '.join(mark['label'] for mark in here)}", ", ".join(mark["name"] for mark in here)
        if entry is not None:
            known = [entry["note"], *([entry["kind"]] if entry["kind"] != EntryKind.PLAIN else [])]
            known += [f"seen by {', '.join(entry['seen_by'])}"] if entry["seen_by"] else []
            yield f"{offset:>3}  {entry['text']}", ", ".join(word for word in known if word)
    yield from log["details"].items()


def properties(console: Console, words: list[str]) -> None:
    """Tell how each property fares."""
    present, session = console.present(), console.session
    rows = []
    for prop in session.model.properties:
        claimed = " (claimed)" if prop.name in session.plan.claims else ""
        found = present["properties"].get(prop.name)
        if found is None:
            rows.append(("yes" if prop.name in present["witnessed"] else "not yet", f"sometimes {prop.name}"))
        elif not found["ok"]:
            rows.append(("FAILS", f"{prop.name}{claimed} since step {found['since']}: {found['reason']}"))
        elif prop.is_safety:
            rows.append(("ok", f"{prop.name}{claimed}"))
        else:
            pending = f": {found['pending']}" if found.get("pending") else ""
            rows.append(("waits" if pending else "ok", f"eventually {prop.name}{claimed}{pending}"))
    console.said = table(rows, "")


def branches(console: Console, words: list[str]) -> None:
    session = console.session
    console.said = []
    for branch in session.branches.values():
        here = f", here at step {session.at}" if branch is session.branch else ""
        origin = f", left {branch.origin} after step {branch.fork}" if branch.origin else ""
        mark = "*" if branch is session.branch else " "
        console.said.append(f"{mark} {branch.name}: {counted(branch.length, 'step')}{origin}{here}")


def sessions(console: Console, words: list[str]) -> None:
    """List the sessions that were left for another one."""
    console.said = [session_line(kept.to_json()) for kept in console.session.kept_sessions.listed()]
    console.said = console.said or ["no other session was stepped; one that is left is kept and listed here"]


def session_line(kept: Json) -> str:
    """Return a session that is kept in one line."""
    more = [f"step {kept['at']} of {kept['steps']}"]
    more += [f"{kept['branches']} branches"] if kept["branches"] > 1 else []
    more += [f"violates {kept['violates']}"] if kept["violates"] else []
    return f"{kept['number']:>3}  {kept['what']}: {', '.join(more)}"


def tours_(console: Console, words: list[str]) -> None:
    console.said = table(((tour.name, tour.title) for tour in tours()), "")


def where(console: Console, words: list[str]) -> None:
    """Tell where the session is."""
    session = console.session
    sizes = ", ".join(f"{name} {size}" for name, size in session.model.sizes.items())
    settings = ", ".join(f"{name}={value}" for name, value in session.model.settings.items() if value)
    rows = [
        ("model", session.model.name), ("sizes", sizes), *([("settings", settings)] if settings else []),
        ("network", session.model.network.name), ("step", f"{session.at} of {session.branch.length}"),
        ("branch", session.branch.name), ("digest", session.digest()),
    ]
    console.said = table(rows, "")


LOOKING = (
    Verb("steps [all]", "what can happen now; all: every fault, too", "looking", steps, either("all")),
    Verb("messages", "messages under way, with numbers", "looking", messages),
    Verb("message M", "all fields of message M", "looking", message, first(numbered)),
    Verb("state [A] [at N]", "the state of A, or of everybody, now or after step N", "looking", state, states_of),
    Verb("topics [at N]", "partitions with their records, marks and producers, now or after step N", "looking", topics,
         either("at")),
    Verb("properties", "which properties hold, fail, were reached", "looking", properties),
    Verb("tours", "the guided tours", "looking", tours_),
    Verb("branches", "all branches, the present one marked", "looking", branches),
    Verb("sessions", "the sessions that were left, with numbers for reopen", "looking", sessions),
    Verb("where", "model, sizes, step and digest", "looking", where),
    Verb("help [VERB]", "this, or what a verb does", "looking", help_, lambda console, words: console.verbs),
)
