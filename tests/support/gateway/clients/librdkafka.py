"""Features of librdkafka, by confluent-kafka."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from contextlib import closing, nullcontext
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from feature_program import WAIT, Features, answer_lines, same


class Librdkafka(Features):
    """Its producers need no closing."""

    prefix = "rd"

    def made(self, tid: str | None = None, **settings: object) -> Any:
        """Return a producer, initialized where it is transactional."""
        transactional = {} if tid is None else {"transactional.id": tid}
        made = Producer({"bootstrap.servers": self.servers, "linger.ms": 0, "socket.timeout.ms": 3000, **transactional,
                         **settings})
        if tid is not None:
            made.init_transactions(WAIT)
        return made

    def producer(self, tid: str | None = None) -> nullcontext[Any]:
        return nullcontext(self.made(tid))

    def consumer(self, group: str, isolation: str) -> closing[Any]:
        return closing(Consumer({"bootstrap.servers": self.servers, "group.id": group, "isolation.level": isolation,
                                 "auto.offset.reset": "earliest", "enable.auto.commit": False}))

    def write(self, made: Any, *values: str) -> list[int]:
        offsets: list[int] = []
        for value in values:
            made.produce(self.topic, value, partition=0, callback=lambda error, sent: offsets.append(sent.offset()))
        same(0, made.flush(WAIT))
        return offsets

    def transaction(self, made: Any, value: str, commits: bool, offset: int | None = None) -> None:
        made.begin_transaction()
        made.produce(self.topic, value, partition=0)
        if offset is not None:
            with self.consumer(self.topic, "read_committed") as member:
                made.send_offsets_to_transaction(
                    [TopicPartition(self.topic, 0, offset)], member.consumer_group_metadata(), WAIT)
        if commits:
            made.commit_transaction(WAIT)
        else:
            same(0, made.flush(WAIT))
            made.abort_transaction(WAIT)

    def take(self) -> str:
        with self.consumer(self.topic, "read_committed") as member:
            member.subscribe([self.topic])
            (message,) = member.consume(1, WAIT)
            member.commit(asynchronous=False)
        return str(message.value().decode())

    def committed(self) -> int:
        with self.consumer(self.topic, "read_committed") as member:
            (found,) = member.committed([TopicPartition(self.topic, 0)], WAIT)
        return int(found.offset)

    def read(self, isolation: str) -> list[str]:
        found: list[str] = []
        with self.consumer("reads", isolation) as reader:
            _, end = reader.get_watermark_offsets(TopicPartition(self.topic, 0), WAIT)
            reader.assign([TopicPartition(self.topic, 0, 0)])
            until, here = time.monotonic() + WAIT, 0
            while here < end and time.monotonic() < until:
                message = reader.poll(0.1)
                if message is not None and message.error() is None:
                    found.append(message.value().decode())
                here = max(here, reader.position([TopicPartition(self.topic, 0)])[0].offset)
                if message is None and found:
                    break  # markers at the end move no position
        return found

    def is_fenced(self, error: Exception) -> bool:
        return isinstance(error, KafkaException) and bool(error.args[0].fatal())

    def load(self, seconds: str, seed: str, pause_ms: str) -> None:
        """Run transactions for some seconds, drawn from a seed, as an application that goes on whatever happens."""
        chance, counts = random.Random(int(seed)), Counter[str]()
        until, made = time.monotonic() + float(seconds), None
        with self.consumer("reads", "read_committed") as reader:
            reader.assign([TopicPartition("load", partition, 0) for partition in range(2)])
            while time.monotonic() < until:
                try:
                    if made is None:
                        made = self.made("app", **{
                            "socket.timeout.ms": 1000, "message.timeout.ms": 5000, "transaction.timeout.ms": 20000})
                        counts["producers"] += 1
                    counts[drawn(made, chance)] += 1
                except KafkaException as error:
                    counts[error.args[0].name()] += 1
                    if made is None or not aborted(made, error):
                        made = None
                counts["read"] += sum(message.error() is None for message in reader.consume(100, 0.005))
                time.sleep(int(pause_ms) / 1000)
        print(json.dumps({"counts": json.dumps(counts)}), flush=True)


def drawn(made: Any, chance: random.Random) -> str:
    """Run one transaction, and say how it ended."""
    made.begin_transaction()
    commits = chance.random() < 2 / 3
    for _ in range(chance.randint(1, 3)):
        made.produce("load", "v", partition=chance.randrange(2))
        if chance.random() < 0.5:
            made.flush(WAIT)
    if commits:
        made.commit_transaction(WAIT)
        return "committed"
    made.flush(WAIT)
    made.abort_transaction(WAIT)
    return "aborted"


def aborted(made: Any, error: KafkaException) -> bool:
    """Say whether a producer can go on behind a transaction that failed."""
    if error.args[0].fatal():
        return False
    try:
        made.abort_transaction(WAIT)
    except KafkaException:
        return False
    return True


if __name__ == "__main__":
    answer_lines(Librdkafka)
