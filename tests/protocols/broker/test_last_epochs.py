"""Where epochs run out: what fences, ends and times out at the last epoch that is given, and at the one after it."""

from __future__ import annotations

import attrs
import pytest
from support.runs.one_transaction import INIT, ONGOING, ask, coordinator, entry_of, error_of

from harness.model import FrozenMap
from kafka_proto.broker import versions
from kafka_proto.broker.coordinator import coordinator as role
from kafka_proto.broker.coordinator.transaction import LAST_EPOCH, TxnState
from kafka_proto.broker.versions import BrokerVersion, version_of
from kafka_proto.log import MAX_EPOCH, Marker, ProducerState, marker_batch
from kafka_proto.requests import EndTxnRequest, Error

LEVEL_1 = version_of("4.4.0", 1)


@pytest.mark.parametrize(("version", "epoch", "producer_id"), [
    (versions.KIP_360, MAX_EPOCH, 7), (versions.KIP_890_4_2, MAX_EPOCH, 7), (versions.KIP_890_4_4, 0, 1000),
])
def test_time_out_at_the_last_epoch(version: BrokerVersion, epoch: int, producer_id: int) -> None:
    """The epoch after the last is for this; 4.3 switches to another producer id (KAFKA-20090)."""
    state = coordinator(attrs.evolve(ONGOING, producer_epoch=LAST_EPOCH, partitions=()))
    assert role.times_out_at(state.transactions["tid"].metadata) == 51
    state, _ = role.time_out(version.coordinator, state, "tid", now=51)
    state, _ = role.appended(version.coordinator, state, "tid", now=51)
    state, _ = role.appended(version.coordinator, state, "tid", now=51)
    known = state.transactions["tid"].metadata
    assert (known.state, known.producer_epoch, known.producer_id) == (TxnState.COMPLETE_ABORT, epoch, producer_id)


@pytest.mark.parametrize("version", [versions.KIP_360, versions.KIP_890_PART_1, versions.KIP_890, versions.KIP_890_4_2])
def test_nothing_ends_a_transaction_at_the_very_last_epoch_before_4_4(version: BrokerVersion) -> None:
    """A fence past it throws, and so does an EndTxn that bumps: UNKNOWN_SERVER_ERROR, and nothing changes."""
    state = coordinator(attrs.evolve(ONGOING, producer_epoch=MAX_EPOCH))
    bumping = [EndTxnRequest(5, "tid", 7, MAX_EPOCH, committed) for committed in (False, True)]
    for request in (INIT, attrs.evolve(INIT, producer_id=7, producer_epoch=MAX_EPOCH),
                    *(bumping if version in (versions.KIP_890, versions.KIP_890_4_2) else ())):
        after, effects = ask(version, state, request)
        assert after == state and error_of((after, effects)) is Error.UNKNOWN_SERVER_ERROR
    assert role.time_out(version.coordinator, state, "tid", now=51) == (state, ())
    failed = attrs.evolve(state.transactions["tid"], has_failed_epoch_fence=True)
    state = attrs.evolve(state, transactions=FrozenMap({"tid": failed}))
    assert error_of(ask(version, state, INIT)) is Error.UNKNOWN_SERVER_ERROR  # though this fence needs no other epoch


def test_kafka_20090_an_abort_keeps_the_very_last_epoch() -> None:
    """It switches to another producer id, where it is of a client that bumps; a commit throws still."""
    state = coordinator(attrs.evolve(ONGOING, producer_epoch=MAX_EPOCH))
    for version, request, following in ((versions.KIP_890_4_4, INIT, 1000), (LEVEL_1, INIT, -1),
                                        (versions.KIP_890_4_4, EndTxnRequest(5, "tid", 7, MAX_EPOCH, False), 1000)):
        entry = entry_of(ask(version, state, request))
        assert (entry.producer_epoch, entry.next_producer_id) == (MAX_EPOCH, following)
    for version in (versions.KIP_890_4_4, LEVEL_1):
        committed = EndTxnRequest(5, "tid", 7, MAX_EPOCH, True)
        assert error_of(ask(version, state, committed)) is Error.UNKNOWN_SERVER_ERROR


def test_kafka_19367_fence_at_the_last_epoch_overflows_in_4_0() -> None:
    """The second bump throws: the client is told UNKNOWN_SERVER_ERROR, and the epoch in the cache is the very last."""
    state, effects = ask(versions.KIP_890, coordinator(attrs.evolve(ONGOING, producer_epoch=LAST_EPOCH)), INIT)
    assert error_of((state, effects)) is Error.UNKNOWN_SERVER_ERROR
    known = state.transactions["tid"]
    assert (known.metadata.state, known.metadata.producer_epoch, known.pending_state) == (TxnState.ONGOING, MAX_EPOCH,
                                                                                         None)


def test_marker_at_the_very_last_epoch_need_not_be_above_since_4_4() -> None:
    """No epoch is above it; 4.2 refuses the marker, and up to 4.0 none has to be above."""
    known, marker = ProducerState(MAX_EPOCH, (), 2, open_from=0), marker_batch(7, MAX_EPOCH, Marker.ABORT, 2)
    for version, error in ((versions.KIP_890, Error.NONE), (versions.KIP_890_4_2, Error.INVALID_PRODUCER_EPOCH),
                           (versions.KIP_890_4_4, Error.NONE), (LEVEL_1, Error.NONE)):
        assert version.leader.check_marker(known, marker, 2) is error
    for version in (versions.KIP_890_4_2, versions.KIP_890_4_4):
        below = marker_batch(7, LAST_EPOCH, Marker.ABORT, 2)
        assert version.leader.check_marker(known, below, 2) is Error.INVALID_PRODUCER_EPOCH
        same = attrs.evolve(known, producer_epoch=LAST_EPOCH)
        assert version.leader.check_marker(same, below, 2) is Error.INVALID_PRODUCER_EPOCH
        assert version.leader.check_marker(same, marker, 2) is Error.NONE
