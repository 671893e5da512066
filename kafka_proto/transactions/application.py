"""The client as application code sees it: ordinary async methods over the awaitable that a runtime supplies."""

from __future__ import annotations

from harness.model import Command


class ProducerClient:
    """A transactional producer: `await producer.init()`, then `await producer.add_partitions("tp1")`.

    Every method returns when the operation succeeded and raises OperationFailed when it did not (a fenced producer)
    or when its outcome is unknown.
    """

    def __init__(self, command: Command) -> None:
        self._command = command

    async def init(self, transactional_id: str = "tid1") -> None:
        """Get a producer id and epoch, fencing whoever used the transactional id before."""
        await self._command("Init", transactional_id)

    async def add_partitions(self, *partitions: str) -> None:
        """Add topic partitions to the transaction, one request each."""
        for partition in partitions:
            await self._command("AddPartitions", partition)
