"""What a follower does: it finds out where to truncate its log, then fetches record after record.

Every function takes the replica's constants and state, and returns a `ReplicaOutcome`.
"""

from __future__ import annotations

import attrs

from kafka_proto.errors import Error
from kafka_proto.log.chunks import Chunks, longer
from kafka_proto.replication import high_watermark as hw
from kafka_proto.replication import truncation
from kafka_proto.replication.messages import (
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from kafka_proto.replication.records import last_epoch
from kafka_proto.replication.replica_state import Replica, ReplicaOutcome, ReplicaState, Response, then, truncated


def keep_log(k: Replica, s: ReplicaState, announced: LeaderAndIsrRequest) -> ReplicaOutcome:
    """KIP-320's first try: follow with the log one has, until a fetch fails."""
    return follow_from(k, s, announced, len(s.log))


def truncate_to_high_watermark(k: Replica, s: ReplicaState, announced: LeaderAndIsrRequest) -> ReplicaOutcome:
    """Before KIP-101: follow from the own high watermark."""
    return follow_from(k, s, announced, s.high_watermark)


def ask_where_to_truncate(k: Replica, s: ReplicaState, announced: LeaderAndIsrRequest) -> ReplicaOutcome:
    """KIP-101 and later: follow once it is known where to truncate; a follower with an empty log need not ask."""
    if not s.log:
        return follow_from(k, s, announced, 0)
    return look_up(k, attrs.evolve(s, becoming=announced, cut=len(s.log)), announced)


def ask_unless_same_leader(k: Replica, s: ReplicaState, announced: LeaderAndIsrRequest) -> ReplicaOutcome:
    """RP-09 (KAFKA-7164): ask, unless the leader is the one that was followed already."""
    same = s.active and announced.leader == s.leader
    return keep_log(k, s, announced) if same else ask_where_to_truncate(k, s, announced)


def ask_unless_next_epoch(k: Replica, s: ReplicaState, announced: LeaderAndIsrRequest) -> ReplicaOutcome:
    """Kafka since KAFKA-7164: ask, unless that leader goes on in the next epoch."""
    next_epoch = announced.leader_epoch == s.leader_epoch + 1
    return ask_unless_same_leader(k, s, announced) if next_epoch else ask_where_to_truncate(k, s, announced)


def follow_from(k: Replica, s: ReplicaState, announced: LeaderAndIsrRequest, offset: int) -> ReplicaOutcome:
    """Cut the log to an offset, where it is longer, and follow."""
    end_offset = min(offset, len(s.log))
    after = attrs.evolve(
        truncated(s, end_offset), leader=announced.leader, leader_epoch=announced.leader_epoch, isr=announced.isr,
        partition_epoch=announced.partition_epoch, active=True, becoming=None, cut=0, request=None,
    )
    return then(ReplicaOutcome(after, detail=f"from {end_offset}", flush=True), fetch(k, after))


def look_up(k: Replica, s: ReplicaState, announced: LeaderAndIsrRequest) -> ReplicaOutcome:
    """Ask the leader where its log leaves the epoch of the last record that is kept so far."""
    assert announced.leader is not None
    request = k.to(
        announced.leader, OffsetsForLeaderEpochRequest, leader_epoch=last_epoch(s.log[: s.cut]),
        current_leader_epoch=announced.leader_epoch, broker_epoch=s.broker_epoch, correlation=s.correlation + 1,
    )
    after = attrs.evolve(s, request=request, correlation=request.correlation)
    return ReplicaOutcome(after, (request,), detail=f"asks for epoch {request.leader_epoch}")


def learn_end_offset(k: Replica, s: ReplicaState, response: OffsetsForLeaderEpochResponse) -> ReplicaOutcome:
    """Take the answer to a look-up as the version has it, unless it is late or an error."""
    if not is_awaited(s, response) or s.becoming is None:
        return ReplicaOutcome(s, detail="not awaited")
    if response.error is not Error.NONE:
        return ReplicaOutcome(attrs.evolve(s, request=None), detail=response.error)
    return k.version.learn_end_offset(k, s, response, s.becoming)


def truncate_to_end_offset(
    k: Replica, s: ReplicaState, response: OffsetsForLeaderEpochResponse, announced: LeaderAndIsrRequest
) -> ReplicaOutcome:
    """KIP-101: cut the log by the answer, or to the own high watermark where the leader cannot tell."""
    return follow_from(k, s, announced, truncation.or_high_watermark(response.answer, s.high_watermark))


def truncate_or_ask_again(
    k: Replica, s: ReplicaState, response: OffsetsForLeaderEpochResponse, announced: LeaderAndIsrRequest
) -> ReplicaOutcome:
    """KIP-279: cut the log by the answer, or look up again until the logs are known to match."""
    assert response.answer is not None
    cut, matched = truncation.narrowed(s.log[: s.cut], response.answer)
    if matched:
        return follow_from(k, s, announced, cut)
    return look_up(k, attrs.evolve(s, cut=cut), announced)


def fetch(k: Replica, s: ReplicaState) -> ReplicaOutcome:
    """Ask the leader for the record at the own end offset; without a leader there is no replica to ask."""
    if s.leader is None or s.leader == k.name:
        return ReplicaOutcome(s)
    request = k.to(
        s.leader, FetchRequest, fetch_offset=len(s.log), current_leader_epoch=s.leader_epoch,
        last_fetched_epoch=last_epoch(s.log), high_watermark=s.high_watermark, broker_epoch=s.broker_epoch,
        correlation=s.correlation + 1,
        log_start_offset=s.log.start.offset if isinstance(s.log, Chunks) and s.log.start is not None else None,
    )
    return ReplicaOutcome(attrs.evolve(s, request=request, correlation=request.correlation), (request,))


def apply_fetch(k: Replica, s: ReplicaState, response: FetchResponse) -> ReplicaOutcome:
    """Append the record that was fetched and take the high watermark over (`FollowerReplicate`), then fetch on.

    Where the fetch has failed, cut the log by what the leader said of it (`FollowerTruncate`).
    """
    if not is_awaited(s, response):
        return ReplicaOutcome(s, detail="not awaited")
    if response.error is Error.DIVERGING_EPOCH:
        assert response.diverging_epoch is not None
        cut, _ = truncation.narrowed(s.log, response.diverging_epoch)
        after = k.version.truncate_as_told(s, response, cut)
        return then(ReplicaOutcome(after, detail=f"truncates to {cut}", flush=True), fetch(k, after))
    if response.error is not Error.NONE:
        return ReplicaOutcome(attrs.evolve(s, request=None), detail=response.error)
    entries = s.log if response.entry is None else longer(s.log, response.entry)
    if isinstance(entries, Chunks):
        entries = entries.extended(response.more or ())
        entries = entries if response.gone is None else entries.begun(response.gone)
    after = attrs.evolve(s, log=entries, high_watermark=hw.after_fetch(response.high_watermark, len(entries)))
    flush = k.flushes_each and entries is not s.log
    return then(ReplicaOutcome(after, detail=f"end offset {len(entries)}", flush=flush), fetch(k, after))


def truncate_as_told(s: ReplicaState, response: FetchResponse, end_offset: int) -> ReplicaState:
    """Cut the log to where the leader's answer says."""
    return truncated(s, end_offset)


def raise_before_truncating(s: ReplicaState, response: FetchResponse, end_offset: int) -> ReplicaState:
    """RP-14 (KAFKA-14704): take the leader's high watermark over first; cut the log when told so again."""
    raised = hw.after_fetch(response.high_watermark, len(s.log))
    return attrs.evolve(s, high_watermark=raised) if raised > s.high_watermark else truncated(s, end_offset)


def is_awaited(s: ReplicaState, response: Response) -> bool:
    """Say whether a response is to the request that is out, rather than to an older one."""
    return s.request is not None and (response.broker_epoch, response.correlation) == (
        s.request.broker_epoch, s.request.correlation
    )
