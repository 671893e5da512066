"""Each property of compaction's actors can fail: a published flaw or one wrong turn breaks it, the right actors do not.

The reasons are pinned in part, so that each sentence that a property can say is said by some bad run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from support.mutants.actor_mutants import knowing
from support.runs.compaction_runs import MODELS
from support.runs.made_runs import alternating
from support.runs.refinement_runs import acting

from compaction.compactor import latest_for_key
from harness.model import NO_FAULTS, Faults, Model, Turn, find_model
from harness.simulate.runs.plan import Plan
from harness.simulate.states.tables import Tables

PLAIN, TRIMMING = MODELS
CRASH = Faults(crash=1, targets=("broker",))
SMALL = {"messages": 2, "keys": 1}
WITHIN, TIMES, LEAST = 300, 3, 30
"""Runs in which something wrong is found, how many times as many of the twin's runs are silent, and the fewest."""


def serves_nothing(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A read is answered with a position and no messages."""
    sent = tuple(attrs.evolve(answer, entries=()) for answer in turn.sent)
    return attrs.evolve(turn, sent=sent)


def never_finishes(before: Any, turn: Turn[Any]) -> None:
    """The store's answer to the seal is not taken."""


def installs_nothing(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """The horizon moves over a ledger that has nothing in it."""
    return attrs.evolve(knowing(turn, written=()), sent=turn.sent[1:])


def deletes_the_new_ledger(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """The ledger that is deleted is the one in use."""
    return attrs.evolve(turn, sent=tuple(attrs.evolve(delete, ledger=before.context) for delete in turn.sent))


def does_not_persist(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """The cursor is not written."""
    return knowing(turn, cursor=before.cursor)


def keeps_tombstones(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """Phase one notes the last message of each key, whether it deletes the key or not."""
    latest = latest_for_key((m.id, m.key) for entry in before.topic for m in entry.messages)
    return knowing(turn, phase_one_result=attrs.evolve(turn.local.phase_one_result, latest_for_key=latest))


def loses_values(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A reader takes down each message as a tombstone."""
    seen = tuple(attrs.evolve(message, value=0) for message in turn.local.seen)
    return knowing(turn, seen=seen)


Wrong = tuple[str, str, Any]
"""An actor, its action, and what happens instead."""


def row(
    prop: str, reason: str, model: str = PLAIN, settings: Mapping[str, str] | None = None, wrong: Wrong | None = None,
    faults: Faults = NO_FAULTS, **sizes: int,
) -> Any:
    """Return a line of the table: what fails, how, and what makes it fail."""
    id_ = f"{prop}-{wrong[2].__name__ if wrong else '-'.join((settings or {}).values())}"
    return pytest.param(prop, reason, model, dict(settings or {}), wrong, faults, {**SMALL, **sizes}, id=id_)


TABLE = [
    row("CompactionEquivalence", "have key 1 not at all", TRIMMING, {"flaw": "PC-05"}),
    row("CompactionEquivalence", "with the null key", PLAIN, wrong=("broker", "WriteLedger", installs_nothing)),
    row("CompactionEquivalence", "which deletes key 1", TRIMMING,
        wrong=("broker", "CompactorPhaseOne", keeps_tombstones)),
    row("ReaderView", "twice: from compacted ledger", PLAIN, {"repair": "S11"}, readers=2),
    row("ReaderView", "gets message 1 2 times", TRIMMING, {"flaw": "PC-06"}),
    row("ReaderView", "given message 1, the latest of key", PLAIN, wrong=("broker", "ServeRead", serves_nothing)),
    row("ReaderView", "given message 1 (null key)", PLAIN, wrong=("broker", "ServeRead", serves_nothing)),
    row("ReaderView", "the durable cursor says", PLAIN,
        wrong=("broker", "CompactorPhaseTwoPersistCusror", does_not_persist)),
    row("ReaderView", "which is not in the store", PLAIN,
        wrong=("broker", "CompactorPhaseTwoDeleteLedger", deletes_the_new_ledger)),
    row("NoLeak", "neither cursor nor context names ledger", PLAIN, {"repair": "S12"}, faults=CRASH),
    row("CompactionCompletes", "has not finished its compaction", PLAIN,
        wrong=("broker", "ReceiveLedgerSealed", never_finishes)),
    row("ReadersCatchUp", "has key 1 not at all", PLAIN, wrong=("r1", "ReceiveReadResponse", loses_values)),
    row("CompactionHorizonCorrectness", "nor replaces it", PLAIN, wrong=("broker", "WriteLedger", installs_nothing)),
    row("CompactedLedgerLeak", "exist at once", PLAIN, {"repair": "S12"}, faults=attrs.evolve(CRASH, crash=2)),
    row("DuplicateNullKeyMessage", "null-key message 1 from compacted ledger 1", PLAIN, {"repair": "S11"}),
]


def made(model: str, settings: Mapping[str, str], wrong: Wrong | None, faults: Faults, sizes: Any) -> Model:
    """Build a model, with one actor wrong."""
    built = find_model(model).make(sizes, settings, faults=faults)
    return acting(built, *wrong[1:], wrong[0]) if wrong else built


@pytest.mark.parametrize(("prop", "reason", "model", "settings", "wrong", "faults", "sizes"), TABLE)
def test_property_fails_where_something_is_wrong_and_holds_where_not(
    prop: str, reason: str, model: str, settings: dict[str, str], wrong: Wrong | None, faults: Faults,
    sizes: dict[str, int],
) -> None:
    """Some run of the bad variant violates the property with this reason; no run of the right one violates it."""
    plan = Plan((prop,), steps=100, timeouts=1)
    bad = alternating(Tables(made(model, settings, wrong, faults, sizes)), plan, WITHIN)
    runs = next(n for n, run in enumerate(bad, 1) if reason in (run.verdict.reason or ""))
    for run in alternating(Tables(made(model, {}, None, faults, sizes)), plan, max(LEAST, TIMES * runs)):
        assert run.verdict.ok, run.verdict


def test_every_property_of_every_actor_model_is_in_the_table() -> None:
    """And none is in it that no actor model has."""
    broken = {param.values[0] for param in TABLE}
    assert broken == {
        prop.name for name in MODELS for prop in find_model(name).make().properties if prop.form != "sometimes"
    }
