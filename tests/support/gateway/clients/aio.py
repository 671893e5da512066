"""Features of aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced
from feature_program import WAIT, Features, answer_lines


class Aiokafka(Features):
    """Its clients run in a loop that goes on while one of them is asked for something."""

    prefix = "aio"

    def __init__(self, servers: str) -> None:
        super().__init__(servers)
        self.run: Any = asyncio.new_event_loop().run_until_complete

    @contextmanager
    def started(self, kind: Any, *topics: str, **settings: Any) -> Iterator[Any]:
        """Run a client in the loop."""

        async def start() -> Any:
            made = kind(*topics, bootstrap_servers=self.servers, **settings)
            await made.start()
            return made

        made = self.run(start())
        try:
            yield made
        finally:
            self.run(made.stop())

    def producer(self, tid: str | None = None) -> AbstractContextManager[Any]:
        return self.started(AIOKafkaProducer, transactional_id=tid, request_timeout_ms=3000, enable_idempotence=True)

    def consumer(self, group: str | None, isolation: str, *topics: str) -> AbstractContextManager[Any]:
        return self.started(AIOKafkaConsumer, *topics, group_id=group, isolation_level=isolation,
                            auto_offset_reset="earliest", enable_auto_commit=False)

    def write(self, made: Any, *values: str) -> list[int]:
        return [self.run(made.send_and_wait(self.topic, value.encode(), partition=0)).offset for value in values]

    def transaction(self, made: Any, value: str, commits: bool, offset: int | None = None) -> None:
        self.run(made.begin_transaction())
        self.write(made, value)
        if offset is not None:
            self.run(made.send_offsets_to_transaction({TopicPartition(self.topic, 0): offset}, self.topic))
        self.run(made.commit_transaction() if commits else made.abort_transaction())

    def take(self) -> Any:
        with self.consumer(self.topic, "read_committed", self.topic) as member:
            value = self.run(asyncio.wait_for(member.getone(), WAIT)).value.decode()
            self.run(member.commit())
            return value

    def committed(self) -> Any:
        with self.consumer(self.topic, "read_committed") as member:
            return self.run(member.committed(TopicPartition(self.topic, 0)))

    def read(self, isolation: str) -> Any:
        with self.consumer(None, isolation) as reader:
            return self.run(self.whole(reader, TopicPartition(self.topic, 0)))

    async def whole(self, reader: Any, partition: TopicPartition) -> list[str]:
        found: list[str] = []
        reader.assign([partition])
        end = (await reader.end_offsets([partition]))[partition]
        await reader.seek_to_beginning(partition)
        async with asyncio.timeout(WAIT):
            while await reader.position(partition) < end:
                for records in (await reader.getmany(timeout_ms=200)).values():
                    found += [record.value.decode() for record in records]
        return found

    def is_fenced(self, error: Exception) -> bool:
        return isinstance(error, ProducerFenced)


if __name__ == "__main__":
    answer_lines(Aiokafka)
