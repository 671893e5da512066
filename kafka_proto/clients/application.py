"""The producer as application code has it: the async methods of Kafka's transactional producer."""

from __future__ import annotations

from harness.model import Command, OperationFailed, Value
from kafka_proto.clients.producer import FENCED, FENCING, IllegalState, KafkaError, ProducerFenced
from kafka_proto.clients.producer_client import ApplicationCall

ERRORS: dict[str, type[Exception]] = {
    error.__name__: error for error in (IllegalState, KafkaError, ProducerFenced)
}
"""What a call that makes no sense raises, by name."""
FATAL = {error.value for error in FENCING}


class TransactionalProducer:
    """A transactional producer, as `KafkaProducer` with a `transactional.id`.

    A method raises what Kafka's client raises: IllegalState for a call that makes no sense now, ProducerFenced, and
    KafkaError for any other error of the transaction, which is to be aborted then, or of the producer, which is to be
    given up. OperationFailed says that the run ended first. `commit_transaction` and `abort_transaction` return when
    the coordinator has answered.
    """

    def __init__(self, command: Command) -> None:
        self._command = command

    async def init_transactions(self) -> None:
        """Get a producer id and epoch, fencing the previous owner of the transactional id."""
        await self._call("init_transactions")

    async def begin_transaction(self) -> None:
        """Begin a transaction; nothing is sent."""
        await self._call("begin_transaction")

    async def send(self, partition: str, text: str = "") -> None:
        """Write a record to a partition, as `T-0`; returns at once, as a commit waits for what was sent."""
        await self._call("send", partition, text)

    async def send_offsets_to_transaction(self) -> None:
        """Commit the next offset of the group `G` in the first partition with the transaction."""
        await self._call("send_offsets_to_transaction")

    async def commit_transaction(self) -> None:
        """Send what is not sent yet, then commit."""
        await self._call("commit_transaction")

    async def abort_transaction(self) -> None:
        """Give up what was not sent yet, then abort."""
        await self._call("abort_transaction")

    async def _call(self, name: str, *arguments: str) -> Value:
        __tracebackhide__ = True
        try:
            return await self._command.give(ApplicationCall(name, *arguments))
        except OperationFailed as failed:
            raise _raised(failed) from None


def _raised(failed: OperationFailed) -> Exception:
    """Return what Kafka's client raises, or what was raised where the run ended before."""
    said = str(failed.value)
    name, _, sentence = said.partition(": ")
    if failed.outcome == "fail" and name in ERRORS:
        return ERRORS[name](sentence)
    if failed.outcome == "info" and " " not in said:
        return ProducerFenced(FENCED) if said in FATAL else KafkaError(f"the operation failed by {said}")
    return failed
