"""The ledger store of the actor compositions, in BookKeeper's role: durable, and never without what it sealed.

    (none) -> created -> written -> sealed -> deleted
    A ledger can be deleted in each state; nothing is added to one that is sealed or deleted.

It is one atomic service. Its ids grow, and none is given twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import attrs

from compaction import messages
from compaction.records import TopicEntry
from harness.model import Actor, FrozenMap, Message, Turn

BOOKKEEPER = "bookkeeper"


class LedgerState(StrEnum):
    """States of a ledger."""

    CREATED = "created"
    WRITTEN = "written"
    SEALED = "sealed"
    DELETED = "deleted"


OPEN = (LedgerState.CREATED, LedgerState.WRITTEN)
"""The states in which entries may be added, and the ledger be sealed."""


@attrs.frozen
class StoredLedger:
    """A ledger: its state, and its entries in the order in which they were added."""

    state: LedgerState = LedgerState.CREATED
    entries: tuple[TopicEntry, ...] = ()


@attrs.frozen
class Store:
    """The local state of the store: every ledger that was ever created, by its id."""

    ledgers: FrozenMap[int, StoredLedger] = FrozenMap()

    @property
    def existing(self) -> tuple[int, ...]:
        """The ids of the ledgers that are not deleted, ascending."""
        return tuple(sorted(n for n, held in self.ledgers.items() if held.state is not LedgerState.DELETED))

    def sealed(self, ledger: int) -> tuple[TopicEntry, ...] | None:
        """Return the entries of a sealed ledger, or None if there is no such ledger."""
        held = self.ledgers.get(ledger)
        return held.entries if held is not None and held.state is LedgerState.SEALED else None


class Bookkeeper(Actor[Store]):
    """The actor of the store."""

    name = BOOKKEEPER
    initial = Store()

    def on_message(self, local: Store, message: Message) -> Iterable[Turn[Store]]:
        match message:
            case messages.CreateLedger():
                new = max(local.ledgers, default=0) + 1
                answer = messages.LedgerCreated(message.incarnation, new, source=self.name, dest=message.source)
                yield self.turn("CreateLedger", new, self.stored(local, new, StoredLedger()), answer)
            case messages.AddEntries():
                held = local.ledgers[message.ledger]
                if held.state in OPEN:
                    written = StoredLedger(LedgerState.WRITTEN, (*held.entries, *message.entries))
                    local = self.stored(local, message.ledger, written)
                yield self.turn("AddEntries", message.ledger, local)
            case messages.SealLedger():
                held = local.ledgers[message.ledger]
                if held.state in OPEN:
                    local = self.stored(local, message.ledger, attrs.evolve(held, state=LedgerState.SEALED))
                sealed = messages.LedgerSealed(
                    message.incarnation, message.ledger, source=self.name, dest=message.source
                )
                yield self.turn("SealLedger", message.ledger, local, sealed)
            case messages.DeleteLedger():
                after = self.stored(local, message.ledger, StoredLedger(LedgerState.DELETED))
                gone = messages.LedgerDeleted(
                    message.incarnation, message.ledger, source=self.name, dest=message.source
                )
                yield self.turn("DeleteLedger", message.ledger, after, gone)
            case messages.LoadLedger():
                loaded = messages.LedgerLoaded(
                    message.incarnation, message.ledger, local.sealed(message.ledger), local.existing,
                    source=self.name, dest=message.source,
                )
                yield self.turn("LoadLedger", message.ledger, local, loaded)

    def stored(self, local: Store, ledger: int, held: StoredLedger) -> Store:
        """Return the store with one ledger as given."""
        return Store(local.ledgers.set(ledger, held))

    def turn(self, action: str, ledger: int, after: Store, *answers: Message) -> Turn[Store]:
        """Return a turn of the store about one ledger."""
        return Turn(action, (self.name, str(ledger)), after, answers)


TYPES: tuple[type, ...] = (StoredLedger, Store)
