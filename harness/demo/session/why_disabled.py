"""Why something cannot be done to a message, an actor or a link now, in words: what a disabled button says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.demo.session.as_json import Json
from harness.model import Model

TO_MESSAGES = ("deliver", "drop", "duplicate", "delay", "release")
TO_ACTORS = ("crash", "restart", "pause", "resume", "timer", "elect", "skew")


def why_no_message(model: Model, present: Json, verb: str, message: Json) -> str:
    """Return why nothing of a kind can be done to a message."""
    gate = present["gates"].get(message["to"], {"status": "up", "partitioned_from": []})
    if verb == "release":
        return "it is not held"
    if message["state"] == "held":
        return "it is held; release lets it go on"
    if verb == "deliver":
        if gate["status"] != "up":
            return f"{message['to']} is {gate['status']}"
        if message["from"] in gate["partitioned_from"]:
            return f"{message['to']} is partitioned from {message['from']}; heal them first"
        waits = message["state"] == "waiting"
        return "it waits behind another message" if waits else f"{message['to']} does not take it in this state"
    if message["reliable"]:
        return "it travels on a reliable link: it waits while that is cut off, and no other fault reaches it"
    return no_fault(model, verb)


def no_fault(model: Model, kind: str) -> str:
    """Return why a fault of a kind is not possible at all, or not any more."""
    shown = {"delay": "hold", "one_way": "cut", "skew": "clock skew"}.get(kind, kind)
    if not model.faulty:
        return "this run takes no faults; open the model itself to inject some"
    if not getattr(model.faults, kind, 0):
        return f"this run has no {shown} in its budget; open {model.name} gives one for everything"
    return f"the budget has no {shown} left, or {shown} has no target"


def why_no_actor(model: Model, present: Json, verb: str, who: str) -> str:
    """Return why nothing of a kind can be done to an actor, or none of it happens there now."""
    gate = present["gates"].get(who, {"status": "up", "skew": 100})
    status = gate["status"]
    if verb in ("timer", "elect"):
        what = "timer can fire" if verb == "timer" else "election is possible"
        return f"{who} is {status}" if status != "up" else f"no {what} at {who} in this state"
    if verb in ("restart", "resume") or (status != "up" and verb != "skew"):
        return f"it is {status}"
    actor = model.actors.get(who)
    if verb == "crash" and actor is not None and not actor.may_crash:
        return f"{who} has nothing on disk to restart from, so this model never crashes it"
    return no_fault(model, verb)


def refusals(model: Model, present: Json, lanes: Iterable[str]) -> Json:
    """Return by verb why it cannot be done: `messages` by their ids, `actors` by their names."""
    able = {(option["verb"], option["message"]) for option in present["enabled"] if option["message"] is not None}
    alike: dict[tuple[Any, ...], set[str]] = {}
    for message in present["in_flight"]:
        verbs = {verb for verb in TO_MESSAGES if (verb, message["id"]) in able}
        alike.setdefault(_sort(message), set()).update(verbs)
    acted = {(option["verb"], who) for option in present["enabled"] for who in (*option["actors"], option["process"])}
    return {
        "messages": {
            message["id"]: {verb: why_no_message(model, present, verb, message)
                            for verb in TO_MESSAGES if verb not in alike[_sort(message)]}
            for message in present["in_flight"]
        },
        "actors": {
            who: {verb: why_no_actor(model, present, verb, who) for verb in TO_ACTORS if (verb, who) not in acted}
            for who in lanes
        },
    }


def _sort(message: Json) -> tuple[Any, ...]:
    """What is the same for equal messages: what is done to one of them is done to any."""
    return (message["from"], message["to"], message["type"], message["state"], *message["fields"].items())
