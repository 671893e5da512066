"""Faults drawn by chance from a budget and a seed, before anything is served: the same seed gives the same plan."""

from __future__ import annotations

from collections.abc import Mapping

from harness.model import Refusal, did_you_mean
from harness.simulate.strategies.chance import Seeded
from kafka_proto.gateway.inputs import BY_CHANCE, OF_BROKERS, FaultKind, TimedFault

KINDS: tuple[FaultKind, ...] = (*BY_CHANCE, *OF_BROKERS, "elect")
HIT = ("EndTxn", "Produce", "AddPartitionsToTxn", "TxnOffsetCommit", "InitProducerId", "AddOffsetsToTxn")
LATEST_NTH, LATEST_MS, LONGEST_MS = 20, 30_000, 8_000
"""The last request of a name that is hit, the last moment at which a broker is, and how long that lasts at most."""
MOST = 100


def read_budget(text: str) -> dict[FaultKind, int]:
    """Return how often each fault happens, from text like `delay=2,crash=1`. Raises Refusal."""
    found: dict[FaultKind, int] = {}
    for part in text.split(","):
        name, _, count = part.partition("=")
        kind = next((each for each in KINDS if each == name), None)
        if kind is None or not count.isascii() or not count.isdigit() or not 0 < int(count) <= MOST:
            meant = did_you_mean(name, KINDS)
            said = (f"--faults {part!r} is not FAULT=COUNT, such as delay=2; the faults are {', '.join(KINDS)}, each "
                    f"up to {MOST} times")
            raise Refusal(f"{said}; {meant}" if meant and kind is None else said)
        found[kind] = int(count)
    return found


def draw(budget: Mapping[FaultKind, int], seed: int, brokers: int) -> list[TimedFault]:
    """Return a plan of faults: requests that are hit from the start on, brokers at some moment."""
    chance = Seeded(seed)
    plan = []
    for kind in KINDS:
        for _ in range(budget.get(kind, 0)):
            lasts = 1 + chance.index(LONGEST_MS, "how long")
            if kind in BY_CHANCE:
                name, nth = HIT[chance.index(len(HIT), "request")], 1 + chance.index(LATEST_NTH, "which one")
                plan.append(TimedFault(0, kind, name, nth, for_ms=lasts if kind == "delay" else None))
            else:
                at = chance.index(LATEST_MS, "when")
                broker = 0 if kind == "elect" else 1 + chance.index(brokers, "broker")
                plan.append(TimedFault(at, kind, broker=broker, for_ms=None if kind == "elect" else lasts))
    return plan
