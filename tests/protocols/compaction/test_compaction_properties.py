"""The invariants of topic compaction on states that no run need reach: ledgers in any order, a topic with a gap."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from support.searches.spec_states import state

from harness.model import Model, Value, View, find_model


@pytest.fixture(scope="module")
def compaction() -> Model:
    """Topic compaction with three messages of two keys, two ledgers, null keys retained."""
    return find_model("compaction/pulsar").make(COMPACTION, {"producer": "true"})


COMPACTION = {"messages": 3, "compactions": 2, "keys": 2, "values": 1}
NULL_KEY = 0


def topic(keys: Mapping[int, int]) -> dict[str, Value]:
    """Return the slots of the messages with these ids and keys."""
    fields = [(n, {"key": key, "value": 1}) for n, key in keys.items()]
    return {f"messages[{n}][{field}]": value for n, said in fields for field, value in said.items()}


@pytest.mark.parametrize(
    ("gap", "reason"),
    [
        ({2: 1}, "message 2 is sent, but message 1 is not"),
        ({1: 1, 3: 1}, "message 3 is sent, but message 2 is not"),
        ({3: 0}, "message 3 is sent, but message 2 is not"),
    ],
)
def test_type_safe_reports_a_gap_in_the_topic(compaction: Model, gap: dict[int, int], reason: str) -> None:
    """Messages are a sequence: one that is sent while the one before it is not is ill typed, and named."""
    type_safe = compaction.property("TypeSafe")
    assert type_safe.reason(View(state(compaction, topic(gap)))) == reason
    filled = dict.fromkeys(range(1, max(gap) + 1), 1)
    assert type_safe.reason(View(state(compaction, topic(filled)))) is None


def test_compaction_invariants_follow_the_module_for_any_ledger() -> None:
    """Ledgers in any order, with messages missing or twice: `none lost` and `none read twice` as the module says it."""
    ids = range(1, 4)
    ledgers = [ledger for n in range(4) for ledger in product(ids, repeat=n)]
    for retain, keys in product(("true", "false"), product((NULL_KEY, 1, 2), repeat=3)):
        model = find_model("compaction/pulsar").make(COMPACTION, {"producer": "true", "retain-null-key": retain})
        lost, twice = (model.property(name) for name in ("CompactionHorizonCorrectness", "DuplicateNullKeyMessage"))
        whole = state(model, {**topic(dict(enumerate(keys, 1))), "compactedTopicContext": 1})
        key = dict(enumerate(keys, 1))
        counted = [n for n in ids if retain == "true" or key[n] != NULL_KEY]
        for ledger, horizon in product(ledgers, range(1, 4)):
            view = View({**whole, "compactedLedgers[1]": ledger, "compactionHorizon": horizon})
            kept = all(any(key[j] == key[i] and j >= i for j in ledger) for i in counted if i <= horizon)
            assert (lost.reason(view) is None) == kept
            once = retain == "false" or all(key[i] != NULL_KEY or i <= horizon for i in ledger)
            assert (twice.reason(view) is None) == once


def test_ledger_that_descends_loses_nothing_and_is_read_once(compaction: Model) -> None:
    """Ledger (2, 1) holds the last message of the key; one with the first message only has lost the second."""
    slots = {**topic({1: 1, 2: 1}), "compactedTopicContext": 1, "compactionHorizon": 2}
    prop = compaction.property("CompactionHorizonCorrectness")
    assert prop.reason(View(state(compaction, {**slots, "compactedLedgers[1]": (2, 1)}))) is None
    assert prop.reason(View(state(compaction, {**slots, "compactedLedgers[1]": (1, 1)}))) == (
        "readers skip the topic up to message 2, but compacted ledger 1 holds neither message 2 nor a later one with "
        "key 1"
    )
    slots = {**topic({1: 0, 2: 0}), "compactedTopicContext": 1, "compactedLedgers[1]": (2, 1)}
    prop = compaction.property("DuplicateNullKeyMessage")
    assert prop.reason(View(state(compaction, {**slots, "compactionHorizon": 2}))) is None
    assert "null-key message 1 twice" in str(prop.reason(View(state(compaction, slots))))
