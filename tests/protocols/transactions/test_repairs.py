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


@attrs.frozen
class Flaw:
    """A flaw, where it shows, and what the searches must find there."""

    id: str
    model: str
    sizes: Mapping[str, int]
    violates: str
    states: int
    """States of a shortest counterexample."""
    reason: str
    repairs: tuple[str, ...]
    """Every single repair of the model."""
    distinct: int
    """States of the complete search with the flaw repaired."""
    one_id_each: bool = False
    """Whether the clients keep to `ONE_ID_EACH` and only ask for producer ids."""

    is_large: bool = False

    def __str__(self) -> str:
        elected = "-with-an-election" if self.is_large else ""
        return f"{self.id}-{self.model.removeprefix('transactions/')}-{self.violates}{elected}"

    def param(self, *values: object, id: str) -> Any:
        return pytest.param(*values, id=id, marks=[pytest.mark.large] if self.is_large else [])

    @property
    def spot(self) -> tuple[str, str, str]:
        """The flaw, the model, and how many brokers there are."""
        return self.id, self.model, str(self.sizes["brokers"])

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(repair for repair in self.repairs if repair != self.id)


DIARY_02, GIST = "transactions/diary-02", "transactions/gist"
DIARY_02_REPAIRS, GIST_REPAIRS = ("S1", "S2", "S3"), ("S1", "S3", "S4", "S5")
UNKNOWN = "b1 leads p1, whose log has tid1 with producer id 1, but has no metadata of tid1"
TWO_PIDS = "in b1's log of p1, tid1 has the producer ids 1 and 2"
TAIL = "b1 follows p1 but holds 1 entry above its high watermark"
DIFFERENT = "b1 and b2 hold different entries of p1 at offset 1, below their high watermarks"
SAME_PID = "ClientsHaveDifferentProducerEpochs"
ELECTED = Flaw("S1", DIARY_02, sizes(3, 2, 1, 2, 1), SAME_PID, 16, "c2 and c3 both hold producer id 2 with epoch 0",
               DIARY_02_REPAIRS, 23_337, one_id_each=True, is_large=True)
"""A deposed leader that answers about an old id sets the source back, too: three clients and two ids are enough."""
FLAWS = (
    Flaw("S1", DIARY_02, sizes(4, 1, 1, 3, 0), SAME_PID, 14, "c3 and c4 both hold producer id 2 with epoch 0",
         DIARY_02_REPAIRS, 3_736, one_id_each=True),
    Flaw("S1", GIST, sizes(4, 1, 1, 3, 0), SAME_PID, 14, "c3 and c4 both hold producer id 2 with epoch 0",
         GIST_REPAIRS, 4_112, one_id_each=True),
    ELECTED,
    Flaw("S3", DIARY_02, sizes(2, 2, 2, 2, 1), "CommittedTidKnown", 5, UNKNOWN, DIARY_02_REPAIRS, 11_687),
    Flaw("S3", DIARY_02, sizes(2, 2, 2, 2, 1), "OnePidPerTid", 7, TWO_PIDS, DIARY_02_REPAIRS, 11_687),
    Flaw("S3", GIST, sizes(2, 2, 2, 2, 1), "CommittedTidKnown", 5, UNKNOWN, GIST_REPAIRS, 21_267),
    Flaw("S3", GIST, sizes(2, 2, 2, 2, 1), "OnePidPerTid", 7, TWO_PIDS, GIST_REPAIRS, 21_267),
    Flaw("S4", GIST, sizes(2, 2, 1, 1, 1), "FollowersHoldNoUncommitted", 5, TAIL, GIST_REPAIRS, 5_625),
    Flaw("S4", GIST, sizes(2, 2, 1, 1, 1), "LogsAgreeUpToHwm", 9, DIFFERENT, GIST_REPAIRS, 5_625),
)


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
    """Search the flaw's model at its size for failures, by default its own, with a repair or ("") as written."""
    model = find_model(flaw.model).make(flaw.sizes, {"repair": repair})
    if flaw.one_id_each:
        model = only(model, asks_for_own_id)
    return search(model, violates or (flaw.violates,))


@pytest.mark.parametrize("flaw", [flaw.param(flaw, id=str(flaw)) for flaw in FLAWS])
def test_repair_flaw_is_found_in_the_spec_as_written(flaw: Flaw) -> None:
    """The spec as written violates the invariant, by a shortest counterexample of the known length."""
    found = searched(flaw, "")
    assert (found.violated, found.depth, found.reason) == (flaw.violates, flaw.states, flaw.reason)
    assert len(found.path) == flaw.states - 1


@pytest.mark.parametrize("spot", [
    pytest.param([flaw for flaw in FLAWS if flaw.spot == spot], id="-".join(spot),
                 marks=[pytest.mark.large] if spot in (("S3", GIST, "2"), ELECTED.spot) else [])
    for spot in sorted({flaw.spot for flaw in FLAWS})
])
def test_repair_removes_its_own_flaw(spot: list[Flaw]) -> None:
    """With the flaw's repair alone, a complete search finds none of its violations."""
    found = searched(spot[0], spot[0].id, *(flaw.violates for flaw in spot))
    assert found.violated is None
    assert {found.distinct} == {flaw.distinct for flaw in spot}


@pytest.mark.parametrize(
    ("flaw", "repair"),
    [flaw.param(flaw, repair, id=f"{flaw}-with-{repair}") for flaw in FLAWS for repair in flaw.others],
)
def test_repair_of_another_flaw_leaves_this_one(flaw: Flaw, repair: str) -> None:
    """With another single repair the invariant still fails, as early and for the same reason."""
    found = searched(flaw, repair)
    assert (found.violated, found.depth, found.reason) == (flaw.violates, flaw.states, flaw.reason)


@pytest.mark.parametrize("without", ["S1", "S3"])
def test_repaired_without_one_repair_fails_again(without: str) -> None:
    """No repair of an invariant is idle: diary 02 with the two others repaired fails where that flaw shows."""
    flaw = next(flaw for flaw in FLAWS if flaw.id == without)
    found = searched(flaw, ",".join(flaw.others))
    assert (found.violated, found.depth) == (flaw.violates, flaw.states)


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
