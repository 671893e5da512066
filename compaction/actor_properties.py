"""The properties of the actor compositions: what a user of a compacted topic relies on, and witnesses against vacuity.

They are judged by what the producer sent, what the store holds and what the readers took down, and by no decision of
the compactor or the broker. At rest means: the broker is up, has loaded its state, and no compaction is under way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

from compaction.bookkeeper import BOOKKEEPER, Store
from compaction.broker import PulsarBroker
from compaction.clients import BROKER, PRODUCER, CompactedReaderState, PulsarProducerState
from compaction.compactor import CompactorState
from compaction.records import NULL_KEY, NULL_VALUE, Cursor, TopicEntry, TopicMessage
from harness.model import Property, Reason, Step, View, always, eventually, sometimes

SAFETY = ("CompactionEquivalence", "ReaderView", "NoLeak")
LIVENESS = ("CompactionCompletes", "ReadersCatchUp")


def common(readers: tuple[str, ...], retain_null_key: bool, deletes: bool) -> tuple[Property, ...]:
    """Return what is claimed of both compositions: C1 to C3, and that everybody gets there.

    `deletes` says whether a tombstone takes its key, and itself, out of the compacted ledger.
    """
    equivalence = partial(compaction_equivalence, retain_null_key=retain_null_key, deletes=deletes)
    views = (
        one_ledger, partial(view_from_earliest, retain_null_key=retain_null_key),
        *(partial(reader_view, name=name, retain_null_key=retain_null_key) for name in readers),
    )
    return (
        always("CompactionEquivalence", equivalence, source="C1"),
        always("ReaderView", lambda view, part: part(view), over=views, source="C2"),
        always("NoLeak", no_leak, source="C3"),
        eventually("CompactionCompletes", compaction_completes, source="ours"),
        eventually("ReadersCatchUp", partial(readers_catch_up, readers=readers), source="ours"),
    )


def broker_of(view: View) -> PulsarBroker:
    local: PulsarBroker = view[BROKER]
    return local


def store_of(view: View) -> Store:
    local: Store = view[BOOKKEEPER]
    return local


def raw_messages(view: View, end: int) -> tuple[TopicMessage, ...]:
    """Return every message that was ever sent up to an id, trimmed from the topic or not."""
    local: PulsarProducerState = view[PRODUCER]
    return messages_of(entry for entry in local.sent if entry.id <= end)


def messages_of(entries: Iterable[TopicEntry]) -> tuple[TopicMessage, ...]:
    return tuple(message for entry in entries for message in entry.messages)


def latest(messages: Iterable[TopicMessage]) -> Mapping[int, TopicMessage]:
    """Return the latest message of each key, deleted keys left out."""
    last: dict[int, TopicMessage] = {}
    for message in messages:
        if message.key != NULL_KEY and (message.key not in last or message.id > last[message.key].id):
            last[message.key] = message
    return {key: message for key, message in sorted(last.items()) if message.value != NULL_VALUE}


def is_at_rest(local: PulsarBroker) -> bool:
    return local.loaded and local.state is CompactorState.PHASE_ONE


def compaction_equivalence(view: View, retain_null_key: bool, deletes: bool) -> Reason:
    """C1: the ledger that readers use, and what was sent behind the horizon, say the same of each key as all that was
    sent; where null keys are retained, the ledger has them all."""
    local = broker_of(view)
    if not local.loaded or not local.horizon:
        return None
    ledger = messages_of(store_of(view).sealed(local.context) or ())
    raw = raw_messages(view, local.end)
    here = latest((*ledger, *(m for m in raw if m.id > local.horizon)))
    covered = f"compacted ledger {local.context} up to horizon {local.horizon}, and the topic behind it,"
    if (why := differs(f"{covered} have", here, latest(raw))) is not None:
        return why
    kept = {message.id for message in ledger}
    for message in ledger:
        if deletes and message.key != NULL_KEY and message.value == NULL_VALUE:
            return f"compacted ledger {local.context} has message {message.id}, which deletes key {message.key}"
    for message in raw:
        if retain_null_key and message.key == NULL_KEY and message.id <= local.horizon and message.id not in kept:
            return f"{covered} lack message {message.id} with the null key"
    return None


def differs(who_has: str, here: Mapping[int, TopicMessage], there: Mapping[int, TopicMessage]) -> Reason:
    """Say for which key the latest message differs from that of the whole topic."""

    def last(message: TopicMessage | None) -> str:
        return "not at all" if message is None else f"last in message {message.id} with value {message.value}"

    for key in sorted({*there, *here}):
        if there.get(key) != here.get(key):
            return f"{who_has} key {key} {last(here.get(key))}, the whole topic has it {last(there.get(key))}"
    return None


def one_ledger(view: View) -> Reason:
    """C2 at rest: horizon, context and durable cursor describe one ledger, and that is sealed in the store."""
    local = broker_of(view)
    if not is_at_rest(local):
        return None
    cursor = local.cursor or Cursor(0, 0)
    durable = (cursor.compaction_horizon, cursor.compacted_topic_context)
    if durable != (local.horizon, local.context):
        return (
            f"readers use compacted ledger {local.context} up to {local.horizon}, "
            f"the durable cursor says ledger {durable[1]} up to {durable[0]}"
        )
    if local.context and store_of(view).sealed(local.context) is None:
        return f"readers use compacted ledger {local.context}, which is not in the store"
    return None


def view_from_earliest(view: View, retain_null_key: bool) -> Reason:
    """C2 at rest, of a reader from the earliest position: the ledger and then the topic behind the horizon have each
    key's latest message, every null-key message where these are retained, and no message twice."""
    local = broker_of(view)
    if not is_at_rest(local):
        return None
    ledger = messages_of(store_of(view).sealed(local.context) or ())
    given = (*ledger, *(message for message in messages_of(local.topic) if message.id > local.horizon))
    who = f"a reader from the earliest position, with compacted ledger {local.context} up to {local.horizon},"
    times = Counter(message.id for message in given)
    for message in raw_messages(view, local.end):
        if times[message.id] > 1:
            return f"{who} gets message {message.id} {times[message.id]} times"
        if not times[message.id] and retain_null_key and message.key == NULL_KEY:
            return f"{who} never gets message {message.id} (null key)"
    return differs(f"{who} has", latest(given), latest(raw_messages(view, local.end)))


def reader_view(view: View, name: str, retain_null_key: bool) -> Reason:
    """C2 of a reader: it got no message twice, and what it skipped was replaced by a later message or deleted."""
    local: CompactedReaderState = view[name]
    times = Counter(seen.id for seen in local.seen)
    for seen in local.seen:
        if times[seen.id] > 1:
            where = " and ".join(_origin(other.ledger) for other in local.seen if other.id == seen.id)
            return f"{name} gets message {seen.id} twice: from {where}"
    raw = raw_messages(view, broker_of(view).end)
    newest = {message.key: message.id for message in raw}
    for message in raw:
        if message.id > local.position.last or message.id in times:
            continue
        if message.key == NULL_KEY and retain_null_key:
            return f"{name} is at message {local.position.last} and was never given message {message.id} (null key)"
        if message.key != NULL_KEY and newest[message.key] == message.id and message.value != NULL_VALUE:
            return (
                f"{name} is at message {local.position.last} and was never given message {message.id}, "
                f"the latest of key {message.key}"
            )
    return None


def _origin(ledger: int) -> str:
    return f"compacted ledger {ledger}" if ledger else "the topic"


def no_leak(view: View) -> Reason:
    """C3: at rest, the cursor or the context names every ledger in the store."""
    local = broker_of(view)
    if not is_at_rest(local):
        return None
    named = {local.context, local.cursor.compacted_topic_context if local.cursor else 0}
    leaked = [n for n in store_of(view).existing if n not in named]
    return f"neither cursor nor context names ledger {leaked[0]}, which is in the store for ever" if leaked else None


def compaction_completes(view: View) -> Reason:
    """Say which part of the topic is not compacted yet, or that a compaction is under way."""
    local = broker_of(view)
    if not is_at_rest(local):
        return "the broker has not finished its compaction, or not loaded its state"
    if local.horizon < local.end:
        return f"the topic ends at message {local.end}, the compacted ledger covers it up to {local.horizon}"
    return None


def readers_catch_up(view: View, readers: tuple[str, ...]) -> Reason:
    """Say which reader lacks the latest value of some key."""
    local = broker_of(view)
    for name in readers:
        reader: CompactedReaderState = view[name]
        if reader.position.last < local.end:
            return f"{name} is at message {reader.position.last} of {local.end}"
        got = latest(TopicMessage(seen.id, seen.key, seen.value) for seen in reader.seen)
        there = latest(raw_messages(view, local.end))
        if (why := differs(f"{name} has", {key: got[key] for key in got if key in there}, there)) is not None:
            return why
    return None


def witnesses(readers: tuple[str, ...]) -> tuple[Property, ...]:
    """Return what some run must reach, of both compositions."""
    return (
        sometimes("MessageDropped", lambda view: bool(dropped(view))),
        sometimes("LedgerReplaced", lambda view, step: step.action == "ReceiveLedgerDeleted", on="step"),
        sometimes("LedgerCollected", lambda view, step: step.action == "CollectLedger", on="step"),
        sometimes("CrashBetweenSealAndCursor", crash_between_seal_and_cursor, on="step"),
        sometimes("CrashBetweenCursorAndDelete", crash_between_cursor_and_delete, on="step"),
        sometimes("ReaderReturnsToLedger", partial(reader_returns_to_ledger, readers=readers), on="step"),
    )


def dropped(view: View) -> tuple[TopicMessage, ...]:
    """Return the messages that readers skip and the ledger in use lacks."""
    local = broker_of(view)
    kept = {message.id for message in messages_of(local.contents or ())}
    return tuple(message for message in raw_messages(view, local.horizon) if message.id not in kept)


def crash_between_seal_and_cursor(view: View, step: Step) -> bool:
    """Say whether the broker crashes with a ledger that is sealed and that the cursor does not name."""
    if step.action != "Crash":
        return False
    local, store = broker_of(view), store_of(view)
    named = local.cursor.compacted_topic_context if local.cursor else 0
    return local.new_ledger != named and store.sealed(local.new_ledger) is not None


def crash_between_cursor_and_delete(view: View, step: Step) -> bool:
    """Say whether the broker crashes when the cursor names the new ledger and the compaction is not finished."""
    if step.action != "Crash":
        return False
    local = broker_of(view)
    return local.cursor is not None and local.new_ledger == local.cursor.compacted_topic_context


def reader_returns_to_ledger(view: View, step: Step, readers: tuple[str, ...]) -> bool:
    """Say whether the first thing that a reader gets after it comes back is from a compacted ledger."""
    if step.action != "ReceiveReadResponse" or step.args[0] not in readers:
        return False
    local: CompactedReaderState = view[step.args[0]]
    return local.session is None and local.position.last > 0 and getattr(step.consumed, "ledger", 0) > 0


def key_deleted(view: View) -> bool:
    """Say whether readers skip a tombstone that the ledger does not have."""
    return any(message.key != NULL_KEY and message.value == NULL_VALUE for message in dropped(view))


def batch_compacted(view: View) -> bool:
    """Say whether the ledger in use has an entry that lost some of its messages."""
    sent = {entry.id: entry for entry in view["producer"].sent}
    return any(entry.messages != sent[entry.id].messages for entry in broker_of(view).contents or ())


TRIMMING_WITNESSES: tuple[Property, ...] = (
    sometimes("KeyDeleted", key_deleted),
    sometimes("BatchCompacted", batch_compacted),
    sometimes(
        "PreviousLedgerRead", lambda view, step: step.action == "CompactorPhaseOne" and bool(broker_of(view).contents),
        on="step",
    ),
    sometimes("TopicTrimmed", lambda view, step: step.action == "TrimTopic", on="step"),
    sometimes(
        "RawReaderReplays", lambda view, step: step.action == "RawReaderReconnects" and bool(broker_of(view).written),
        on="step",
    ),
)
"""What some run must reach where the topic is trimmed: batches, tombstones, and a raw reader that reconnects."""
