"""AsyncIsr, the companion of KIP-497: the leader proposes ISR changes to the controller and hears of them later.

The leader is fixed, replicas are their offsets, requests and updates stay for ever and may be handled late or never.
The module has neither bounds nor a fairness formula; `constraint` bounds it as the runs of the model checker do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import cast

import attrs

from harness.model import Kind, Property, Reason, Step, Value, View, always, departed, slot, sometimes
from harness.model.spec import Change, Next, Writes, action, each
from kafka_proto.replication import high_watermark as hw
from kafka_proto.replication.records import NIL, Isr, members
from kafka_proto.replication.specs.names import replicas
from kafka_proto.replication.versions import COUNTS, DEPARTURES

LEADER = "r1"
CHECKED = ("MCTypeOk", "ValidHighWatermark")
"""The invariants that are checked where nothing else is asked for: TypeOk is false in the initial state."""


@attrs.frozen
class IsrMessage:
    """A proposal of the leader (`requests`) or a decision of the controller (`updates`): an ISR and a version."""

    isr: Isr
    version: int


@attrs.frozen
class AsyncIsrNames:
    """The constants of a model. The two bounds belong to the constraint, not to the module."""

    replicas: tuple[str, ...]
    max_version: int
    max_offset: int
    counted: Callable[[Isr, Isr], Isr] = hw.counted
    """Whom the high watermark is about, from the ISR and the proposed one."""

    @property
    def followers(self) -> tuple[str, ...]:
        return tuple(replica for replica in self.replicas if replica != LEADER)


def initial(k: AsyncIsrNames) -> dict[str, Value]:
    """The initial state (`Init`): everybody is in sync, and nothing is written, proposed or decided."""
    state: dict[str, Value] = {"requests": frozenset(), "updates": frozenset()}
    for side in ("controllerState", "leaderState"):
        state[slot(side, "isr")] = frozenset(k.replicas)
        state[slot(side, "version")] = 0
    state[slot("leaderState", "pendingIsr")] = frozenset()
    state[slot("leaderState", "pendingVersion")] = NIL
    for replica in k.replicas:
        state[slot("leaderState", "offsets", replica)] = 0
    return state


def offset_of(view: View, replica: str) -> int:
    """Read up to where the leader knows a replica to be."""
    return cast(int, view.at("leaderState", "offsets", replica))


def high_watermark(k: AsyncIsrNames, view: View) -> int:
    """The lowest offset of those that count (`HighWatermark`): a proposed member does from then on (or not: RP-10)."""
    counted = k.counted(view.at("leaderState", "isr"), view.at("leaderState", "pendingIsr"))
    return min(offset_of(view, replica) for replica in sorted(counted))


@action("ControllerShrinkIsr", exists=each("followers"), kind=Kind.PERTURBATION)
def controller_shrink_isr(k: AsyncIsrNames, view: View, replica: str) -> Iterable[Change]:
    """A follower fails."""
    isr = view.at("controllerState", "isr")
    if replica in isr:
        yield Change(controller_write_isr(view, isr - {replica}), replica)


def controller_write_isr(view: View, isr: Isr) -> Writes:
    """A new version of the ISR, and the update that says so (`ControllerWriteIsr`)."""
    version = view.at("controllerState", "version") + 1
    return (
        (slot("controllerState", "isr"), isr),
        (slot("controllerState", "version"), version),
        ("updates", view["updates"] | {IsrMessage(isr, version)}),
    )


@action("ControllerHandleRequest")
def controller_handle_request(k: AsyncIsrNames, view: View) -> Iterable[Change]:
    """A proposal is accepted if the leader knew the current version."""
    version = view.at("controllerState", "version")
    for request in in_order(view["requests"]):
        if request.version == version:
            writes = controller_write_isr(view, request.isr)
            yield Change(writes, brief(request))


@action("LeaderRequestShrinkIsr", exists=each("followers"))
def leader_request_shrink_isr(k: AsyncIsrNames, view: View, replica: str) -> Iterable[Change]:
    """The leader proposes to take a follower out, for whatever reason."""
    isr = view.at("leaderState", "isr")
    if replica in isr:
        yield Change(leader_request(view, isr - {replica}), replica)


@action("LeaderRequestExpandIsr", exists=each("followers"))
def leader_request_expand_isr(k: AsyncIsrNames, view: View, replica: str) -> Iterable[Change]:
    """The leader proposes to let a replica in that has reached the high watermark."""
    isr = view.at("leaderState", "isr")
    if replica not in isr and offset_of(view, replica) >= high_watermark(k, view):
        yield Change(leader_request(view, isr | {replica}), replica)


def leader_request(view: View, isr: Isr) -> Writes:
    """A proposal, and what the leader takes into account from now on."""
    version = view.at("leaderState", "version")
    return (
        ("requests", view["requests"] | {IsrMessage(isr, version)}),
        (slot("leaderState", "pendingIsr"), view.at("leaderState", "pendingIsr") | isr),
        (slot("leaderState", "pendingVersion"), version),
    )


@action("LeaderWrite")
def leader_write(k: AsyncIsrNames, view: View) -> Iterable[Change]:
    """The leader's own offset moves."""
    offset = offset_of(view, LEADER) + 1
    yield Change(((slot("leaderState", "offsets", LEADER), offset),), f"{LEADER} to {offset}")


@action("LeaderHandleUpdate")
def leader_handle_update(k: AsyncIsrNames, view: View) -> Iterable[Change]:
    """The leader learns of a newer ISR and forgets what it has proposed."""
    version = view.at("leaderState", "version")
    for update in in_order(view["updates"]):
        if update.version > version:
            writes: Writes = (
                (slot("leaderState", "isr"), update.isr),
                (slot("leaderState", "version"), update.version),
                (slot("leaderState", "pendingIsr"), frozenset()),
                (slot("leaderState", "pendingVersion"), NIL),
            )
            yield Change(writes, brief(update))


@action("FollowerReplicate", exists=each("followers"))
def follower_replicate(k: AsyncIsrNames, view: View, replica: str) -> Iterable[Change]:
    """A follower that is behind the leader moves on."""
    offset = offset_of(view, replica)
    if offset < offset_of(view, LEADER):
        writes = ((slot("leaderState", "offsets", replica), offset + 1),)
        yield Change(writes, replica)


def in_order(messages: Iterable[IsrMessage]) -> list[IsrMessage]:
    return sorted(messages, key=lambda message: (message.version, sorted(message.isr)))


def brief(message: IsrMessage) -> str:
    return f"version {message.version} {members(message.isr)}"


NEXT: Next = (
    controller_shrink_isr,
    controller_handle_request,
    leader_request_shrink_isr,
    leader_request_expand_isr,
    leader_write,
    leader_handle_update,
    follower_replicate,
)
"""The next-state relation: a step of any of these."""


def constraint(k: AsyncIsrNames) -> Callable[[View], bool]:
    """Return what says whether a state is kept: the controller's version and every offset within their bounds."""

    def within(view: View) -> bool:
        if view.at("controllerState", "version") > k.max_version:
            return False
        return all(offset_of(view, replica) <= k.max_offset for replica in k.replicas)

    return within


def properties(k: AsyncIsrNames) -> tuple[Property, ...]:
    """Return the invariants of the module, and a witness that the ISR grows again."""

    def valid_high_watermark(view: View, replica: str) -> Reason:
        if replica not in view.at("controllerState", "isr"):
            return None
        offset, watermark = offset_of(view, replica), high_watermark(k, view)
        if offset >= watermark:
            return None
        return f"{replica} is in the controller's ISR at offset {offset}, below the leader's high watermark {watermark}"

    return (
        always(
            "TypeOk", partial(type_check, k, 0),
            source="AsyncIsr, false in the initial state: pendingVersion is -1, no Nat",
        ),
        always("MCTypeOk", partial(type_check, k, NIL), source="ours: TypeOk as it can hold"),
        always("ValidHighWatermark", valid_high_watermark, over=k.replicas, source="AsyncIsr"),
        sometimes("IsrExpands", isr_expands, on="step"),
    )


def isr_expands(view: View, step: Step) -> bool:
    """The controller lets a replica in."""
    isr = slot("controllerState", "isr")
    return step.action == "ControllerHandleRequest" and len(dict(step.writes)[isr]) > len(view[isr])


def type_check(k: AsyncIsrNames, lowest_pending_version: int, view: View) -> Reason:
    """Say which variable is not of its type, in a sentence."""
    lowest = {
        slot("controllerState", "version"): 0,
        slot("leaderState", "version"): 0,
        slot("leaderState", "pendingVersion"): lowest_pending_version,
        **{slot("leaderState", "offsets", replica): 0 for replica in k.replicas},
    }
    for name, least in lowest.items():
        if view[name] < least:
            return f"{name} holds {view[name]}, which is below {least}"
    everybody = frozenset(k.replicas)
    for name in (slot("controllerState", "isr"), slot("leaderState", "isr"), slot("leaderState", "pendingIsr")):
        if not view[name] <= everybody:
            return f"{name} holds {members(view[name])}, of whom some are no replicas"
    for name in ("requests", "updates"):
        for message in in_order(view[name]):
            if not message.isr <= everybody or message.version < 0:
                return f"{name} holds a message that is not of its type: {brief(message)}"
    return None


def constants(sizes: Mapping[str, int], settings: Mapping[str, str]) -> AsyncIsrNames:
    """Return the constants for the given sizes and settings."""
    bounds = AsyncIsrNames(replicas(sizes["replicas"]), sizes["max-version"], sizes["max-offset"])
    return departed(bounds, DEPARTURES, COUNTS[settings["counts"]])
