"""What the actors of compaction exchange.

Producer and readers talk to the broker over the faulty network. The ledger store is an atomic service: links to and
from it are reliable, and lose messages only where the broker is down. `incarnation` is the number of the broker's life
in which it asked; a broker that was started again ignores answers to what it asked before.
"""

from __future__ import annotations

import attrs

from compaction.reader import Position
from compaction.records import TopicEntry
from harness.model import Message, fresh


@attrs.frozen
class Send(Message):
    """The producer's next entry; its id is the sequence number by which a second copy is known."""

    entry: TopicEntry


@attrs.frozen
class SendReceipt(Message):
    """The entry is durable in the topic."""

    entry_id: int


@attrs.frozen
class ReadRequest(Message):
    """A reader asks for what comes after its position; `session` is None in the first request of a connection."""

    correlation: int = attrs.field(metadata=fresh("correlation", "source"))
    position: Position
    session: int | None = attrs.field(default=None, metadata=fresh("incarnation"))


@attrs.frozen
class ReadResponse(Message):
    """The next entries, in order, and the position after them; without a position the connection is unknown."""

    correlation: int = attrs.field(metadata=fresh("correlation", "dest"))
    session: int = attrs.field(metadata=fresh("incarnation"))
    entries: tuple[TopicEntry, ...] = ()
    position: Position | None = None
    ledger: int = 0
    """The compacted ledger that the entries are from, 0 for the topic."""


@attrs.frozen
class StoreMessage(Message):
    """A message to or from the ledger store."""


@attrs.frozen
class CreateLedger(StoreMessage):
    incarnation: int = attrs.field(metadata=fresh("incarnation"))


@attrs.frozen
class LedgerCreated(StoreMessage):
    incarnation: int = attrs.field(metadata=fresh("incarnation"))
    ledger: int


@attrs.frozen
class AddEntries(StoreMessage):
    """Entries for the end of a ledger that is not sealed yet. Not answered: the seal that comes behind is."""

    ledger: int
    entries: tuple[TopicEntry, ...]


@attrs.frozen
class SealLedger(StoreMessage):
    incarnation: int = attrs.field(metadata=fresh("incarnation"))
    ledger: int


@attrs.frozen
class LedgerSealed(StoreMessage):
    incarnation: int = attrs.field(metadata=fresh("incarnation"))
    ledger: int


@attrs.frozen
class DeleteLedger(StoreMessage):
    incarnation: int = attrs.field(metadata=fresh("incarnation"))
    ledger: int


@attrs.frozen
class LedgerDeleted(StoreMessage):
    incarnation: int = attrs.field(metadata=fresh("incarnation"))
    ledger: int


@attrs.frozen
class LoadLedger(StoreMessage):
    """Read a whole ledger (0: none), and list all that exist."""

    incarnation: int = attrs.field(metadata=fresh("incarnation"))
    ledger: int


@attrs.frozen
class LedgerLoaded(StoreMessage):
    """What is in the ledger, None where there is no such ledger; and the ids of all ledgers."""

    incarnation: int = attrs.field(metadata=fresh("incarnation"))
    ledger: int
    entries: tuple[TopicEntry, ...] | None
    existing: tuple[int, ...]


TYPES: tuple[type, ...] = (
    Send, SendReceipt, ReadRequest, ReadResponse, CreateLedger, LedgerCreated, AddEntries, SealLedger, LedgerSealed,
    DeleteLedger, LedgerDeleted, LoadLedger, LedgerLoaded,
)
