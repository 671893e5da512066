"""The packed search of actors against the plain one: the same states, level by level, under every kind of fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.commands.command_line import call
from support.searches import plain_search
from support.searches.engines import ENGINES, KERNEL, safety
from support.toys import mixed_links, own_protocols

from harness import model as m
from harness.explore import checkpoint
from harness.explore.any_model import PlainSearch
from harness.explore.bounded import ALL, bounded
from harness.explore.packed import kernel_loop, python_loop
from harness.explore.packed import search as search_module
from harness.explore.packed.search import Search

Case = tuple[str, dict[str, int], str | None, dict[str, Any], dict[str, int]]
"""A model, its sizes, the network, faults, and bounds on timers."""

NO_TIMERS = {ALL: 0}
WHOLE = {"brokers": 1, "partitions": 1, "records": 1, "transactions": 1}
ONE_RECORD = {"producers": 0, "idempotent-producers": 1, "partitions": 1, "records": 1}
CASES: dict[str, Case] = {
    "lock-service": ("lock-service", {"leases": 1}, "bag", {}, {}),
    "twice-or-never": ("lock-service", {"leases": 1}, "bag", {"duplicate": 1, "drop": 1}, {}),
    "cut-and-paused": ("lock-service", {"leases": 1}, "fifo", {"partition": 1, "pause": 1}, {}),
    "late-and-reordered": ("lock-service", {"leases": 1}, "fifo", {"reorder": 1, "delay": 1}, {}),
    "two-phase": ("two-phase", {}, None, {"one_way": 1}, {ALL: 1}),
    "links": ("mixed-links", {"notes": 1}, "bag", {"crash": 1, "delay": 1}, {}),
    "reconnected-links": ("mixed-links", {"notes": 1}, "fifo", {"reorder": 1, "one_way": 1}, {}),
    "rules": ("mixed-links", {"notes": 2}, "fifo", {"rules": (m.Rule("reorder"), m.Rule("drop", "Noted", nth=1))}, {}),
    "more-rules": ("mixed-links", {"notes": 1}, "bag", {"rules": (m.Rule("duplicate"), m.Rule("delay", "Note"))}, {}),
    "kip-320": ("replication/kip-320/actors", {}, None, {}, NO_TIMERS),
    "kip-320-timers": ("replication/kip-320/actors", {"elections": 0}, None, {}, {ALL: 0, "RequestTimeout": 1}),
    "kip-320-drop": ("replication/kip-320/actors", {"elections": 0}, None, {"drop": 1}, NO_TIMERS),
    "truncated": ("replication/truncate-to-high-watermark/actors", {"elections": 0}, None, {"pause": 1}, NO_TIMERS),
    "transactions": ("kafka/4.0", WHOLE, None, {"drop": 1}, NO_TIMERS),
    "two-producers": ("kafka/4.0", {**WHOLE, "producers": 2}, None, {}, NO_TIMERS),
    "compaction": ("compaction/pulsar/actors", {"messages": 1, "keys": 1}, None, {}, NO_TIMERS),
    "replicated": ("kafka/4.0", {**ONE_RECORD, "elections": 1}, None, {}, NO_TIMERS),
}
CHOSEN = {"replicated": {"log": "replicated"}}
"""Settings that are not the default, by case."""


@pytest.fixture(autouse=True)
def found() -> Iterator[None]:
    """The protocols of other packages, and the toy whose links differ, are found."""
    with own_protocols.found():
        m.register(mixed_links.SYSTEM)
        yield
        m.unregister(mixed_links.SYSTEM.name)


def made(name: str) -> m.Model:
    """Build the model of a case."""
    model, sizes, network, faults, timers = CASES[name]
    spec = m.find_model(model)
    chosen = CHOSEN.get(name, {})
    whom = tuple(spec.make(sizes, chosen).actors)
    budget = m.Faults(**faults, targets=whom) if faults else m.Faults()
    return bounded(spec.make(sizes, chosen, network, budget), timers)


def states_by_level(model: m.Model) -> list[set[str]]:
    """Return the states of each level as text, by the reference semantics; the last level has none."""
    found = plain_search.search(model, keep_graph=True)
    depths = dict.fromkeys(range(found.initial), 0)
    for source, _, target in found.edges:
        depths.setdefault(target, depths[source] + 1)
    levels: list[set[str]] = [set() for _ in range(found.depth + 1)]
    for n, state in enumerate(found.states):
        levels[depths[n]].add(state_text(state))
    return levels


def state_text(state: Any) -> str:
    return "\n".join(sorted(f"{name} {m.canonical_text(value)}" for name, value in state.items()))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("engine", ENGINES)
def test_packed_search_of_actors_equals_the_plain_one(engine: str, name: str) -> None:
    """Counts, counts per action, violations and witnesses with their paths, deadlocks: all is the plain search's."""
    model = made(name)
    names = safety(model)
    given: dict[str, Any] = {"stop": False, "deadlock": True, "witnesses": True}
    plainly = PlainSearch(model, names, **given).run()
    packed = Search(model, names, engine=engine, **given).run()
    assert (packed.engine, packed.complete) == (engine, True)
    assert attrs.evolve(packed, engine=plainly.engine, bits=plainly.bits) == plainly
    assert plainly.distinct > 20


@pytest.mark.parametrize("name", ["cut-and-paused", "late-and-reordered", "rules", "kip-320-drop", "replicated"])
@pytest.mark.parametrize(("engine", "words"), [
    ("python", 2), *(pytest.param("kernel", words, marks=KERNEL) for words in (2, 3, 4)),
])
def test_packed_search_of_actors_meets_the_very_states(
    engine: str, words: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Level by level the states are those of the reference semantics, also where fields overflow on the way."""
    monkeypatch.setattr(search_module, "SCOUTED", 2)
    monkeypatch.setattr(python_loop, "CHUNK", 7)
    monkeypatch.setattr(kernel_loop, "SLICE", 7)
    monkeypatch.setattr(kernel_loop, "BITS", {words: 64 * words - 1})
    model = made(name)
    search = Search(model, (), engine=engine)
    search.run()
    assert search.loop.width == words or engine == "python"
    unpack = search.space.layout.unpack
    levels = [{state_text(unpack(state)) for state in search.loop.level(n)} for n in range(len(search.loop.sizes()))]
    assert levels == states_by_level(model)


@pytest.mark.parametrize("engine", ENGINES)
def test_search_of_actors_goes_on_from_a_checkpoint(engine: str, tmp_path: Path) -> None:
    """A search of actors that ended at a limit goes on to the same end; one with other faults is another search."""
    model = made("kip-320-drop")
    whole = Search(model, (), engine=engine).run()
    parts = Search(model, (), engine=engine, states=300, checkpoint=checkpoint.Checkpoint(tmp_path)).run()
    assert parts.distinct < whole.distinct and not parts.complete
    rest = Search(model, (), engine=engine, checkpoint=checkpoint.Checkpoint(tmp_path)).run()
    assert attrs.evolve(rest, bits=whole.bits) == whole
    command = ("check", "replication/kip-320/actors", "--size", "elections=0", "--timers", "0")
    first = ("--engine", engine, "--out", tmp_path / "out", "--checkpoint", tmp_path / "other")
    assert call(*command, "--faults", "drop=1", *first).code == 0
    assert "is of another search: its faults is" in call(*command, *first).refusal


# Links that differ: plain, remembered and packed agree.


class Plainly(m.Process):
    """An actor as a process like any other."""

    has_inbox = True

    def __init__(self, actor: m.Actor[Any]) -> None:
        self.name, self.steps, self.receive = actor.name, actor.steps, actor.receive  # type: ignore[method-assign]


COUNTS = {
    "unordered-set": (3718, 12065, 19), "bag": (3718, 12065, 19), "fifo": (2197, 7099, 19),
    "connections": (2197, 7099, 19),
}
INVARIANTS = ("Small", "QueueInOrder", "StreamInOrder")


def counts(found: Any) -> tuple[int, int, int]:
    return found.distinct, found.generated, found.depth


@pytest.mark.parametrize("network", m.NETWORKS)
@pytest.mark.parametrize("history_variables", [False, True], ids=["", "history-variables"])
def test_searches_of_mixed_links_agree(network: str, history_variables: bool) -> None:
    """Distinct states, transitions and depth are those of the plain search on every network; the bag alone reorders."""
    model = mixed_links.build({"notes": 2}, {}, m.NETWORKS[network], m.NO_FAULTS, history_variables)
    oracle = plain_search.search(model, INVARIANTS)
    assert oracle.violated is None and counts(oracle) == COUNTS[network]
    plainly = attrs.evolve(
        model, processes=tuple(map(Plainly, model.actors.values())), initial=model.initial_states()
    )
    packed = Search(plainly, INVARIANTS, engine="python").run()
    remembered = PlainSearch(model, INVARIANTS, witnesses=True).run()
    assert counts(packed) == counts(remembered) == counts(oracle)
    assert not packed.violations and not remembered.violations
    assert [witness.name for witness in remembered.witnesses] == (
        [] if network in ("fifo", "connections") else ["OutOfOrder"]
    )


def test_searches_of_mixed_links_agree_under_faults() -> None:
    """With cuts, drops and reconnections on the links that know them, too; a reconnection takes the order away."""
    faults = m.Faults(drop=1, partition=1, reorder=1, targets=("hub",))
    model = mixed_links.build({"notes": 1}, {}, m.NETWORKS["bag"], faults, False)
    oracle, remembered = plain_search.search(model, INVARIANTS[:2]), PlainSearch(model, INVARIANTS[:2]).run()
    assert oracle.violated is None and not remembered.violations and counts(remembered) == counts(oracle)
    model = mixed_links.build({"notes": 2}, {}, m.NETWORKS["bag"], m.Faults(reorder=1), False)
    assert [(found.name, found.reason) for found in PlainSearch(model, INVARIANTS).run().violations] == [
        ("StreamInOrder", "heard (1,) from stream"),
    ]
