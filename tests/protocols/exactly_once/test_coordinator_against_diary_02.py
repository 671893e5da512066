"""The coordinators of whole transactions decide what diary 02 decides, but where a source says why they do not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, update_wrapper
from types import ModuleType
from typing import Any

import attrs
import pytest
from support.runs.coordinator_departures import BY_VERSION, NOT_APPLIED
from support.runs.coordinator_runs import ROWS, VERSIONS, Sum, compare

from kafka_proto.broker.coordinator import coordinator as role
from kafka_proto.broker.coordinator import init_producer_id, loading, outcome
from kafka_proto.broker.coordinator import role as transaction_coordinator
from kafka_proto.broker.coordinator.completion import completed
from kafka_proto.broker.coordinator.transaction import TransactionMetadata, TxnState
from kafka_proto.broker.versions import KIP_360
from kafka_proto.log.records import NO_PRODUCER_ID
from kafka_proto.requests import Error

SEEDS = {"at-once": range(6), "epochs": range(3), "replicated": range(3)}
"""In the suite, of each mode."""
SMALL = ("kip-98", "kip-360", "kip-890-part-1", "kip-890")
KINDS = {
    "AddPartitionsToTxn: OK": 40, "AddPartitionsToTxn: ProducerFenced": 10,
    "AddPartitionsToTxn: ConcurrentTransactions": 10, "InitProducerId: OK": 40, "InitProducerId: abort": 4,
    "InitProducerId: ConcurrentTransactions": 10, "InitProducerId: NotCoordinator": 3,
    "InitProducerId: CoordinatorLoadInProgress": 8, "commit of Empty": 35, "commit of Ongoing": 40,
    "commit of PrepareAbort": 60, "commit of PrepareCommit": 6, "completion: CompleteAbort": 20,
    "completion: CompleteCommit": 6, "reload: Ongoing": 3, "reload: Empty": 3, "given up": 1, "resignation": 1,
}
"""What is compared at least so often in the suite, of each version."""
LARGE = 38
"""Runs of each mode and row: 304 of each version."""


@pytest.mark.parametrize("version", SMALL)
def test_coordinators_decide_what_diary_02_does(version: str) -> None:
    compared, departed = dict.fromkeys(KINDS, 0), set[str]()
    for row, seeds in SEEDS.items():
        found = compare(VERSIONS[version], row, seeds)
        assert not found.oracle.differences, (row, found.oracle.differences)
        departed |= set(found.oracle.departed)
        for kind, count in found.oracle.compared.items():
            compared[kind] = compared.get(kind, 0) + count
    few = {kind: (compared[kind], least) for kind, least in KINDS.items() if compared[kind] < least}
    assert not few
    assert {"markers come before Complete*", "Complete* has no partitions"} <= departed


@pytest.mark.large
@pytest.mark.parametrize("version", VERSIONS)
def test_coordinators_decide_what_diary_02_does_in_many_runs(version: str) -> None:
    steps = 0
    for row in ROWS:
        oracle = compare(VERSIONS[version], row, range(LARGE)).oracle
        assert not oracle.differences, (row, oracle.differences)
        assert set(oracle.not_applied) <= set(NOT_APPLIED)
        steps += oracle.compared.total()
    assert steps > 5_000


def test_each_departure_has_a_source() -> None:
    """A departure is named after what differs, and says in which KIP or issue of Kafka it comes from."""
    assert set(BY_VERSION) == set(VERSIONS)
    sources = [*NOT_APPLIED.values(), *(one.source for known in BY_VERSION.values() for one in known)]
    assert all("KIP-" in source or "KAFKA-" in source for source in sources)


Decision = Callable[..., Any]
FEW = range(3)


def takes_no_heed_of_pending(right: Decision) -> Decision:
    def wrong(request: Any, cached: Any, **more: Any) -> Any:
        return right(request, cached and attrs.evolve(cached, pending_state=None), **more)
    return wrong


def accepts_old_epochs(right: Decision) -> Decision:
    def wrong(request: Any, cached: Any, **more: Any) -> Any:
        if cached is not None and request.producer_epoch < cached.metadata.producer_epoch:
            request = attrs.evolve(request, producer_epoch=cached.metadata.producer_epoch)
        return right(request, cached, **more)
    return wrong


def accepts_other_ids(right: Decision) -> Decision:
    def wrong(request: Any, cached: Any, **more: Any) -> Any:
        if cached is not None:
            request = attrs.evolve(request, producer_id=cached.metadata.producer_id)
        return right(request, cached, **more)
    return wrong


def changed(change: Callable[[Any, Any], Any]) -> Callable[[Decision], Decision]:
    """Return how a right decision is made wrong by changing what came of it."""
    def wrong_by(right: Decision) -> Decision:
        def wrong(request: Any, cached: Any, **more: Any) -> Any:
            return change(right(request, cached, **more), cached)
        return wrong
    return update_wrapper(wrong_by, change)


@changed
def replaces_partitions(done: Any, cached: Any) -> Any:
    if done.entry is None:
        return done
    left = tuple(name for name in done.entry.partitions if name not in cached.metadata.partitions)
    return attrs.evolve(done, entry=attrs.evolve(done.entry, partitions=left))


def bumps(done: Any) -> bool:
    return isinstance(done, outcome.Outcome) and done.entry is not None and done.entry.producer_epoch >= 1


@changed
def keeps_the_epoch(done: Any, cached: Any) -> Any:
    if not bumps(done):
        return done
    epoch = done.entry.producer_epoch - 1
    return attrs.evolve(done, entry=attrs.evolve(done.entry, producer_epoch=epoch),
                        answer=attrs.evolve(done.answer, producer_epoch=epoch))


@changed
def answers_the_epoch_before(done: Any, cached: Any) -> Any:
    if not bumps(done):
        return done
    return attrs.evolve(done, answer=attrs.evolve(done.answer, producer_epoch=done.entry.producer_epoch - 1))


@changed
def goes_on_in_an_open_transaction(done: Any, cached: Any) -> Any:
    fences = isinstance(done, init_producer_id.Fenced)
    return outcome.refuse(Error.CONCURRENT_TRANSACTIONS) if fences else done


@changed
def keeps_its_producer_id_on_offer(done: Any, cached: Any) -> Any:
    return attrs.evolve(done, takes_producer_id=False) if isinstance(done, outcome.Outcome) else done


def fences_nobody(right: Decision) -> Decision:
    def wrong(fenced: Any, **more: Any) -> Any:
        return right(attrs.evolve(fenced, producer_epoch=fenced.cached.metadata.producer_epoch), **more)
    return wrong


def forgets_the_state(right: Decision) -> Decision:
    def wrong(entry: TransactionMetadata) -> TransactionMetadata:
        return attrs.evolve(right(entry), state=TxnState.EMPTY)
    return wrong


def forgets_the_producer_id(right: Decision) -> Decision:
    def wrong(entry: TransactionMetadata) -> TransactionMetadata:
        return attrs.evolve(right(entry), producer_id=NO_PRODUCER_ID)
    return wrong


@attrs.frozen
class Mutant:
    """A wrong decision of a version, and the difference by which it is found."""

    decision: str
    wrong: Callable[[Decision], Decision]
    row: str
    difference: str
    alone: bool = False
    """Whether no property of the model says anything in these runs."""
    seeds: range = FEW


MUTANTS = (
    Mutant("add_partitions", takes_no_heed_of_pending, "later",
           "AddPartitionsToTxn: ConcurrentTransactions: answered is nothing, not ConcurrentTransactions", True),
    Mutant("add_partitions", accepts_old_epochs, "at-once",
           "AddPartitionsToTxn: ProducerFenced: answered is nothing, not ProducerFenced"),
    Mutant("add_partitions", accepts_other_ids, "epochs",
           "AddPartitionsToTxn: InvalidProducerIdMapping: answered is ProducerFenced, not InvalidProducerIdMapping",
           True, range(4, 6)),
    Mutant("add_partitions", replaces_partitions, "at-once", "AddPartitionsToTxn: OK: entry's partitions"),
    Mutant("init_producer_id", takes_no_heed_of_pending, "later", "InitProducerId: ConcurrentTransactions: answered"),
    Mutant("init_producer_id", keeps_the_epoch, "at-once",
           "InitProducerId: OK: entry's producer_epoch is -1 from what is expected"),
    Mutant("init_producer_id", answers_the_epoch_before, "at-once", "InitProducerId: OK: then is", True),
    Mutant("init_producer_id", goes_on_in_an_open_transaction, "at-once",
           "InitProducerId: abort: entry is nothing, not PrepareAbort", True),
    Mutant("init_producer_id", keeps_its_producer_id_on_offer, "at-once",
           "InitProducerId: the producer id of a new transactional id is another's", True),
    Mutant("abort_fenced", fences_nobody, "at-once",
           "InitProducerId: abort: entry's producer_epoch is -1 from what is expected", True),
    Mutant("recovered", forgets_the_state, "replicated", "reload: Ongoing: known's state is Empty, not Ongoing"),
    Mutant("recovered", forgets_the_producer_id, "replicated", "reload: Empty: known's producer_id"),
)


@cache
def right(row: str, seeds: range = FEW) -> Sum:
    return compare(KIP_360, row, seeds)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.decision}-{one.wrong.__name__}")
def test_a_wrong_decision_is_a_difference(mutant: Mutant) -> None:
    decisions = KIP_360.coordinator
    wrong = {mutant.decision: mutant.wrong(getattr(decisions, mutant.decision))}
    found = compare(attrs.evolve(KIP_360, coordinator=attrs.evolve(decisions, **wrong)), mutant.row, mutant.seeds)
    assert [name for name in found.oracle.differences if name.startswith(mutant.difference)]
    assert not found.violated or not mutant.alone
    assert not right(mutant.row, mutant.seeds).oracle.differences


def swapped(metadata: TransactionMetadata, now: int) -> TransactionMetadata:
    """Complete a commit as an abort, and an abort as a commit."""
    prepared = {TxnState.PREPARE_COMMIT: TxnState.PREPARE_ABORT, TxnState.PREPARE_ABORT: TxnState.PREPARE_COMMIT}
    return completed(attrs.evolve(metadata, state=prepared[metadata.state]), now)


def not_available(error: Error) -> outcome.Answer:
    """Tell clients of a coordinator that leads no longer what a coordinator says whose log takes nothing."""
    return outcome.Answer(Error.COORDINATOR_NOT_AVAILABLE if error is Error.NOT_COORDINATOR else error)


@pytest.mark.parametrize(("module", "name", "wrong", "row", "difference"), [
    pytest.param(role, "completed", swapped, "at-once",
                 "completion: CompleteCommit: entry's state is CompleteAbort", id="commit-is-completed-as-abort"),
    pytest.param(loading, "PREPARED", (), "later",
                 "reload: PrepareAbort: pending is nothing, not CompleteAbort", id="prepared-is-left-alone"),
    pytest.param(transaction_coordinator, "Answer", not_available, "replicated",
                 "given up: answered is COORDINATOR_NOT_AVAILABLE, not NotCoordinator", id="given-up-by-another-code"),
])
def test_a_wrong_step_of_the_role_is_a_difference(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, wrong: object, row: str, difference: str
) -> None:
    before = right(row)
    monkeypatch.setattr(module, name, wrong)
    found = compare(KIP_360, row, FEW)
    assert [said for said in found.oracle.differences if said.startswith(difference)], found.oracle.differences
    assert not before.oracle.differences
