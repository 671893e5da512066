"""Features of kafka-python."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

from feature_program import WAIT, Features, answer_lines
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata


class KafkaPython(Features):
    """By the classes of the package."""

    prefix = "kp"

    def producer(self, tid: str | None = None) -> closing[Any]:
        made = KafkaProducer(bootstrap_servers=self.servers.split(","), transactional_id=tid, request_timeout_ms=3000,
                             enable_idempotence=True)
        if tid is not None:
            made.init_transactions()
        return closing(made)

    def consumer(self, group: str | None, isolation: str) -> closing[Any]:
        return closing(KafkaConsumer(bootstrap_servers=self.servers.split(","), group_id=group,
                                     isolation_level=isolation, auto_offset_reset="earliest", enable_auto_commit=False))

    def write(self, made: Any, *values: str) -> list[int]:
        sent = [made.send(self.topic, value.encode(), partition=0) for value in values]
        return [each.get(WAIT).offset for each in sent]

    def transaction(self, made: Any, value: str, commits: bool, offset: int | None = None) -> None:
        made.begin_transaction()
        self.write(made, value)
        if offset is not None:
            offsets = {TopicPartition(self.topic, 0): OffsetAndMetadata(offset, "", -1)}
            made.send_offsets_to_transaction(offsets, self.topic)
        (made.commit_transaction if commits else made.abort_transaction)()

    def take(self) -> Any:
        with self.consumer(self.topic, "read_committed") as member:
            member.subscribe([self.topic])
            value = next(member).value.decode()
            member.commit()
            return value

    def committed(self) -> Any:
        with self.consumer(self.topic, "read_committed") as member:
            return member.committed(TopicPartition(self.topic, 0))

    def read(self, isolation: str) -> list[str]:
        found, partition, until = list[str](), TopicPartition(self.topic, 0), time.monotonic() + WAIT
        with self.consumer(None, isolation) as reader:
            reader.assign([partition])
            end = reader.end_offsets([partition])[partition]
            reader.seek_to_beginning(partition)
            while reader.position(partition) < end and time.monotonic() < until:
                for records in reader.poll(200).values():
                    found += [record.value.decode() for record in records]
        return found

    def is_fenced(self, error: Exception) -> bool:
        name = type(error).__name__
        return isinstance(error, KafkaError) and ("Fenced" in name or "InvalidProducerEpoch" in name)


if __name__ == "__main__":
    answer_lines(KafkaPython)
