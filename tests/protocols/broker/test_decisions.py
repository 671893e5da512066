"""What decisions do where no recording reaches: failed appends, elections, races, epochs and ids that run out."""

from __future__ import annotations

from itertools import product
from typing import Any

import attrs
import pytest
from support.brokers.leader import append_batch, append_marker
from support.brokers.node import BROKER, elected, new_node
from support.runs.one_transaction import IDS, INIT, ONGOING, ask, coordinator, entry_of, error_of

from harness.model import FrozenMap, find_model
from kafka_proto import requests
from kafka_proto.broker import versions
from kafka_proto.broker.broker import Broker
from kafka_proto.broker.changes import CHANGES
from kafka_proto.broker.coordinator import coordinator as role
from kafka_proto.broker.coordinator.answers import response
from kafka_proto.broker.coordinator.coordinator import (
    AfterMarker,
    Coordinator,
    CoordinatorConfig,
    Markers,
    after_marker,
)
from kafka_proto.broker.coordinator.role import EntryCallback, TransactionCoordinator, block_of
from kafka_proto.broker.coordinator.transaction import (
    LAST_EPOCH,
    Answer,
    CachedTransaction,
    IllegalTransition,
    ProducerIds,
    TxnState,
    prepare,
)
from kafka_proto.broker.group.coordinator import refused_commit
from kafka_proto.broker.leader.admission import admit, check
from kafka_proto.broker.leader.appending import check_marker, check_marker_strictly
from kafka_proto.broker.leader.verification import NO_GUARD, LeaderState, Origin
from kafka_proto.broker.messages import Asker, Response
from kafka_proto.broker.parts import COORDINATOR
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.conformance.playing import PlayedCluster
from kafka_proto.log import EMPTY_LOG, MAX_EPOCH, Marker, ProducerState, RecordBatch, append, marker_batch
from kafka_proto.requests import Error


def batch(epoch: int = 0, sequence: int = 0, producer: int = 7) -> RecordBatch:
    """Return a transactional batch of one record."""
    return RecordBatch(("x",), producer, epoch, sequence, True)


def test_kafka_9666_failed_fence_is_not_bumped_again_until_4_1() -> None:
    """A fence whose append failed keeps its epoch for the next one; since KAFKA-19367 nothing is bumped before it."""
    for version, after_failure, logged in (
        (versions.KIP_360, 4, 4), (versions.KIP_890, 4, 5), (versions.KIP_890_4_1, 3, 4), (versions.KIP_890_4_2, 3, 4),
        (versions.KIP_890_4_4, 3, 4),
    ):
        state, _ = ask(version, coordinator(ONGOING), INIT)
        state, answers = role.append_failed(state, "tid", Error.COORDINATOR_NOT_AVAILABLE)
        assert error_of((state, answers)) is Error.COORDINATOR_NOT_AVAILABLE
        assert state.transactions["tid"].metadata.producer_epoch == after_failure
        assert state.transactions["tid"].has_failed_epoch_fence is (after_failure == 4)
        assert entry_of(ask(version, state, INIT)).producer_epoch == logged


def test_kafka_9666_each_try_of_a_refused_fence_takes_an_epoch_with_the_change() -> None:
    """Before the mend the epoch of a fence that failed was used up."""
    changed = CHANGES["fences-again"].of(versions.KIP_360, "again")
    for version, epochs in ((versions.KIP_360, [4, 4, 4]), (changed, [4, 5, 6])):
        state, found = coordinator(ONGOING), []
        for _ in epochs:
            state, _ = ask(version, state, INIT)
            state, _ = role.append_failed(state, "tid", Error.COORDINATOR_NOT_AVAILABLE)
            found.append(state.transactions["tid"].metadata.producer_epoch)
        assert found == epochs


def test_failed_append_leaves_a_new_transactional_id_without_epoch() -> None:
    """The next InitProducerId gives epoch 0, and uses the producer id that was taken."""
    state, _ = ask(versions.KIP_360, Coordinator(ids=IDS), INIT)
    state, answers = role.append_failed(state, "tid", Error.NOT_COORDINATOR)
    assert error_of((state, answers)) is Error.NOT_COORDINATOR
    known = state.transactions["tid"]
    assert (known.metadata.producer_id, known.metadata.producer_epoch, known.pending_state) == (1000, -1, None)
    entry = entry_of(ask(versions.KIP_360, state, INIT))
    assert (entry.producer_id, entry.producer_epoch) == (1000, 0)


def test_loading_coordinator_answers_nothing_else() -> None:
    """COORDINATOR_LOAD_IN_PROGRESS, until the log is read; the same while a block of producer ids is on its way."""
    assert error_of(ask(versions.KIP_360, Coordinator(loading=True), INIT)) is Error.COORDINATOR_LOAD_IN_PROGRESS
    for request in (INIT, requests.InitProducerIdRequest(4, None, 0)):
        assert error_of(ask(versions.KIP_360, Coordinator(), request)) is Error.COORDINATOR_LOAD_IN_PROGRESS
    last, end = attrs.evolve(ONGOING, producer_epoch=LAST_EPOCH), requests.EndTxnRequest(5, "tid", 7, LAST_EPOCH, True)
    rested = attrs.evolve(last, state=TxnState.EMPTY)
    for version, known, asked in ((versions.KIP_890, last, end), (versions.KIP_360, rested, INIT)):
        without = coordinator(known, ids=ProducerIds())
        assert error_of(ask(version, without, asked)) is Error.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("loading", [True, False])
@pytest.mark.parametrize("error", [Error.REQUEST_TIMED_OUT, Error.NOT_LEADER_OR_FOLLOWER])
def test_entry_given_up_while_the_log_is_loaded_is_no_more_the_coordinators(error: Error, loading: bool) -> None:
    """NOT_COORDINATOR, whatever the log refused it by; who still has its cache says what the log did."""
    (broker,) = (actor for actor in find_model("kafka/4.4").make({}, {"log": "replicated"}).processes
                 if isinstance(actor, Broker) and actor.name == BROKER)
    (own,) = (each for each in broker.roles if isinstance(each, TransactionCoordinator))
    p = own.placement.transaction_partition("tid")
    here = attrs.evolve(broker.initial[COORDINATOR[p]], cache=attrs.evolve(
        coordinator(ONGOING, loading=loading), waiting=FrozenMap()))
    if not loading:
        here = attrs.evolve(here, cache=ask(versions.KIP_890_4_4, here.cache, INIT)[0])
    waits = EntryCallback("tid", Asker("c1", 1, 1, ""), INIT)
    (told,) = own.failed(broker.initial.put(COORDINATOR[p], here), p, waits, error).sent
    assert isinstance(told, Response)
    moved = loading or error is Error.NOT_LEADER_OR_FOLLOWER
    assert told.response.error is (Error.NOT_COORDINATOR if moved else Error.COORDINATOR_NOT_AVAILABLE)


def test_retry_of_an_init_that_used_up_the_epochs_gets_the_same_id() -> None:
    """The id before, at its last epoch, is a retry; without id and epoch the last one is not kept for anybody."""
    rested = attrs.evolve(ONGOING, state=TxnState.EMPTY, producer_epoch=LAST_EPOCH, partitions=())
    goes_on = requests.InitProducerIdRequest(4, "tid", 60_000, 7, LAST_EPOCH)
    for request, retried in ((goes_on, Error.NONE), (INIT, Error.PRODUCER_FENCED)):
        state, _ = ask(versions.KIP_360, coordinator(rested), request)
        state, answers = role.appended(versions.KIP_360.coordinator, state, "tid", now=1)
        assert answers == (Answer(Error.NONE, 1000, 0),)
        state, effects = ask(versions.KIP_360, state, goes_on)
        if retried is Error.NONE:
            _, effects = role.appended(versions.KIP_360.coordinator, state, "tid", now=2)
        assert error_of((state, effects)) is retried


def test_blocks_of_producer_ids_never_overlap() -> None:
    """Whoever asks, and asks again after a crash, gets another block; a block gives each id once."""
    placement, given = Placement(("b1", "b2"), (), (), (), (), (), ()), []
    for count, b in product(range(3), placement.brokers):
        ids = ProducerIds(block_of(b, placement, count, 3))
        while ids.next_id is not None:
            given.append(ids.next_id)
            ids = ids.take()
    assert given == list(range(18))


def test_time_out_of_what_is_not_open_or_pending_does_nothing() -> None:
    """`abortTimedOutTransactions` passes over it."""
    rested = coordinator(attrs.evolve(ONGOING, state=TxnState.COMPLETE_COMMIT))
    assert role.time_out(versions.KIP_360.coordinator, rested, "tid", now=99) == (rested, ())
    ending, _ = ask(versions.KIP_360, coordinator(ONGOING), requests.EndTxnRequest(3, "tid", 7, 3, True))
    assert role.time_out(versions.KIP_360.coordinator, ending, "tid", now=99) == (ending, ())


def test_markers_are_sent_again_until_acknowledged_and_given_up_when_fenced() -> None:
    """Retriable codes: again to those partitions; permanent ones: never again, and the transaction stays prepared."""
    known = attrs.evolve(ONGOING, partitions=("T-0", "T-1"))
    state, _ = ask(versions.KIP_360, coordinator(known), requests.EndTxnRequest(3, "tid", 7, 3, True))
    state, effects = role.appended(versions.KIP_360.coordinator, state, "tid", now=1)
    (markers,) = [effect for effect in effects if isinstance(effect, Markers)]
    errors = FrozenMap({"T-0": Error.NONE, "T-1": Error.NOT_LEADER_OR_FOLLOWER})
    half, (again,) = role.marked(state, "tid", markers.request, errors, now=2)
    assert isinstance(again, Markers) and again.request.partitions == ("T-1",)
    assert half.transactions["tid"].metadata.partitions == ("T-1",)
    done = entry_of(role.marked(half, "tid", again.request, FrozenMap({"T-1": Error.NONE}), now=3))
    assert done.state is TxnState.COMPLETE_COMMIT
    fenced, nothing = role.marked(half, "tid", again.request, FrozenMap({"T-1": Error.INVALID_PRODUCER_EPOCH}), now=3)
    assert nothing == () and fenced.transactions["tid"].metadata.state is TxnState.PREPARE_COMMIT
    for other, left in ((Error.NONE, ("T-0",)), (Error.NOT_LEADER_OR_FOLLOWER, ("T-0", "T-1"))):
        both = FrozenMap({"T-0": Error.INVALID_PRODUCER_EPOCH, "T-1": other})
        fenced, nothing = role.marked(state, "tid", markers.request, both, now=2)
        assert nothing == () and fenced.transactions["tid"].metadata.partitions == left
    assert after_marker(Error.TRANSACTION_COORDINATOR_FENCED) is AfterMarker.GIVE_UP
    with pytest.raises(ValueError, match="no coordinator expects"):
        after_marker(Error.INVALID_GROUP_ID)


def test_idle_transactional_id_is_forgotten_by_a_tombstone() -> None:
    """At rest for `transactional.id.expiration.ms`: then it is unknown, and its producer fenced by its mapping."""
    node = new_node(versions.KIP_890_4_4, config=CoordinatorConfig(transactional_id_expiration_ms=500))
    made = node.ask(INIT)
    node.pass_time(400)
    assert "tid" in node.transactions
    node.pass_time(600)
    assert node.transactions == {}
    late = requests.AddPartitionsToTxnRequest(3, "tid", made.producer_id, 0, ("T-0",))
    assert node.ask(late).errors["T-0"] is Error.INVALID_PRODUCER_ID_MAPPING
    open_ = coordinator(ONGOING, config=CoordinatorConfig(transactional_id_expiration_ms=1))
    assert role.expire(open_, "tid", now=10_000) == (open_, ())


def begun(version: BrokerVersion, epoch: int = 0) -> PlayedCluster:
    """Return a broker on which a producer has written to T-0 in a transaction at some epoch."""
    node = new_node(version, INIT)
    node.with_epoch("tid", epoch)
    node.ask(requests.AddPartitionsToTxnRequest(3, "tid", 0, epoch, ("T-0",)))
    assert node.ask(requests.ProduceRequest(11, "tid", -1, "T-0", batch(epoch, producer=0))).error is Error.NONE
    return node


def ended_by_the_next_coordinator(node: PlayedCluster, epoch: int) -> Any:
    """End a transaction whose markers come late, and elect the broker anew; return what the client was told."""
    node.holds_markers = True
    ended = node.ask(requests.EndTxnRequest(5, "tid", 0, epoch, True))
    node.holds_markers = False
    elected(node)
    return ended


def test_new_coordinator_completes_what_is_prepared_with_its_epoch() -> None:
    """The markers that its predecessor did not bring are written again; an old coordinator's are fenced then."""
    node = begun(versions.KIP_890_4_4)
    ended_by_the_next_coordinator(node, 0)
    log = node.log("T-0")
    assert node.entries["tid"].state is TxnState.COMPLETE_COMMIT and log.last_stable_offset == 2
    assert log.producer(0).coordinator_epoch == 1
    old = requests.WriteTxnMarkersRequest(2, 0, 1, 0, False, ("T-0",), 0)
    assert node.ask(old).errors["T-0"] is Error.TRANSACTION_COORDINATOR_FENCED


@pytest.mark.parametrize(("version", "producer_id", "epoch"), [
    (versions.KIP_890, 0, MAX_EPOCH), (versions.KIP_890_4_4, 1, 0),
])
def test_kafka_20310_election_while_epochs_run_out(version: BrokerVersion, producer_id: int, epoch: int) -> None:
    """The entry of 4.0 does not say which producer id comes next: the client that was promised it is not known."""
    node = begun(version, LAST_EPOCH)
    ended = ended_by_the_next_coordinator(node, LAST_EPOCH)
    assert (ended.producer_id, ended.producer_epoch) == (1, 0)
    known = node.entries["tid"]
    assert (known.state, known.producer_id, known.producer_epoch) == (TxnState.COMPLETE_COMMIT, producer_id, epoch)


@pytest.mark.parametrize("version", [versions.KIP_890_4_2, versions.KIP_890_4_4])
def test_kafka_20357_producer_that_goes_on_from_its_last_epoch_after_an_election(version: BrokerVersion) -> None:
    """The log does not have the epoch before: who was not told the new one is fenced by the next coordinator."""
    goes_on = requests.InitProducerIdRequest(5, "tid", 60_000, 0, 0)
    node = begun(version)
    ended = node.ask(requests.EndTxnRequest(5, "tid", 0, 0, False))
    assert (ended.producer_epoch, node.ask(goes_on).producer_epoch) == (1, 1)
    elected(node)
    assert node.ask(goes_on).error is Error.PRODUCER_FENCED


def test_kafka_14884_guard_of_an_earlier_round_is_worth_nothing() -> None:
    """Verified, then the marker, then the append: the guard went with the marker, and with a client's own append."""
    for version in (versions.KIP_890_PART_1, versions.KIP_890, versions.KIP_890_4_4):
        decisions, request = version.leader, requests.ProduceRequest(11, "tid", -1, "T-0", batch())
        admitted = admit(decisions, LeaderState(), request, now=0)
        assert admitted.guard != NO_GUARD
        leader, _ = append_marker(decisions, admitted.leader, marker_batch(7, 0, Marker.ABORT, 0), 0)
        _, checked = append_batch(decisions, leader, batch(), Origin.CLIENT, admitted.guard)
        assert checked.error is Error.INVALID_TXN_STATE
        again = admit(decisions, leader, request, now=0)
        _, checked = append_batch(decisions, again.leader, batch(), Origin.CLIENT, admitted.guard)
        assert checked.error is Error.INVALID_TXN_STATE and again.guard != admitted.guard
        _, checked = append_batch(decisions, again.leader, batch(), Origin.CLIENT, again.guard)
        assert checked.error is Error.NONE


def test_marker_leaves_the_guard_of_a_verification_that_adds_the_partition() -> None:
    """The marker is of the transaction before; a batch of the one under way ends its verification."""
    decisions, request = versions.KIP_890.leader, requests.ProduceRequest(12, "tid", -1, "T-0", batch(1))
    admitted = admit(decisions, LeaderState(), request, now=0)
    leader, error = append_marker(decisions, admitted.leader, marker_batch(7, 1, Marker.ABORT, 0), 2)
    assert error is Error.NONE and leader.verifications == admitted.leader.verifications
    leader, checked = append_batch(decisions, leader, batch(1), Origin.CLIENT, admitted.guard)
    assert checked.error is Error.NONE and list(leader.verifications) == []


def test_kafka_14920_later_batch_that_was_verified_first_waits_for_the_earlier_one() -> None:
    """Two batches in flight, no state: the one above the lowest sequence seen is out of order, the first is taken."""
    decisions = versions.KIP_890_PART_1.leader
    second = admit(decisions, LeaderState(), requests.ProduceRequest(11, "tid", -1, "T-0", batch(sequence=1)), now=0)
    first = admit(decisions, second.leader, requests.ProduceRequest(11, "tid", -1, "T-0", batch()), now=0)
    assert first.guard == second.guard
    _, checked = append_batch(decisions, first.leader, batch(sequence=1), Origin.CLIENT, second.guard)
    assert checked.error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    leader, checked = append_batch(decisions, first.leader, batch(), Origin.CLIENT, first.guard)
    assert checked.error is Error.NONE
    _, checked = append_batch(decisions, leader, batch(sequence=1), Origin.CLIENT, second.guard)
    assert checked.error is Error.NONE


def test_kafka_19690_stale_epoch_is_said_before_a_missing_guard() -> None:
    """INVALID_PRODUCER_EPOCH is not fatal to a producer, INVALID_TXN_STATE is."""
    leader = LeaderState(append(EMPTY_LOG, marker_batch(7, 5, Marker.ABORT, 0)))
    for version, error in ((versions.KIP_890, Error.INVALID_TXN_STATE), (versions.KIP_890_4_1, Error.INVALID_TXN_STATE),
                           (versions.KIP_890_4_2, Error.INVALID_PRODUCER_EPOCH)):
        assert check(version.leader, leader, batch(4), Origin.CLIENT, NO_GUARD).error is error
    early = admit(versions.KIP_890_4_2.leader, leader, requests.ProduceRequest(11, "tid", -1, "T-0", batch(4)), now=0)
    assert early.error is Error.INVALID_PRODUCER_EPOCH and early.guard == NO_GUARD


@pytest.mark.parametrize("version", [
    versions.KIP_360, versions.KIP_890_PART_1, versions.KIP_890, versions.KIP_890_4_4,
], ids=lambda version: version.name)
def test_idempotent_producer_needs_no_verification(version: BrokerVersion) -> None:
    """Without transaction nobody is asked: in order it is taken, again it is a duplicate, with a gap it is refused."""
    node = new_node(version)
    for sequence, error, offset in ((0, Error.NONE, 0), (1, Error.NONE, 1), (0, Error.NONE, 0),
                                    (3, Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)):
        made = node.ask(requests.ProduceRequest(9, None, -1, "T-0", RecordBatch(("x",), 7, 0, sequence)))
        assert (made.error, made.base_offset) == (error, offset)
    assert len(node.log("T-0").batches) == 2


def test_p11_markers_of_earlier_epochs_and_coordinators_are_refused() -> None:
    """From 4.2 on a marker that bumps has to be above the producer's epoch, unless it is a retry (KIP-1228)."""
    known = ProducerState(4, (), 2, open_from=0)
    cases = (
        (4, 2, 0, Error.NONE, Error.NONE), (3, 2, 0, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_PRODUCER_EPOCH),
        (4, 1, 0, Error.TRANSACTION_COORDINATOR_FENCED, Error.TRANSACTION_COORDINATOR_FENCED),
        (4, 2, 2, Error.NONE, Error.INVALID_PRODUCER_EPOCH), (5, 2, 2, Error.NONE, Error.NONE),
        (5, 1, 2, Error.TRANSACTION_COORDINATOR_FENCED, Error.TRANSACTION_COORDINATOR_FENCED),
        (3, 2, 2, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_PRODUCER_EPOCH),
    )
    for epoch, coordinator_epoch, level, before, strictly in cases:
        marker = marker_batch(7, epoch, Marker.ABORT, coordinator_epoch)
        assert (check_marker(known, marker, level), check_marker_strictly(known, marker, level)) == (before, strictly)
    retry = marker_batch(7, 4, Marker.ABORT, 2)
    assert check_marker_strictly(attrs.evolve(known, open_from=None), retry, 2) is Error.NONE


def test_tx_13_deleted_records_make_a_producer_unknown_up_to_2_3() -> None:
    """UNKNOWN_PRODUCER_ID for the next batch; since then the producer goes on."""
    for version, error in ((versions.KIP_98, Error.UNKNOWN_PRODUCER_ID), (versions.KIP_360, Error.NONE)):
        plain = RecordBatch(("x",), 7, 0, 0)
        node = new_node(version, requests.ProduceRequest(7, None, -1, "T-0", plain))
        deleted = node.ask(requests.DeleteRecordsRequest(1, "T-0", -1))
        assert (deleted.error, deleted.low_watermark) == (Error.NONE, 1)
        follows = attrs.evolve(plain, base_sequence=1)
        assert node.ask(requests.ProduceRequest(7, None, -1, "T-0", follows)).error is error
        assert node.ask(requests.DeleteRecordsRequest(1, "T-0", 9)).error is Error.OFFSET_OUT_OF_RANGE


def test_kafka_5247_transaction_does_not_replace_a_later_plain_commit() -> None:
    """Live view and replay agree, before an election and after it."""
    node = new_node(versions.KIP_360, INIT, requests.AddOffsetsToTxnRequest(3, "tid", 0, 0, "__consumer_offsets-0"),
                    requests.TxnOffsetCommitRequest(3, "tid", "G", 0, 0, "T-0", 5))
    staged = node.groups(BROKER).offsets
    elected(node)
    assert node.groups(BROKER).offsets == staged and not staged.is_stable(("G", "T-0"))


def test_old_clients_are_told_what_they_know() -> None:
    """PRODUCER_FENCED is INVALID_PRODUCER_EPOCH to versions before it, of each request."""
    fenced = Answer(Error.PRODUCER_FENCED)
    for request, first in ((INIT, 4), (requests.EndTxnRequest(0, "tid", 7, 0, True), 2),
                           (requests.AddOffsetsToTxnRequest(0, "tid", 7, 0, "O-0"), 2)):
        for version in range(6):
            told = response(attrs.evolve(request, version=version), fenced)  # type: ignore[type-var]
            assert told.error is (Error.PRODUCER_FENCED if version >= first else Error.INVALID_PRODUCER_EPOCH)


def test_codes_of_a_commit_that_could_not_be_appended() -> None:
    """A client of a group asks again, or looks the coordinator up."""
    assert refused_commit(Error.NETWORK_EXCEPTION) is Error.COORDINATOR_LOAD_IN_PROGRESS
    assert refused_commit(Error.NOT_ENOUGH_REPLICAS) is Error.COORDINATOR_NOT_AVAILABLE
    assert refused_commit(Error.NOT_LEADER_OR_FOLLOWER) is Error.NOT_COORDINATOR
    assert refused_commit(Error.INVALID_TXN_STATE) is Error.INVALID_TXN_STATE


def test_illegal_transitions_are_refused_in_one_place() -> None:
    """A state that cannot follow, a change under way, an epoch that is none."""
    for cached, changes in (
        (CachedTransaction(ONGOING), {"state": TxnState.COMPLETE_COMMIT}),
        (CachedTransaction(ONGOING, TxnState.ONGOING), {"state": TxnState.ONGOING}),
        (CachedTransaction(ONGOING), {"state": TxnState.PREPARE_ABORT, "producer_epoch": MAX_EPOCH + 1}),
    ):
        with pytest.raises(IllegalTransition):
            prepare(cached, **changes)


def test_deadline_is_that_of_the_oldest_open_transaction() -> None:
    """None where nothing is open."""
    assert not new_node(versions.KIP_360).time_out()
    node = begun(versions.KIP_360)
    begun_at = node.entries["tid"].start_timestamp
    assert node.time_out() and node.now == begun_at + 60_001
