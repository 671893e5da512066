"""Recorded runs by name, with all it takes to render them: of specs, of actors, and of a talk under faults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import attrs

from harness import model as m
from harness.record import EventRecorder, History, header_of
from harness.render import render
from harness.render.timeline import Timeline, timeline_of
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy

SIZES = {"clients": 2, "brokers": 2, "elections": 1}
WIDE = {
    "clients": 3, "brokers": 3, "transactional-ids": 2, "topic-partitions": 2, "txn-log-partitions": 2, "elections": 2,
}


@attrs.frozen
class Ping(m.Message):
    text: str
    number: int = 0


@attrs.frozen
class Talk:
    said: int = m.persisted(default=0)
    heard: tuple[int, ...] = m.volatile(default=())


class Talker(m.Actor[Talk]):
    """Says three things to its peer, with every character that some format could choke on."""

    may_crash = True
    initial = Talk()

    def __init__(self, name: str, peer: str) -> None:
        self.name = name
        self.peer = peer

    def step(self, local: Talk) -> Iterable[m.Turn[Talk]]:
        if local.said < 3:
            ping = Ping('a; #1: <b> & "c" %% $$', local.said, source=self.name, dest=self.peer)
            yield m.Turn("Say", (self.name,), attrs.evolve(local, said=local.said + 1), (ping,), flush=True)

    def on_message(self, local: Talk, message: m.Message) -> Iterable[m.Turn[Talk]]:
        assert isinstance(message, Ping)
        yield m.Turn("Hear", (self.name, message.source), attrs.evolve(local, heard=(*local.heard, message.number)))


def talk(faults: m.Faults) -> m.Model:
    """Return two talkers whose names Mermaid could take for its own syntax."""

    def in_order(view: m.View, name: str) -> m.Reason:
        heard = view[name].heard
        return None if list(heard) == sorted(set(heard)) else f"{name} heard {heard}; <not> in order & once"

    names = ("end", "node-2")
    return m.Model(
        "talk", (Talker(*names), Talker(*reversed(names))), ({},), m.BAG, faults,
        (m.always("InOrder", in_order, over=names),), types=(Ping, Talk),
    )


@attrs.frozen
class Case:
    """A recorded run with all it takes to render it."""

    model: m.Model
    run: Run
    history: History

    def timeline(self) -> Timeline:
        return timeline_of(self.history, self.model, self.run.trail.fair_from)

    def render(self, form: str, width: int = 100) -> str:
        return render(self.history, self.model, form, width, self.run.trail.fair_from)


def record(model: m.Model, plan: Plan, seed: int, tables: Tables) -> Case:
    recorder = EventRecorder(keep=True)
    run = run_plain(tables, plan, RandomStrategy(seed), recorder)
    return Case(model, run, recorder.history(header_of(run.trail, model, "plain"), run.verdict.to_json(), model))


def search(model: m.Model, plan: Plan, *, fails: bool = False, acts: frozenset[str] = frozenset()) -> Case:
    """Return the first run that fails or holds as asked and has all the actions."""
    tables = Tables(model)
    for seed in range(3000):
        run = run_plain(tables, plan, RandomStrategy(seed))
        labels = {re.split(r"[ (]", chosen.label)[0] for chosen in run.trail.choices}
        if run.verdict.ok is not fails and acts <= labels:
            return record(model, plan, seed, tables)
    raise AssertionError(f"no such run of {model.name}")


def spec(model: str, sizes: dict[str, int], faults: m.Faults = m.NO_FAULTS) -> m.Model:
    return m.find_model(model).make(sizes, faults=faults)


HOLDS, BROKERS = Plan(("LogsAgreeUpToHwm",)), ("b1", "b2")
EVERY = m.Faults(drop=1, duplicate=1, delay=1, pause=1, crash=1, targets=("end", "node-2"))
RULES = m.Faults(rules=(m.Rule("drop", nth=1), m.Rule("duplicate", nth=2), m.Rule("delay", source="end")))
RUNS: Mapping[str, Callable[[], Case]] = {
    "holds": lambda: search(spec("transactions/repaired", SIZES), HOLDS),
    "fails": lambda: search(spec("transactions/gist", SIZES), HOLDS, fails=True),
    "starves": lambda: search(spec("transactions/diary-02", {"clients": 1, "brokers": 3, "elections": 1}),
                              Plan(("EventuallyAllClientsGetPid",), steps=4), fails=True),
    "wide": lambda: search(spec("transactions/repaired", WIDE), Plan(()), acts=frozenset({"ElectLeader"})),
    "actors": lambda: search(
        spec("kafka/4.0", {"producers": 2}, m.Faults(drop=2, duplicate=1, delay=1, crash=1, targets=BROKERS)),
        Plan((), steps=80, mode="timed"), acts=frozenset({"Crash"})),
    "faults": lambda: search(talk(EVERY), Plan((), steps=60), acts=frozenset({
        "Drop", "Duplicate", "Delay", "Release", "Pause", "Crash", "Restart", "Hear"})),
    "rules": lambda: search(talk(RULES), Plan(("InOrder",)), fails=True),
}


@cache
def case(name: str) -> Case:
    """Return a run by its name in `RUNS`."""
    return RUNS[name]()
