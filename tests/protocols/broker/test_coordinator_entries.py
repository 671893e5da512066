"""What a coordinator writes to its log with each change, whole; what it reads again; what it tells who only asks."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import pytest
from support.runs import one_transaction
from support.runs.one_transaction import entry_of

from harness.model import FrozenMap, Local
from kafka_proto import requests
from kafka_proto.broker.changes import CHANGES
from kafka_proto.broker.coordinator import coordinator as role
from kafka_proto.broker.coordinator.answers import describe, list_transactions, refused_partitions
from kafka_proto.broker.coordinator.coordinator import CoordinatorConfig, Markers, completed
from kafka_proto.broker.coordinator.loading import load
from kafka_proto.broker.coordinator.role import EntryCallback, TransactionCoordinator
from kafka_proto.broker.coordinator.transaction import (
    LAST_EPOCH,
    Answer,
    Block,
    CachedTransaction,
    ProducerIds,
    TransactionMetadata,
    TransactionRecord,
    TxnState,
)
from kafka_proto.broker.other_brokers import OtherBrokers
from kafka_proto.broker.parts import COORDINATOR, CoordinatorState
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.versions import KIP_98, KIP_98_0_11, KIP_360, KIP_890, KIP_890_4_4, BrokerVersion, version_of
from kafka_proto.log import MAX_EPOCH
from kafka_proto.requests import Error

LEVEL_1 = version_of("4.4.0", 1)
S = TxnState
OPEN = TransactionMetadata(7, S.ONGOING, 3, 2, 6, -1, ("T-0",), 50, 10, 20, 0)
DONE = attrs.evolve(OPEN, state=S.COMPLETE_ABORT, partitions=(), transaction_version=2)
IDS = ProducerIds(Block(9, 2))
INIT = requests.InitProducerIdRequest(4, "tid", 70)
coordinator = partial(one_transaction.coordinator, ids=IDS)


@pytest.mark.parametrize(("version", "known", "request_", "written"), [
    (KIP_360, DONE, INIT, TransactionMetadata(7, S.EMPTY, 4, -1, 7, -1, (), 70, -1, 30, 2)),
    (KIP_360, DONE, attrs.evolve(INIT, producer_id=7, producer_epoch=3),
     TransactionMetadata(7, S.EMPTY, 4, 3, 7, -1, (), 70, -1, 30, 2)),
    (KIP_360, attrs.evolve(DONE, producer_epoch=LAST_EPOCH), INIT,
     TransactionMetadata(9, S.EMPTY, 0, -1, 7, -1, (), 70, -1, 30, 2)),
    (KIP_360, DONE, requests.AddPartitionsToTxnRequest(3, "tid", 7, 3, ("T-1", "T-0")),
     TransactionMetadata(7, S.ONGOING, 3, 2, 7, -1, ("T-0", "T-1"), 50, 30, 30, 2)),
    (KIP_360, OPEN, requests.AddOffsetsToTxnRequest(3, "tid", 7, 3, "O-0"),
     TransactionMetadata(7, S.ONGOING, 3, 2, 7, -1, ("O-0", "T-0"), 50, 10, 30, 0)),
    (KIP_890, OPEN, requests.AddPartitionsToTxnRequest(3, "tid", 7, 3, ("T-1",)),
     TransactionMetadata(7, S.ONGOING, 3, 2, 7, -1, ("T-0", "T-1"), 50, 10, 30, 0)),
    (KIP_890, DONE, requests.AddPartitionsToTxnRequest(3, "tid", 7, 3, ("T-1",)),
     TransactionMetadata(7, S.ONGOING, 3, 2, 7, -1, ("T-1",), 50, 30, 30, 2)),
    (KIP_360, attrs.evolve(OPEN, transaction_version=2), requests.EndTxnRequest(3, "tid", 7, 3, True),
     TransactionMetadata(7, S.PREPARE_COMMIT, 3, 2, 7, -1, ("T-0",), 50, 10, 30, 0)),
    (KIP_890, OPEN, requests.EndTxnRequest(5, "tid", 7, 3, False),
     TransactionMetadata(7, S.PREPARE_ABORT, 4, 3, 7, -1, ("T-0",), 50, 10, 30, 2)),
    (KIP_890, DONE, requests.EndTxnRequest(5, "tid", 7, 3, False),
     TransactionMetadata(7, S.PREPARE_ABORT, 4, 3, 7, -1, (), 50, 30, 30, 2)),
    (KIP_890, attrs.evolve(OPEN, producer_epoch=LAST_EPOCH), requests.EndTxnRequest(5, "tid", 7, LAST_EPOCH, True),
     TransactionMetadata(7, S.PREPARE_COMMIT, MAX_EPOCH, LAST_EPOCH, 7, 9, ("T-0",), 50, 10, 30, 2)),
    (KIP_360, OPEN, INIT, TransactionMetadata(7, S.PREPARE_ABORT, 4, -1, 7, -1, ("T-0",), 50, 10, 30, 0)),
    (KIP_890, OPEN, INIT, TransactionMetadata(7, S.PREPARE_ABORT, 5, 4, 7, -1, ("T-0",), 50, 10, 30, 2)),
    (KIP_890_4_4, OPEN, INIT, TransactionMetadata(7, S.PREPARE_ABORT, 4, 3, 7, -1, ("T-0",), 50, 10, 30, 2)),
    (LEVEL_1, attrs.evolve(OPEN, producer_epoch=MAX_EPOCH), INIT,
     TransactionMetadata(7, S.PREPARE_ABORT, MAX_EPOCH, -1, 7, -1, ("T-0",), 50, 10, 30, 0)),
])
def test_each_change_is_written_whole(
    version: BrokerVersion, known: TransactionMetadata, request_: Any, written: TransactionMetadata
) -> None:
    """Ids and epochs, partitions, times, and the version of the client that made it."""
    assert entry_of(role.receive(version.coordinator, coordinator(known), request_, now=30)) == written


def test_completion_switches_to_the_next_producer_id_of_a_client_that_bumps() -> None:
    """No partitions, no next id; an older client's epoch and id stay."""
    ending = attrs.evolve(OPEN, state=S.PREPARE_COMMIT, producer_epoch=MAX_EPOCH, next_producer_id=9)
    assert completed(attrs.evolve(ending, transaction_version=2), 30) == TransactionMetadata(
        9, S.COMPLETE_COMMIT, 0, 2, 7, -1, (), 50, 10, 30, 2)
    assert completed(ending, 30) == TransactionMetadata(7, S.COMPLETE_COMMIT, MAX_EPOCH, 2, 7, -1, (), 50, 10, 30, 0)
    aborted = attrs.evolve(ending, state=S.PREPARE_ABORT, next_producer_id=-1)
    assert completed(aborted, 30).state is S.COMPLETE_ABORT


def test_nothing_is_written_where_nothing_changes() -> None:
    """A partition that is there is answered at once, in an open transaction only; an empty id is none."""
    added = requests.AddPartitionsToTxnRequest(3, "tid", 7, 3, ("T-0",))
    for version in (KIP_360, KIP_890):
        for known, at_once in ((OPEN, True), (attrs.evolve(OPEN, state=S.COMPLETE_COMMIT), False)):
            _, (effect,) = role.receive(version.coordinator, coordinator(known), added, now=30)
            assert isinstance(effect, Answer) is at_once
        for request in (INIT, added, requests.AddOffsetsToTxnRequest(3, "tid", 7, 3, "O-0"),
                        *(requests.EndTxnRequest(v, "tid", 7, 3, True) for v in (3, 5))):
            nameless = attrs.evolve(request, transactional_id="")
            _, (effect,) = role.receive(version.coordinator, coordinator(OPEN), nameless, now=30)
            assert effect == Answer(Error.INVALID_REQUEST)
        verify = attrs.evolve(added, transactional_id="", verify_only=True)
        assert dict(version.coordinator.verify_partitions(verify, None)) == {"T-0": Error.INVALID_REQUEST}
        known_not = attrs.evolve(verify, transactional_id="tid")
        assert dict(version.coordinator.verify_partitions(known_not, None)) == {
            "T-0": Error.INVALID_PRODUCER_ID_MAPPING}


def test_new_coordinator_has_what_its_log_says_and_sends_markers_for_what_is_prepared() -> None:
    """Without the last epoch, up to 4.2 without the ids before and after; under its own epoch."""
    ending = attrs.evolve(OPEN, state=S.PREPARE_ABORT, next_producer_id=9)
    log = FrozenMap({"ending": ending, "tid": OPEN})
    for version, previous, following in ((KIP_890, -1, -1), (KIP_890_4_4, 6, 9)):
        state, effects = load(version.coordinator, log, 5, IDS, CoordinatorConfig(), now=30)
        assert (state.coordinator_epoch, state.loading, state.ids) == (5, False, IDS)
        known = state.transactions["tid"]
        assert known == CachedTransaction(attrs.evolve(OPEN, last_producer_epoch=-1, previous_producer_id=previous))
        assert state.transactions["ending"].metadata.next_producer_id == following
        assert state.transactions["ending"].pending_state is S.COMPLETE_ABORT
        assert effects == (Markers("ending", requests.WriteTxnMarkersRequest(
            version.coordinator.marker_version, 7, 3, 5, False, ("T-0",), 0)),)
        assert role.receive(version.coordinator, state, INIT, now=30)[1] != ()
    last_one = attrs.evolve(OPEN, producer_epoch=LAST_EPOCH)
    without = coordinator(last_one, ids=ProducerIds())
    state, (effect,) = role.receive(KIP_890_4_4.coordinator, without, INIT, now=30)
    assert effect == Answer(Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert state == without


def test_who_only_asks_is_told_of_the_cache() -> None:
    """Not while it is loaded, not of what is forgotten; lists by state and producer."""
    state = coordinator(OPEN)
    ask = requests.DescribeTransactionsRequest(0, "tid")
    assert describe(state, ask) == requests.DescribeTransactionsResponse(Error.NONE, "Ongoing", 7, 3, 50, 10, ("T-0",))
    assert describe(state, attrs.evolve(ask, transactional_id="")).error is Error.INVALID_REQUEST
    assert describe(state, attrs.evolve(ask, transactional_id="x")).error is Error.TRANSACTIONAL_ID_NOT_FOUND
    loading, dead = coordinator(OPEN, loading=True), coordinator(attrs.evolve(OPEN, state=S.DEAD))
    assert describe(loading, ask).error is Error.COORDINATOR_LOAD_IN_PROGRESS
    assert describe(dead, ask).error is Error.TRANSACTIONAL_ID_NOT_FOUND
    every = requests.ListTransactionsRequest(0)
    ongoing = requests.ListTransactionsResponse(Error.NONE, (), (("tid", 7, "Ongoing"),))
    assert list_transactions([state], every, now=30) == ongoing
    assert list_transactions([dead], every, now=30).transactions == ()
    assert list_transactions([loading], every, now=30).error is Error.COORDINATOR_LOAD_IN_PROGRESS
    for states, producers, unknown, found in (
        (("Ongoing",), (), (), 1), (("Empty", "Nothing"), (), ("Nothing",), 0), ((), (7,), (), 1), ((), (8,), (), 0),
    ):
        listed = list_transactions([state], requests.ListTransactionsRequest(0, states, producers), now=30)
        assert (listed.unknown_state_filters, len(listed.transactions)) == (unknown, found)
    empty = coordinator(attrs.evolve(OPEN, start_timestamp=-1))
    for duration, found in ((-1, 1), (0, 1), (19, 1), (20, 0), (21, 0)):
        asked = requests.ListTransactionsRequest(1, duration_filter=duration)
        assert len(list_transactions([state], asked, now=30).transactions) == found, "it began at 10"
        assert len(list_transactions([empty], asked, now=30).transactions) == 1
    some = requests.AddPartitionsToTxnRequest(3, "tid", 7, 3, ("T-0", "T-9"))
    assert refused_partitions(some, frozenset({"T-0"})) == requests.AddPartitionsToTxnResponse(FrozenMap(
        {"T-0": Error.OPERATION_NOT_ATTEMPTED, "T-9": Error.UNKNOWN_TOPIC_OR_PARTITION}))
    assert refused_partitions(some, frozenset({"T-0", "T-9"})) is None
    internal = attrs.evolve(some, partitions=("T-0", "T-9", "__consumer_offsets-0", "__transaction_state-9"))
    exist = frozenset({"T-0", "__consumer_offsets-0"})
    assert refused_partitions(internal, exist) == requests.AddPartitionsToTxnResponse(FrozenMap({
        "T-0": Error.OPERATION_NOT_ATTEMPTED, "T-9": Error.UNKNOWN_TOPIC_OR_PARTITION,
        **dict.fromkeys(internal.partitions[2:], Error.TOPIC_AUTHORIZATION_FAILED)}))
    by_broker = attrs.evolve(internal, version=4, partitions=("__consumer_offsets-0",))
    assert refused_partitions(by_broker, exist) is None


def test_markers_to_nobody_are_of_the_transaction_that_waits() -> None:
    """A partition without leader is left out while its markers are awaited; of others' markers nothing follows."""
    prepared = attrs.evolve(OPEN, state=S.PREPARE_COMMIT, partitions=("T-0", "T-1"))
    waiting = coordinator(prepared, S.COMPLETE_COMMIT, coordinator_epoch=2)
    request = requests.WriteTxnMarkersRequest(1, 7, 3, 2, True, ("T-0", "T-1"))
    left, effects = role.without_leader(waiting, "tid", request, ("T-1",), now=30)
    assert (left.transactions["tid"].metadata.partitions, effects) == (("T-0",), ())
    assert entry_of(role.without_leader(left, "tid", request, ("T-0",), now=30)).state is S.COMPLETE_COMMIT
    for other in (attrs.evolve(request, coordinator_epoch=1), attrs.evolve(request, producer_epoch=2)):
        assert role.without_leader(waiting, "tid", other, ("T-0", "T-1"), now=30) == (waiting, ())
    assert role.without_leader(waiting, "nobody", request, ("T-0",), now=30) == (waiting, ())


def test_failed_fence_is_remembered_until_the_transaction_ends() -> None:
    """By whatever is appended meanwhile; markers are asked for once, and an answer to others' is none."""
    state, _ = role.receive(KIP_360.coordinator, coordinator(OPEN), INIT, now=30)
    state, _ = role.append_failed(state, "tid", Error.NOT_COORDINATOR)
    assert dict(state.waiting) == {} and state.transactions["tid"].has_failed_epoch_fence
    add = requests.AddPartitionsToTxnRequest(3, "tid", 7, 4, ("T-1",))
    failing, _ = role.receive(KIP_360.coordinator, state, add, now=31)
    failing, _ = role.append_failed(failing, "tid", Error.NOT_COORDINATOR)
    assert failing.transactions["tid"].has_failed_epoch_fence and failing.transactions["tid"].pending_state is None
    added, _ = role.receive(KIP_360.coordinator, state, add, now=31)
    added, answers = role.appended(KIP_360.coordinator, added, "tid", now=31)
    assert added.transactions["tid"].has_failed_epoch_fence and len(answers) == 1
    ending, _ = role.receive(KIP_360.coordinator, added, INIT, now=32)
    ending, effects = role.appended(KIP_360.coordinator, ending, "tid", now=32)
    assert not ending.transactions["tid"].has_failed_epoch_fence
    answered, markers = effects
    assert isinstance(answered, Answer) and isinstance(markers, Markers)
    done = FrozenMap({"T-0": Error.NONE, "T-1": Error.NONE})
    for wrong in (attrs.evolve(markers.request, producer_epoch=3), attrs.evolve(markers.request, coordinator_epoch=9)):
        assert role.marked(ending, "tid", wrong, done, now=33) == (ending, ())
    completing, (logged,) = role.marked(ending, "tid", markers.request, done, now=33)
    assert isinstance(logged, TransactionRecord)
    assert role.marked(completing, "tid", markers.request, done, now=33) == (completing, ())
    completed_, effects = role.appended(KIP_360.coordinator, completing, "tid", now=33)
    assert effects == (Answer(),) and completed_.transactions["tid"].pending_state is None
    assert role.marked(completed_, "tid", markers.request, done, now=34) == (completed_, ())


def test_refusal_waits_for_the_log_where_refusals_are_checked() -> None:
    """The last entry is logged again, as nobody's, and then told; or the log refuses it, and the client asks elsewhere.
    """
    checking = CHANGES["checked-refusals"].of(KIP_890_4_4, "checked").coordinator
    stale, asked = requests.EndTxnRequest(5, "tid", 7, 1, True), coordinator(OPEN)
    assert role.receive(KIP_890_4_4.coordinator, asked, stale, now=30) == (asked, (Answer(Error.PRODUCER_FENCED),))
    state, (logged,) = role.receive(checking, asked, stale, now=30)
    assert logged == TransactionRecord("tid", OPEN) and state.waiting["tid"].outcome.repeats
    assert state.transactions["tid"] == CachedTransaction(OPEN, S.ONGOING)
    assert role.appended(checking, state, "tid", now=31) == (asked, (Answer(Error.PRODUCER_FENCED),))
    assert role.append_failed(state, "tid", Error.NOT_COORDINATOR) == (asked, (Answer(Error.NOT_COORDINATOR),))
    wait = (Answer(Error.CONCURRENT_TRANSACTIONS),)
    prepared = coordinator(attrs.evolve(OPEN, state=S.PREPARE_COMMIT))
    assert role.receive(checking, prepared, stale, now=30) == (prepared, wait)
    older = CHANGES["checked-refusals"].of(KIP_360, "checked").coordinator
    assert role.receive(older, state, attrs.evolve(stale, version=3), now=30) == (state, wait)
    owner = attrs.evolve(stale, producer_epoch=3)
    assert entry_of(role.receive(checking, asked, owner, now=30)).state is S.PREPARE_COMMIT
    unknown = attrs.evolve(stale, transactional_id="other")
    assert role.receive(checking, asked, unknown, now=30) == (asked, (Answer(Error.INVALID_PRODUCER_ID_MAPPING),))


def test_transaction_is_complete_when_the_last_partition_has_its_marker() -> None:
    """Each leader answers for its own; the markers say of which version the end was."""
    two = attrs.evolve(OPEN, partitions=("T-0", "T-1"))
    for version, request, level in ((KIP_890_4_4, requests.EndTxnRequest(5, "tid", 7, 3, True), 2),
                                    (KIP_890_4_4, requests.EndTxnRequest(3, "tid", 7, 3, True), 0)):
        state, _ = role.receive(version.coordinator, coordinator(two), request, now=30)
        state, (_, markers) = role.appended(version.coordinator, state, "tid", now=30)
        assert isinstance(markers, Markers) and markers.request.transaction_version == level
        half, effects = role.marked(state, "tid", markers.request, FrozenMap({"T-0": Error.NONE}), now=31)
        assert effects == () and half.transactions["tid"].metadata.partitions == ("T-1",)
        assert entry_of(role.marked(half, "tid", markers.request, FrozenMap({"T-1": Error.NONE}), now=31))


def test_complete_that_the_log_refuses_is_appended_again_and_nothing_else_of_its_own() -> None:
    """`txnLogAppendRetryQueue` has Complete* only: an abort that a time-out began is given up, and times out again."""
    p, level = "__transaction_state-0", KIP_890.coordinator
    placement = Placement(("b1",), (), (), (), (), ("tid",), (p,))
    mine = TransactionCoordinator("b1", KIP_890, placement, OtherBrokers("b1", placement), times_out=True)
    state, _ = role.receive(level, coordinator(OPEN), requests.EndTxnRequest(3, "tid", 7, 3, True), now=30)
    state, (_, markers) = role.appended(level, state, "tid", now=30)
    assert isinstance(markers, Markers)
    complete = role.marked(state, "tid", markers.request, FrozenMap({"T-0": Error.NONE}), now=31)
    for (after, (logged,)), again in ((complete, (complete[1][0],)),
                                      (role.time_out(level, coordinator(OPEN), "tid", now=70), ())):
        assert isinstance(logged, TransactionRecord)
        local = Local.first("b1", COORDINATOR[p]).put(COORDINATOR[p], CoordinatorState(after))
        effect = mine.failed(local, p, EntryCallback("tid", None, None), Error.NOT_ENOUGH_REPLICAS, logged)
        assert (effect.local[COORDINATOR[p]].unfinished, effect.sent) == (again, ())


def test_what_time_does_and_when() -> None:
    """Only what is open times out, only what is at rest is forgotten, nothing that is pending; not a moment early."""
    assert role.times_out_at(OPEN) == 61
    soon = CoordinatorConfig(transactional_id_expiration_ms=30)
    assert [len(role.expire(coordinator(DONE, config=soon), "tid", now=now)[1]) for now in (49, 50)] == [0, 1]
    assert role.expire(coordinator(DONE, S.EMPTY, config=soon), "tid", now=50)[1] == ()
    loading = coordinator(DONE, loading=True)
    assert role.receive(KIP_360.coordinator, loading, INIT, now=30) == (
        loading, (Answer(Error.COORDINATOR_LOAD_IN_PROGRESS),))


@pytest.mark.parametrize(("version", "epoch", "answer"), [
    (KIP_98_0_11, 3, Error.NONE), (KIP_98, 4, Error.PRODUCER_FENCED), (KIP_360, 4, Error.PRODUCER_FENCED),
])
def test_time_out_fences_who_began_the_transaction_but_in_0_11(
    version: BrokerVersion, epoch: int, answer: Error
) -> None:
    """There the abort has the epoch that its producer has, who may go on with it (KAFKA-6119)."""
    entry = entry_of(role.time_out(version.coordinator, coordinator(OPEN), "tid", now=30))
    assert (entry.state, entry.producer_epoch) == (S.PREPARE_ABORT, epoch)
    aborted = attrs.evolve(entry, state=S.COMPLETE_ABORT, partitions=())
    going_on = requests.AddPartitionsToTxnRequest(3, "tid", 7, 3, ("T-1",))
    _, (effect,) = role.receive(version.coordinator, coordinator(aborted), going_on, now=40)
    found = effect.error if isinstance(effect, Answer) else Error.NONE
    assert found is answer
    assert entry_of(role.receive(version.coordinator, coordinator(OPEN), INIT, now=30)).producer_epoch == 4
