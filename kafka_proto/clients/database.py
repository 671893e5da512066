"""The database of an application: what it commits there decides the transaction that it prepared at Kafka (KIP-939).

One row for each transactional id has the last `PreparedTxnState` that was committed with the application's data.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Message, Turn
from kafka_proto.clients.producer import PreparedTxnState

NAME = "db"


@attrs.frozen
class CommitDatabaseRequest(Message):
    """Commit a database transaction with its row."""

    transactional_id: str
    prepared: PreparedTxnState
    transaction: str
    """The ghost: the application's transaction."""


@attrs.frozen
class CommitDatabaseResponse(Message):
    committed: bool


@attrs.frozen
class ReadPreparedRequest(Message):
    """Read the row to end a transaction that was kept; who did so before does not write any more."""

    transactional_id: str
    kept: PreparedTxnState


@attrs.frozen
class ReadPreparedResponse(Message):
    prepared: PreparedTxnState | None
    transaction: str
    """The ghost of the row."""


@attrs.frozen
class DatabaseRow:
    prepared: PreparedTxnState
    transaction: str


@attrs.frozen
class DatabaseState:
    rows: FrozenMap[str, DatabaseRow] = FrozenMap()
    """By transactional id."""
    owners: FrozenMap[str, str] = FrozenMap()
    """By transactional id: the client that read the row last; no other one may write it."""
    decisions: FrozenMap[PreparedTxnState, str] = FrozenMap()
    """The ghost: `commit` or `abort`, of each transaction that is decided."""


class Database(Actor[DatabaseState]):
    """Commits or rolls back what clients ask it to commit: which of both is drawn."""

    name = NAME

    def __init__(self, *, fences: bool) -> None:
        self.fences = fences
        """Whether reading a row takes it over."""
        self.initial = DatabaseState()

    def on_message(self, local: DatabaseState, message: Message) -> Iterable[Turn[DatabaseState]]:
        if isinstance(message, ReadPreparedRequest):
            yield self.read(local, message)
            return
        assert isinstance(message, CommitDatabaseRequest)
        tid, who = message.transactional_id, message.source
        if local.owners.get(tid, who) == who:
            row = local.rows.set(tid, DatabaseRow(message.prepared, message.transaction))
            done = attrs.evolve(local, rows=row, decisions=local.decisions.set(message.prepared, "commit"))
            yield self.answer("CommitDatabase", done, message, committed=True)
        undone = attrs.evolve(local, decisions=local.decisions.set(message.prepared, "abort"))
        yield self.answer("RollBackDatabase", undone, message, committed=False)

    def answer(
        self, action: str, after: DatabaseState, message: CommitDatabaseRequest, *, committed: bool
    ) -> Turn[DatabaseState]:
        answer = CommitDatabaseResponse(committed, source=NAME, dest=message.source)
        return Turn(action, (NAME, message.source), after, (answer,))

    def read(self, local: DatabaseState, message: ReadPreparedRequest) -> Turn[DatabaseState]:
        """What is kept and not committed here is decided by that: it is aborted."""
        tid, row = message.transactional_id, local.rows.get(message.transactional_id)
        decided = local.decisions.get(message.kept, "abort")
        after = attrs.evolve(
            local, decisions=local.decisions.set(message.kept, decided),
            owners=local.owners.set(tid, message.source) if self.fences else local.owners,
        )
        found = (row.prepared, row.transaction) if row is not None else (None, "")
        answer = ReadPreparedResponse(*found, source=NAME, dest=message.source)
        return Turn("ReadPreparedTxnState", (NAME, message.source), after, (answer,))
