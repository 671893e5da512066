"""Blocks of producer ids on the stack's lossy links: asked for again until one is there, and never used twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from harness.model import Rule, Turn, find_scenario, model_of
from harness.simulate.runs.plan import plan_of
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from kafka_proto.broker.broker import Broker
from kafka_proto.transactions.messages import AllocateProducerIdsRequest

LOST = Rule("drop", message="AllocateProducerIdsRequest", nth=1)
DOUBLED = Rule("duplicate", message="AllocateProducerIdsResponse")


def violated(rule: Rule, runs: int = 8) -> tuple[Counter[str], Counter[str]]:
    """Return what rolling restarts violate where a rule hits the blocks, and how often each of their steps happened."""
    scenario = find_scenario("stack-rolling-restart")
    assert scenario is not None
    faults = attrs.evolve(scenario.faults, rules=(rule,))
    tables, plan = Tables(model_of(attrs.evolve(scenario, faults=faults))), plan_of(scenario)
    found, steps = Counter[str](), Counter[str]()
    for seed in range(runs):
        run = run_plain(tables, plan, RandomStrategy(seed))
        found.update(verdict.violated for verdict in run.violations if verdict.violated)
        steps.update(chosen.label.partition("(")[0] for chosen in run.trail.choices)
    return found, steps


FIRED = Broker.timer_fired


def asking_once(self: Broker, local: Any, timer: str) -> Iterator[Turn[Any]]:
    """What a broker does that never asks again for a block."""
    for turn in FIRED(self, local, timer):
        kept = (message for message in turn.sent if not isinstance(message, AllocateProducerIdsRequest))
        yield attrs.evolve(turn, sent=tuple(kept))


def test_a_block_that_was_lost_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every client gets its id all the same; a broker that does not ask again leaves one without."""
    found, steps = violated(LOST)
    assert not found and steps["ReceiveAllocateProducerIdsResponse"]
    monkeypatch.setattr(Broker, "timer_fired", asking_once)
    assert "EventuallyAllClientsGetPid" in violated(LOST)[0]


def test_a_block_that_came_twice_is_taken_once() -> None:
    """A copy of an answer neither goes back to ids that were used, nor ends the wait for another block."""
    found, steps = violated(DOUBLED)
    assert not found and steps["ReceiveAllocateProducerIdsResponse"] > steps["ReceiveAllocateProducerIdsRequest"] > 0
