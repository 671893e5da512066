"""What running leaders and controllers do beyond the module AsyncIsr: named extension actions, with reasons.

As with `extensions`: they are switched on by `--set extend=...`, the invariants are still proved with all of them on,
and with none the state graph is the published one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from harness.model import View, slot
from harness.model.spec import Change, Index, Next, Writes, action, each
from kafka_proto.replication.records import NIL, members
from kafka_proto.replication.specs.async_isr import AsyncIsrNames, high_watermark, leader_request, offset_of


def several_followers(k: AsyncIsrNames) -> Iterable[Index]:
    """Yield the sets of two or more followers."""
    for size in range(2, len(k.followers) + 1):
        yield from combinations(k.followers, size)


@action(
    "EarlyExpandIsr", exists=each("followers"),
    reason="a leader's high watermark rises by steps of its own, so it may be behind what it lets rise",
)
def early_expand_isr(k: AsyncIsrNames, view: View, replica: str) -> Iterable[Change]:
    """The leader proposes a replica that is below where its high watermark could be, but not yet is."""
    isr = view.at("leaderState", "isr")
    if replica not in isr and offset_of(view, replica) < high_watermark(k, view):
        yield Change(leader_request(view, isr | {replica}), replica)


@action(
    "ShrinkIsrByMany", exists=several_followers,
    reason="a leader proposes to go on without all who lag, in one proposal",
)
def shrink_isr_by_many(k: AsyncIsrNames, view: View, *lagging: str) -> Iterable[Change]:
    """The leader proposes to take several followers out."""
    isr, out = view.at("leaderState", "isr"), frozenset(lagging)
    if out <= isr:
        yield Change(leader_request(view, isr - out), members(out))


@action(
    "LapseRequests", exists=each("followers"),
    reason="who was started again is not meant by what is proposed for it as it was before (KIP-903)",
)
def lapse_requests(k: AsyncIsrNames, view: View, replica: str) -> Iterable[Change]:
    """A replica that is not in sync was started again: the controller will refuse what proposes it as it was."""
    version, isr = view.at("controllerState", "version"), view.at("controllerState", "isr")
    lapsed = frozenset(r for r in view["requests"] if r.version == version and replica in r.isr)
    if replica not in isr and lapsed:
        yield Change((("requests", view["requests"] - lapsed),), replica)


@action(
    "ForgetPendingIsr",
    reason="a leader that is refused forgets its proposal, and those whom it proposed do not count",
)
def forget_pending_isr(k: AsyncIsrNames, view: View) -> Iterable[Change]:
    """The leader hears that what it has proposed for the version that it knows will not be."""
    pending = view.at("leaderState", "pendingVersion")
    if pending != NIL and all(request.version != pending for request in view["requests"]):
        writes: Writes = (
            (slot("leaderState", "pendingIsr"), frozenset()), (slot("leaderState", "pendingVersion"), NIL),
        )
        yield Change(writes, f"of version {pending}")


ACTIONS: Next = (early_expand_isr, shrink_isr_by_many, lapse_requests, forget_pending_isr)
