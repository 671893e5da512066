"""A compacted topic as its leader keeps it, round after round: played on brokers of a test, or on a real one.

    PYTHONPATH=.:tests python -m support.gateway.compacted_log HOST:PORT

prints the rows of tests/data/gateway/compacted.json; the broker's `log.cleaner.backoff.ms` should be 500.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from kafka_proto.gateway import offer
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.records import DELETE_HORIZON, WireRecord, read_header, read_records, split, write_batch
from support.gateway.wire import adding, fetched, initializing, owner_in, produced

Ask = Callable[[int, int, dict[str, Any]], dict[str, Any]]
CONFIGS = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "1.0",
           "delete.retention.ms": "3000"}
RATIO = "min.cleanable.dirty.ratio"
TOPIC, TRANSACTION = 2, 1


class CompactedLog:
    """The topic `t`; `wait` lets so many seconds pass, `now` says what time it is, in milliseconds."""

    def __init__(self, ask: Ask, wait: Callable[[float], object], now: Callable[[], int]) -> None:
        self.ask, self.wait, self.now = ask, wait, now
        self.sequence = 0
        row = {"name": "t", "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": tuple(
            {"name": name, "value": value} for name, value in CONFIGS.items())}
        ask(offer.CREATE_TOPICS, 7, {"timeout": 5_000, "topics": (row,), "validate_only": False})

    def until(self, api: int, version: int, message: dict[str, Any], part: Callable[[Any], Any]) -> Any:
        """Ask until a part of the answer has no error, and return that part."""
        for _ in range(100):
            found = part(self.ask(api, version, message))
            if found.get("error_code", found.get("partition_error_code")) == 0:
                return found
            self.wait(0.2)
        raise TimeoutError(f"api {api}: {found}")

    def write(self, *pairs: tuple[bytes, bytes | None], codec: str = "none", tid: str | None = None,
              **fields: Any) -> None:
        """Write a batch, which is a segment."""
        self.wait(0.02)
        records = [WireRecord(*pair) for pair in pairs]
        data = write_batch(records, base_timestamp=self.now(), codec=codec, **fields)
        self.until(offer.PRODUCE, 9, produced((0, data), tid=tid),
                   lambda found: found["responses"][0]["partition_responses"][0])

    def owner(self, tid: str | None) -> dict[str, int]:
        if tid is not None:
            asked = {"key": tid, "key_type": TRANSACTION}
            self.until(offer.FIND_COORDINATOR, 3, asked, lambda found: found)
        asked = {**initializing(""), "transactional_id": tid}
        return owner_in(self.until(offer.INIT_PRODUCER_ID, 4, asked, lambda found: found))

    def transaction(self, owner: dict[str, int], committed: bool, *pairs: tuple[bytes, bytes]) -> None:
        self.until(offer.ADD_PARTITIONS_TO_TXN, 0, adding("app", owner, 0),
                   lambda found: found["results_by_topic_v3_and_below"][0]["results_by_partition"][0])
        for pair in pairs:
            self.write(pair, tid="app", is_transactional=True, base_sequence=self.sequence, **owner)
            self.sequence += 1
        self.until(offer.END_TXN, 1, {"transactional_id": "app", "committed": committed, **owner},
                   lambda found: found)
        self.wait(0.5)

    def set_ratio(self, value: str) -> None:
        self.ask(offer.INCREMENTAL_ALTER_CONFIGS, 1, {"validate_only": False, "resources": (
            {"resource_type": TOPIC, "resource_name": "t", "configs": (
                {"name": RATIO, "value": value, "config_operation": 0},)},)})

    def compacted(self) -> list[list[Any]]:
        """Let the log be compacted, and return what a reader of committed records is sent then, batch by batch."""
        self.set_ratio("0.01")
        self.wait(5)
        self.set_ratio("1.0")
        self.wait(1)
        return list(self.rows())

    def rows(self) -> Iterator[list[Any]]:
        """Yield the aborted transactions that are told, and of each batch what does not depend on the time."""
        at, producers = 0, dict[int, int]()
        while True:
            (row,) = self.ask(offer.FETCH, 12, fetched(at, level=1))["responses"][0]["partitions"]
            if row["aborted_transactions"]:
                yield ["aborted", *(txn["first_offset"] for txn in row["aborted_transactions"])]
            if not row["records"]:
                return
            for data in split(row["records"]):
                header = read_header(data)
                at = header.base_offset + header.last_offset_delta + 1
                time_ = "none" if header.base_timestamp < 0 else "first"
                records = [] if header.is_control else [
                    [record.offset_delta, (record.key or b"").decode(), record.value and record.value.decode()]
                    for record in read_records(data, header)]
                yield [header.base_offset, header.last_offset_delta, header.count, header.attributes,
                       header.base_sequence, producers.setdefault(header.producer_id, len(producers)),
                       "horizon" if header.attributes & DELETE_HORIZON else time_, records]


def played(log: CompactedLog) -> list[list[list[Any]]]:
    """Return the log after each of five rounds: plain and packed batches, tombstones, sequences, transactions."""
    log.write((b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    log.write((b"a", b"2"), (b"z", b"1"), codec="gzip")
    log.write((b"c", b"2"), (b"a", b"3"))
    log.write((b"b", None))
    alone = log.owner(None)
    log.write((b"p", b"1"), base_sequence=0, **alone)
    log.write((b"p", b"2"), base_sequence=1, **alone)
    log.write((b"p", b"3"))
    owner = log.owner("app")
    log.transaction(owner, False, (b"a", b"void"), (b"q", b"void"))
    log.transaction(owner, True, (b"d", b"1"))
    log.transaction(owner, True, (b"d", b"2"), (b"e", b"1"))
    log.write((b"f", b"1"))
    log.write((b"g", b"1"))
    found = [log.compacted()]
    for key in (b"h", b"i"):
        log.write((key, b"1"))
        found.append(log.compacted())
    log.transaction(owner, True, (b"d", b"3"))
    log.write((b"j", b"1"))
    log.write((b"k", b"1"))
    found.append(log.compacted())
    log.write((b"l", b"1"))
    return [*found, log.compacted()]


if __name__ == "__main__":
    host, _, port = sys.argv[1].partition(":")
    with Client(host, int(port)) as client:
        rows = played(CompactedLog(client.ask, time.sleep, lambda: time.time_ns() // 1_000_000))
    print("[" + ",\n".join("[" + ",\n ".join(map(json.dumps, each)) + "]" for each in rows) + "]")
