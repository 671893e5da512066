"""Features of librdkafka, by confluent-kafka."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from feature_program import answer_lines, same

WAIT = 20.0


def producer(servers: str, transactional_id: str = "", **settings: object) -> Any:
    """Return a producer, initialized where it is transactional."""
    transactional = {"transactional.id": transactional_id} if transactional_id else {}
    made = Producer({"bootstrap.servers": servers, "linger.ms": 0, "socket.timeout.ms": 3000, **transactional,
                     **settings})
    if transactional_id:
        made.init_transactions(WAIT)
    return made


def consumer(servers: str, group: str, isolation: str) -> Any:
    """Return a consumer that commits when it is told to."""
    return Consumer({"bootstrap.servers": servers, "group.id": group, "isolation.level": isolation,
                     "auto.offset.reset": "earliest", "enable.auto.commit": False})


def read(servers: str, topic: str, isolation: str) -> list[str]:
    """Return what a topic's first partition has."""
    found, reader = [], consumer(servers, "reads", isolation)
    _, end = reader.get_watermark_offsets(TopicPartition(topic, 0), WAIT)
    reader.assign([TopicPartition(topic, 0, 0)])
    until, here = time.monotonic() + WAIT, 0
    while here < end and time.monotonic() < until:
        message = reader.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message.value().decode())
        here = max(here, reader.position([TopicPartition(topic, 0)])[0].offset)
        if message is None and found:
            break  # markers at the end move no position
    reader.close()
    return found


def produce(servers: str) -> None:
    offsets: list[int] = []
    made = producer(servers)
    for value in ("a", "b", "c"):
        made.produce("rd-produce", value, partition=0, callback=lambda error, sent: offsets.append(sent.offset()))
    same(0, made.flush(WAIT))
    same([0, 1, 2], offsets)
    same(["a", "b", "c"], read(servers, "rd-produce", "read_uncommitted"))


def group(servers: str) -> None:
    made = producer(servers)
    for value in ("a", "b"):
        made.produce("rd-group", value, partition=0)
        same(0, made.flush(WAIT))
        member = consumer(servers, "rd-group", "read_committed")
        member.subscribe(["rd-group"])
        same([value], [message.value().decode() for message in member.consume(1, WAIT)])
        member.commit(asynchronous=False)
        member.close()


def transaction(made: Any, topic: str, value: str, commits: bool) -> None:
    """Write one record, and end."""
    made.begin_transaction()
    made.produce(topic, value, partition=0)
    if commits:
        made.commit_transaction(WAIT)
    else:
        same(0, made.flush(WAIT))
        made.abort_transaction(WAIT)


def commit(servers: str) -> None:
    made = producer(servers, "rd-commit")
    for value in ("a", "b"):
        transaction(made, "rd-commit", value, True)
    same(["a", "b"], read(servers, "rd-commit", "read_committed"))


def abort(servers: str) -> None:
    made = producer(servers, "rd-abort")
    transaction(made, "rd-abort", "x", False)
    transaction(made, "rd-abort", "a", True)
    same(["a"], read(servers, "rd-abort", "read_committed"))
    same(["x", "a"], read(servers, "rd-abort", "read_uncommitted"))


def offsets(servers: str) -> None:
    made, member = producer(servers, "rd-offsets"), consumer(servers, "rd-offsets", "read_committed")
    for offset in (1, 2):
        made.begin_transaction()
        made.produce("rd-offsets", "a", partition=0)
        made.send_offsets_to_transaction(
            [TopicPartition("rd-offsets", 0, offset)], member.consumer_group_metadata(), WAIT)
        if offset == 1:
            made.commit_transaction(WAIT)
        else:
            made.abort_transaction(WAIT)
    (found,) = member.committed([TopicPartition("rd-offsets", 0)], WAIT)
    same(1, found.offset)
    member.close()


def fencing(servers: str) -> None:
    first, second = producer(servers, "rd-fencing"), producer(servers, "rd-fencing")
    try:
        transaction(first, "rd-fencing", "x", True)
    except KafkaException as error:
        same(True, error.args[0].fatal())
    else:
        raise AssertionError("the first producer was not fenced")
    transaction(second, "rd-fencing", "a", True)
    same(["a"], read(servers, "rd-fencing", "read_committed"))


def retries(servers: str) -> None:
    """Whoever asks for it lets brokers fail meanwhile."""
    made, values = producer(servers, "rd-retries"), []
    for number in range(12):
        commits = number % 3 != 2
        transaction(made, "rd-retries", str(number), commits)
        values += [str(number)] if commits else []
        time.sleep(0.05)
    same(values, read(servers, "rd-retries", "read_committed"))


def load(servers: str, seconds: str, seed: str, pause_ms: str) -> None:
    """Run transactions for some seconds, drawn from a seed, as an application does that goes on whatever happens."""
    chance, counts = random.Random(int(seed)), Counter[str]()
    until, made = time.monotonic() + float(seconds), None
    reader = consumer(servers, "reads", "read_committed")
    reader.assign([TopicPartition("load", partition, 0) for partition in range(2)])
    while time.monotonic() < until:
        try:
            if made is None:
                made = producer(servers, "app", **{
                    "socket.timeout.ms": 1000, "message.timeout.ms": 5000, "transaction.timeout.ms": 20000})
                counts["producers"] += 1
            counts[drawn(made, chance)] += 1
        except KafkaException as error:
            counts[error.args[0].name()] += 1
            if made is None or not aborted(made, error):
                made = None
        counts["read"] += sum(message.error() is None for message in reader.consume(100, 0.005))
        time.sleep(int(pause_ms) / 1000)
    reader.close()
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


FEATURES = {feature.__name__: feature for feature in (
    produce, group, commit, abort, offsets, fencing, retries, load)}

if __name__ == "__main__":
    answer_lines(FEATURES)
