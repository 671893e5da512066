"""A broker whose disk is slow loses by a crash what it has acknowledged meanwhile; replicas on other disks keep it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, fetched, inject, produced, talk

from kafka_proto.gateway import offer
from kafka_proto.gateway.inputs import Ended
from kafka_proto.gateway.records import WireRecord, read_header, read_records, split, write_batch


def leader(clients: Talk) -> int:
    return int(clients.host.cluster.leader("t-0")[1:])


def write(clients: Talk, value: bytes) -> int:
    """Write a record to all replicas, and return its offset."""
    me = clients.connect(leader(clients))
    batch = write_batch((WireRecord(None, value),), base_timestamp=5)
    answer = clients.one(me, offer.PRODUCE, 9, produced((0, batch), acks=-1))
    row = answer["responses"][0]["partition_responses"][0]
    assert row["error_code"] == 0
    return int(row["base_offset"])


def values(clients: Talk) -> list[bytes | None]:
    """Return what is in `t-0`."""
    found = clients.one(clients.connect(leader(clients)), offer.FETCH, 12, fetched(0))["responses"][0]["partitions"][0]
    return [record.value for batch in split(found["records"]) for record in read_records(batch, read_header(batch))]


def crashed(clients: Talk, number: int, broker: int) -> None:
    """Let a broker crash, and start again."""
    inject(clients, number, "crash", broker=broker)
    clients.give(Ended(number, clients.now))


def problems(clients: Talk) -> dict[str, Any]:
    return clients.host.problems()


def test_one_broker_with_a_slow_disk_loses_what_it_acknowledged() -> None:
    """What came before stays; once the disk is well, nothing is lost by a crash any more."""
    clients = talk({"t": 1})
    write(clients, b"before")
    inject(clients, 1, "slow_disk", broker=1)
    write(clients, b"lost")
    assert values(clients) == [b"before", b"lost"]
    crashed(clients, 2, 1)
    assert values(clients) == [b"before"]
    assert problems(clients)["AcknowledgedOnce"] == "offset 1 was acknowledged, but is not in t-0"
    assert write(clients, b"again") == 1
    crashed(clients, 3, 1)
    assert values(clients) == [b"before"], "the disk is still slow"
    clients.give(Ended(1, clients.now))
    write(clients, b"kept")
    crashed(clients, 4, 1)
    assert values(clients) == [b"before", b"kept"]


def test_another_disk_keeps_what_a_slow_one_loses() -> None:
    """The leader comes back with less, follows, and has all again; nothing acknowledged is missing."""
    clients = talk({"t": 1}, ports=(0, 0, 0))
    write(clients, b"one")
    slow = leader(clients)
    inject(clients, 1, "slow_disk", broker=slow)
    write(clients, b"two")
    crashed(clients, 2, slow)
    assert values(clients) == [b"one", b"two"] and problems(clients) == {}


def test_slow_disks_everywhere_lose_what_all_replicas_had() -> None:
    """All replicas crash at once: what all had is lost, though all of them had it."""
    clients = talk({"t": 1}, ports=(0, 0, 0))
    write(clients, b"one")
    for broker in (1, 2, 3):
        inject(clients, broker, "slow_disk", broker=broker)
    write(clients, b"two")
    for broker in (1, 2, 3):
        inject(clients, 3 + broker, "crash", broker=broker)
    for broker in (1, 2, 3):
        clients.give(Ended(3 + broker, clients.now))
    assert values(clients) == [b"one"]
    assert "AcknowledgedOnce" in problems(clients)
