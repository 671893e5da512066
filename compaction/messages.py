"""What the actors of compaction exchange.

Producer and readers talk to the broker over the faulty network. The ledger store is an atomic service: links to and
from it are reliable, and lose messages only where the broker is down. `incarnation` is the number of the broker's life
in which it asked; a broker that was started again ignores answers to what it asked before.
"""

from __future__ import annotations

import attrs

from compaction.compactor import Position
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
class CreateLedger(Message):
    incarnation: int = attrs.field(metadata=fresh("incarnation"))


@attrs.frozen
class AddEntries(Message):
    """Entries for the end of a ledger that is not sealed yet. Not answered: the seal that comes behind is."""

    ledger: int
    entries: tuple[TopicEntry, ...]


@attrs.frozen
class LedgerMessage(Message):
    """A message to or from the ledger store about a ledger, of a life of the broker."""

    incarnation: int = attrs.field(metadata=fresh("incarnation"))
    ledger: int


@attrs.frozen
class LedgerCreated(LedgerMessage):
    """The ledger is there, and open."""


@attrs.frozen
class SealLedger(LedgerMessage):
    """Nothing is added to the ledger any more."""


@attrs.frozen
class LedgerSealed(LedgerMessage):
    """The ledger is sealed."""


@attrs.frozen
class DeleteLedger(LedgerMessage):
    """The ledger is not needed any more."""


@attrs.frozen
class LedgerDeleted(LedgerMessage):
    """The ledger is gone."""


@attrs.frozen
class LoadLedger(LedgerMessage):
    """Read a whole ledger (0: none), and list all that exist."""


@attrs.frozen
class LedgerLoaded(LedgerMessage):
    """What is in the ledger, None if there is no such ledger; and the ids of all ledgers."""

    entries: tuple[TopicEntry, ...] | None
    existing: tuple[int, ...]


TYPES: tuple[type, ...] = (
    Send, SendReceipt, ReadRequest, ReadResponse, CreateLedger, LedgerCreated, AddEntries, SealLedger, LedgerSealed,
    DeleteLedger, LedgerDeleted, LoadLedger, LedgerLoaded,
)
