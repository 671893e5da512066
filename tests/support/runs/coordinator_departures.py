"""Where the coordinators of whole transactions depart from diary 02 by design, each with its source.

A departure says what is expected instead, so that a step in which it applies is compared all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import attrs

from kafka_proto.broker.coordinator import transaction
from kafka_proto.errors import BY_NAME, ErrorCode
from kafka_proto.log.records import MAX_EPOCH
from kafka_proto.requests import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, InitProducerIdRequest
from kafka_proto.requests.transaction_state import TxnState
from kafka_proto.transactions.records import PREPARED, TransactionMetadata

NONE = -1
"""No producer id, no epoch."""
NOT_APPLIED: Mapping[str, str] = {
    "a producer without transactional id": "KIP-98: idempotent producers have no coordinator; diary 02 has none",
    "an EndTxn": "KIP-98: who uses diary 02's coordinator never commits, it only aborts for who comes next",
    "a verification": "KIP-890 part 1: a leader asks whether partitions are added; nothing is changed",
    "an InitProducerId with id and epoch": "KIP-360: a producer goes on after an error; diary 02's has none to give",
    "the epochs of a producer id are used up": "KIP-98, KAFKA-20090: another id follows; diary 02's epochs have no end",
    "an answer to a marker": "KIP-98: diary 02 has no markers; what completes the transaction is compared",
    "an append that fails while its broker leads": "KIP-98: too few replicas or a time-out; diary 02 knows neither",
    "the time-out of a transaction": "KIP-98: transaction.timeout.ms; diary 02 has no time",
    "a tombstone": "KIP-98: transactional.id.expiration.ms; diary 02 forgets no id",
}
"""What diary 02 says nothing of, and where it comes from."""
KNOWS_PRODUCER_FENCED = {InitProducerIdRequest: 4, AddPartitionsToTxnRequest: 2, AddOffsetsToTxnRequest: 2}
"""The first versions of the requests whose answers may be PRODUCER_FENCED (KIP-588)."""


@attrs.frozen
class Said:
    """An answer, its code by Kafka's name; producer id and epoch where it gives any."""

    code: str
    producer_id: int = NONE
    producer_epoch: int = NONE


@attrs.frozen
class Decision:
    """What follows from a step about one transactional id."""

    answered: Said | None = None
    """At once."""
    entry: TransactionMetadata | None = None
    """What is appended."""
    then: Said | None = None
    """The answer when that is committed."""
    known: TransactionMetadata | None = None
    """What the coordinator knows until then, or from now on."""
    pending: TxnState | None = None
    """What that is to become."""


def name(code: ErrorCode) -> str:
    """Return an error code by Kafka's name, whoever spells it."""
    return code.kafka.name


def spelled(value: object) -> str:
    """Return a value for a report: codes as diary 02 spells them."""
    if isinstance(value, Said):
        code = (*BY_NAME[value.code].spec, value.code)[0]
        given = f" producer id {value.producer_id} epoch {value.producer_epoch}" if value.producer_id >= 0 else ""
        return f"{code}{given}"
    return "nothing" if value is None else str(value)


def in_short(said: Decision) -> str:
    """Return what becomes of a request, for counting: the spec's code, or that an open transaction is aborted."""
    answer = said.answered or said.then
    if said.entry is not None and said.entry.state is TxnState.PREPARE_ABORT:
        return "abort"
    return spelled(attrs.evolve(answer, producer_id=-1) if answer is not None else None)


def shown(value: object) -> str:
    """Return a value without numbers that differ from run to run."""
    return str(value.state) if isinstance(value, TransactionMetadata) else spelled(value)


@attrs.frozen
class Situation:
    """What a coordinator had before it when it decided."""

    event: str
    """A `request`, the `commit` of an entry, the `completion` of a transaction, or the `reload` of a log."""
    subject: Any
    """The request, or the entry in question."""
    cached: transaction.CachedTransaction | None
    """What it knew."""
    pending: TransactionMetadata | None = None
    serves: bool = True
    """Whether it leads and has loaded its log."""

    @property
    def goes_on(self) -> bool:
        """Whether a producer with an id asks and nothing else is to be said than whether it may go on."""
        is_init = isinstance(self.subject, InitProducerIdRequest)
        return is_init and self.subject.producer_id != NONE and self.serves and self.pending is None

    @property
    def is_exhausted(self) -> bool:
        return self.cached is not None and self.cached.metadata.is_epoch_exhausted

    @property
    def adds(self) -> bool:
        return isinstance(self.subject, AddPartitionsToTxnRequest | AddOffsetsToTxnRequest)

    @property
    def fences(self) -> bool:
        return isinstance(self.subject, InitProducerIdRequest)


@attrs.frozen
class Departure:
    """A departure: what is expected in a situation instead of what diary 02 says; the same where it does not apply."""

    name: str
    source: str
    instead: Callable[[Situation, Decision], Decision]


def forgets_last(at: Situation, said: Decision) -> Decision:
    if not at.fences or said.entry is None or said.entry.state is not TxnState.EMPTY:
        return said
    return attrs.evolve(said, entry=attrs.evolve(said.entry, last_producer_epoch=NONE))


def answers_at_once(at: Situation, said: Decision) -> Decision:
    if not at.adds or said.entry is None or at.cached is None:
        return said
    if at.cached.metadata.state is not TxnState.ONGOING or said.entry.partitions != set(at.cached.metadata.partitions):
        return said
    return Decision(said.then, known=said.known)


def knows_no_fenced(at: Situation, said: Decision) -> Decision:
    old = at.event == "request" and at.subject.version < KNOWS_PRODUCER_FENCED[type(at.subject)]
    if not old or said.answered is None or said.answered.code != "PRODUCER_FENCED":
        return said
    return attrs.evolve(said, answered=Said("INVALID_PRODUCER_EPOCH"))


def waits_for_markers(at: Situation, said: Decision) -> Decision:
    waits = at.event in ("commit", "reload") and at.subject.state in PREPARED and at.subject.partitions
    return attrs.evolve(said, entry=None) if waits else said


def has_no_partitions(at: Situation, said: Decision) -> Decision:
    if at.event == "request" or said.entry is None:
        return said
    return attrs.evolve(said, entry=attrs.evolve(said.entry, partitions=frozenset()))


def switches(events: Collection[str], at: Situation, said: Decision) -> Decision:
    if at.event not in events or said.entry is None or at.subject.next_producer_id == NONE:
        return said
    entry = attrs.evolve(said.entry, producer_id=at.subject.next_producer_id, producer_epoch=0)
    return attrs.evolve(said, entry=entry)


def reads_no_last_epoch(at: Situation, said: Decision) -> Decision:
    if at.event != "reload":
        return said
    known, entry = (None if one is None else attrs.evolve(one, last_producer_epoch=NONE)
                    for one in (said.known, said.entry))
    return attrs.evolve(said, known=known, entry=entry)


def pending_first(at: Situation, said: Decision) -> Decision:
    refused = said.answered is not None and said.answered.code in ("INVALID_PRODUCER_ID_MAPPING", "PRODUCER_FENCED")
    if not at.adds or at.pending is None or not refused or not at.serves:
        return said
    return attrs.evolve(said, answered=Said("CONCURRENT_TRANSACTIONS"))


def aborts(at: Situation, said: Decision) -> TransactionMetadata | None:
    """Return the entry with which diary 02 aborts an open transaction for who asks for its producer id."""
    return said.entry if at.fences and said.entry is not None and said.entry.state is TxnState.PREPARE_ABORT else None


def fenced_before(at: Situation, said: Decision) -> Decision:
    entry = aborts(at, said)
    if entry is None or at.cached is None or not at.cached.has_failed_epoch_fence:
        return said
    return attrs.evolve(said, entry=attrs.evolve(entry, producer_epoch=at.cached.metadata.producer_epoch))


def in_force(at: Situation, said: Decision) -> Decision:
    entry = aborts(at, said)
    if entry is None or said.known is None:
        return said
    known = attrs.evolve(said.known, producer_epoch=entry.producer_epoch, last_producer_epoch=NONE)
    return attrs.evolve(said, known=known)


def bumps_again(at: Situation, said: Decision) -> Decision:
    entry = aborts(at, said)
    if entry is None:
        return said
    epoch = entry.producer_epoch
    return attrs.evolve(said, entry=attrs.evolve(entry, producer_epoch=epoch + 1, last_producer_epoch=epoch))


def fails_past_the_last(at: Situation, said: Decision) -> Decision:
    entry = aborts(at, said)
    if entry is None or entry.producer_epoch <= MAX_EPOCH:
        return said
    return Decision(Said("UNKNOWN_SERVER_ERROR"), known=said.known)


def overflows(at: Situation, said: Decision) -> Decision:
    entry = aborts(at, said)
    if entry is None or entry.producer_epoch < MAX_EPOCH:
        return said
    return Decision(Said("UNKNOWN_SERVER_ERROR"), known=said.known)


def keeps_last(at: Situation, said: Decision) -> Decision:
    entry = aborts(at, said)
    if entry is None or at.cached is None:
        return said
    last = at.cached.metadata.producer_epoch
    return attrs.evolve(said, entry=attrs.evolve(entry, last_producer_epoch=last))


ALL = (
    Departure("InitProducerId without an id forgets the last epoch",
              "KIP-360: prepareIncrementProducerEpoch; diary 02 keeps an epoch there that nothing reads", forgets_last),
    Departure("partitions that are in already are not appended again",
              "KIP-98: handleAddPartitionsToTransaction", answers_at_once),
    Departure("markers come before Complete*", "KIP-98: diary 02 appends Complete* at once", waits_for_markers),
    Departure("Complete* has no partitions", "KIP-98: prepareComplete; diary 02 keeps them until the next InitPid",
              has_no_partitions),
)
FENCING = (
    Departure("a fence that failed before bumps no epoch", "KAFKA-9666: hasFailedEpochFence", fenced_before),
    Departure("the epoch of a fence is in force before its entry is committed",
              "KIP-98: initTransactionWithExistingMetadata changes the cache, diary 02 the entry only", in_force),
)
OLD_CODES = (
    Departure("old requests are answered INVALID_PRODUCER_EPOCH for PRODUCER_FENCED", "KIP-588", knows_no_fenced),
)
NO_LAST = (
    Departure("a reload forgets the last epoch", "KAFKA-20310: the log has it, but it is not read",
              reads_no_last_epoch),
)
SECOND_PART = (
    Departure("what is pending is said before what is wrong", "KAFKA-18660", pending_first),
    Departure("Complete* switches to another producer id", "KIP-890: the epochs are used up",
              partial(switches, ("commit", "completion"))),
)
RELOADS = (
    Departure("what an elected coordinator completes switches, too", "KAFKA-20310: since 4.3 it reads the next "
              "producer id from the log", partial(switches, ("reload",))),
)
LAST = (
    Departure("a fence past the last epoch fails", "KIP-98: prepareFenceProducerEpoch; KAFKA-20310 leads there",
              fails_past_the_last),
)
TWICE = (
    Departure("an abort whose second bump finds no epoch fails", "KIP-890 as in 4.0, KAFKA-19367", overflows),
    Departure("fence and abort bump the epoch each", "KIP-890 as in 4.0, KAFKA-19367", bumps_again),
)
ONCE = (Departure("an abort keeps the last epoch", "KIP-890 as from 4.2, KAFKA-19367", keeps_last),)
OLD = (*ALL, *FENCING, *OLD_CODES, *NO_LAST)
BY_VERSION: Mapping[str, tuple[Departure, ...]] = {
    "kip-98": OLD,
    "kip-360": OLD,
    "kip-890-part-1": OLD,
    "kip-890": (*ALL, *LAST, *FENCING, *TWICE, *SECOND_PART, *OLD_CODES, *NO_LAST),
    "kip-890/4.2": (*ALL, *LAST, *ONCE, *SECOND_PART, *OLD_CODES, *NO_LAST),
    "kip-890/4.4": (*ALL, *ONCE, *SECOND_PART, *RELOADS, *OLD_CODES),
}
"""What is expected of each version of a broker, by its name."""
