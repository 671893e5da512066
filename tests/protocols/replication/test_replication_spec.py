"""The replication models against two whole state graphs of the model checker (TLC); then their invariants one by one.

Counts and the lengths of counterexamples are in `test_reference`.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from support.mutants.replication_mutants import ASYNC_ISR_MUTANTS, KIP_320_MUTANTS, Changes, mutated
from support.paths import DATA
from support.searches.encoded_graphs import text
from support.searches.plain_search import search

from harness.model import ModelSpec, decode, encode
from harness.record.tla_values import tla_encode
from kafka_proto.replication import isr, system, truncation
from kafka_proto.replication.properties import CHECKED
from kafka_proto.replication.records import Record
from kafka_proto.replication.specs import async_isr
from kafka_proto.replication.specs.names import spec_variables

MODELS: dict[str, ModelSpec] = {spec.name: spec for spec in system().models if not spec.name.endswith("/actors")}
"""The spec compositions; test_replication_actors is about the actors."""
VERSIONS = [name for name in MODELS if name != "replication/async-isr"]
GRAPHS = sorted(DATA.glob("replication-*_*.json.gz"))
HIDDEN_NAMES = {"BecomeFollowerTruncateToHighWatermark": "BecomeFollowerAndTruncateTo"}
"""Actions whose name the model checker does not print, because of how the spec is worded."""
LETTERS = {
    "replicas": "R", "log-size": "L", "max-records": "M", "max-leader-epoch": "E",
    "max-version": "V", "max-offset": "O",
}


@pytest.mark.parametrize(
    ("path", "second_arms"), list(zip(GRAPHS, (18, 0), strict=True)), ids=("kip-320", "truncate-to-high-watermark")
)
def test_replication_graph_equals_the_model_checkers(path: Path, second_arms: int) -> None:
    """Initial states, states and labelled edges are those that TLC prints; what it generates beyond is counted."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        reference = json.load(file)
    name, _, sizes = path.name.removesuffix(".json.gz").partition("_")
    letters = {letter: size for size, letter in LETTERS.items()}
    model = MODELS[name.replace("-", "/", 1)].make({letters[x]: int(n) for x, n in re.findall(r"([A-Z])(\d)", sizes)})

    found = search(model, keep_graph=True)
    variables = [spec_variables(model, state) for state in found.states]
    states = [text({name: tla_encode(value) for name, value in state.items()}) for state in variables]
    theirs = [text(state) for state in reference["states"]]

    assert set(reference["vars"]) == set(variables[0])
    assert states[: found.initial] == [theirs[n] for n in reference["init"]]
    assert len(states) == len(set(states))
    assert set(states) == set(theirs)
    edges = Counter((states[a], HIDDEN_NAMES.get(label, label), states[b]) for a, label, b in found.edges)
    assert edges == Counter((theirs[a], label, theirs[b]) for a, label, b in reference["edges"])
    assert found.generated == found.initial + len(found.edges) + second_arms


@pytest.mark.parametrize("name", VERSIONS)
def test_replication_every_action_of_next_happens(name: str) -> None:
    """No action of a version is dead, each step has its own label, and fairness is about actions that there are.

    Each version has the same properties; two of them are flawed as written.
    """
    model = MODELS[name].make({"max-leader-epoch": 1})
    found = search(model, keep_graph=True)
    assert {label for _, label, _ in found.edges} == {process.name.partition("[")[0] for process in model.processes}
    assert set(model.fairness) <= {label for _, label, _ in found.edges}
    assert found.witnessed == {"HighWatermarkRises", "RecordTruncated"}
    names = [prop.name for prop in model.properties if prop.is_safety]
    assert sorted(names) == sorted((*CHECKED, "LeaderInIsr", "IsrNonEmpty", "NoneRequestNeverApplied"))
    for state in found.states:
        labels = [choice.label for choice in model.choices(state)]
        assert len(labels) == len(set(labels))


@pytest.mark.parametrize("name", sorted(MODELS))
def test_replication_values_are_read_back(name: str) -> None:
    """What a trail or a history says of a state becomes the same state again, for all states of six steps."""
    model = MODELS[name].make()
    types = {cls.__name__: cls for cls in model.types}
    level = list(model.initial_states())
    met: set[type] = set()
    for _ in range(6):
        after = [model.apply(state, choice) for state in level for choice in model.choices(state)]
        level = list({tuple(state.values()): state for state in after}.values())
        for value in {value for state in level for value in state.values()}:
            assert decode(encode(value), types) == value
            met |= {type(item) for item in (value if isinstance(value, tuple | frozenset) else [value])}
    assert met >= set(model.types)


@pytest.mark.parametrize(
    ("name", "invariant", "action", "changes", "length", "reason"),
    [*(("replication/kip-320", *row) for row in KIP_320_MUTANTS),
     *(("replication/async-isr", *row) for row in ASYNC_ISR_MUTANTS)],
)
def test_replication_each_invariant_fails_where_a_step_is_wrong(
    name: str, invariant: str, action: str, changes: Changes, length: int, reason: str
) -> None:
    """A version that is sound but for one step violates the invariant in the shortest way, with a sentence.

    RP-10 among them: a leader that does not count who it has proposed.
    """
    found = search(mutated(MODELS[name].make(), action, changes), (invariant,))
    assert (found.violated, found.depth, found.reason) == (invariant, length, reason)


@pytest.mark.parametrize(("name", "repair", "invariant", "depth", "reason"), [
    ("replication/async-isr", "", "TypeOk", 1, "leaderState[pendingVersion] holds -1, which is below 0"),
    *((name, "", "LeaderInIsr", 1, "nobody leads, so the leader is not in the quorum's ISR {r1, r2}")
      for name in VERSIONS),
    ("replication/kip-320", "", "IsrNonEmpty", 3, "the quorum's ISR is empty in epoch 1, so nobody can be elected"),
    *((name, "S10", "NoneRequestNeverApplied", 3, "r1 knows epoch 0 but no leader") for name in VERSIONS),
])
def test_replication_flaw_shows_in_few_states(name: str, repair: str, invariant: str, depth: int, reason: str) -> None:
    """A version that is not pending has no type; S7: a leader is in the ISR where nobody leads yet.

    S8: the controller empties the ISR. With S10 repaired replicas hear that nobody leads.
    """
    found = search(MODELS[name].make(settings={"repair": repair} if repair else {}), (invariant,))
    assert (found.violated, found.depth, found.reason) == (invariant, depth, reason)


@pytest.mark.parametrize(("name", "sizes", "repair", "holds"), [
    ("replication/async-isr", {}, "", async_isr.CHECKED),
    *(("replication/kip-320", {}, repair, (*CHECKED, "IsrNonEmpty")) for repair in ("S8", "S8,S10")),
    *((name, {"max-leader-epoch": 1}, "", ("NoneRequestNeverApplied",)) for name in VERSIONS),
])
def test_replication_invariants_hold_in_a_complete_search(
    name: str, sizes: dict[str, int], repair: str, holds: tuple[str, ...]
) -> None:
    """S8 repaired the ISR keeps a member, and all else holds, with S10 too; S10: as written none obeys in vain."""
    model = MODELS[name].make(sizes, {"repair": repair} if repair else {})
    assert search(model, holds).violated is None


A, B, C = Record(0, 0), Record(1, 1), Record(2, 1)


@pytest.mark.parametrize(
    ("leader", "follower", "high_watermark", "by_epoch", "by_records"),
    [
        ((), (), 0, 0, 0),
        ((), (A,), 1, 1, 0),
        ((A,), (), 0, 0, 0),
        ((A,), (A,), 0, 1, 1),
        ((A,), (B,), 0, 0, 0),
        ((A, B), (A,), 0, 1, 1),
        ((A, B), (C,), 0, 2, 0),
        ((B,), (A,), 1, 0, 0),
        ((A, B), (A, C), 1, 2, 1),
    ],
)
def test_truncation_rules_differ_where_epochs_do_not_tell(
    leader: tuple[Record, ...], follower: tuple[Record, ...], high_watermark: int, by_epoch: int, by_records: int
) -> None:
    """KIP-101 falls back to the high watermark (RP-03) and trusts a shared epoch; KIP-279 compares the records."""
    assert truncation.by_leader_epoch(leader, follower, high_watermark) == by_epoch
    assert truncation.by_matching_records(leader, follower) == by_records


def test_isr_a_failed_leader_stays_as_the_last_member() -> None:
    """The controller takes a leader out of office and of the ISR, but not the last member; others it takes always."""
    both, one = frozenset({"r1", "r2"}), frozenset({"r1"})
    assert isr.shrink_to_nobody("r1", "r1", both) == (None, frozenset({"r2"}))
    assert isr.shrink_to_nobody("r1", "r1", one) == (None, one)
    assert isr.shrink_to_nobody("r1", None, one) == (None, frozenset())
    assert isr.shrink_by_controller("r1", None, one) is None
    assert isr.shrink_to_nobody("r2", "r1", one) is None
