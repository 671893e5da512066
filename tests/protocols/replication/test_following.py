"""What a follower does when it is told: whom it follows, and where it truncates its log."""

from __future__ import annotations

import pytest

from kafka_proto.errors import Error
from kafka_proto.log.chunks import LogStart, chunks
from kafka_proto.replication import messages
from kafka_proto.replication.following import raise_before_truncating
from kafka_proto.replication.leading import more_gone, serves_consumers
from kafka_proto.replication.partition import take_office
from kafka_proto.replication.records import ReplicaEntry
from kafka_proto.replication.replica_state import Replica, ReplicaState
from kafka_proto.replication.versions import VERSIONS

LOG = tuple(ReplicaEntry(f"v{n}", 1) for n in range(4))


@pytest.mark.parametrize(("leaders", "high_watermark", "end_offset"), [(3, 3, 4), (1, 1, 2), (0, 1, 2)])
def test_rp_14_truncates_when_the_high_watermark_is_no_news(
    leaders: int, high_watermark: int, end_offset: int
) -> None:
    """The flaw takes a higher one over and cuts nothing; told again, it is no news, and the log is cut."""
    s = ReplicaState(log=LOG, high_watermark=1)
    answer = messages.FetchResponse(Error.DIVERGING_EPOCH, None, leaders, 0, 1, source="r1", dest="r2")
    after = raise_before_truncating(s, answer, 2)
    assert (after.high_watermark, after.end_offset) == (high_watermark, end_offset)


@pytest.mark.parametrize(("leader", "said"), [("r1", "follows r1 epoch 2"), (None, "follows nobody epoch 2")])
def test_who_is_followed_is_said(leader: str | None, said: str) -> None:
    """A partition may be without a leader: its replicas keep their logs."""
    announced = messages.LeaderAndIsrRequest(leader, 2, frozenset(("r1",)), 3, 0, source="controller", dest="r2")
    outcome = take_office(Replica("r2", VERSIONS["kip-320"]), ReplicaState(log=LOG, leader_epoch=1), announced)
    assert outcome.detail.startswith(said) and outcome.state.log == LOG


@pytest.mark.parametrize(("leader", "high_watermark", "serves"), [("r1", 4, True), ("r1", 0, False), ("r2", 4, False)])
def test_only_a_leader_with_a_record_of_its_epoch_below_the_high_watermark_serves_consumers(
    leader: str, high_watermark: int, serves: bool
) -> None:
    """KIP-207: readers never see the high watermark go back; who does not lead serves nobody."""
    s = ReplicaState(log=LOG, high_watermark=high_watermark, leader=leader, leader_epoch=1, active=True)
    assert serves_consumers(Replica("r1", VERSIONS["kip-320"]), s) is serves


@pytest.mark.parametrize(("start", "is_more"), [(None, True), (0, True), (2, False), (3, False)])
def test_a_follower_is_told_what_is_gone_unless_its_log_begins_there_too(start: int | None, is_more: bool) -> None:
    """A follower that does not know where its log begins has everything still, or nothing."""
    log = chunks(LOG).forget(LogStart(2, 2, None), lambda entry: entry)
    fetch = messages.FetchRequest(4, 1, 1, 0, 0, 1, log_start_offset=start, source="r2", dest="r1")
    gone = more_gone(ReplicaState(log=log), fetch)
    assert (gone is not None) is is_more and (gone is None or len(gone) == 2)
