"""Where the coordinators of whole transactions depart from diary 02 by design, each with its name and its source.

A departure says what is decided instead. In the spec it is an extension action that follows diary 02's own at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import attrs

from kafka_proto.broker.coordinator.coordinator import FATAL
from kafka_proto.cluster.refinement.decided import NONE, DecidedEntry, DecidedOn, KnownTransaction, SaidCode
from kafka_proto.log import MAX_EPOCH
from kafka_proto.requests import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, InitProducerIdRequest, TxnState
from kafka_proto.transactions.records import PREPARED

KNOWS_PRODUCER_FENCED = {InitProducerIdRequest: 4, AddPartitionsToTxnRequest: 2, AddOffsetsToTxnRequest: 2}
"""The first versions of the requests whose answers may be PRODUCER_FENCED (KIP-588); an EndTxn's are not converted."""
Instead = Callable[[DecidedOn, DecidedEntry], DecidedEntry]
"""What is decided in a situation instead of what is said so far; the same where a departure does not apply."""


@attrs.frozen
class CoordinatorDeparture:
    """A departure: its name as an extension action, what differs and where that comes from, and what is decided."""

    name: str
    reason: str
    instead: Instead


def departure(name: str, reason: str) -> Callable[[Instead], CoordinatorDeparture]:
    """Declare a departure by what is decided instead."""
    return partial(CoordinatorDeparture, name, reason)


def aborts(at: DecidedOn, said: DecidedEntry) -> KnownTransaction | None:
    """Return the entry that aborts an open transaction for a client that asks for its producer id, or for its time."""
    return said.entry if at.fences and said.entry is not None and said.entry.state is TxnState.PREPARE_ABORT else None


def changed_abort(
    name: str, reason: str, change: Callable[[DecidedOn, KnownTransaction, KnownTransaction], KnownTransaction]
) -> CoordinatorDeparture:
    """Return a departure that changes such an entry alone, by what the coordinator knew."""

    def instead(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
        entry = aborts(at, said)
        return said if entry is None or at.known is None else attrs.evolve(said, entry=change(at, at.known, entry))

    return CoordinatorDeparture(name, reason, instead)


@departure("ForgetLastEpoch", "InitProducerId without an id forgets the last epoch (KIP-360, "
           "prepareIncrementProducerEpoch); diary 02 keeps one there that nothing reads")
def forgets_last(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    if at.event != "request" or not at.fences or at.subject.producer_id != NONE:
        return said
    if said.entry is None or said.entry.state is not TxnState.EMPTY:
        return said
    return attrs.evolve(said, entry=attrs.evolve(said.entry, last_pepoch=NONE))


@departure("AddNothing", "partitions that are in already are not appended again (KIP-98, "
           "handleAddPartitionsToTransaction)")
def answers_at_once(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    if not at.adds or said.entry is None or at.known is None:
        return said
    if at.known.state is not TxnState.ONGOING or said.entry.partitions != at.known.partitions:
        return said
    return DecidedEntry(said.then, known=said.known)


@departure("OldCode", "old requests are answered INVALID_PRODUCER_EPOCH for PRODUCER_FENCED (KIP-588)")
def knows_no_fenced(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    if said.answered is None or said.answered.code != "PRODUCER_FENCED":
        return said
    if at.event != "request" or at.subject.version >= KNOWS_PRODUCER_FENCED.get(type(at.subject), 0):
        return said
    return attrs.evolve(said, answered=SaidCode("INVALID_PRODUCER_EPOCH"))


@departure("WaitForMarkers", "markers come before Complete* (KIP-98); diary 02 appends it at once")
def waits_for_markers(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    waits = at.event in ("commit", "reload") and at.subject.state in PREPARED and at.subject.partitions
    return attrs.evolve(said, entry=None) if waits else said


@departure("CompleteWithoutPartitions", "Complete* has no partitions (KIP-98, prepareComplete); diary 02 keeps them "
           "until the next InitPid")
def has_no_partitions(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    if at.event in ("request", "time-out") or said.entry is None:
        return said
    return attrs.evolve(said, entry=attrs.evolve(said.entry, partitions=frozenset()))


def switches_after(events: Collection[str], at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    if at.event not in events or said.entry is None or at.subject.next_producer_id == NONE:
        return said
    entry = attrs.evolve(said.entry, pid=at.subject.next_producer_id, pepoch=0)
    return attrs.evolve(said, entry=entry)


SWITCHES = CoordinatorDeparture(
    "SwitchProducerId", "Complete* switches to another producer id (KIP-890): the epochs are used up",
    partial(switches_after, ("commit", "completion")))
RELOADS = CoordinatorDeparture(
    "SwitchAfterReload", "what an elected coordinator completes switches, too (KAFKA-20310): since 4.3 it reads the "
    "next producer id from the log", partial(switches_after, ("reload",)))


def _reloaded(said: DecidedEntry, **changes: Any) -> DecidedEntry:
    known, entry = (None if one is None else attrs.evolve(one, **changes) for one in (said.known, said.entry))
    return attrs.evolve(said, known=known, entry=entry)


@departure("ReloadWithoutLastEpoch", "a reload forgets the last epoch (KAFKA-20357): the log does not have it")
def reads_no_last(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    return _reloaded(said, last_pepoch=NONE) if at.event == "reload" else said


@departure("ReloadWithoutIds", "a reload forgets the producer ids before and after (KAFKA-20310): the log has them, "
           "but they are not read")
def reads_no_ids(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    return _reloaded(said, previous_producer_id=NONE, next_producer_id=NONE) if at.event == "reload" else said


@departure("PendingFirst", "what is pending is said before what is wrong (KAFKA-18660)")
def pending_first(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    refused = said.answered is not None and said.answered.code in ("INVALID_PRODUCER_ID_MAPPING", "PRODUCER_FENCED")
    if not at.adds or not at.pending or not refused or not at.serves:
        return said
    return attrs.evolve(said, answered=SaidCode("CONCURRENT_TRANSACTIONS"))


FENCED_BEFORE = changed_abort(
    "KeepFailedFence", "a fence that failed before bumps no epoch (KAFKA-9666, hasFailedEpochFence)",
    lambda at, known, entry: attrs.evolve(entry, pepoch=known.pepoch) if at.failed_fence else entry)
UNFENCED = changed_abort(
    "TimeOutWithoutFence", "a time-out aborts with the epoch that its producer has (KAFKA-6119, 0.11 only)",
    lambda at, known, entry: attrs.evolve(entry, pepoch=known.pepoch) if at.event == "time-out" else entry)
TWICE = changed_abort(
    "BumpTwice", "fence and abort bump the epoch each (KIP-890 as in 4.0, KAFKA-19367)",
    lambda at, known, entry: attrs.evolve(entry, pepoch=entry.pepoch + 1, last_pepoch=entry.pepoch))
ONCE = changed_abort(
    "KeepLastEpoch", "an abort keeps the last epoch (KIP-890 as from 4.1, KAFKA-19367)",
    lambda at, known, entry: attrs.evolve(entry, last_pepoch=known.pepoch))
ROTATES = changed_abort(
    "AbortNamesAnotherId", "an abort that uses up the epochs names the producer id that follows (KAFKA-20090, 4.3)",
    lambda at, known, entry: entry if not known.is_epoch_exhausted else attrs.evolve(
        entry, pepoch=min(entry.pepoch, MAX_EPOCH), next_producer_id=at.offered))


@departure("FenceInForce", "the epoch of a fence is in force before its entry is committed (KIP-98): "
           "initTransactionWithExistingMetadata changes the cache, diary 02 the entry only")
def in_force(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    entry = aborts(at, said)
    if entry is None or said.known is None:
        return said
    known = attrs.evolve(said.known, pepoch=entry.pepoch, last_pepoch=NONE)
    return attrs.evolve(said, known=known, fences=True)


def fails_above(epoch: int, at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    """Return that the coordinator's code fails where an abort has an epoch above one: the client is told so."""
    entry = aborts(at, said)
    if entry is None or entry.pepoch <= epoch:
        return said
    return DecidedEntry(None if at.event == "time-out" else SaidCode("UNKNOWN_SERVER_ERROR"), known=said.known)


LAST = CoordinatorDeparture(
    "FencePastLastEpoch", "a fence past the last epoch fails (KIP-98, prepareFenceProducerEpoch; KAFKA-20310 leads "
    "there)", partial(fails_above, MAX_EPOCH))
OVERFLOWS = CoordinatorDeparture(
    "AbortPastLastEpoch", "an abort whose second bump finds no epoch fails (KIP-890 as in 4.0, KAFKA-19367)",
    partial(fails_above, MAX_EPOCH - 1))


@departure("CheckRefusal", "a refusal that a producer does not survive waits until the last entry is in the log again "
           "(change=checked-refusals, a mend of KAFKA-21181)")
def checks_refusal(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    fatal = said.answered is not None and said.answered.code in {error.name for error in FATAL}
    if at.event != "request" or at.known is None or not fatal or not at.serves:
        return said
    if at.pending or at.known.state in PREPARED:
        return DecidedEntry(SaidCode("CONCURRENT_TRANSACTIONS"), known=said.known)
    return DecidedEntry(None, at.known, said.answered, said.known, repeats=True)


ALL = (forgets_last, answers_at_once, waits_for_markers, has_no_partitions)
FENCING = (FENCED_BEFORE, in_force)
RELOADED = (reads_no_last, reads_no_ids)
OLD = (*ALL, *FENCING, knows_no_fenced, *RELOADED)
SINCE_4_1 = (*ALL, LAST, ONCE, pending_first, SWITCHES, knows_no_fenced, *RELOADED)
LEVEL_1 = (*ALL, *FENCING, pending_first, knows_no_fenced)
BY_VERSION: Mapping[str, tuple[CoordinatorDeparture, ...]] = {
    "kip-98": OLD,
    "kip-98/0.11": (*ALL, UNFENCED, *FENCING, knows_no_fenced, *RELOADED),
    "kip-360": OLD,
    "kip-890-part-1": OLD,
    "kip-890-part-1/3.6": OLD,
    "kip-890-part-1/3.7": OLD,
    "kip-890": (*ALL, LAST, *FENCING, OVERFLOWS, TWICE, pending_first, SWITCHES, knows_no_fenced, *RELOADED),
    "kip-890/4.1": SINCE_4_1,
    "kip-890/4.2": SINCE_4_1,
    "kip-890/4.4": (*ALL, ONCE, ROTATES, pending_first, SWITCHES, RELOADS, knows_no_fenced, reads_no_last),
    **dict.fromkeys(("kip-890/level-1", "kip-890/4.1/level-1", "kip-890/4.2/level-1"), (*LEVEL_1, *RELOADED)),
    "kip-890/4.4/level-1": (*LEVEL_1, reads_no_last),
}
"""What is expected of each version of a broker, by its name, in the order in which it is decided."""
BY_CHANGE: Mapping[str, tuple[CoordinatorDeparture, ...]] = {"checked-refusals": (checks_refusal,)}
"""What is expected besides where brokers have a change; others change nothing that diary 02 has."""
EVERY: Mapping[str, CoordinatorDeparture] = {
    one.name: one for known in (*BY_VERSION.values(), *BY_CHANGE.values()) for one in known
}
