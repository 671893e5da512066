"""What a leader does: it answers followers, appends, raises its high watermark and proposes changes of the ISR.

Every function takes the replica's constants and state, and returns a `ReplicaOutcome`, or says whether it may.
"""

from __future__ import annotations

import attrs

from harness.model import FrozenMap, Message, Value
from kafka_proto.errors import Error
from kafka_proto.log import PartitionLog
from kafka_proto.log.chunks import UNTOLD, Chunks, LogStart, longer
from kafka_proto.replication import high_watermark as hw
from kafka_proto.replication import isr as in_sync
from kafka_proto.replication import messages, truncation
from kafka_proto.replication.records import Isr, ReplicaEntry, members, offset_at, record_at
from kafka_proto.replication.replica_state import (
    Completed,
    Fetched,
    Follower,
    Replica,
    ReplicaOutcome,
    ReplicaState,
    Request,
    Response,
    leads,
    then,
)

MOST_FETCHED = 1_000
"""Records that a follower on a broker that runs is sent at once."""


def become_leader(k: Replica, s: ReplicaState, announced: messages.LeaderAndIsrRequest) -> ReplicaOutcome:
    """Lead from now on, with the high watermark one has; of followers nothing is known (`BecomeLeader`)."""
    after = attrs.evolve(
        s, leader=announced.leader, leader_epoch=announced.leader_epoch, isr=announced.isr,
        partition_epoch=announced.partition_epoch, active=True, becoming=None, request=None,
        followers=FrozenMap(), proposal=None,
    )
    return serve(k, after)


def ask(k: Replica, s: ReplicaState, request: Request) -> ReplicaOutcome:
    """A follower asks: answer now, or when there is an answer. A request that was overtaken is dropped."""
    newest = s.parked.get(request.source) or s.followers.get(request.source)
    sent = (request.broker_epoch, request.correlation)
    if newest is not None and sent < (newest.broker_epoch, newest.correlation):
        return ReplicaOutcome(s, detail="overtaken")
    return serve(k, s, request)


def serve(k: Replica, s: ReplicaState, *new: Request) -> ReplicaOutcome:
    """Answer what can be answered of new requests and of those that are parked; the others are parked from now on."""
    parked, followers, sent = s.parked, s.followers, list[Message]()
    for request in new:
        parked = parked.set(request.source, request)
    for follower, request in parked.items() if leads(k, s) else ():
        heard, reply = answer(k, s, request)
        if heard is not None and heard != followers.get(follower):
            followers = followers.set(follower, heard)
        if reply is not None:
            sent.append(reply)
            parked = parked.without(follower)
    changed = new or sent or followers is not s.followers
    return ReplicaOutcome(attrs.evolve(s, parked=parked, followers=followers) if changed else s, tuple(sent))


def answer(k: Replica, s: ReplicaState, request: Request) -> tuple[Follower | None, Response | None]:
    """Return what a request tells of a follower, None if that does not count, and the answer, None for now.

    KIP-320 fences: a follower in an older epoch is refused, one in a newer epoch waits until that is known here.
    """
    is_fetch = isinstance(request, messages.FetchRequest)
    fences = k.version.fences if is_fetch else k.version.fences_look_ups
    fenced = fences and request.current_leader_epoch != s.leader_epoch
    if fenced and request.current_leader_epoch > s.leader_epoch:
        return None, None
    error = Error.FENCED_LEADER_EPOCH if fenced else Error.NONE
    if isinstance(request, messages.FetchRequest):
        return (None, fetched(k, s, request, error)) if fenced else k.version.answer_fetch(k, s, request)
    return None, k.to(
        request.source, messages.OffsetsForLeaderEpochResponse, error=error, broker_epoch=request.broker_epoch,
        answer=None if fenced else k.version.look_up(s.log, request.leader_epoch), correlation=request.correlation,
    )


def answer_fetch(k: Replica, s: ReplicaState, fetch: messages.FetchRequest) -> Fetched:
    """Hear how far a follower is, and answer its fetch if there is a record, a newer high watermark or an error."""
    heard = Follower(fetch.fetch_offset, fetch.broker_epoch, fetch.correlation)
    if fetch.log_start_offset == UNTOLD:
        return None, attrs.evolve(fetched(k, s, fetch, Error.NONE), gone=begun_at(s, fetch.fetch_offset))
    if (gone := more_gone(s, fetch)) is not None:
        return heard, attrs.evolve(fetched(k, s, fetch, Error.NONE), gone=gone)
    if (at := fetch.fetch_offset) < len(s.log):
        more = tuple(s.log.between(at + 1, at + MOST_FETCHED)) if isinstance(s.log, Chunks) else ()
        return heard, attrs.evolve(fetched(k, s, fetch, Error.NONE, s.log[at]), more=more or None)
    if hw.after_fetch(s.high_watermark, fetch.fetch_offset) > fetch.high_watermark:
        return heard, fetched(k, s, fetch, Error.NONE)
    return heard, None


def answer_fetch_unless_diverging(k: Replica, s: ReplicaState, fetch: messages.FetchRequest) -> Fetched:
    """KIP-320's first try: as above, unless the follower has to truncate first."""
    if not truncation.diverges(s.log, fetch.fetch_offset, fetch.last_fetched_epoch):
        return answer_fetch(k, s, fetch)
    answer = fetched(k, s, fetch, Error.DIVERGING_EPOCH)
    return None, attrs.evolve(answer, diverging_epoch=truncation.largest_epoch(s.log, fetch.last_fetched_epoch))


def answer_fetch_counting_diverging(k: Replica, s: ReplicaState, fetch: messages.FetchRequest) -> Fetched:
    """RP-14 (KAFKA-13141): as above, but hear the end offset of a follower that has to truncate, too."""
    heard, answer = answer_fetch_unless_diverging(k, s, fetch)
    return heard or Follower(fetch.fetch_offset, fetch.broker_epoch, fetch.correlation), answer


def more_gone(s: ReplicaState, fetch: messages.FetchRequest) -> Chunks[ReplicaEntry] | None:
    """Return what a leader has forgotten of its log, if its log begins after the follower's."""
    if not isinstance(s.log, Chunks) or (start := s.log.start) is None or (
            fetch.log_start_offset is not None and fetch.log_start_offset >= start.offset):
        return None
    return s.log[:start.place]


def begun_at(s: ReplicaState, place: int) -> Chunks[ReplicaEntry] | None:
    """Return what a follower has forgotten whose log was cut below its start: all, up to a place of the leader's."""
    if not isinstance(s.log, Chunks):
        return None
    if place < s.log.gone:
        return s.log[:s.log.gone]
    offset = offset_at(s.log, place)
    start = LogStart(place, offset, PartitionLog(
        log_start_offset=offset, log_end_offset=offset, high_watermark=offset))
    return attrs.evolve(s.log[:place], start=None).forget(start, lambda entry: attrs.evolve(entry, value=None))


def fetched(
    k: Replica, s: ReplicaState, fetch: messages.FetchRequest, error: Error, entry: ReplicaEntry | None = None
) -> messages.FetchResponse:
    """Return the answer to a fetch."""
    return k.to(
        fetch.source, messages.FetchResponse, error=error, entry=entry, high_watermark=s.high_watermark,
        broker_epoch=fetch.broker_epoch, correlation=fetch.correlation,
    )


def may_append(k: Replica, s: ReplicaState, acks: str) -> Error:
    """Say why a record is not appended, or `NONE`."""
    if not leads(k, s):
        return Error.NOT_LEADER_OR_FOLLOWER
    if acks == "all" and not has_enough_in_sync(k, s):
        return Error.NOT_ENOUGH_REPLICAS
    return Error.NONE


def has_enough_in_sync(k: Replica, s: ReplicaState) -> bool:
    """Say whether the ISR is as large as `min.insync.replicas` asks."""
    return len(s.isr) >= k.min_insync_replicas


def append(k: Replica, s: ReplicaState, value: Value, acks: str, callback: Value) -> ReplicaOutcome:
    """Append a record in the own epoch (`LeaderWrite`).

    With `acks` of `1` the waiting client is answered at once, with `all` when the high watermark passes the record.
    With `0` no client waits.
    """
    error = may_append(k, s, acks)
    if error is not Error.NONE:
        return ReplicaOutcome(s, completed=(Completed(callback, error, -1),), detail=error)
    offset = len(s.log)
    waits = ((offset, callback),) if acks == "all" else ()
    after = attrs.evolve(s, log=longer(s.log, ReplicaEntry(s.leader_epoch, value)), callbacks=s.callbacks + waits)
    done = (Completed(callback, Error.NONE, offset),) if acks == "1" else ()
    return then(ReplicaOutcome(after, (), done, f"offset {offset}", flush=k.flushes_each), serve(k, after))


def may_increase_high_watermark(k: Replica, s: ReplicaState) -> bool:
    """Say whether all that count hold the record at the high watermark (`LeaderIncHighWatermark`)."""
    if not leads(k, s) or s.high_watermark >= len(s.log):
        return False
    pending = s.proposal.new_isr if s.proposal is not None else frozenset()
    who = k.version.counted(s.isr, pending)
    ends = (len(s.log) if replica == k.name else known_end_offset(s, replica) for replica in sorted(who))
    return hw.may_pass(s.high_watermark, ends)


def known_end_offset(s: ReplicaState, follower: str) -> int | None:
    """Return up to where a follower is known to hold the log, None if it was not heard of in this epoch."""
    heard = s.followers.get(follower)
    return None if heard is None else heard.end_offset


def increase_high_watermark(k: Replica, s: ReplicaState) -> ReplicaOutcome:
    """Pass one record, complete what waits for it, and tell the followers that wait for news."""
    offset = s.high_watermark + 1
    error = Error.NONE if has_enough_in_sync(k, s) else Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    done = tuple(Completed(callback, error, at) for at, callback in s.callbacks if at < offset)
    after = attrs.evolve(
        s, high_watermark=offset, callbacks=tuple(waiting for waiting in s.callbacks if waiting[0] >= offset)
    )
    return then(ReplicaOutcome(after, (), done, f"to {offset}"), serve(k, after))


def may_expand_isr(k: Replica, s: ReplicaState, follower: str) -> bool:
    """Say whether a leader may propose to let a follower in (`LeaderExpandIsr` and its kin)."""
    if not leads(k, s) or s.proposal is not None or follower in s.isr:
        return False
    end = known_end_offset(s, follower)
    return end is not None and k.version.may_expand(end, s.high_watermark, s.log, s.leader_epoch)


def may_shrink_isr(k: Replica, s: ReplicaState, follower: str) -> bool:
    """Say whether a leader may propose to take a follower out: it lags, or is not heard of (`LeaderShrinkIsr`)."""
    if not leads(k, s) or s.proposal is not None or follower not in s.isr or follower == k.name:
        return False
    end_offset = known_end_offset(s, follower)
    return end_offset is None or end_offset < len(s.log)


def lagging(k: Replica, s: ReplicaState) -> Isr:
    """Return the followers that hold up the high watermark: those that may be taken out while something waits."""
    if s.high_watermark >= len(s.log):
        return frozenset()
    return frozenset(follower for follower in s.isr if may_shrink_isr(k, s, follower))


def propose_isr(k: Replica, s: ReplicaState, isr: Isr) -> ReplicaOutcome:
    """Propose an ISR to the controller. From now on the proposed members count, too (KIP-497)."""
    known = {follower: heard.broker_epoch for follower, heard in s.followers.items() if follower in isr}
    proposal = k.to(
        k.controller, messages.AlterPartitionRequest, leader_epoch=s.leader_epoch, new_isr=isr,
        partition_epoch=s.partition_epoch, broker_epochs=FrozenMap({**known, k.name: s.broker_epoch}),
    )
    return ReplicaOutcome(attrs.evolve(s, proposal=proposal), (proposal,), detail=members(isr))


def learn_isr(k: Replica, s: ReplicaState, answer: messages.AlterPartitionResponse) -> ReplicaOutcome:
    """Learn what the controller made of a proposal: a newer ISR, or that it refuses a member that was started again."""
    if not leads(k, s) or answer.leader_epoch != s.leader_epoch:
        return ReplicaOutcome(s, detail=f"epoch {answer.leader_epoch} is over")
    if answer.partition_epoch > s.partition_epoch:
        after = attrs.evolve(s, isr=answer.isr, partition_epoch=answer.partition_epoch, proposal=None)
        return ReplicaOutcome(after, detail=members(answer.isr), flush=True)
    if s.proposal is not None and (answer.proposed, answer.refused) == (s.partition_epoch, s.proposal.broker_epochs):
        strangers = s.proposal.new_isr - s.isr
        heard = FrozenMap({name: known for name, known in s.followers.items() if name not in strangers})
        return ReplicaOutcome(attrs.evolve(s, proposal=None, followers=heard), detail=answer.error)
    return ReplicaOutcome(s, detail=f"{answer.error}, nothing new")


def serves_consumers(k: Replica, s: ReplicaState) -> bool:
    """KIP-207: say whether a leader's high watermark has reached its epoch, so that it never goes back for readers."""
    return leads(k, s) and in_sync.is_in_current_epoch(s.high_watermark, s.log, s.leader_epoch)


def read(k: Replica, s: ReplicaState, offset: int) -> tuple[Error, ReplicaEntry | None]:
    """Return the record at an offset for a consumer, None if the high watermark is not above it, or an error."""
    if not leads(k, s):
        return Error.NOT_LEADER_OR_FOLLOWER, None
    if not serves_consumers(k, s):
        return Error.OFFSET_NOT_AVAILABLE, None
    return Error.NONE, record_at(s.log, offset) if offset < s.high_watermark else None
