"""The versions of replication by their decisions, for replicas and for the base module; departures from them.

A version for replicas is the one before it with other decisions. Before KIP-101 there are no look-ups, so its decisions
about look-ups are those of KIP-101. AsyncIsr says nothing of truncation, nor of fences; ours are KIP-320's. The last
version (Kafka 2.7) has no spec: a fetch says where to truncate, as in the first try at KIP-320, and is fenced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from harness.model import Departure
from kafka_proto.replication import following, high_watermark, isr, leading, quorum, truncation
from kafka_proto.replication.records import AnyLog, Isr
from kafka_proto.replication.replica_state import ReplicaVersion

KIP_101 = ReplicaVersion(
    name="kip-101",
    title="truncation by leader epoch",
    follow=following.ask_where_to_truncate,
    learn_end_offset=following.truncate_to_end_offset,
    look_up=truncation.end_of_epoch,
    answer_fetch=leading.answer_fetch,
    may_expand=isr.may_expand,
    counted=high_watermark.counted,
    are_eligible=quorum.are_eligible,
    truncate_as_told=following.truncate_as_told,
)
TRUNCATE_TO_HIGH_WATERMARK = attrs.evolve(
    KIP_101, name="truncate-to-high-watermark", title="truncation to the own high watermark",
    follow=following.truncate_to_high_watermark,
)
KIP_279 = attrs.evolve(
    KIP_101, name="kip-279", title="truncation to the last shared record",
    learn_end_offset=following.truncate_or_ask_again, look_up=truncation.largest_epoch,
)
KIP_320_FIRST_TRY = attrs.evolve(
    KIP_279, name="kip-320-first-try", title="truncation when a fetch fails", follow=following.keep_log,
    answer_fetch=leading.answer_fetch_unless_diverging, may_expand=isr.may_expand_in_epoch,
)
KIP_320 = attrs.evolve(
    KIP_279, name="kip-320", title="fencing by leader epoch", fences=True, fences_look_ups=True,
    may_expand=isr.may_expand_in_epoch,
)
ASYNC_ISR = attrs.evolve(KIP_320, name="async-isr", title="ISR changes proposed to the controller")
TRUNCATION_ON_FETCH = attrs.evolve(
    ASYNC_ISR, name="truncation-on-fetch", title="truncation on fetch", follow=following.keep_log,
    answer_fetch=leading.answer_fetch_unless_diverging,
)
ALL = (TRUNCATE_TO_HIGH_WATERMARK, KIP_101, KIP_279, KIP_320_FIRST_TRY, KIP_320, ASYNC_ISR, TRUNCATION_ON_FETCH)
VERSIONS = {version.name: version for version in ALL}


@attrs.frozen(kw_only=True)
class BaseVersion:
    """A version of the base module KafkaReplication."""

    shrink_by_controller: Callable[[str, str | None, Isr], tuple[str | None, Isr] | None]
    obeys_without_leader: bool
    """Whether a request that names no leader is obeyed; as written, its leader is looked for among the replicas."""
    may_expand: Callable[[int, int, AnyLog, int], bool] = isr.may_expand_in_epoch
    """Whether a follower may be let into the ISR, by its end offset, and what its leader holds; in KIP-320 only."""
    fences_look_ups: bool = True
    """Whether where to truncate is looked up in the epoch of the leader only; likewise."""


AS_WRITTEN = BaseVersion(shrink_by_controller=isr.shrink_to_nobody, obeys_without_leader=False)
DEPARTURES = (
    Departure("S8", "removing a replica that does not lead can leave the ISR empty",
              {"shrink_by_controller": isr.shrink_by_controller}),
    Departure("S10", "a request without a leader is never applied by anybody", {"obeys_without_leader": True}),
    Departure("RP-10", "a proposed member does not count yet", {"counted": high_watermark.counted_without_pending}),
)
"""Ids of docs/models/replication.md. S7 and S9 are about properties: `properties` has them as written and as meant."""
COUNTS = {"potential-isr": "", "isr": "RP-10"}
"""The values of the setting `counts` by the departure that each is."""
ANY_BROKER_EPOCH = Departure(
    "any-broker-epoch", "RP-12: the controller takes members whatever their broker epoch",
    {"are_eligible": quorum.are_anybody},
)
CHANGES: Mapping[str, tuple[Departure, ...]] = {
    KIP_320.name: (
        Departure("unfenced-look-up", "RP-07: a look-up is answered in any epoch", {"fences_look_ups": False}),
        Departure("stale-high-watermark", "RP-08: a follower may be in sync that holds what its leader knows committed",
                  {"may_expand": isr.may_expand}),
        Departure("epoch-start", "mend of RP-08: it also holds all of earlier epochs",
                  {"may_expand": isr.may_expand_at_epoch_start}),
        Departure("same-leader", "RP-09: a follower of the same leader keeps its log",
                  {"follow": following.ask_unless_same_leader}),
        Departure("no-missed-epoch", "mend of RP-09: if it missed no epoch",
                  {"follow": following.ask_unless_next_epoch}),
        Departure("shuts-down", "KIP-841: what the controller takes out is about to go",
                  {"take_out": quorum.shut_down}),
        Departure("any-state", "RP-11: the controller takes members that are about to go",
                  {"are_eligible": quorum.are_as_registered}),
        ANY_BROKER_EPOCH,
    ),
    TRUNCATION_ON_FETCH.name: (
        Departure("counts-diverging", "RP-14: a follower whose log diverges counts",
                  {"answer_fetch": leading.answer_fetch_counting_diverging}),
        Departure("raises-first", "RP-14: a follower raises its high watermark before truncation",
                  {"truncate_as_told": following.raise_before_truncating}),
    ),
}
"""Departures by version, which are the values of its setting `change`."""


def of_spec(version: str) -> tuple[Departure, ...]:
    """Return the departures of a version that its spec has, too."""
    decisions = attrs.fields_dict(BaseVersion).keys()
    return tuple(change for change in CHANGES.get(version, ()) if change.instead.keys() <= decisions)
