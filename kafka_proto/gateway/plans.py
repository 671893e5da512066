"""Plans of faults from text: verbs as those of the fixture, faults by chance, and those of a scenario by its name.

    delay EndTxn nth=1 for_ms=2500; crash b2 at_ms=1000 for_ms=1000
    delay=2,crash=1
    late-end timeout_ms=1000

Parts are separated by `;` or ends of lines. What is drawn is a function of the seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.model import Refusal, Rule, Scenario, unknown
from kafka_proto.gateway.apis import TABLE
from kafka_proto.gateway.codec import api_name
from kafka_proto.gateway.injected_errors import no_answer
from kafka_proto.gateway.inputs import OF_BROKERS, OF_REQUESTS, SLOW_DISK, FaultKind, Settings, TimedFault
from kafka_proto.gateway.offer import Offer, offer_of
from kafka_proto.gateway.random_plans import KINDS, draw, read_budget

ANSWER: FaultKind = "answer"
VERBS: tuple[FaultKind, ...] = (*KINDS, ANSWER, SLOW_DISK)
TEXTS = ("error", "client")
"""What an answer says by a word."""
LONGEST_MS = 24 * 3_600 * 1_000
BETWEEN = re.compile(r"[;\n]")
PARTITION = re.compile(r"[a-zA-Z0-9._-]{1,249}-[0-9]{1,4}")
NUMBERS: Mapping[str, int] = {"nth": 1_000_000, "for_ms": LONGEST_MS, "at_ms": LONGEST_MS, "timeout_ms": LONGEST_MS}
"""What may be said by number, and the highest."""
MODEL_TIMEOUT_MS, CLIENT_TIMEOUT_MS = 80, 1_000
"""After how long a client gives a request up: at most in scenarios, and where a plan does not say."""
ELSEWHERE = ("reorder", "one_way", "skew")
"""Faults of scenarios that no connection of a real client has: TCP keeps the order and works both ways."""


def read_plan(text: str, seed: int, settings: Settings, offer: Offer | None = None) -> list[TimedFault]:
    """Return the faults of a plan, of requests that are offered; without an offer, by the release of the settings.

    Raises Refusal for an impossible plan, ValueError for an unknown release.
    """
    offer = offer or offer_of(settings.release, settings.transaction_version, TABLE)
    parts = [part for part in map(str.strip, BETWEEN.split(text)) if part]
    if not parts:
        raise Refusal("--faults has no fault; expected some, such as `delay EndTxn`, `delay=2,crash=1`, or a scenario")
    found = [timed for place, part in enumerate(parts) for timed in _Part(part, seed + place, settings, offer).faults()]
    for timed in found if offer.is_of_others else ():
        if (wrong := not_before_others(timed.kind, timed.other)) is not None:
            raise Refusal(f"--faults: {wrong}")
    return found


def not_before_others(kind: FaultKind, other: int) -> str | None:
    """Return why a proxy does not do something to brokers of another cluster; None if it does."""
    if kind in ("elect", "shut_down", SLOW_DISK) or other:
        what = "partition of two brokers" if other else kind
        return f"{what} is not possible in front of another cluster, whose brokers do not hear the proxy"
    return None


def written(timed: TimedFault) -> str:
    """Return a fault in the words of a plan."""
    brokers = [f"b{number}" for number in (timed.broker, timed.other) if number]
    texts = [f"{name}={text}" for name, text in (("error", timed.error), ("client", timed.client)) if text]
    numbers = [f"{name}={number}" for name, number in (
        ("nth", timed.nth if timed.request else None), ("for_ms", timed.for_ms), ("at_ms", timed.at_ms or None))
        if number is not None]
    return " ".join((timed.kind, *filter(None, (timed.request, timed.partition)), *brokers, *texts, *numbers))


def no_request(name: str, offer: Offer) -> str | None:
    """Return what is wrong with the name of a request; None if such requests are offered."""
    known = [api_name(api, last) for api, (_, last) in offer.ranges.items()]
    return None if name in known else unknown(f"clients send no request {name!r}", name, known, "there are")


class _Part:
    """A part of a plan that is read."""

    def __init__(self, text: str, seed: int, settings: Settings, offer: Offer) -> None:
        self._text, self._seed, self._settings, self._offer = text, seed, settings, offer
        self._words = [word for word in text.split() if "=" not in word]
        self._numbers: dict[str, int] = {}
        self._texts: dict[str, str] = {}

    def faults(self) -> list[TimedFault]:
        """Return the faults that the part has."""
        kind = next((kind for kind in VERBS if self._words[:1] == [kind]), None)
        if not self._words or (self._text in KINDS and kind != "elect"):
            return draw(read_budget(self._text), self._seed, len(self._settings.ports))
        for word in self._text.split():
            if "=" in word:
                self._given(word)
        return self._of_scenario() if kind is None else [self._verb(kind, self._words[1:])]

    def _wrong(self, said: str) -> Refusal:
        return Refusal(f"--faults {self._text!r}: {said}")

    def _given(self, word: str) -> None:
        name, _, number = word.partition("=")
        if name in TEXTS and self._words[:1] == [ANSWER]:
            self._texts[name] = number
            return
        if name not in NUMBERS:
            raise self._wrong(unknown(f"{name!r} is not a number of a fault", name, NUMBERS, "there are"))
        if not number.isascii() or not number.isdigit() or len(number) > 9 or int(number) > NUMBERS[name]:
            raise self._wrong(f"{name} must be a number from 0 to {NUMBERS[name]}, not {number!r}")
        self._numbers[name] = int(number)

    def _only(self, what: str, *names: str) -> None:
        """Refuse numbers that have no meaning for a fault."""
        for name in self._numbers:
            if name not in names:
                raise self._wrong(f"{name} means nothing for {what}; it takes {', '.join(names)}")

    def _verb(self, kind: FaultKind, about: Sequence[str]) -> TimedFault:
        at, lasts = self._numbers.get("at_ms", 0), self._numbers.get("for_ms")
        if kind == ANSWER:
            self._only(kind, "nth", "at_ms")
            if len(about) != 1 or "error" not in self._texts:
                raise self._wrong("answer takes the name of one request and an error code, as answer EndTxn "
                                  "error=NOT_COORDINATOR")
            if (wrong := no_answer(about[0], self._texts["error"])) is not None:
                raise self._wrong(wrong)
            return TimedFault(at, kind, self._request(about[0]), self._numbers.get("nth", 1),
                              error=self._texts["error"], client=self._texts.get("client"))
        if kind in OF_REQUESTS:
            self._only(kind, "nth", *(["for_ms"] if kind == "delay" else []), "at_ms")
            if len(about) != 1:
                raise self._wrong(f"{kind} takes the name of one request, as {kind} EndTxn")
            return TimedFault(at, kind, self._request(about[0]), self._numbers.get("nth", 1), for_ms=lasts)
        if kind == "elect":
            self._only(kind, "at_ms")
            if len(about) > 1 or not all(map(PARTITION.fullmatch, about)):
                raise self._wrong("elect takes one partition, as elect orders-0, or none for all of them")
            return TimedFault(at, kind, partition="".join(about))
        self._only(kind, "for_ms", "at_ms")
        most = 2 if kind == "partition" else 1
        if not 1 <= len(about) <= most or len({*about}) < len(about):
            raise self._wrong(f"{kind} takes one broker, as {kind} b1" + (
                ", or two that are to be cut off from each other, as partition b1 b2" if most == 2 else ""))
        one, *other = map(self._broker, about)
        return TimedFault(at, kind, broker=one, for_ms=lasts, other=other[0] if other else 0)

    def _request(self, name: str) -> str:
        if (wrong := no_request(name, self._offer)) is not None:
            raise self._wrong(wrong)
        return name

    def _broker(self, name: str) -> int:
        known = {f"b{number}": number for number in self._settings.brokers}
        if name not in known:
            raise self._wrong(f"there is no broker {name!r}; there are {', '.join(known)}")
        return known[name]

    def _of_scenario(self) -> list[TimedFault]:
        name, *more = self._words
        known = {scenario.name: scenario for scenario in scenarios()}
        if name not in known or more:
            raise self._wrong(unknown(f"{' '.join(self._words)!r} is neither a fault nor a scenario", name,
                                      (*VERBS, *known), "there are the faults", see="kafka-proto list"))
        self._only("a scenario", "timeout_ms")
        found = [*self._ruled(known[name]), *self._at_times(known[name]), *self._by_chance(known[name])]
        if not found:
            raise self._wrong("this scenario has no faults")
        return found

    def _scaled(self, ms: int) -> int:
        return ms * self._numbers.get("timeout_ms", CLIENT_TIMEOUT_MS) // MODEL_TIMEOUT_MS

    def _ruled(self, scenario: Scenario) -> Iterator[TimedFault]:
        """Yield the faults of chosen requests, and the losses of chosen answers."""
        for rule in scenario.faults.rules:
            name = self._sent_by_clients(rule)
            if rule.message.endswith("Request"):
                kind = next((kind for kind in OF_REQUESTS if kind == rule.kind), None)
            else:
                kind = "lose" if rule.kind == "drop" else None
            if kind is None or rule.source or rule.dest:
                raise self._wrong(f"a {rule.kind} of {rule.message} cannot be had from outside")
            yield TimedFault(0, kind, name, rule.nth, for_ms=self._scaled(rule.delay_ms) if kind == "delay" else None)

    def _sent_by_clients(self, rule: Rule) -> str:
        name = rule.message.removesuffix("Request").removesuffix("Response")
        if name == "WriteTxnMarkers" or no_request(name, self._offer) is not None:
            raise self._wrong(f"{rule.message} is between brokers, where no single message can be hit; "
                              "`partition b1 b2` cuts two of them off from each other")
        return name

    def _at_times(self, scenario: Scenario) -> Iterator[TimedFault]:
        """Yield the faults that begin at their times."""
        for timed in scenario.faults.timed:
            kind = next((kind for kind in OF_BROKERS if kind == timed.kind), None)
            if kind is None or not all(re.fullmatch("b[0-9]+", who) for who in timed.who):
                raise self._wrong(f"{timed.kind} of {' and '.join(timed.who)} cannot be had with real connections")
            one, *other = map(self._broker, timed.who)
            yield TimedFault(self._scaled(timed.at_ms), kind, broker=one, other=other[0] if other else 0,
                             for_ms=None if timed.until_ms is None else self._scaled(timed.until_ms - timed.at_ms))

    def _by_chance(self, scenario: Scenario) -> list[TimedFault]:
        """Return faults as often as the scenario may choose them; of what is lost, half are answers."""
        faults = scenario.faults
        for kind in ELSEWHERE:
            if getattr(faults, kind):
                raise self._wrong(f"this scenario has {kind} faults, which connections over TCP do not have")
        budget: dict[FaultKind, int] = {
            "delay": faults.delay, "drop": (faults.drop + 1) // 2, "lose": faults.drop // 2,
            "duplicate": faults.duplicate, "crash": faults.crash, "partition": faults.partition,
            "pause": faults.pause, "elect": scenario.sizes.get("elections", 0),
        }
        return draw(budget, self._seed, len(self._settings.ports))


def scenarios() -> Iterable[Scenario]:
    """Return the scenarios of transactions."""
    from kafka_proto.cluster.scenarios import SCENARIOS
    from kafka_proto.transactions.scenarios import SCENARIOS as OF_SPECS

    return (*SCENARIOS, *OF_SPECS)
