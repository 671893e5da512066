"""The flaws of the published transaction specs that break an invariant: each repair removes its own and no other.

A flaw is found in the spec as written by a shortest counterexample; it is gone in a complete search with its own
repair, and still there, at the same depth, with any other single repair. What the flaws S2, S5 and S6 break is
liveness, which the plain search does not check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest
from support.mutants.spec_mutations import with_steps
from support.searches.plain_search import PlainResult, search

from harness.model import Model, Step, find_model
from kafka_proto.transactions.properties import INVARIANTS, WITNESSES

ONE_ID_EACH = {"c1": "tid1", "c2": "tid1", "c3": "tid2", "c4": "tid3"}
"""A client keeps to the id of its first request, so fixing the ids loses no behaviour, only other choices of ids."""


def sizes(clients: int, brokers: int, partitions: int, ids: int, elections: int) -> dict[str, int]:
    return {
        "clients": clients, "brokers": brokers, "txn-log-partitions": partitions, "transactional-ids": ids,
        "elections": elections,
    }


DIARY_02, GIST = "transactions/diary-02", "transactions/gist"
REPAIRS = {DIARY_02: ("S1", "S2", "S3"), GIST: ("S1", "S3", "S4", "S5")}
"""Every single repair of a model."""


@attrs.frozen
class Flaw:
    """A flaw, where it shows, and what the searches must find there."""

    id: str
    model: str
    sizes: Mapping[str, int]
    distinct: int
    """States of the complete search with the flaw repaired."""
    shown: tuple[tuple[str, int, str], ...]
    """What it violates, the states of a shortest counterexample, and the reason."""
    one_id_each: bool = False
    """Whether the clients keep to `ONE_ID_EACH` and only ask for producer ids."""
    is_large: bool = False

    def __str__(self) -> str:
        return f"{self.id}-{self.model.removeprefix('transactions/')}{'-with-an-election' * self.is_large}"

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(repair for repair in REPAIRS[self.model] if repair != self.id)


UNKNOWN = ("CommittedTidKnown", 5, "b1 leads p1, whose log has tid1 with producer id 1, but has no metadata of tid1")
TWO_PIDS = ("OnePidPerTid", 7, "in b1's log of p1, tid1 has the producer ids 1 and 2")
TAIL = ("FollowersHoldNoUncommitted", 5, "b1 follows p1 but holds 1 entry above its high watermark")
DIFFERENT = ("LogsAgreeUpToHwm", 9, "b1 and b2 hold different entries of p1 at offset 1, below their high watermarks")
SAME_PID = "ClientsHaveDifferentProducerEpochs"
REUSED = (SAME_PID, 14, "c3 and c4 both hold producer id 2 with epoch 0")
FLAWS = (
    Flaw("S1", DIARY_02, sizes(4, 1, 1, 3, 0), 3_736, (REUSED,), one_id_each=True),
    Flaw("S1", GIST, sizes(4, 1, 1, 3, 0), 4_112, (REUSED,), one_id_each=True),
    # A deposed leader that answers about an old id sets the source back, too: three clients and two ids are enough.
    Flaw("S1", DIARY_02, sizes(3, 2, 1, 2, 1), 23_337, (
        (SAME_PID, 16, "c2 and c3 both hold producer id 2 with epoch 0"),), one_id_each=True, is_large=True),
    Flaw("S3", DIARY_02, sizes(2, 2, 2, 2, 1), 11_687, (UNKNOWN, TWO_PIDS)),
    Flaw("S3", GIST, sizes(2, 2, 2, 2, 1), 21_267, (UNKNOWN, TWO_PIDS)),
    Flaw("S4", GIST, sizes(2, 2, 1, 1, 1), 5_625, (TAIL, DIFFERENT)),
)


def large_if(is_large: bool) -> Any:
    return [pytest.mark.large] if is_large else []


def only(model: Model, keeps: Callable[[Step], bool]) -> Model:
    """Return a model that takes only the steps that `keeps` accepts."""
    return with_steps(model, lambda view, step: step if keeps(step) else None)


def asks(step: Step) -> bool:
    """Keep clients at asking for producer ids."""
    return step.action != "SendAddPartitionsToTxnRequest"


def own_id(step: Step) -> bool:
    """Keep clients to `ONE_ID_EACH`."""
    return step.action != "SendInitPidRequest" or step.detail == ONE_ID_EACH[step.args[0]]


def asks_for_own_id(step: Step) -> bool:
    return asks(step) and own_id(step)


def searched(flaw: Flaw, repair: str, *violates: str) -> PlainResult:
    """Search the flaw's model at its size for failures, with repairs or ("") as written."""
    model = find_model(flaw.model).make(flaw.sizes, {"repair": repair})
    return search(only(model, asks_for_own_id) if flaw.one_id_each else model, violates)


@pytest.mark.parametrize(("flaw", "repair", "shown"), [
    pytest.param(flaw, repair, shown, id=f"{flaw}-{shown[0]}-with-{repair or 'none'}", marks=large_if(flaw.is_large))
    for flaw in FLAWS for repair in ("", *flaw.others) for shown in flaw.shown
])
def test_flaw_is_found_as_written_and_with_the_repair_of_another_one(
    flaw: Flaw, repair: str, shown: tuple[str, int, str]
) -> None:
    """The invariant is violated by a shortest counterexample of the known length, for the known reason."""
    found = searched(flaw, repair, shown[0])
    assert (found.violated, found.depth, found.reason) == shown
    assert len(found.path) == found.depth - 1


@pytest.mark.parametrize("flaw", [
    pytest.param(flaw, id=str(flaw), marks=large_if(flaw.distinct > 20_000)) for flaw in FLAWS])
def test_repair_removes_its_own_flaw(flaw: Flaw) -> None:
    """With the flaw's repair alone, a complete search finds none of its violations."""
    found = searched(flaw, flaw.id, *(name for name, *_ in flaw.shown))
    assert (found.violated, found.distinct) == (None, flaw.distinct)


@pytest.mark.parametrize("without", ["S1", "S3"])
def test_repaired_without_one_repair_fails_again(without: str) -> None:
    """No repair of an invariant is idle: diary 02 with the two others repaired fails where that flaw shows."""
    flaw = next(flaw for flaw in FLAWS if flaw.id == without)
    (name, states, _), *_ = flaw.shown
    found = searched(flaw, ",".join(flaw.others), name)
    assert (found.violated, found.depth) == (name, states)


REPAIRED = (
    pytest.param(sizes(2, 2, 2, 2, 1), None, None, 12_075, id="c2b2p2t2e1"),
    pytest.param(sizes(2, 2, 1, 1, 1), None, None, 3_809, id="c2b2p1t1e1"),
    pytest.param(sizes(1, 3, 1, 1, 1), None, None, 183, id="c1b3p1t1e1"),
    pytest.param(sizes(4, 1, 1, 3, 0), own_id, 38, 621_584, id="one id each, where S1 shows", marks=pytest.mark.large),
    pytest.param(sizes(4, 1, 1, 3, 0), asks, 23, 394_384, id="whichever ids clients choose", marks=pytest.mark.large),
)
"""Sizes, the steps that are kept, and the depth (where it is known) and the states of a search.

The large ones take 2 and 3 min. With a free choice of ids and partitions that are added there are too many states.
"""


@pytest.mark.parametrize(("given", "keeps", "depth", "distinct"), REPAIRED)
def test_repaired_passes_all_eight_invariants(
    given: dict[str, int], keeps: Callable[[Step], bool] | None, depth: int | None, distinct: int
) -> None:
    """`transactions/repaired` violates none of the eight invariants in a complete search."""
    model = find_model("transactions/repaired").make(given)
    found = search(only(model, keeps) if keeps else model, INVARIANTS)
    assert (found.violated, found.distinct) == (None, distinct)
    assert depth in (None, found.depth)


def test_repaired_reaches_every_witness() -> None:
    """The invariants do not hold for want of events: two clients and an election reach all three witnesses."""
    model = find_model("transactions/repaired").make(sizes(2, 2, 1, 1, 1))
    assert {prop.name for prop in model.properties if prop.form == "sometimes"} == set(WITNESSES)
    assert search(model).witnessed == set(WITNESSES)


def test_s1_is_found_with_every_action() -> None:
    """The shortest counterexample is as short when the clients add partitions, too."""
    found = search(only(find_model(DIARY_02).make(sizes(4, 1, 1, 3, 0)), own_id), (SAME_PID,))
    assert (found.violated, found.depth, found.distinct) == (SAME_PID, 14, 9_933)
