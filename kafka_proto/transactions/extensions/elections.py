"""Extension actions of elections: the log hears of them when it does, and a broker may be late."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import View, slot
from harness.model.spec import Change, action, each
from kafka_proto.transactions.correspondence import LogMetadata
from kafka_proto.transactions.decisions import election
from kafka_proto.transactions.extensions.serving import (
    ExtendedNames,
    committed_log,
    ends_serving,
    given_up,
    now_serving,
    serves,
)
from kafka_proto.transactions.specs.diary_02 import elected, following, materialized


@action(
    "ElectFromLog", each("brokers", "txn_log_partitions"),
    reason="an elected broker loads the committed log, not its predecessor's memory; it may be gone before the log "
           "hears of it, or elected anew, since the log may not hear of an election in between",
)
def elect_from_log(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """As ElectLeader, but loading the log, and open to a leader that has stopped."""
    if view["aux_coord_ctr"] >= k.elections:
        return
    if view.at("tc_log_metadata", b, p).leader == b and serves(view, b, p):
        return
    known = election.replay(committed_log(view, b, p))
    writes = (*given_up(k, view, b, p), *elected(k, view, b, p, known.get))
    yield Change((*writes, *now_serving(k, b, p, True)))
    yield Change((*writes, *now_serving(k, b, p, False)), "gone")


@action(
    "TakeOverLate", each("brokers", "txn_log_partitions"),
    reason="a broker learns of its election, and loads, when somebody else is elected already",
)
def take_over_late(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """Lead in an epoch that is over and that nobody else leads; nothing commits in it."""
    known: LogMetadata = view.at("tc_log_metadata", b, p)
    if known.leader == b and serves(view, b, p):
        return
    others: list[LogMetadata] = [view.at("tc_log_metadata", other, p) for other in k.brokers]
    led_by_others = [other.cepoch for other in others if other.leader != b]
    loaded = election.replay(committed_log(view, b, p))
    for epoch in range(known.cepoch + 1, view.at("txn_log_epoch", p)):
        if epoch not in led_by_others:
            writes = ((slot("tc_log_metadata", b, p), LogMetadata(epoch, b)), *given_up(k, view, b, p))
            writes += (*now_serving(k, b, p, True), *materialized(k, view, b, p, loaded.get))
            yield Change(writes, str(epoch))


@action(
    "FollowLate", each("brokers", "txn_log_partitions"),
    reason="a broker learns of an epoch, and follows, when the next one has begun already",
)
def follow_late(k: ExtendedNames, view: View, b: str, p: str) -> Iterable[Change]:
    """As BecomeFollower, in an epoch that is over."""
    known: LogMetadata = view.at("tc_log_metadata", b, p)
    for epoch in range(known.cepoch + 1, view.at("txn_log_epoch", p)):
        for leader in k.brokers:
            if k.version.must_follow(b, known.leader, known.cepoch, leader, epoch):
                followed = following(k, view, b, p, LogMetadata(epoch, leader), f"{leader} {epoch}")
                yield ends_serving(followed, k, view, b, p)
