"""A player of records of clusters of three brokers: requests to one broker each, notes of what happened, looks after.

A note says which brokers die, start, stand still, go on or shut down, and for what was waited then. Where a look shows
a broker in another state than it is in, that happened just before the step. `PlayedBrokers` says how this is done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

WAITED_FOR = "tid-A"
STEP_MS = 50
MOST_MS = 30_000
"""For how long a note waits."""
MOMENT_MS = 1_000
UP, PAUSED, DOWN = "up", "paused", "down"
VERBS: dict[str, str] = {
    r"(?:dies?|crash(?:es)?|(?:is|are) killed)\b": "crash",
    r"(?:shuts? down|(?:is|are) shut down)\b": "shut_down",
    r"(?:starts?|comes? back|(?:is|are) started)\b": "start",
    r"(?:stands? still|(?:is|are) paused)\b": "pause",
    r"(?:go(?:es)? on|continues?)\b": "go_on",
}
WHO = r"b\d(?:(?:, | and )b\d)*|all(?: brokers)?|the followers|the coordinator|the leader|it|they"
CLAUSE = re.compile(rf"\b({WHO}) ({'|'.join(VERBS)})")
IN_SOCKET = re.compile(r"requests wait in (?:(b\d)|the first coordinator)'s socket")
COORDINATES = re.compile(r"^(\S+) is coordinated by (b\d)$")
LATER = re.compile(r"^(?:(\d+) (m?s) later|a moment later)$|a moment later")
ISR, HIGH_WATERMARK = r"the ISR is (whole|b\d(?:, b\d)*)", r"the high watermark is (\d+)"
ANOTHER = "another one coordinates"
LEADS = r"(?:another broker(?: than (b\d))?|(nobody)|(somebody)|(it)|(b\d)) leads"
CONDITIONS = (ISR, HIGH_WATERMARK, ANOTHER, LEADS)
STATES = {"crash": DOWN, "shut_down": DOWN, "start": UP, "pause": PAUSED, "go_on": UP}
Row = dict[str, Any]


class PlayedBrokers(Protocol):
    """A cluster with one partition, `T-0`, as a player needs it."""

    names: tuple[str, ...]
    replicas: tuple[str, ...]

    def do(self, verb: str, broker: str) -> None:
        """Let a broker crash, shut down, start, pause or go on."""

    def send(
        self, to: str, api: str, version: int, fields: Mapping[str, Any], shown: tuple[str, ...] = ()
    ) -> Callable[[], Row]:
        """Send a request, and return what waits for its response, or for these fields of it."""

    def pass_ms(self, milliseconds: int) -> None:
        """Let time pass."""

    def coordinator(self, name: str) -> str:
        """Return the broker that coordinates a transactional id, or a group, of the record."""

    def is_coordinated_by(self, name: str, broker: str) -> None:
        """Let a transactional id, or a group, of the record stand for one that a broker coordinates."""

    def settle(self) -> None:
        """Let come to rest what does so by itself."""

    def partition(self) -> Row:
        """Return what the cluster says of the partition."""

    def replica(self, broker: str) -> Row:
        """Return what a broker has of the partition, `state` aside."""


class ReplicatedPlayer:
    """Plays one record."""

    def __init__(self, brokers: PlayedBrokers) -> None:
        self.brokers = brokers
        self.states = dict.fromkeys(brokers.names, UP)
        self._coordinated, self._coordinator = WAITED_FOR, ""
        self._last: tuple[str, ...] = ()
        """Who the last clause was about."""

    def play(self, record: Mapping[str, Any]) -> list[Row]:
        """Return the steps as they were answered. Raises ValueError for a note that means nothing here."""
        played, steps = list[Row](), list(record["steps"])
        while steps:
            step = steps.pop(0)
            check_note(step)
            if "request" in step:
                self._become(step)
                played.append(self._looked(step, {"response": self._send(step)()}))
                continue
            waits = IN_SOCKET.search(step["note"])
            if waits is None:
                played.append(self._looked(step, self._happened(step)))
                continue
            count = next((n for n, each in enumerate(steps) if "note" in each), len(steps))
            asked, steps = steps[:count], steps[count:]
            places = in_turn(step["note"], asked)
            waiting = {place: self._send(asked[place]) for place in places}
            self._let("go_on", (waits[1] or self._coordinator,))
            played.append(dict(step))
            played += [self._looked(each, {"response": waiting[n]()}) for n, each in enumerate(asked)]
        return played

    def _send(self, step: Mapping[str, Any]) -> Callable[[], Row]:
        request, recorded = step["request"], step.get("response")
        shown = tuple(recorded) if isinstance(recorded, dict) else ()
        return self.brokers.send(request["to"], request["api"], request["version"], request["fields"], shown)

    def _become(self, step: Mapping[str, Any]) -> None:
        """Let brokers be in the states in which they are seen after a step."""
        for broker, seen in step.get("after", {}).get("replicas", {}).items():
            before, after = self.states[broker], seen["state"]
            if before != after:
                verb = {DOWN: "crash", PAUSED: "pause", UP: "go_on" if before == PAUSED else "start"}[after]
                self._let(verb, (broker,))

    def _let(self, verb: str, names: Sequence[str]) -> None:
        for broker in names:
            if self.states[broker] != STATES[verb]:
                self.brokers.do(verb, broker)
                self.states[broker] = STATES[verb]

    def _happened(self, step: Mapping[str, Any]) -> Row:
        """Do what a note says, and return what is seen of it."""
        note = str(step["note"])
        if found := COORDINATES.search(note):
            self.brokers.is_coordinated_by(found[1], found[2])
            self._coordinated, self._coordinator = found.groups()
            return {}
        happened = list(CLAUSE.finditer(note))
        for clause in happened:
            self._last = self._names(clause[1])
            self._let(next(verb for verbs, verb in VERBS.items() if re.match(verbs, clause[2])), self._last)
        self._become(step)
        if "seen" in step:
            return {"seen": self._asked_until_known(step["seen"])}
        if found := LATER.search(note):
            self.brokers.pass_ms(MOMENT_MS if found[1] is None else int(found[1]) * (1000 if found[2] == "s" else 1))
        elif "waited until" in note:
            condition = self._condition(note.partition("waited until")[2]) or (lambda: self._is_as_seen(step))
            for _ in range(0, MOST_MS, STEP_MS):
                if condition():
                    break
                self.brokers.pass_ms(STEP_MS)
        return {}

    def _names(self, words: str) -> tuple[str, ...]:
        if named := tuple(re.findall(r"b\d", words)):
            return named
        leader = self.brokers.partition()["leader"] if "leader" in words or "followers" in words else ""
        return {
            "the followers": tuple(b for b in self.brokers.replicas if b != leader), "the leader": (leader,),
            "the coordinator": (self._coordinator,), "it": self._last, "they": self._last,
            "all": self.brokers.names, "all brokers": self.brokers.names,
        }[words]

    def _condition(self, words: str) -> Callable[[], bool] | None:
        """Return what is waited for, None for what is not known here."""
        look, replicas, last = self.brokers.partition, self.brokers.replicas, self._last
        if found := re.search(ISR, words):
            isr = list(replicas) if found[1] == "whole" else found[1].split(", ")
            return lambda: look()["isr"] == isr
        if found := re.search(HIGH_WATERMARK, words):
            offset = int(found[1])
            return lambda: self._fetched(look()["leader"]).get("high_watermark") == offset
        before = self._coordinator
        if ANOTHER in words:
            name = self._coordinated
            return lambda: self.brokers.coordinator(name) not in (before, "") and look()["leader"] is not None
        if found := re.search(LEADS, words):
            other, nobody, _, it, named = found.groups()
            if nobody:
                return lambda: look()["leader"] is None
            if it or named:
                return lambda: look()["leader"] == (named or last[0])
            gone = other or (last[0] if "another" in words else None)
            return lambda: look()["leader"] not in (None, gone)
        return None

    def _is_as_seen(self, step: Mapping[str, Any]) -> bool:
        """Say whether the cluster is as it is seen after a step, which is what was waited for then."""
        return "after" in step and self._looked(step, {})["after"] == step["after"]

    def _fetched(self, broker: str | None) -> Row:
        found: Row = {} if broker is None else self.brokers.replica(broker).get("fetch", {})
        return found

    def _asked_until_known(self, seen: Mapping[str, Any]) -> dict[str, list[str]]:
        """Ask all others for a transaction until one knows it, and return what each said, repeats left out."""
        said: dict[str, list[str]] = {b: [] for b in self.brokers.names if self.states[b] == UP}
        for _ in range(0, MOST_MS, STEP_MS):
            for broker, errors in said.items():
                answer = self.brokers.send(broker, "DescribeTransactions", 0, {"transactional_id": WAITED_FOR})()
                if errors[-1:] != [answer["error"]]:
                    errors.append(answer["error"])
            if any("NONE" in errors for errors in said.values()):
                break
            self.brokers.pass_ms(STEP_MS)
        return {("next coordinator" if "NONE" in errors else "the other"): errors for errors in said.values()}

    def _looked(self, step: Mapping[str, Any], ours: Row) -> Row:
        """Return a step with what was answered, and what is seen after it."""
        recorded = step.get("response")
        if isinstance(recorded, dict) and "response" in ours:  # not all fields are always recorded
            ours = {"response": {field: value for field, value in ours["response"].items() if field in recorded}}
        played = {**step, **ours}
        if "after" in step:
            self.brokers.settle()
            names = step["after"].get("replicas", self.brokers.replicas)
            replicas = {b: {"state": self.states[b], **self.brokers.replica(b)} for b in names}
            played["after"] = {"partition": self.brokers.partition(), "replicas": replicas}
        return played


def check_note(step: Mapping[str, Any]) -> None:
    """Raise ValueError for a step whose note means nothing here, and after which nothing is seen that would say it."""
    note = "" if "after" in step else str(step.get("note", ""))
    _, waits, condition = note.partition("waited until")
    if waits and not any(re.search(words, condition) for words in CONDITIONS):
        raise ValueError(f"this player does not know how to wait until {condition.strip()!r}")
    if note and not waits and not any(words.search(note) for words in (CLAUSE, IN_SOCKET, COORDINATES, LATER)):
        raise ValueError(f"this player does not know what happens at the note {note!r}")


def in_turn(note: str, asked: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return in which order requests are taken that wait behind one another, or on a connection of their own.

    Those are accepted while the first two of the others are answered.
    """
    behind, places, seen = 0, dict[int, tuple[int, int]](), 0
    for n, step in enumerate(asked):
        is_alone = ("last one on a connection of its own" in note and n == len(asked) - 1) or (
            "Produce on one each" in note and step["request"]["api"] == "Produce")
        if is_alone:
            seen += 1
            places[n] = (1, seen)
        else:
            places[n] = (behind, 0)
            behind += 1
    return sorted(places, key=lambda n: places[n])
