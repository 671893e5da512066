"""Features of aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced
from feature_program import Feature, answer_lines, same

WAIT = 20


@asynccontextmanager
async def producer(servers: str, transactional_id: str | None = None) -> AsyncIterator[Any]:
    """Run a producer."""
    made = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=transactional_id, request_timeout_ms=3000,
                            enable_idempotence=True)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def consumer(servers: str, group: str | None, isolation: str, *topics: str) -> AsyncIterator[Any]:
    """Run a consumer that commits when it is told to."""
    made = AIOKafkaConsumer(*topics, bootstrap_servers=servers, group_id=group, isolation_level=isolation,
                            auto_offset_reset="earliest", enable_auto_commit=False)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def read(servers: str, topic: str, isolation: str) -> list[str]:
    """Return what a topic's first partition has."""
    found, partition = [], TopicPartition(topic, 0)
    async with consumer(servers, None, isolation) as reader:
        reader.assign([partition])
        end = (await reader.end_offsets([partition]))[partition]
        await reader.seek_to_beginning(partition)
        async with asyncio.timeout(WAIT):
            while await reader.position(partition) < end:
                for records in (await reader.getmany(timeout_ms=200)).values():
                    found += [record.value.decode() for record in records]
    return found


async def produce(servers: str) -> None:
    async with producer(servers) as made:
        sent = [await made.send_and_wait("aio-produce", value, partition=0) for value in (b"a", b"b", b"c")]
        same([0, 1, 2], [each.offset for each in sent])
    same(["a", "b", "c"], await read(servers, "aio-produce", "read_uncommitted"))


async def group(servers: str) -> None:
    async with producer(servers) as made:
        for value in (b"a", b"b"):
            await made.send_and_wait("aio-group", value, partition=0)
            async with consumer(servers, "aio-group", "read_committed", "aio-group") as member:
                same(value, (await asyncio.wait_for(member.getone(), WAIT)).value)
                await member.commit()


async def transaction(made: Any, topic: str, value: str, commits: bool) -> None:
    """Write one record, and end."""
    await made.begin_transaction()
    await made.send_and_wait(topic, value.encode(), partition=0)
    if commits:
        await made.commit_transaction()
    else:
        await made.abort_transaction()


async def commit(servers: str) -> None:
    async with producer(servers, "aio-commit") as made:
        for value in ("a", "b"):
            await transaction(made, "aio-commit", value, True)
    same(["a", "b"], await read(servers, "aio-commit", "read_committed"))


async def abort(servers: str) -> None:
    async with producer(servers, "aio-abort") as made:
        await transaction(made, "aio-abort", "x", False)
        await transaction(made, "aio-abort", "a", True)
    same(["a"], await read(servers, "aio-abort", "read_committed"))
    same(["x", "a"], await read(servers, "aio-abort", "read_uncommitted"))


async def offsets(servers: str) -> None:
    partition = TopicPartition("aio-offsets", 0)
    async with producer(servers, "aio-offsets") as made:
        for offset in (1, 2):
            await made.begin_transaction()
            await made.send_and_wait("aio-offsets", b"a", partition=0)
            await made.send_offsets_to_transaction({partition: offset}, "aio-offsets")
            if offset == 1:
                await made.commit_transaction()
            else:
                await made.abort_transaction()
    async with consumer(servers, "aio-offsets", "read_committed") as member:
        same(1, await member.committed(partition))


async def fencing(servers: str) -> None:
    async with producer(servers, "aio-fencing") as first, producer(servers, "aio-fencing") as second:
        try:
            await transaction(first, "aio-fencing", "x", True)
        except ProducerFenced:
            pass
        else:
            raise AssertionError("the first producer was not fenced")
        await transaction(second, "aio-fencing", "a", True)
        same(["a"], await read(servers, "aio-fencing", "read_committed"))


async def retries(servers: str) -> None:
    """Whoever asks for it lets brokers fail meanwhile."""
    values = []
    async with producer(servers, "aio-retries") as made:
        for number in range(12):
            commits = number % 3 != 2
            await transaction(made, "aio-retries", str(number), commits)
            values += [str(number)] if commits else []
            await asyncio.sleep(0.05)
    same(values, await read(servers, "aio-retries", "read_committed"))


def run_in_loop(feature: Callable[[str], Awaitable[None]]) -> Feature:
    """Return a feature that runs in a loop of its own."""

    def run(servers: str) -> None:
        async def whole() -> None:
            await feature(servers)

        asyncio.run(whole())

    return run


if __name__ == "__main__":
    answer_lines({feature.__name__: run_in_loop(feature) for feature in (
        produce, group, commit, abort, offsets, fencing, retries)})
