"""What a failing test says of its session: the last steps as a story, how to open it, and a shorter trail beside it.

A driver, as `recording` is: it replays to make the trail shorter, and writes files.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from harness.model import Refusal
from harness.record import Trail
from harness.record.wording import counted
from harness.render.text import last_steps
from harness.render.timeline import timeline_of, told_rows
from harness.simulate.trails.replay import replayed_history
from harness.simulate.trails.shrink import shrink
from kafka_proto.gateway.recording import Recording

LAST, WIDTH = 12, 118
"""Steps that are printed, of those that matter; and characters of a line."""
MOST_SHRUNK = 2_500
"""Steps that may be replayed for a shorter trail: some seconds, the same number everywhere."""


def commands(path: Path) -> list[str]:
    """Return the commands that open a trail, print it, and replay it."""
    name = shlex.quote(str(path))
    return [f"kafka-proto demo {name}", f"kafka-proto show {name}", f"kafka-proto replay {name}"]


def proof(path: Path) -> str:
    """Return the command that says what clients saw and should not have, step by step."""
    return f"kafka-proto verify {shlex.quote(str(path))}"


def left(recording: Recording, path: Path, violated: str | None) -> str:
    """Write a session's trail, and a shorter one if it violates what should hold; return what to say of both."""
    recording.write(path)
    trail = recording.trail()
    lines = ["the end of the session:", story(recording, trail), *commands(path)]
    if violated is not None:
        lines.append(_shorter(trail, path, violated))
    return "\n".join(lines)


def story(recording: Recording, trail: Trail) -> str:
    """Return the last steps as a timeline."""
    told = recording.last
    lanes = max((telling.lanes for _, telling in told), key=len, default=())
    return last_steps(told_rows(trail.build(), told), lanes, WIDTH, LAST)


def _shorter(trail: Trail, path: Path, violated: str) -> str:
    """Write the shortest trail that is found which still violates a property; return how to open it."""
    has = len(trail.choices)
    name = path.name.removesuffix(".trail.jsonl")
    short = path.with_name(f"{name}.short.trail.jsonl")
    more = f"kafka-proto shrink {shlex.quote(str(path))} --out {shlex.quote(str(short))}"
    if has > MOST_SHRUNK:
        return f"{violated} in fewer than {counted(has, 'step')}: {more}"
    try:
        found = shrink(trail, violated, keep_sizes=True, most_steps=MOST_SHRUNK)
    except Refusal as refused:  # what it violates depends on more than the session
        return f"no shorter trail: {refused}"
    found.trail.write(short)
    model, history = replayed_history(found.trail)
    timeline = timeline_of(history, model)
    told = last_steps(timeline.rows[1:], timeline.columns, WIDTH, LAST)
    return f"{violated} in {counted(found.has, 'step')} of {has}:\n{told}\n{commands(short)[0]}"
