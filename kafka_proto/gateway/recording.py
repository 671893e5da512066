"""The trail of a session with real clients: every input in its order, as a run of the model `gateway`.

This and `random_plans` are the gateway's doors to the harness: a server is a driver, and writes what drivers write.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

from harness.model import NO_FAULTS, Refusal, Step, Telling, View
from harness.record import Chosen, ChosenInput, SpooledChoices, Trail
from harness.verify.isolation.judge import LogJudge
from kafka_proto.gateway.client_view import SessionView
from kafka_proto.gateway.front import Front
from kafka_proto.gateway.inputs import Fronted, Input, Output, Started
from kafka_proto.gateway.model import NAME, started, step_name
from kafka_proto.gateway.properties import NAMES
from kafka_proto.gateway.story import TakenInput, ToldFront

MOST_TOLD = 200
"""Steps that are kept to be told."""


class Recording:
    """Sees what a host takes; long sessions are kept in a temporary file until the trail is written."""

    def __init__(self, host: Front, started: Started | Fronted) -> None:
        self._host = host
        self._choices = SpooledChoices()
        self._last = deque[TakenInput](maxlen=MOST_TOLD)
        self.see(started, [])

    def see(self, given: Input, outputs: list[Output]) -> None:
        """Keep an input with its result."""
        action, args = step_name(given, outputs)
        label = Step(action, args, detail=", ".join(self._host.said)).label
        self._choices.append(Chosen(label, input=ChosenInput.of(NAME, given)))
        if isinstance(self._host, ToldFront) and self._host.taken is not None:
            self._last.append(self._host.taken)

    @property
    def last(self) -> list[tuple[int, Telling]]:
        """Return the last steps with their numbers, from 1, as they are told."""
        return [(taken.number + 1, taken.telling()) for taken in self._last]

    def trail(self, scenario: str | None = None) -> Trail:
        """Return the trail so far, with the first property that it violates."""
        violates = next(iter(self._host.problems()), None)
        return Trail(NAME, {}, {}, "unordered-set", NO_FAULTS, NAMES, self._choices, strategy="outside",
                     scenario=scenario, violates=violates)

    def write(self, path: Path) -> None:
        """Write the trail whole or not at all. Raises Refusal if it cannot be written."""
        self.trail().write(path)


class WatchedClients:
    """Sees what clients of a host ask and get, to judge the session by that alone; it keeps all of it in memory."""

    def __init__(self, host: Front) -> None:
        self._host, self._view, self._count = host, SessionView(started), 1
        self._view.begin(host)

    def see(self) -> None:
        """Look at what the host did with its last input."""
        self._count += 1
        self._view.see(self._count)

    def anomalies(self) -> dict[str, str]:
        """Return the properties that what clients saw so far violates, with the first reason of each."""
        judge = LogJudge(self._view.level)
        slots = {"brokers": self._host.brokers, "observed": self._host.observed}
        for operation in self._view.finish(self._count + 1, View(slots)):
            judge.look(operation)
        return {one.property: one.reason for one in judge.breaches()}


def check_writable(path: Path) -> None:
    """Raise Refusal if a trail cannot be written, before anything is served."""
    if path.is_dir():
        raise Refusal(f"{path} is a folder; give --trail a file, as session.trail.jsonl")
    if not path.parent.is_dir():
        raise Refusal(f"there is no folder {path.parent}; make it or give --trail another file")

