"""Where the coordinators of whole transactions depart from diary 02 by design, each with its name and its source.

A departure says what is decided instead. In the spec it is an extension action that follows diary 02's own at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

import attrs

from kafka_proto.cluster.refinement.decided import NONE, DecidedEntry, DecidedOn, KnownTransaction, SaidCode
from kafka_proto.log.records import MAX_EPOCH
from kafka_proto.requests import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, InitProducerIdRequest
from kafka_proto.requests.transaction_state import TxnState
from kafka_proto.transactions.records import PREPARED

KNOWS_PRODUCER_FENCED = {InitProducerIdRequest: 4, AddPartitionsToTxnRequest: 2, AddOffsetsToTxnRequest: 2}
"""The first versions of the requests whose answers may be PRODUCER_FENCED (KIP-588)."""
Instead = Callable[[DecidedOn, DecidedEntry], DecidedEntry]
"""What is decided in a situation instead of what is said so far; the same where a departure does not apply."""


@attrs.frozen
class CoordinatorDeparture:
    """A departure: its name as an extension action, what differs and where that comes from, and what is decided."""

    name: str
    reason: str
    instead: Instead


def forgets_last(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    if at.event != "request" or not at.fences or at.subject.producer_id != NONE:
        return said
    if said.entry is None or said.entry.state is not TxnState.EMPTY:
        return said
    return attrs.evolve(said, entry=attrs.evolve(said.entry, last_pepoch=NONE))


def answers_at_once(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    if not at.adds or said.entry is None or at.known is None:
        return said
    if at.known.state is not TxnState.ONGOING or said.entry.partitions != at.known.partitions:
        return said
    return DecidedEntry(said.then, known=said.known)


def knows_no_fenced(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    if said.answered is None or said.answered.code != "PRODUCER_FENCED":
        return said
    if at.event != "request" or at.subject.version >= KNOWS_PRODUCER_FENCED[type(at.subject)]:
        return said
    return attrs.evolve(said, answered=SaidCode("INVALID_PRODUCER_EPOCH"))


def waits_for_markers(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    waits = at.event in ("commit", "reload") and at.subject.state in PREPARED and at.subject.partitions
    return attrs.evolve(said, entry=None) if waits else said


def has_no_partitions(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    if at.event in ("request", "time-out") or said.entry is None:
        return said
    return attrs.evolve(said, entry=attrs.evolve(said.entry, partitions=frozenset()))


def switches(events: Collection[str], at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    if at.event not in events or said.entry is None or at.subject.next_producer_id == NONE:
        return said
    entry = attrs.evolve(said.entry, pid=at.subject.next_producer_id, pepoch=0)
    return attrs.evolve(said, entry=entry)


def reads_no_last(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    if at.event != "reload":
        return said
    known, entry = (None if one is None else attrs.evolve(
        one, last_pepoch=NONE, previous_producer_id=NONE, next_producer_id=NONE,
    ) for one in (said.known, said.entry))
    return attrs.evolve(said, known=known, entry=entry)


def pending_first(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    refused = said.answered is not None and said.answered.code in ("INVALID_PRODUCER_ID_MAPPING", "PRODUCER_FENCED")
    if not at.adds or not at.pending or not refused or not at.serves:
        return said
    return attrs.evolve(said, answered=SaidCode("CONCURRENT_TRANSACTIONS"))


def aborts(at: DecidedOn, said: DecidedEntry) -> KnownTransaction | None:
    """Return the entry that aborts an open transaction for who asks for its producer id, or for its time."""
    return said.entry if at.fences and said.entry is not None and said.entry.state is TxnState.PREPARE_ABORT else None


def fenced_before(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    entry = aborts(at, said)
    if entry is None or at.known is None or not at.failed_fence:
        return said
    return attrs.evolve(said, entry=attrs.evolve(entry, pepoch=at.known.pepoch))


def keeps_the_epoch(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    entry = aborts(at, said)
    if entry is None or at.known is None or at.event != "time-out":
        return said
    return attrs.evolve(said, entry=attrs.evolve(entry, pepoch=at.known.pepoch))


def in_force(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    entry = aborts(at, said)
    if entry is None or said.known is None:
        return said
    known = attrs.evolve(said.known, pepoch=entry.pepoch, last_pepoch=NONE)
    return attrs.evolve(said, known=known, fences=True)


def bumps_again(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    entry = aborts(at, said)
    if entry is None:
        return said
    epoch = entry.pepoch
    return attrs.evolve(said, entry=attrs.evolve(entry, pepoch=epoch + 1, last_pepoch=epoch))


def failing(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    """Return that the coordinator's code fails: whoever asks is told so."""
    return DecidedEntry(None if at.event == "time-out" else SaidCode("UNKNOWN_SERVER_ERROR"), known=said.known)


def fails_past_the_last(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    entry = aborts(at, said)
    return said if entry is None or entry.pepoch <= MAX_EPOCH else failing(at, said)


def overflows(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    entry = aborts(at, said)
    return said if entry is None or entry.pepoch < MAX_EPOCH else failing(at, said)


def keeps_last(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    entry = aborts(at, said)
    if entry is None or at.known is None:
        return said
    return attrs.evolve(said, entry=attrs.evolve(entry, last_pepoch=at.known.pepoch))


def names_another_id(at: DecidedOn, said: DecidedEntry) -> DecidedEntry:
    entry = aborts(at, said)
    if entry is None or at.known is None or not at.known.is_epoch_exhausted:
        return said
    epoch = min(entry.pepoch, MAX_EPOCH)
    return attrs.evolve(said, entry=attrs.evolve(entry, pepoch=epoch, next_producer_id=at.offered))


ALL = (
    CoordinatorDeparture(
        "ForgetLastEpoch", "InitProducerId without an id forgets the last epoch (KIP-360, "
        "prepareIncrementProducerEpoch); diary 02 keeps one there that nothing reads", forgets_last),
    CoordinatorDeparture(
        "AddNothing", "partitions that are in already are not appended again (KIP-98, "
        "handleAddPartitionsToTransaction)", answers_at_once),
    CoordinatorDeparture(
        "WaitForMarkers", "markers come before Complete* (KIP-98); diary 02 appends it at once", waits_for_markers),
    CoordinatorDeparture(
        "CompleteWithoutPartitions", "Complete* has no partitions (KIP-98, prepareComplete); diary 02 keeps them until "
        "the next InitPid", has_no_partitions),
)
FENCING = (
    CoordinatorDeparture(
        "KeepFailedFence", "a fence that failed before bumps no epoch (KAFKA-9666, hasFailedEpochFence)",
        fenced_before),
    CoordinatorDeparture(
        "FenceInForce", "the epoch of a fence is in force before its entry is committed (KIP-98): "
        "initTransactionWithExistingMetadata changes the cache, diary 02 the entry only", in_force),
)
UNFENCED = CoordinatorDeparture(
    "TimeOutWithoutFence", "a time-out aborts with the epoch that its producer has (KAFKA-6119, 0.11 only)",
    keeps_the_epoch)
OLD_CODES = CoordinatorDeparture(
    "OldCode", "old requests are answered INVALID_PRODUCER_EPOCH for PRODUCER_FENCED (KIP-588)", knows_no_fenced)
NO_LAST = CoordinatorDeparture(
    "ReloadWithoutLastEpoch", "a reload forgets the last epoch and other producer ids (KAFKA-20310): the log has them, "
    "but they are not read", reads_no_last)
PENDING_FIRST = CoordinatorDeparture(
    "PendingFirst", "what is pending is said before what is wrong (KAFKA-18660)", pending_first)
SWITCHES = CoordinatorDeparture(
    "SwitchProducerId", "Complete* switches to another producer id (KIP-890): the epochs are used up",
    partial(switches, ("commit", "completion")))
RELOADS = CoordinatorDeparture(
    "SwitchAfterReload", "what an elected coordinator completes switches, too (KAFKA-20310): since 4.3 it reads the "
    "next producer id from the log", partial(switches, ("reload",)))
LAST = CoordinatorDeparture(
    "FencePastLastEpoch", "a fence past the last epoch fails (KIP-98, prepareFenceProducerEpoch; KAFKA-20310 leads "
    "there)", fails_past_the_last)
TWICE = (
    CoordinatorDeparture(
        "AbortPastLastEpoch", "an abort whose second bump finds no epoch fails (KIP-890 as in 4.0, KAFKA-19367)",
        overflows),
    CoordinatorDeparture(
        "BumpTwice", "fence and abort bump the epoch each (KIP-890 as in 4.0, KAFKA-19367)", bumps_again),
)
ONCE = CoordinatorDeparture(
    "KeepLastEpoch", "an abort keeps the last epoch (KIP-890 as from 4.1, KAFKA-19367)", keeps_last)
ROTATES = CoordinatorDeparture(
    "AbortNamesAnotherId", "an abort that uses up the epochs names the producer id that follows (KAFKA-20090, 4.3)",
    names_another_id)
OLD = (*ALL, *FENCING, OLD_CODES, NO_LAST)
SINCE_4_1 = (*ALL, LAST, ONCE, PENDING_FIRST, SWITCHES, OLD_CODES, NO_LAST)
LEVEL_1 = (*ALL, *FENCING, PENDING_FIRST, OLD_CODES)
BY_VERSION: Mapping[str, tuple[CoordinatorDeparture, ...]] = {
    "kip-98": OLD,
    "kip-98/0.11": (*ALL, UNFENCED, *FENCING, OLD_CODES, NO_LAST),
    "kip-360": OLD,
    "kip-890-part-1": OLD,
    "kip-890-part-1/3.6": OLD,
    "kip-890-part-1/3.7": OLD,
    "kip-890": (*ALL, LAST, *FENCING, *TWICE, PENDING_FIRST, SWITCHES, OLD_CODES, NO_LAST),
    "kip-890/4.1": SINCE_4_1,
    "kip-890/4.2": SINCE_4_1,
    "kip-890/4.4": (*ALL, ONCE, ROTATES, PENDING_FIRST, SWITCHES, RELOADS, OLD_CODES),
    **dict.fromkeys(("kip-890/level-1", "kip-890/4.1/level-1", "kip-890/4.2/level-1"), (*LEVEL_1, NO_LAST)),
    "kip-890/4.4/level-1": LEVEL_1,
}
"""What is expected of each version of a broker, by its name, in the order in which it is decided."""
EVERY: Mapping[str, CoordinatorDeparture] = {one.name: one for known in BY_VERSION.values() for one in known}
