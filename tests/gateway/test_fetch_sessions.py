"""Fetch sessions: a reader names its partitions once, and is told what is new of them (KIP-227)."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, inject, produced, talk

from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.records import WireRecord, write_batch

DATA = write_batch((WireRecord(None, b"v"),), base_timestamp=5)


def session(number: int, epoch: int, *partitions: tuple[int, int], wait: int = 0, forgotten: tuple[int, ...] = ()
            ) -> dict[str, Any]:
    """Return a fetch of a session, with some partitions of `t`, each with its offset."""
    rows = tuple({"partition": index, "fetch_offset": offset, "partition_max_bytes": 2**20}
                 for index, offset in partitions)
    return {"max_wait": wait, "min_bytes": 1, "max_bytes": 2**20, "isolation_level": 0, "session_id": number,
            "session_epoch": epoch, "topics": ({"topic": "t", "partitions": rows},) if rows else (),
            "forgotten_topics_data": ({"topic": "t", "partitions": forgotten},) if forgotten else ()}


def fetch(clients: Talk, me: int, *about: Any, **more: Any) -> tuple[str, int, dict[int, str]]:
    """Return error and number of the session, and each partition that is in the answer with its error."""
    found = clients.one(me, offer.FETCH, 12, session(*about, **more))
    rows = [row for topic in found["responses"] for row in topic["partitions"]]
    return NAMES[found["error_code"]], found["session_id"], {
        row["partition_index"]: NAMES[row["error_code"]] for row in rows}


def test_only_news_is_told() -> None:
    """The first answer has every partition, the next ones those with records, with another offset or an error."""
    clients = talk({"t": 3})
    me = clients.connect()
    error, number, rows = fetch(clients, me, 0, 0, (0, 0), (1, 0), (2, 0))
    assert (error, rows) == ("NONE", dict.fromkeys(range(3), "NONE")) and number > 0
    assert fetch(clients, me, number, 1) == ("NONE", number, {})
    clients.one(me, offer.PRODUCE, 9, produced((1, DATA)))
    assert fetch(clients, me, number, 2) == ("NONE", number, {1: "NONE"})
    assert fetch(clients, me, number, 3, (1, 1)) == ("NONE", number, {})
    assert fetch(clients, me, number, 4, (7, 0)) == ("NONE", number, {7: "UNKNOWN_TOPIC_OR_PARTITION"})
    assert fetch(clients, me, number, 5, forgotten=(0, 2, 7)) == ("NONE", number, {})
    clients.one(me, offer.PRODUCE, 9, produced((0, DATA), (1, DATA)))
    assert fetch(clients, me, number, 6) == ("NONE", number, {1: "NONE"})


def test_a_fetch_of_a_session_waits_for_its_partitions() -> None:
    """It names none, and is answered by a record in one of them, not by one elsewhere."""
    clients = talk({"t": 3})
    me, other = clients.connect(), clients.connect()
    _, number, _ = fetch(clients, me, 0, 0, (0, 0))
    assert clients.ask(me, offer.FETCH, 12, session(number, 1, wait=500)) == {}
    assert me not in clients.ask(other, offer.PRODUCE, 9, produced((1, DATA)))
    assert me in clients.ask(other, offer.PRODUCE, 9, produced((0, DATA)))


def test_a_session_goes_by_names_or_by_ids_and_not_by_both() -> None:
    """Versions up to 12 name topics, later ones have their ids (KIP-516): a session stays with what it began with."""
    clients = talk({"t": 1})
    me = clients.connect()
    _, number, _ = fetch(clients, me, 0, 0, (0, 0))
    assert NAMES[clients.one(me, offer.FETCH, 13, session(number, 1))["error_code"]] == "FETCH_SESSION_TOPIC_ID_ERROR"
    assert fetch(clients, me, number, 1) == ("NONE", number, {})


def test_sessions_end() -> None:
    """By a last epoch, by another whole fetch, without partitions, and when the broker stops; epochs go in turn."""
    clients = talk({"t": 1})
    me = clients.connect()
    _, first, _ = fetch(clients, me, 0, 0, (0, 0))
    assert fetch(clients, me, first, 2)[0] == "INVALID_FETCH_SESSION_EPOCH"
    _, second, _ = fetch(clients, me, first, 0, (0, 0))
    assert fetch(clients, me, first, 1) == ("FETCH_SESSION_ID_NOT_FOUND", 0, {})
    assert fetch(clients, me, second, 1, forgotten=(0,)) == ("NONE", 0, {})
    assert fetch(clients, me, second, 2)[0] == "FETCH_SESSION_ID_NOT_FOUND"
    _, third, _ = fetch(clients, me, 0, 0, (0, 0))
    assert fetch(clients, me, third, -1, (0, 0)) == ("NONE", 0, {0: "NONE"})
    assert fetch(clients, me, third, 1)[0] == "FETCH_SESSION_ID_NOT_FOUND"
    _, fourth, _ = fetch(clients, me, 0, 0, (0, 0))
    inject(clients, 1, "crash", broker=1, for_ms=10)
    clients.wait(10)
    assert fetch(clients, clients.connect(), fourth, 1)[0] == "FETCH_SESSION_ID_NOT_FOUND"
