"""The actor of a producer that takes part in two-phase commits, and of the application's instance around it (KIP-939).

It prepares a transaction, commits its database with the `PreparedTxnState`, and ends the transaction as that ended. A
new instance with the same transactional id keeps the transaction that it finds open, reads what the database has of it,
and ends it so.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Kind, Message, Op, Turn
from kafka_proto.clients.database import (
    NAME,
    CommitDatabaseRequest,
    CommitDatabaseResponse,
    ReadPreparedRequest,
    ReadPreparedResponse,
)
from kafka_proto.clients.producer import PreparedTxnState, ProducerStatus
from kafka_proto.clients.producer.two_phase import complete_transaction, is_flushed, prepare_transaction
from kafka_proto.clients.producer_client import IDLE, ClientState, ProducerClient

PREPARE, DECIDE = "prepare", "decide"
"""Operations: it waits for what it wrote to be acknowledged; for its database."""


@attrs.frozen
class TwoPhaseState(ClientState):
    """A producer, and as ghosts what its application prepared."""

    prepared: tuple[PreparedTxnState, ...] = ()
    kept: str | None = None
    """The transaction of a predecessor that it ends: the one that its database has, or empty for any other."""


class TwoPhaseClient(ProducerClient):
    """One instance of the application. It crashes where it takes no more steps; the next client is its successor."""

    initial: TwoPhaseState

    def __init__(self, *args: object, **rest: object) -> None:
        super().__init__(*args, **rest)  # type: ignore[arg-type]
        self.initial = TwoPhaseState(self.initial.producer)

    def transaction(self, local: ClientState) -> str:
        assert isinstance(local, TwoPhaseState)
        return super().transaction(local) if local.kept is None else local.kept

    def commit(self, local: ClientState) -> Turn[ClientState]:
        """Prepare instead: the database decides."""
        return self.turn(attrs.evolve(local, operation=PREPARE), "PrepareTransaction", (self.name,), Kind.COMMAND)

    def turn(
        self, local: ClientState, action: str, who: tuple[str, ...], kind: Kind = Kind.STEP
    ) -> Turn[ClientState]:
        """Prepare what is flushed, and ask the database: to commit, or what it has of a transaction that was kept."""
        assert isinstance(local, TwoPhaseState)
        status, tid = local.producer.status, self.tid or ""
        if local.operation == PREPARE and status is ProducerStatus.IN_TRANSACTION and is_flushed(local.producer):
            producer = prepare_transaction(local.producer)
            assert producer.prepared is not None
            asked = CommitDatabaseRequest(
                tid, producer.prepared, self.transaction(local), source=self.name, dest=NAME
            )
            prepared = (*local.prepared, producer.prepared)
            local = attrs.evolve(local, producer=producer, operation=DECIDE, prepared=prepared)
            return Turn(action, who, local, (asked,), kind=kind)
        if local.operation == "init" and local.producer.prepared is not None:
            read = ReadPreparedRequest(tid, local.producer.prepared, source=self.name, dest=NAME)
            local = attrs.evolve(local, operation=DECIDE)
            return Turn(action, who, local, (read,), kind=kind, op=Op(self.name, "init", "ok", tid))
        if local.operation in (PREPARE, DECIDE):
            after, sent = self.advanced(local)
            goes_on = status in (ProducerStatus.IN_TRANSACTION, ProducerStatus.PREPARED_TRANSACTION)
            return Turn(action, who, after if goes_on else attrs.evolve(after, operation=IDLE), sent, kind=kind)
        return attrs.evolve(super().turn(local, action, who), kind=kind)

    def on_message(self, local: ClientState, message: Message) -> Iterable[Turn[ClientState]]:
        if isinstance(message, CommitDatabaseResponse):
            yield self.decided(local, message, local.producer.prepared if message.committed else None)
        elif isinstance(message, ReadPreparedResponse):
            assert isinstance(local, TwoPhaseState)
            is_kept = message.prepared == local.producer.prepared
            kept = attrs.evolve(local, kept=message.transaction if is_kept else "")
            yield self.decided(kept, message, message.prepared)
        else:
            yield from super().on_message(local, message)

    def decided(self, local: ClientState, message: Message, found: PreparedTxnState | None) -> Turn[ClientState]:
        """End the transaction as the database says."""
        producer = complete_transaction(local.producer, found)
        operation = "commit" if producer.status is ProducerStatus.COMMITTING_TRANSACTION else "abort"
        after, sent = self.advanced(attrs.evolve(local, producer=producer, operation=operation))
        invoked = Op(self.name, operation, "invoke", self.transaction(local))
        return Turn(f"Receive{message.type}", (self.name, NAME), after, sent, op=invoked)

    def begin(self, local: ClientState) -> Turn[ClientState]:
        assert isinstance(local, TwoPhaseState)
        return super().begin(attrs.evolve(local, kept=None))
