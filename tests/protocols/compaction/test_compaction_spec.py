"""Topic compaction against a whole state graph of the model checker (TLC); then each property by itself.

Counts and the lengths of counterexamples are in `test_reference`, `Termination` as TLC finds it in `test_liveness`.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import product
from typing import Any

import pytest
from support.mutants.spec_mutations import COMPACTION_MUTATIONS, Mutate
from support.paths import DATA
from support.searches.lassos import checked
from support.searches.plain_search import search
from support.searches.spec_states import state

from compaction import system
from compaction.compactor import CompactorState, Position, next_message, read_twice, view_from_earliest
from compaction.properties import CHECKED
from compaction.records import Cursor, PhaseOneResult
from compaction.spec import spec_variables
from harness.model import FrozenMap, Model, Refusal, State, Value, View
from harness.record.tla_values import tla_encode

GRAPH = "compaction_M2C2K1V1_producer_retainFalse_crash1.json.gz"
PROPERTIES = {*CHECKED, "CompactedLedgerLeak", "DuplicateNullKeyMessage", "Termination"}
SPEC = system().models[0]


def made(sizes: str, **settings: str) -> Model:
    """Build the model at the sizes that five digits say: messages, compactions, keys, values, crashes."""
    names = ("messages", "compactions", "keys", "values", "crashes")
    return SPEC.make(dict(zip(names, map(int, sizes), strict=True)), settings)


def test_compaction_graph_equals_the_model_checkers() -> None:
    """Initial states, states and labelled edges are those that TLC prints; its `Next` is the producer's step."""
    with gzip.open(DATA / GRAPH, "rt", encoding="utf-8") as file:
        reference = json.load(file)
    model = made("22111", producer="true", **{"retain-null-key": "false"})
    found = search(model, keep_graph=True)
    states = [json.dumps(tla_encode(FrozenMap(spec_variables(model, state))), sort_keys=True) for state in found.states]
    theirs = [json.dumps(state, sort_keys=True) for state in reference["states"]]

    assert set(reference["vars"]) == set(spec_variables(model, found.states[0]))
    assert set(states[: found.initial]) == {theirs[n] for n in reference["init"]}
    assert len(states) == len(set(states)) == 1566
    assert set(states) == set(theirs)
    named = ((source, "Next" if label == "Producer" else label, target) for source, label, target in found.edges)
    ours = Counter((states[source], label, states[target]) for source, label, target in named)
    assert ours == Counter((theirs[source], label, theirs[target]) for source, label, target in reference["edges"])
    assert found.generated == found.initial + len(found.edges)


def test_compaction_spec_variables_name_keys_that_do_not_count_from_one() -> None:
    """A function over 1..n is a list in the graphs, any other one an object; ledgers hold whole messages."""
    model = made("22210", producer="true")
    two = changed(model, keys="20", values="10", result=PhaseOneResult(2, FrozenMap({2: 1})), ledger_1=(2,))
    data = tla_encode(FrozenMap(spec_variables(model, two)))
    assert data["phaseOneResult"] == {"readPosition": 2, "latestForKey": {"2": 1}}
    assert data["compactedLedgers"] == [[{"id": 2, "key": 0, "value": 0}], "Nil"]


def changed(model: Model, keys: str = "", values: str = "", **changes: Value) -> State:
    """Return the first initial state with messages of the given keys and values (a digit each), and other changes.

    A blank for a key is a message that is not sent. `ledger_1` and so on are compacted ledgers; other names are short
    for variables.
    """
    names = {
        "result": "phaseOneResult", "horizon": "compactionHorizon", "context": "compactedTopicContext",
        "state": "compactorState", "crashes": "crashTimes", "consumed": "consumeTimes", "cursor": "cursor",
    }
    sent: dict[str, Value] = {}
    for n, key in enumerate(keys):
        if key != " ":
            sent |= {f"messages[{n + 1}][key]": int(key), f"messages[{n + 1}][value]": int((values or keys)[n])}
    renamed = {
        names.get(name) or name.replace("ledger_", "compactedLedgers[") + "]": value for name, value in changes.items()
    }
    return state(model, {**sent, **renamed})


READ_TWO = PhaseOneResult(2, FrozenMap({1: 2}))
WRITE = CompactorState.WRITE
BAD: list[tuple[str, dict[str, Value], dict[str, Value], str]] = [
    ("TypeSafe", {"keys": "7", "values": "1"}, {"keys": "1", "values": "1"}, "message 1 has key 7 and value 1"),
    ("TypeSafe", {"keys": "11", "values": "18"}, {"keys": "11", "values": "11"}, "message 2 has key 1 and value 8"),
    ("TypeSafe", {"keys": " 1"}, {"keys": "11"}, "message 2 is sent, but message 1 is not"),
    ("TypeSafe", {"keys": "1 1"}, {"keys": "111"}, "message 3 is sent, but message 2 is not"),
    ("TypeSafe", {"keys": "  0"}, {"keys": "111"}, "message 3 is sent, but message 2 is not"),
    ("TypeSafe", {"keys": "1", "ledger_2": (2,)}, {"keys": "11", "ledger_2": (2,)}, "ledger 2 holds message 2, but 1"),
    ("TypeSafe", {"keys": "1", "result": READ_TWO}, {"keys": "11", "result": READ_TWO}, "key 1 last in message 2"),
    ("TypeSafe", {"keys": "0", "result": PhaseOneResult(2, FrozenMap())},
     {"keys": "0", "result": PhaseOneResult(1, FrozenMap())}, "phase one read up to message 2, but 1 messages"),
    ("TypeSafe", {"state": "Compactor_Asleep"}, {"state": WRITE}, "state Compactor_Asleep, which is none of its six"),
    ("TypeSafe", {"horizon": 4}, {"horizon": 3}, "compactionHorizon is 4, not between 0 and 3"),
    ("TypeSafe", {"context": -1}, {"context": 0}, "compactedTopicContext is -1, not between 0 and 3"),
    ("TypeSafe", {"crashes": 2}, {"crashes": 1}, "crashTimes is 2, not between 0 and 1"),
    ("TypeSafe", {"cursor": Cursor(0, 1)}, {"cursor": Cursor(1, 1)}, "the cursor's compactionHorizon is 0, not"),
    ("TypeSafe", {"cursor": Cursor(3, 4)}, {"cursor": Cursor(3, 3)}, "the cursor's compactedTopicContext is 4"),
    ("CompactionHorizonCorrectness", {"keys": "121", "horizon": 3, "context": 1, "ledger_1": (2,)},
     {"keys": "121", "horizon": 3, "context": 1, "ledger_1": (2, 3)},
     "readers skip the topic up to message 3, but compacted ledger 1 holds neither message 1 nor a later one with "
     "key 1"),
    ("CompactionHorizonCorrectness", {"keys": "10", "horizon": 2, "context": 1, "ledger_1": (1,)},
     {"keys": "10", "horizon": 1, "context": 1, "ledger_1": (1,)}, "neither message 2 nor a later one with the null"),
    ("CompactionHorizonCorrectness", {"keys": "1", "horizon": 1}, {"keys": "1"}, "no compacted ledger is in the"),
    ("CompactionHorizonCorrectness", {"keys": "1", "horizon": 1, "context": 2, "ledger_1": (1,)},
     {"keys": "1", "horizon": 1, "context": 1, "ledger_1": (1,)}, "compacted ledger 2 does not exist"),
    ("CompactionHorizonCorrectness", {"keys": "1", "horizon": 2, "context": 1, "ledger_1": (1,)},
     {"keys": "11", "horizon": 2, "context": 1, "ledger_1": (2,)}, "up to message 2, but 1 messages are sent"),
    ("CompactedLedgerLeak", {"ledger_1": (), "ledger_2": (), "ledger_3": ()}, {"ledger_1": (), "ledger_3": ()},
     "3 compacted ledgers exist at once: 1, 2, 3"),
    ("DuplicateNullKeyMessage", {"keys": "10", "horizon": 1, "context": 1, "ledger_1": (1, 2)},
     {"keys": "10", "horizon": 2, "context": 1, "ledger_1": (1, 2)}, "gets null-key message 2 twice: from compacted"),
    ("DuplicateNullKeyMessage", {"keys": "00", "context": 1, "ledger_1": (1, 2)},
     {"keys": "11", "context": 1, "ledger_1": (2,)}, "null-key message 1 twice"),
    ("ContextLedgerExists", {"context": 2, "ledger_1": ()}, {"context": 2, "ledger_2": ()}, "ledger 2, which does not"),
    ("Termination", {"keys": "11", "state": WRITE, "ledger_3": ()}, {"keys": "111", "state": WRITE, "ledger_3": ()},
     "the producer has not sent message 3 yet"),
    ("Termination", {"keys": "111", "ledger_3": ()}, {"keys": "111", "state": WRITE, "ledger_3": ()},
     "not about to write but in state Compactor_In_PhaseOne"),
    ("Termination", {"keys": "111", "state": WRITE, "ledger_2": ()}, {"keys": "111", "state": WRITE, "ledger_3": ()},
     "has not written compacted ledger 3 yet"),
]


@pytest.mark.parametrize(("name", "bad", "good", "reason"), BAD, ids=[f"{name}-{why}" for name, _, _, why in BAD])
def test_compaction_property_fails_in_a_bad_state(
    name: str, bad: dict[str, Any], good: dict[str, Any], reason: str
) -> None:
    """A state made by hand violates the property, for the reason expected, and its repaired twin does not."""
    model = made("33221", producer="true")
    prop = model.property(name)
    assert reason in str(prop.reason(View(changed(model, **bad))))
    assert prop.reason(View(changed(model, **good))) is None


def test_compaction_every_property_has_a_bad_state() -> None:
    """No invariant and no temporal property is without a state that violates it."""
    properties = made("33221").properties
    assert {name for name, *_ in BAD} == {prop.name for prop in properties if prop.form != "sometimes"} == PROPERTIES


def test_compaction_invariants_follow_the_module_for_any_ledger() -> None:
    """Ledgers in any order, with messages missing or twice: `none lost` and `none read twice` as the module says it."""
    ids, null_key = range(1, 4), 0
    ledgers = [ledger for n in range(4) for ledger in product(ids, repeat=n)]
    for retain, keys in product(("true", "false"), product((null_key, 1, 2), repeat=3)):
        model = made("32211", producer="true", **{"retain-null-key": retain})
        lost, twice = (model.property(name) for name in ("CompactionHorizonCorrectness", "DuplicateNullKeyMessage"))
        whole, key = changed(model, "".join(map(str, keys)), "111", context=1), dict(enumerate(keys, 1))
        counted = [n for n in ids if retain == "true" or key[n] != null_key]
        for ledger, horizon in product(ledgers, range(1, 4)):
            view = View({**whole, "compactedLedgers[1]": ledger, "compactionHorizon": horizon})
            kept = all(any(key[j] == key[i] and j >= i for j in ledger) for i in counted if i <= horizon)
            assert (lost.reason(view) is None) == kept
            once = retain == "false" or all(key[i] != null_key or i <= horizon for i in ledger)
            assert (twice.reason(view) is None) == once


@pytest.mark.parametrize(
    ("name", "mutate", "states"), COMPACTION_MUTATIONS, ids=[name for name, *_ in COMPACTION_MUTATIONS])
def test_compaction_invariant_is_violated_by_a_mutated_step(name: str, mutate: Mutate, states: int) -> None:
    """Without the mutation the invariant holds (S12 repaired where need be), with it it fails as early as it can."""
    model = made("13110", producer="true", repair="S12" if name == "DuplicateNullKeyMessage" else "")
    assert search(model, (name,)).violated is None
    found = search(mutate(model), (name,))
    assert (found.violated, found.depth) == (name, states)


@pytest.mark.parametrize(("flaw", "sizes", "settings", "states", "crashes"), [
    *(("CompactedLedgerLeak", "23112", {"repair": others}, 10, 2) for others in ("", "S12,S13")),
    ("CompactedLedgerLeak", "23112", {"repair": "S11"}, None, 0),
    ("DuplicateNullKeyMessage", "22111", {"repair": "S11,S13"}, 5, 0),
    ("DuplicateNullKeyMessage", "22111", {"repair": "S12"}, None, 0),
    ("DuplicateNullKeyMessage", "22111", {"retain-null-key": "false"}, None, 0),
])
def test_compaction_repair_removes_its_own_flaw(
    flaw: str, sizes: str, settings: dict[str, str], states: int | None, crashes: int
) -> None:
    """S11: no third ledger is left by a crash; S12, or null keys that are not retained: none is read twice."""
    found = search(made(sizes, producer="true", **settings), (flaw, *CHECKED))
    assert (found.violated, states and found.depth) == (states and flaw, states)
    assert [choice.step.action for choice in found.path].count("BrokerCrash") == crashes


def test_compaction_repair_lets_the_consumer_finish() -> None:
    """S13: as written `consumeTimes` never grows, with the repair every fair behaviour terminates."""
    for repair, holds in (("S11,S12", False), ("S13", True)):
        model = made("12111", producer="true", consumer="true", repair=repair)
        assert (checked(model, "Termination", "next") is None) is holds


def test_compaction_witnesses_are_all_reached() -> None:
    """What holds, holds of runs in which messages are dropped, ledgers replaced and cursors recovered."""
    found = search(made("22111", producer="true"))
    assert found.witnessed == {"MessageDropped", "LedgerReplaced", "CursorRecovered"}


def test_compaction_reader_reads_ledger_then_topic() -> None:
    """Installed together, ledger and horizon make one sequence; a lagging horizon has the tail read twice.

    Below the horizon the ledger is used, also after reads from the topic; behind it not, and at the end one waits.
    """
    assert view_from_earliest((2, 3), horizon=3, end=4) == (2, 3, 4)
    assert view_from_earliest(None, horizon=0, end=2) == (1, 2)
    assert view_from_earliest((2, 3), horizon=1, end=4) == (2, 3, 2, 3, 4)
    assert read_twice((2, 3), horizon=1, end=4) == (2, 3)
    assert next_message(Position(1), (3,), horizon=4, end=5) == Position(3, in_ledger=True)
    assert next_message(Position(3), (3,), horizon=4, end=5) == Position(5)
    assert next_message(Position(4), (3,), horizon=4, end=5) == Position(5)
    assert next_message(Position(5), (3,), horizon=4, end=5) is None


def test_compaction_refuses_too_many_initial_states() -> None:
    """Six messages of every key and value are too many to start from, and are fine with a producer."""
    with pytest.raises(Refusal, match="531441 initial states"):
        made("63220")
    assert len(made("63220", producer="true").initial_states()) == 1
