"""The spec compositions against whole state graphs of the model checker (TLC): every state and every labelled edge."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from enum import StrEnum
from pathlib import Path

import attrs
import pytest
from support.paths import DATA
from support.searches.encoded_graphs import text
from support.searches.plain_search import search

from harness.model import FrozenMap, Message, absent_if_none, find_model
from harness.record.tla_values import tla_encode, tla_state

GRAPHS = sorted((DATA).glob("transactions-*.json.gz"))
SIZES = {
    "p": "txn-log-partitions", "t": "transactional-ids", "tp": "topic-partitions", "c": "clients", "b": "brokers",
    "e": "elections",
}
"""What the letters of a graph's file name stand for."""

Edges = Counter[tuple[str, str, str]]


def graph_name(path: Path) -> str:
    return path.name.removesuffix(".json.gz").removeprefix("transactions-")


@pytest.mark.parametrize("path", GRAPHS, ids=graph_name)
def test_spec_graph_equals_the_model_checkers(path: Path) -> None:
    """Initial states, states and labelled edges are those that TLC prints, and it generates one state per edge."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        reference = json.load(file)
    name, _, sizes = graph_name(path).rpartition("_")
    given = {SIZES[letters]: int(n) for letters, n in re.findall(r"([a-z]+)(\d+)", sizes)}
    settings = {"init": "published"} if name == "diary-01" else {}
    model = find_model(f"transactions/{name}").make(given, settings, history_variables=True)

    found = search(model, keep_graph=True)
    states = [text(tla_state(model, state)) for state in found.states]
    theirs = [text(state) for state in reference["states"]]

    assert set(reference["vars"]) == set(tla_state(model, found.states[0]))
    assert set(states[: found.initial]) == {theirs[n] for n in reference["init"]}
    assert len(states) == len(set(states))
    assert set(states) == set(theirs)
    edges: Edges = Counter((states[source], label, states[target]) for source, label, target in found.edges)
    assert edges == Counter((theirs[source], label, theirs[target]) for source, label, target in reference["edges"])
    assert found.generated == found.initial + len(found.edges)


def test_spec_graph_every_published_graph_is_there() -> None:
    """The four graphs of the transaction specs are compared, none is lost."""
    assert [graph_name(path) for path in GRAPHS] == [
        "diary-01_p1t1c2b2", "diary-02_c1b2p1tp1t1e1", "diary-02_c1b3p1tp1t1e1", "gist_c1b2p1tp1t1e1",
    ]


class Colour(StrEnum):
    RED = "Red"


@attrs.frozen
class Ping(Message):
    colour: Colour
    correlation: int | None = attrs.field(default=None, metadata=absent_if_none(), kw_only=True)


@attrs.frozen
class Pair:
    left: object
    right: object


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (1, 1),
        (True, True),
        (None, "None"),
        (Colour.RED, "Red"),
        ((1, ("x",)), [1, ["x"]]),
        (frozenset({"b", "a"}), {"$set": ["a", "b"]}),
        (frozenset({10, 2}), {"$set": [10, 2]}),
        (FrozenMap(), []),
        (FrozenMap({"b1": None}), {"b1": "None"}),
        (FrozenMap({n: -n for n in range(1, 12)}), [-n for n in range(1, 12)]),
        (Pair(None, FrozenMap({"x": ()})), {"left": "None", "right": {"x": []}}),
        (Ping(Colour.RED, source="a", dest="b"), {"type": "Ping", "source": "a", "dest": "b", "colour": "Red"}),
        (
            Ping(Colour.RED, source="a", dest="b", correlation=3),
            {"type": "Ping", "source": "a", "dest": "b", "colour": "Red", "correlation": 3},
        ),
    ],
)
def test_tla_encode_writes_values_as_the_graphs_do(value: object, encoded: object) -> None:
    """Each kind of value has the form that the graphs give it, also as JSON text."""
    assert tla_encode(value) == encoded
    assert json.loads(json.dumps(tla_encode(value))) == encoded


@pytest.mark.parametrize("value", [1.5, [1], {"a": 1}, FrozenMap({0: "a"}), FrozenMap({True: "a"})], ids=repr)
def test_tla_encode_refuses_what_tla_does_not_have(value: object) -> None:
    """Floats, mutable collections and maps with other keys are refused rather than written as something else."""
    with pytest.raises(TypeError):
        tla_encode(value)
