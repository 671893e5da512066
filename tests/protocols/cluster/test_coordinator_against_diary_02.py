"""The coordinators of whole transactions decide what diary 02 decides, but where a source says why they do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import attrs
import pytest

from harness.model import Faults, Model, find_model
from harness.model.faults import FAULT_KINDS
from harness.simulate.runs.plan import everything
from harness.verify.refinement import Refiner
from harness.verify.simulated_runs import Totals, refine_runs
from kafka_proto.broker import versions
from kafka_proto.broker.coordinator import coordinator as role
from kafka_proto.broker.coordinator import init_producer_id, loading, transaction
from kafka_proto.broker.coordinator import role as transaction_coordinator
from kafka_proto.broker.coordinator.coordinator import completed
from kafka_proto.broker.coordinator.transaction import TransactionMetadata, TxnState
from kafka_proto.broker.versions import KIP_360, BrokerVersion
from kafka_proto.cluster.models import OLDER, model
from kafka_proto.cluster.refinement.departures import BY_VERSION, EVERY
from kafka_proto.log import NO_PRODUCER_ID
from kafka_proto.requests import Error

BUSY = {"brokers": 2, "producers": 2, "transactional-ids": 1, "offsets": 1}
"""Two producers with one transactional id: each fences the other."""
ROWS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "at-once": ("at-once", BUSY),
    "later": ("later", BUSY),
    "epochs": ("later", {**BUSY, "offsets": 0, "epochs": 2}),
    "replicated": ("replicated", {**BUSY, "elections": 3}),
}
"""The log and the sizes, by name."""
MODES = ("free", "timed")
CLIENTS: Mapping[str, str] = {"kip-98": "java23", "kip-360": "java35", "kip-890-part-1": "java39", "kip-890": "tv2"}
"""The clients of brokers by the first part of their version's name; at level 1 they are those of Kafka 3.9."""
VERSIONS: Mapping[str, BrokerVersion] = {
    one.name: one for one in (
        versions.KIP_98, versions.KIP_98_0_11, *(one for many in versions.RELEASES.values() for one in many)
    ) if not one.name.endswith("level-0")
}
"""Every version of a broker that a model has."""


def build(version: BrokerVersion, row: str) -> Model:
    """Return whole transactions with brokers of a version, and every kind of fault."""
    log, sizes = ROWS[row]
    faults = Faults(**{**dict.fromkeys(FAULT_KINDS, 1), "crash": 2}, targets=("b1", "b2", "c1"))
    settings = {"log": log, "timeouts": "request,delivery,transaction"}
    client = CLIENTS["kip-890-part-1" if "level" in version.name else version.name.partition("/")[0]]
    made = model("compared", "", (client,), {OLDER: version})
    return made.make(sizes, settings, network="connections", faults=faults)


def refined(version: BrokerVersion, row: str, seeds: Iterable[int]) -> list[Totals]:
    """Make runs of seeds in each mode, and hold them against diary 02's coordinators."""
    built = build(version, row)
    refiner, planned, every = Refiner(built), list(seeds), everything(built)
    found = [refine_runs(built, attrs.evolve(every, steps=300, mode=mode), planned, refiner=refiner) for mode in MODES]
    refiner.close()
    return found


SEEDS = {"at-once": range(6), "epochs": range(3), "replicated": range(3)}
"""In the suite, of each mode."""
SMALL = ("kip-98", "kip-360", "kip-890-part-1", "kip-890")
TAKEN = {
    "ReceiveInitPidRequest": 60, "ReceiveAddPartitionsToTxnRequest": 60, "CommitTxnLogAppend": 150, "ElectLeader": 9,
    "BecomeFollower": 9, "EndTxn": 20, "AnswerEndTxn": 9, "TimeOutTransaction": 3, "TakeMarkerAnswer": 40,
    "LoadTxnLog": 9, "Crash": 20, "RotateProducerId": 1, "ForgetLastEpoch": 30, "AddNothing": 1, "WaitForMarkers": 30,
    "CompleteWithoutPartitions": 30, "FenceInForce": 9, "ReloadWithoutIds": 3,
}
"""What the steps of the suite's runs are at least so often, of each version."""
LARGE = 38
"""Runs of each mode and row: 304 of each version."""


def counted(version: str, row: str, seeds: range) -> Counter[str]:
    """Return how often runs took each action of the spec, none of which leaves it."""
    counts = Counter[str]()
    for totals in refined(VERSIONS[version], row, seeds):
        assert not totals.failed, (row, totals.seed, totals.explanation)
        counts += totals.actions + totals.extensions
    return counts


@pytest.mark.parametrize("version", SMALL)
def test_coordinators_decide_what_diary_02_does(version: str) -> None:
    taken = sum((counted(version, row, seeds) for row, seeds in SEEDS.items()), Counter[str]())
    few = {name: (taken[name], least) for name, least in TAKEN.items() if taken[name] < least}
    assert not few


@pytest.mark.large
@pytest.mark.parametrize("version", VERSIONS)
def test_coordinators_decide_what_diary_02_does_in_many_runs(version: str) -> None:
    assert sum((counted(version, row, range(LARGE)) for row in ROWS), Counter[str]()).total() > 5_000


def test_each_departure_has_a_source() -> None:
    """A departure is named after what differs, and says in which KIP or issue of Kafka it comes from."""
    assert set(BY_VERSION) == set(VERSIONS)
    assert all("KIP-" in one.reason or "KAFKA-" in one.reason for one in EVERY.values())


@pytest.mark.parametrize("release", ["3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4"])
def test_a_model_is_held_against_the_departures_of_its_release(release: str) -> None:
    """The extension actions of a model's refinement are those that its version departs by, each with its reason."""
    at = {"transaction-version": "1", "client": "java39"} if release.startswith("4") else {}
    made = find_model(f"kafka/{release}").make({}, at)
    assert made.refinement is not None
    extensions = made.refinement().extensions
    assert ("PendingFirst" in extensions) is release.startswith("4")
    assert {"EndTxn", "TimeOutTransaction", "TakeMarkerAnswer", "FenceInForce"} <= set(extensions)


def test_refusals_that_are_checked_stay_in_diary_02(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last entry is logged again before a refusal, which stays as it was; the spec cannot see an entry twice."""
    faults, settings = Faults(delay=2, drop=1), {"log": "replicated", "timeouts": "request,transaction"}
    sizes = {"producers": 2, "partitions": 1, "records": 1, "elections": 2}

    def totals() -> Totals:
        built = find_model("kafka/4.4").make(sizes, {**settings, "change": "checked-refusals"}, faults=faults)
        return refine_runs(built, attrs.evolve(everything(built), steps=300), range(9), stop=True)

    checked = totals()
    assert not checked.failed and checked.extensions["CheckRefusal"] > 3
    right = role.refuse_once_logged
    monkeypatch.setattr(role, "refuse_once_logged", lambda refused, cached: attrs.evolve(
        right(refused, cached), answer=transaction.Answer(Error.INVALID_TXN_STATE)))
    assert totals().failed


Decision = Callable[..., Any]
FEW = range(3)


def before(change: Callable[..., tuple[Any, ...]]) -> Callable[[Decision], Decision]:
    """Return how a right decision is made wrong by changing what it is given."""
    return lambda right: lambda *given, **more: right(*change(*given), **more)


def after(change: Callable[..., Any]) -> Callable[[Decision], Decision]:
    """Return how a right decision is made wrong by changing what came of it."""
    return lambda right: lambda *given, **more: change(right(*given, **more), *given)


def of_the_present_epoch(request: Any, cached: Any) -> tuple[Any, Any]:
    if cached is not None and request.producer_epoch < cached.metadata.producer_epoch:
        request = attrs.evolve(request, producer_epoch=cached.metadata.producer_epoch)
    return request, cached


def without_old_partitions(done: Any, request: Any, cached: Any) -> Any:
    if done.entry is None:
        return done
    left = tuple(name for name in done.entry.partitions if name not in cached.metadata.partitions)
    return attrs.evolve(done, entry=attrs.evolve(done.entry, partitions=left))


def with_the_epoch_before(*fields: str) -> Callable[..., Any]:
    """Return the change to an outcome that bumps, after which its entry or its answer has the epoch before."""

    def change(done: Any, *given: Any) -> Any:
        if not isinstance(done, transaction.Outcome) or done.entry is None or done.entry.producer_epoch < 1:
            return done
        epoch = done.entry.producer_epoch - 1
        return attrs.evolve(done, **{name: attrs.evolve(getattr(done, name), producer_epoch=epoch) for name in fields})

    return change


@attrs.frozen
class Mutant:
    """A wrong decision of a version, and the action of a broker that is then no step of the spec."""

    decision: str
    what: str
    wrong: Callable[[Decision], Decision]
    row: str
    action: str
    alone: bool = False
    """Whether no property of the model says anything in these runs."""
    seeds: range = FEW


INIT, ADD, LOAD = "ReceiveInitProducerIdRequest", "ReceiveAddPartitionsToTxnRequest", "LoadTxnLog"
NOT_PENDING = before(lambda request, cached: (request, cached and attrs.evolve(cached, pending_state=None)))
MUTANTS = (
    Mutant("add_partitions", "takes_no_heed_of_pending", NOT_PENDING, "later", ADD, seeds=range(6, 9)),
    Mutant("add_partitions", "accepts_old_epochs", before(of_the_present_epoch), "at-once", ADD, True),
    Mutant("add_partitions", "accepts_other_ids", before(lambda request, cached: (
        request if cached is None else attrs.evolve(request, producer_id=cached.metadata.producer_id), cached
    )), "epochs", ADD, True, range(4, 6)),
    Mutant("add_partitions", "replaces_partitions", after(without_old_partitions), "at-once", ADD),
    Mutant("init_producer_id", "takes_no_heed_of_pending", NOT_PENDING, "later", INIT),
    Mutant("init_producer_id", "keeps_the_epoch", after(with_the_epoch_before("entry", "answer")), "at-once", INIT),
    Mutant("init_producer_id", "answers_the_epoch_before", after(with_the_epoch_before("answer")), "at-once", INIT,
           True),
    Mutant("init_producer_id", "goes_on_in_an_open_transaction", after(lambda done, *_: transaction.refuse(
        Error.CONCURRENT_TRANSACTIONS) if isinstance(done, init_producer_id.Fenced) else done), "at-once", INIT, True),
    Mutant("init_producer_id", "keeps_its_producer_id_on_offer", after(lambda done, *_: attrs.evolve(
        done, takes_producer_id=False) if isinstance(done, transaction.Outcome) else done), "at-once", INIT, True),
    Mutant("abort_fenced", "fences_nobody", before(lambda fenced: (
        attrs.evolve(fenced, producer_epoch=fenced.cached.metadata.producer_epoch),)), "at-once", INIT, True),
    Mutant("recovered", "forgets_the_state", after(lambda found, _: attrs.evolve(found, state=TxnState.EMPTY)),
           "replicated", LOAD),
    Mutant("recovered", "forgets_the_producer_id", after(lambda found, _: attrs.evolve(
        found, producer_id=NO_PRODUCER_ID)), "replicated", LOAD),
)


@cache
def right(row: str, seeds: range = FEW) -> list[Totals]:
    return refined(KIP_360, row, seeds)


def leaves_by(found: list[Totals]) -> set[str]:
    """Return the actions of brokers by which runs leave the spec first."""
    return {totals.explanation.label.partition("(")[0] for totals in found if totals.explanation is not None}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.decision}-{one.what}")
def test_a_wrong_decision_leaves_the_spec(mutant: Mutant) -> None:
    decisions = KIP_360.coordinator
    wrong = {mutant.decision: mutant.wrong(getattr(decisions, mutant.decision))}
    version = attrs.evolve(KIP_360, coordinator=attrs.evolve(decisions, **wrong))
    found = refined(version, mutant.row, mutant.seeds)
    assert leaves_by(found) == {mutant.action}
    assert not mutant.alone or not any(totals.violated for totals in found)
    assert not any(totals.failed for totals in right(mutant.row, mutant.seeds))


def swapped(metadata: TransactionMetadata, now: int) -> TransactionMetadata:
    """Complete a commit as an abort, and an abort as a commit."""
    prepared = {TxnState.PREPARE_COMMIT: TxnState.PREPARE_ABORT, TxnState.PREPARE_ABORT: TxnState.PREPARE_COMMIT}
    return completed(attrs.evolve(metadata, state=prepared[metadata.state]), now)


def not_available(error: Error) -> transaction.Answer:
    """Tell clients of a coordinator that leads no longer what a coordinator says whose log takes nothing."""
    return transaction.Answer(Error.COORDINATOR_NOT_AVAILABLE if error is Error.NOT_COORDINATOR else error)


@pytest.mark.parametrize(("module", "name", "wrong", "row", "action"), [
    pytest.param(role, "completed", swapped, "at-once", "ReceiveWriteTxnMarkersResponse",
                 id="commit-is-completed-as-abort"),
    pytest.param(loading, "PREPARED", (), "later", LOAD, id="prepared-is-left-alone"),
    pytest.param(transaction_coordinator, "Answer", not_available, "replicated", INIT, id="given-up-by-another-code"),
])
def test_a_wrong_step_of_the_role_leaves_the_spec(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, wrong: object, row: str, action: str
) -> None:
    before = right(row)
    monkeypatch.setattr(module, name, wrong)
    assert action in leaves_by(refined(KIP_360, row, FEW))
    assert not any(totals.failed for totals in before)
