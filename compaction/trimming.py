"""What is decided where the topic is trimmed: pure functions of explicit arguments.

A compaction reads the previous compacted ledger and then the topic behind it, entry by entry. A tombstone, a message
with the null value, deletes its key. Entries are in the order of their ids everywhere.
"""

from __future__ import annotations

from itertools import dropwhile

import attrs

from compaction import compactor
from compaction.compactor import Position
from compaction.records import NULL_KEY, NULL_VALUE, PhaseOneResult, TopicEntry

Entries = tuple[TopicEntry, ...]


def behind(entries: Entries, position: int) -> Entries:
    """Return the entries with greater ids than a position."""
    return tuple(entry for entry in entries if entry.id > position)


def to_compact(contents: Entries | None, horizon: int, topic: Entries) -> Entries:
    """Return what a compaction reads: the ledger in use, if any, then the topic behind the horizon."""
    return (*(contents or ()), *behind(topic, horizon))


def phase_one(entries: Entries) -> PhaseOneResult:
    """Read all there is, and note the last message of each key, unless that deletes the key."""
    messages = [message for entry in entries for message in entry.messages]
    deleted = {message.id for message in messages if message.key != NULL_KEY and message.value == NULL_VALUE}
    latest = compactor.latest_for_key((message.id, message.key) for message in messages)
    for key, id_ in latest.items():
        if id_ in deleted:
            latest = latest.without(key)
    return PhaseOneResult(entries[-1].id, latest)


def next_to_copy(entries: Entries, position: int, last: int) -> TopicEntry | None:
    """Return the entry that phase two reads next, or None when it is through with the last one to read."""
    return next((entry for entry in entries if position < entry.id <= last), None)


def copied(entry: TopicEntry, result: PhaseOneResult, retain_null_key: bool) -> TopicEntry | None:
    """Return what phase two writes of an entry: the batch with the messages that are kept, or None without any."""
    kept = tuple(m for m in entry.messages if compactor.is_kept(m.id, m.key, result, retain_null_key))
    return attrs.evolve(entry, messages=kept) if kept else None


def is_replayed(entry: TopicEntry, written: Entries) -> bool:
    """Say whether an entry that phase two reads is not above the last one that it wrote."""
    return bool(written) and entry.id <= written[-1].id


def read(
    position: Position, contents: Entries | None, horizon: int, topic: Entries
) -> tuple[Entries, Position, bool] | None:
    """Return the entries after a position, the position after them, and whether they are from the ledger.

    A read below the horizon gets the rest of the ledger, and is at the horizon then. Any other gets the next entry that
    the topic still has; None when there is none yet.
    """
    if contents is not None and position.last < horizon:
        rest = dropwhile(lambda entry: entry.id <= position.last, contents)  # as it lies in the ledger
        return tuple(rest), Position(horizon), True
    found = behind(topic, position.last)[:1]
    return (found, Position(found[0].id), False) if found else None
