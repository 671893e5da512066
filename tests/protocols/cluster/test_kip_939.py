"""KIP-939 as proposed over 4.4: what its coordinator decides, how instances of an application follow each other."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from support.commands.command_line import call
from support.runs.made_runs import scenario_runs
from support.runs.one_transaction import ONGOING, ask, coordinator, entry_of, error_of

from harness.model import FrozenMap, Scenario, find_model, find_scenario
from kafka_proto import requests
from kafka_proto.broker.coordinator import coordinator as role
from kafka_proto.broker.coordinator.coordinator import Coordinator, completed
from kafka_proto.broker.coordinator.init_producer_id import Fenced
from kafka_proto.broker.coordinator.keep_prepared import NO_TIMEOUT_MS
from kafka_proto.broker.coordinator.transaction import LAST_EPOCH, Answer, ProducerIds, TransactionMetadata, TxnState
from kafka_proto.broker.versions import KIP_890_4_4, KIP_939
from kafka_proto.clients.database import (
    NAME,
    CommitDatabaseRequest,
    CommitDatabaseResponse,
    Database,
    DatabaseState,
    ReadPreparedRequest,
)
from kafka_proto.clients.producer import IllegalState, PreparedTxnState, Producer, ProducerStatus
from kafka_proto.clients.producer.two_phase import complete_transaction, prepare_transaction
from kafka_proto.cluster.kip_939 import CHANGES, PROPERTIES, SCENARIOS
from kafka_proto.requests import Error

S = TxnState
KEEP = requests.InitProducerIdRequest(6, "tid", 60_000, enable_2pc=True, keep_prepared_txn=True)
OPEN = attrs.evolve(ONGOING, producer_id=42, producer_epoch=10, timeout_ms=NO_TIMEOUT_MS)
KEPT = attrs.evolve(OPEN, next_producer_id=42, next_producer_epoch=11)
FAILING = [row for row in SCENARIOS if row.expected is not None]
SILENT = [row for row in SCENARIOS if row.expected is None]


def after(known: TransactionMetadata, request: object) -> tuple[Coordinator, Answer]:
    """Return the coordinator once a request's entry is committed, and the answer."""
    state, _ = ask(KIP_939, coordinator(known), request)
    state, (answer, *_) = role.appended(KIP_939.coordinator, state, "tid", now=101)
    assert isinstance(answer, Answer)
    return state, answer


@pytest.mark.parametrize(("owner", "following", "takes"), [
    ((42, 10), (42, 11), False), ((42, 14), (42, 15), False), ((42, LAST_EPOCH), (1000, 0), True),
    ((73, 85), (73, 86), False), ((73, LAST_EPOCH), (1000, 0), True),
])
def test_what_is_kept_stays_open_and_its_new_owner_has_the_next_epoch(
    owner: tuple[int, int], following: tuple[int, int], takes: bool
) -> None:
    """The transaction keeps its own pair, which the answer has, too; a producer id is used up where epochs are."""
    open_ = OPEN if owner == (42, 10) else attrs.evolve(OPEN, next_producer_id=owner[0], next_producer_epoch=owner[1])
    state, answer = after(open_, KEEP)
    known = state.transactions["tid"].metadata
    assert answer == Answer(Error.NONE, *following, (42, 10))
    assert (known.state, known.producer_id, known.producer_epoch, known.owner) == (S.ONGOING, 42, 10, following)
    assert known.partitions == OPEN.partitions
    assert (state.ids != coordinator(OPEN).ids) is takes


@pytest.mark.parametrize(("owner", "following", "retry"), [
    ((42, 11), (42, 12), (42, 11)), ((73, 85), (73, 86), (73, 85)), ((73, LAST_EPOCH), (1000, 0), (73, LAST_EPOCH)),
])
@pytest.mark.parametrize("committed", [True, False])
def test_the_owner_ends_what_was_kept_and_goes_on_with_its_own_pair(
    owner: tuple[int, int], following: tuple[int, int], retry: tuple[int, int], committed: bool
) -> None:
    """Markers have the transaction's producer id and next epoch; a retry is answered as the first request was."""
    kept = attrs.evolve(OPEN, next_producer_id=owner[0], next_producer_epoch=owner[1])
    state, answer = after(kept, requests.EndTxnRequest(5, "tid", *owner, committed))
    prepared = state.transactions["tid"].metadata
    assert answer == Answer(Error.NONE, *following)
    assert (prepared.producer_id, prepared.producer_epoch, prepared.owner) == (42, 11, following)
    done = completed(prepared, 102)
    assert (done.producer_id, done.producer_epoch, done.owner) == (*following, following)
    assert done.next_producer_epoch is None and done.partitions == ()
    again = coordinator(done)
    _, effects = ask(KIP_939, again, requests.EndTxnRequest(5, "tid", *retry, committed))
    assert effects == (Answer(Error.NONE, *following),)


@pytest.mark.parametrize(("request_", "error"), [
    (attrs.evolve(KEEP, producer_id=42, producer_epoch=11), Error.INVALID_REQUEST),
    (requests.EndTxnRequest(5, "tid", 42, 10, True), Error.PRODUCER_FENCED),
    (requests.EndTxnRequest(5, "tid", 42, 12, True), Error.PRODUCER_FENCED),
    (requests.EndTxnRequest(5, "tid", 7, 11, True), Error.INVALID_PRODUCER_ID_MAPPING),
    (requests.AddPartitionsToTxnRequest(5, "tid", 42, 10, ("T-1",)), Error.INVALID_TXN_STATE),
    (requests.AddPartitionsToTxnRequest(5, "tid", 42, 11, ("T-0",)), Error.INVALID_TXN_STATE),
    (requests.InitProducerIdRequest(6, "tid", 60_000, 42, 10), Error.PRODUCER_FENCED),
])
def test_what_was_kept_only_its_owner_ends_and_nobody_goes_on_with(request_: object, error: Error) -> None:
    """Nothing is written."""
    state = coordinator(KEPT)
    assert ask(KIP_939, state, request_) == (state, (Answer(error),))


@pytest.mark.parametrize("known", [OPEN, KEPT])
@pytest.mark.parametrize("owner", [False, True])
def test_without_keep_prepared_txn_a_prepared_transaction_is_aborted(known: TransactionMetadata, owner: bool) -> None:
    """As an operator does on purpose: the owner is fenced, too."""
    given = known.owner if owner else (-1, -1)
    state, effects = ask(KIP_939, coordinator(known), requests.InitProducerIdRequest(6, "tid", 60_000, *given))
    entry = entry_of((state, effects))
    assert entry.state is S.PREPARE_ABORT and completed(entry, 101).owner[1] > known.owner[1]
    state, (answer, *_) = role.appended(KIP_939.coordinator, state, "tid", now=101)
    assert answer == Answer(Error.CONCURRENT_TRANSACTIONS)


def test_a_producer_id_that_is_used_up_is_asked_for_first() -> None:
    """While the next block is not there, nothing is kept and nothing ended."""
    last = attrs.evolve(OPEN, next_producer_id=73, next_producer_epoch=LAST_EPOCH)
    state = coordinator(last, ids=ProducerIds())
    for request in (KEEP, requests.EndTxnRequest(5, "tid", 73, LAST_EPOCH, True),
                    requests.InitProducerIdRequest(6, "tid", 60_000)):
        assert error_of(ask(KIP_939, state, request)) is Error.COORDINATOR_LOAD_IN_PROGRESS


def test_an_elected_coordinator_knows_both_pairs() -> None:
    """The log has the second one (`NextProducerEpoch` of TransactionLogValue), so the owner is not fenced."""
    assert KIP_939.coordinator.recovered(KEPT).owner == (42, 11)


def test_what_takes_part_in_a_two_phase_commit_has_no_time_out() -> None:
    """It begins so with enable2Pc, whatever the client and the broker's bound say; a release knows nothing of it."""
    begun, _ = ask(KIP_939, Coordinator(ids=coordinator(OPEN).ids), attrs.evolve(KEEP, transaction_timeout_ms=1))
    assert begun.waiting["tid"].outcome.entry is not None
    assert begun.waiting["tid"].outcome.entry.timeout_ms == NO_TIMEOUT_MS
    assert not KIP_939.coordinator.times_out(OPEN) and KIP_939.coordinator.times_out(ONGOING)
    assert KIP_890_4_4.coordinator.times_out(OPEN)
    assert CHANGES["times-out"].of(KIP_939, "times-out").coordinator.times_out(OPEN)
    fenced = KIP_890_4_4.coordinator.init_producer_id(
        KEEP, coordinator(OPEN).transactions["tid"], producer_id=1, now=1, max_timeout_ms=900_000,
        fences=KIP_890_4_4.coordinator.fence,
    )
    assert isinstance(fenced, Fenced)


def test_a_producer_is_asked_in_order() -> None:
    """Prepared is what is flushed in a transaction; completed what is prepared, as the store says."""
    begun = Producer("tid", ProducerStatus.IN_TRANSACTION, 7, 3)
    prepared = prepare_transaction(begun)
    assert prepared.prepared == PreparedTxnState(7, 3)
    for state, status in ((PreparedTxnState(7, 3), ProducerStatus.COMMITTING_TRANSACTION),
                          (PreparedTxnState(7, 2), ProducerStatus.ABORTING_TRANSACTION),
                          (None, ProducerStatus.ABORTING_TRANSACTION)):
        assert complete_transaction(prepared, state).status is status
    for wrong in (prepared, attrs.evolve(begun, new_partitions=("T-0",))):
        with pytest.raises(IllegalState):
            prepare_transaction(wrong)
    with pytest.raises(IllegalState):
        complete_transaction(begun, None)


@pytest.mark.parametrize(("fences", "outcomes"), [(True, [False]), (False, [True, False])])
def test_who_reads_the_database_takes_its_row_over(fences: bool, outcomes: list[bool]) -> None:
    """An older instance cannot commit there any more, unless rows are open to all."""
    database, kept = Database(fences=fences), PreparedTxnState(7, 3)
    (read,) = database.on_message(DatabaseState(), ReadPreparedRequest("tid", kept, source="c2", dest=NAME))
    assert read.local.decisions == FrozenMap({kept: "abort"})
    asked = CommitDatabaseRequest("tid", kept, "c1.1", source="c1", dest=NAME)
    turns = list(database.on_message(read.local, asked))
    assert [message.committed for turn in turns for message in turn.sent
            if isinstance(message, CommitDatabaseResponse)] == outcomes
    first = list(database.on_message(DatabaseState(), asked))
    assert [turn.local.decisions[kept] for turn in first] == ["commit", "abort"]


@pytest.mark.parametrize("strategy", ["random", "pct"])
@pytest.mark.parametrize("scenario", SILENT, ids=lambda scenario: scenario.name)
def test_scenario_is_silent(scenario: Scenario, strategy: str) -> None:
    """Whatever is late, lost, crashed or moved, what KIP-939 and P1 to P11 promise holds."""
    for run in scenario_runs(scenario, strategy, 3 if scenario.settings.get("log") else 8):
        assert run.verdict.ok, (scenario.name, strategy, run.trail.seed, run.verdict)


@pytest.mark.parametrize("scenario", [row for row in SILENT if row.witnesses], ids=lambda scenario: scenario.name)
def test_witnesses_of_a_scenario_are_reached(scenario: Scenario) -> None:
    """An instance commits what its predecessor prepared."""
    missing = set(scenario.witnesses)
    for run in scenario_runs(scenario, "random", 150):
        missing -= run.witnessed
        if not missing:
            return
    pytest.fail(f"{scenario.name} did not reach {', '.join(sorted(missing))}")


@pytest.mark.parametrize("scenario", FAILING, ids=lambda scenario: scenario.name)
def test_each_wrong_variant_is_found_from_nothing(scenario: Scenario) -> None:
    """By the property that it breaks."""
    found = [run.verdict.violated for run in scenario_runs(scenario, "random", scenario.runs) if not run.verdict.ok]
    assert scenario.expected in found and set(found) <= set(scenario.claims)


def test_each_property_of_its_own_is_broken_by_a_variant_and_no_release_has_it() -> None:
    """The models of releases have the properties that they had."""
    assert {*PROPERTIES, "OpenHasAnOwner"} <= {row.expected for row in FAILING}
    for row in FAILING:
        twin = find_scenario(row.repaired or "")
        assert twin is not None and (twin.sizes, twin.faults, twin.claims) == (row.sizes, row.faults, row.claims)
    assert not {*PROPERTIES, "OpenHasAnOwner"} & {one.name for one in find_model("kafka/4.4").make().properties}


def test_a_history_is_judged_by_itself(tmp_path: Path) -> None:
    """A file says which property fails, and that of the repaired version that none does."""
    for name, code in (("prepared-aborted", 1), ("prepared-aborted-repaired", 0)):
        call("simulate", name, "--seeds", "60", "--out", tmp_path)
        (history,) = tmp_path.glob(f"{name}-random-*.history.jsonl")
        judged = call("verify", history)
        assert judged.code == code
        assert ("violates PreparedEndsAsDecided" in judged.out) is bool(code), judged.out
