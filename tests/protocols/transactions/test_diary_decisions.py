"""Decisions of the diary's coordinators and elections at their bounds, which no run of the models comes to."""

from __future__ import annotations

import attrs
import pytest

from kafka_proto.requests import TxnState
from kafka_proto.transactions.decisions.coordinator import abort_fenced, add_partitions, epoch_bumped
from kafka_proto.transactions.decisions.election import deposed_leader_follows, every_replica_follows
from kafka_proto.transactions.records import AddPartitionsToTxnRequest, InitPidRequest, SpecError, TxnMetadata

REQUEST = InitPidRequest("tid1", source="c1", dest="b1")
ONGOING = TxnMetadata(1, 3, -1, TxnState.ONGOING, frozenset(("p1",)))


@pytest.mark.parametrize(("fenced_epoch", "is_refused"), [(2, True), (3, False), (4, False)])
def test_only_an_older_epoch_than_the_current_one_aborts_nothing(fenced_epoch: int, is_refused: bool) -> None:
    """`EndTransaction` refuses a fence whose epoch is below that of the metadata; an equal one prepares the abort."""
    fenced = attrs.evolve(ONGOING, pepoch=fenced_epoch, state=TxnState.PREPARE_EPOCH_FENCE)
    outcome = abort_fenced(REQUEST, ONGOING, fenced, None)
    if is_refused:
        assert outcome.entry is None and [message.code for message in outcome.answers] == [SpecError.PRODUCER_FENCED]
    else:
        assert outcome.entry is not None
        made = outcome.entry.transition
        assert (made.state, made.pepoch) == (TxnState.PREPARE_ABORT, fenced_epoch)


@pytest.mark.parametrize(("state", "error"), [
    (TxnState.PREPARE_COMMIT, SpecError.CONCURRENT_TRANSACTIONS), (TxnState.PREPARE_ABORT,
                                                                   SpecError.CONCURRENT_TRANSACTIONS),
    (TxnState.PREPARE_EPOCH_FENCE, SpecError.ILLEGAL_STATE), (TxnState.DEAD, SpecError.ILLEGAL_STATE),
])
def test_an_epoch_is_not_bumped_while_a_transaction_ends(state: TxnState, error: SpecError) -> None:
    """What is prepared ends first: ask again. In the states that no client may see, the request is illegal."""
    assert epoch_bumped(attrs.evolve(ONGOING, state=state), None) is error


@pytest.mark.parametrize(("state", "answer"), [
    (TxnState.ONGOING, None), (TxnState.COMPLETE_COMMIT, None),
    (TxnState.PREPARE_COMMIT, SpecError.CONCURRENT_TRANSACTIONS),
    (TxnState.PREPARE_ABORT, SpecError.CONCURRENT_TRANSACTIONS),
])
def test_partitions_are_not_added_to_what_is_prepared(state: TxnState, answer: SpecError | None) -> None:
    """The client asks again; an ongoing transaction takes them, and a complete one is followed by the next."""
    request = AddPartitionsToTxnRequest("tid1", 1, 3, frozenset(("p2",)), source="c1", dest="b1")
    outcome = add_partitions(request, leads=True, metadata=attrs.evolve(ONGOING, state=state), pending=None)
    assert [message.code for message in outcome.answers] == ([] if answer is None else [answer])
    assert (outcome.entry is None) == (answer is not None)


def test_who_was_elected_does_not_follow_itself() -> None:
    """The gist's guard: a broker behind the controller's epoch follows, but for the leader of that epoch."""
    assert every_replica_follows("b2", "b2", 1, "b1", 2) and not every_replica_follows("b1", "b2", 1, "b1", 2)
    assert not every_replica_follows("b2", "b1", 2, "b1", 2)
    assert deposed_leader_follows("b2", "b2", 1, "b1", 2) and not deposed_leader_follows("b3", "b2", 1, "b1", 2)
