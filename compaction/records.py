"""What the compactor keeps. Messages are spoken of by their ids, which count from 1 in the order of sending.

The spec needs no more than ids. Actors exchange and keep the messages themselves, in entries.
"""

from __future__ import annotations

import attrs

from harness.model import FrozenMap

NIL = "Nil"
"""The spec's model value for what is not there; states of the model have None instead."""
NULL_KEY = 0
NULL_VALUE = 0

Ledger = tuple[int, ...]
"""The ids of the messages in a compacted ledger, ascending. A message never changes, so its id stands for it."""


@attrs.frozen
class PhaseOneResult:
    """What phase one learns: the id of the last message it read, and for each key but the null key the last id."""

    read_position: int
    latest_for_key: FrozenMap[int, int]


@attrs.frozen
class Cursor:
    """The durable cursor of the subscription `__compaction`: a horizon, and the compacted ledger that covers it."""

    compaction_horizon: int
    compacted_topic_context: int


@attrs.frozen
class TopicMessage:
    """A message of the topic; a null value (0) is a tombstone, which deletes the key."""

    id: int
    key: int
    value: int


@attrs.frozen
class TopicEntry:
    """A batch of messages, written and read as one. Its id is the id of the last message that was sent in it."""

    id: int
    messages: tuple[TopicMessage, ...]
