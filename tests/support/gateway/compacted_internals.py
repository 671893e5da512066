"""The brokers' own topics as compaction leaves them, round after round: played on brokers of a test, or on a real one.

    PYTHONPATH=.:tests python -m support.gateway.compacted_internals HOST:PORT

prints the rows of tests/data/gateway/compacted_internals.json; the broker's `log.cleaner.backoff.ms` should be 500.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from kafka_proto.gateway import offer
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.records import DELETE_HORIZON, read_header, read_records, split
from support.gateway.wire import fetched, initializing

Ask = Callable[[int, int, dict[str, Any]], dict[str, Any]]
Row = list[Any]
TOPICS = ("__consumer_offsets", "__transaction_state")
CONFIGS = {"segment.ms": "1", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "3000"}
GROUP, TRANSACTION, TOPIC = 0, 1, 2


class CompactedInternals:
    """Groups commit offsets of `t-0`, transactional ids are initialised; `wait` lets so many seconds pass."""

    def __init__(self, ask: Ask, wait: Callable[[float], object]) -> None:
        self.ask, self.wait = ask, wait
        row = {"name": "t", "num_partitions": 1, "replication_factor": -1, "assignments": (), "configs": ()}
        ask(offer.CREATE_TOPICS, 7, {"timeout": 5_000, "topics": (row,), "validate_only": False})
        for kind in (GROUP, TRANSACTION):
            self.until(offer.FIND_COORDINATOR, 3, {"key": "g", "key_type": kind}, lambda found: found)
        self.commit("g", 0)
        self.init("a")
        rows = tuple({"name": name, "value": value, "config_operation": 0} for name, value in CONFIGS.items())
        for topic in TOPICS:
            resource = {"resource_type": TOPIC, "resource_name": topic, "configs": rows}
            self.until(offer.INCREMENTAL_ALTER_CONFIGS, 1, {"validate_only": False, "resources": (resource,)},
                       lambda found: found["responses"][0])

    def until(self, api: int, version: int, message: dict[str, Any], part: Callable[[Any], Any]) -> Any:
        """Ask until a part of the answer has no error, and return that part; what is written next is later."""
        for _ in range(100):
            found = part(self.ask(api, version, message))
            if found["error_code"] == 0:
                self.wait(0.02)
                return found
            self.wait(0.2)
        raise TimeoutError(f"api {api}: {found}")

    def commit(self, group: str, offset: int) -> None:
        """Let a group commit an offset, without a member."""
        partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
        self.until(offer.OFFSET_COMMIT, 8, {
            "group_id": group, "generation_id_or_member_epoch": -1, "member_id": "",
            "topics": ({"name": "t", "partitions": (partition,)},)}, lambda found: found["topics"][0]["partitions"][0])

    def committed(self, group: str) -> int:
        """Return a group's offset."""
        found = self.ask(offer.OFFSET_FETCH, 5, {"group_id": group, "topics": (
            {"name": "t", "partition_indexes": (0,)},)})["topics"][0]["partitions"][0]
        return int(found["committed_offset"])

    def delete(self, group: str) -> None:
        self.until(offer.DELETE_GROUPS, 2, {"groups_names": (group,)}, lambda found: found["results"][0])

    def init(self, tid: str) -> int:
        """Initialise a transactional id, and return its epoch."""
        return int(self.until(offer.INIT_PRODUCER_ID, 4, initializing(tid), lambda found: found)["producer_epoch"])

    def batches(self, topic: str) -> list[Row]:
        """Return the batches of a topic: offset, span, sequence, whether tombstones may go some time, records.

        A real broker sends those of one segment at a time.
        """
        rows: list[Row] = []
        while True:
            wanted = fetched(rows[-1][0] + rows[-1][1] + 1 if rows else 0)
            (asked,) = wanted["topics"]
            found = self.ask(offer.FETCH, 12, {**wanted, "topics": ({**asked, "topic": topic},)})
            data = found["responses"][0]["partitions"][0]["records"]
            if not data:
                return rows
            for batch in split(data):
                header = read_header(batch)
                rows.append([header.base_offset, header.last_offset_delta, header.base_sequence,
                             bool(header.attributes & DELETE_HORIZON), [
                    [header.base_offset + each.offset_delta, (each.key or b"").hex(), each.value is not None]
                    for each in read_records(batch, header)]])

    def all(self) -> dict[str, list[Row]]:
        return {topic: self.batches(topic) for topic in TOPICS}


def played(log: CompactedInternals) -> list[dict[str, list[Row]]]:
    """Return both logs after each round: values replaced, a group that is gone, tombstones that go."""
    for offset in (1, 2):
        log.commit("g", offset)
        log.init("a")
    log.commit("h", 1)
    log.delete("h")
    log.init("b")
    log.commit("g", 4)
    log.init("a")
    log.wait(2)
    found = [log.all()]
    log.commit("i", 1)
    log.init("c")
    log.wait(4)
    log.commit("g", 5)
    log.init("b")
    log.wait(2)
    found.append(log.all())
    return found


def main() -> None:
    host, _, port = sys.argv[1].partition(":")
    with Client(host, int(port)) as client:
        rows = played(CompactedInternals(client.ask, time.sleep))
    print("[" + ",\n".join(json.dumps(row) for row in rows) + "]")


if __name__ == "__main__":
    main()
