"""The producer as application code sees it: Kafka's calls as async methods over the awaitable of a runtime."""

from __future__ import annotations

from harness.model import Command


class KafkaProducer:
    """A transactional producer.

    Every call returns when it is done. It raises OperationFailed when it did not succeed, or its outcome is unknown; a
    call that the producer's state does not allow is refused by the runtime with what is possible.
    """

    def __init__(self, command: Command) -> None:
        self._command = command

    async def init_transactions(self) -> None:
        """Get a producer id and epoch, fencing whoever used the transactional id before."""
        await self._command("InitTransactions")

    async def begin_transaction(self) -> None:
        """Begin a transaction; no broker hears of it before the first record."""
        await self._command("BeginTransaction")

    async def send(self, partition: str) -> None:
        """Send a record, whose value says of which transaction it is, and wait for its acknowledgement."""
        await self._command("Send", partition)

    async def commit_transaction(self) -> None:
        """Commit: all records of the transaction become visible."""
        await self._command("CommitTransaction")

    async def abort_transaction(self) -> None:
        """Abort: none of them ever does."""
        await self._command("AbortTransaction")
