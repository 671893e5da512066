"""Features of kafka-python."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

from feature_program import answer_lines, same
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

WAIT = 20


def producer(servers: str, transactional_id: str | None = None) -> Any:
    """Return a producer, initialized where it is transactional."""
    made = KafkaProducer(bootstrap_servers=servers.split(","), transactional_id=transactional_id,
                         request_timeout_ms=3000, enable_idempotence=True)
    if transactional_id is not None:
        made.init_transactions()
    return made


def consumer(servers: str, group: str | None, isolation: str) -> Any:
    """Return a consumer that commits when it is told to."""
    return KafkaConsumer(bootstrap_servers=servers.split(","), group_id=group, isolation_level=isolation,
                         auto_offset_reset="earliest", enable_auto_commit=False)


def read(servers: str, topic: str, isolation: str) -> list[str]:
    """Return what a topic's first partition has."""
    found, partition, until = [], TopicPartition(topic, 0), time.monotonic() + WAIT
    with closing(consumer(servers, None, isolation)) as reader:
        reader.assign([partition])
        end = reader.end_offsets([partition])[partition]
        reader.seek_to_beginning(partition)
        while reader.position(partition) < end and time.monotonic() < until:
            for records in reader.poll(200).values():
                found += [record.value.decode() for record in records]
    return found


def produce(servers: str) -> None:
    with closing(producer(servers)) as made:
        sent = [made.send("kp-produce", value, partition=0) for value in (b"a", b"b", b"c")]
        same([0, 1, 2], [each.get(WAIT).offset for each in sent])
    same(["a", "b", "c"], read(servers, "kp-produce", "read_uncommitted"))


def group(servers: str) -> None:
    with closing(producer(servers)) as made:
        for value in (b"a", b"b"):
            made.send("kp-group", value, partition=0).get(WAIT)
            with closing(consumer(servers, "kp-group", "read_committed")) as member:
                member.subscribe(["kp-group"])
                same(value, next(member).value)
                member.commit()


def transaction(made: Any, topic: str, value: str, commits: bool) -> None:
    """Write one record, and end."""
    made.begin_transaction()
    made.send(topic, value.encode(), partition=0).get(WAIT)
    if commits:
        made.commit_transaction()
    else:
        made.abort_transaction()


def commit(servers: str) -> None:
    with closing(producer(servers, "kp-commit")) as made:
        for value in ("a", "b"):
            transaction(made, "kp-commit", value, True)
    same(["a", "b"], read(servers, "kp-commit", "read_committed"))


def abort(servers: str) -> None:
    with closing(producer(servers, "kp-abort")) as made:
        transaction(made, "kp-abort", "x", False)
        transaction(made, "kp-abort", "a", True)
    same(["a"], read(servers, "kp-abort", "read_committed"))
    same(["x", "a"], read(servers, "kp-abort", "read_uncommitted"))


def offsets(servers: str) -> None:
    partition = TopicPartition("kp-offsets", 0)
    with closing(producer(servers, "kp-offsets")) as made:
        for offset in (1, 2):
            made.begin_transaction()
            made.send("kp-offsets", b"a", partition=0).get(WAIT)
            made.send_offsets_to_transaction({partition: OffsetAndMetadata(offset, "", -1)}, "kp-offsets")
            if offset == 1:
                made.commit_transaction()
            else:
                made.abort_transaction()
    with closing(consumer(servers, "kp-offsets", "read_committed")) as member:
        same(1, member.committed(partition))


def fencing(servers: str) -> None:
    with closing(producer(servers, "kp-fencing")) as first, closing(producer(servers, "kp-fencing")) as second:
        try:
            transaction(first, "kp-fencing", "x", True)
        except KafkaError as error:
            same(True, "Fenced" in type(error).__name__ or "InvalidProducerEpoch" in type(error).__name__)
        else:
            raise AssertionError("the first producer was not fenced")
        transaction(second, "kp-fencing", "a", True)
        same(["a"], read(servers, "kp-fencing", "read_committed"))


def retries(servers: str) -> None:
    """Whoever asks for it lets brokers fail meanwhile."""
    values = []
    with closing(producer(servers, "kp-retries")) as made:
        for number in range(12):
            commits = number % 3 != 2
            transaction(made, "kp-retries", str(number), commits)
            values += [str(number)] if commits else []
            time.sleep(0.05)
    same(values, read(servers, "kp-retries", "read_committed"))


if __name__ == "__main__":
    answer_lines({feature.__name__: feature for feature in (produce, group, commit, abort, offsets, fencing, retries)})
