"""The classic group protocol over the wire: joins that wait for each other, assignments, silence, elections.

What single requests are answered is recorded, see test_messages.py; the rest is in tests/protocols/broker.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, inject, talk

from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer

SESSION, REBALANCE = 10_000, 30_000
AGAIN, ID_REQUIRED = 27, 79


def joining(member: str = "") -> dict[str, Any]:
    return {"group_id": "g", "session_timeout": SESSION, "rebalance_timeout": REBALANCE, "member_id": member,
            "protocol_type": "consumer", "protocols": ({"name": "range", "metadata": b"m-range"},)}


def naming(member: str, generation: int, **more: Any) -> dict[str, Any]:
    return {"group_id": "g", "member_id": member, "generation_id": generation, **more}


def committing(offset: int) -> dict[str, Any]:
    rows = ({"name": "t", "partitions": ({"partition_index": 0, "committed_offset": offset},)},)
    return {"group_id": "g", "member_id": "", "generation_id": -1, "generation_id_or_member_epoch": -1, "topics": rows}


OF_MEMBERS: tuple[tuple[int, int, dict[str, Any]], ...] = (
    (offer.JOIN_GROUP, 9, joining()), (offer.SYNC_GROUP, 4, naming("m", 1, assignments=())),
    (offer.HEARTBEAT, 4, naming("m", 1)), (offer.LEAVE_GROUP, 4, {"group_id": "g", "members": ({"member_id": "m"},)}),
    (offer.OFFSET_COMMIT, 8, committing(9)),
    (offer.TXN_OFFSET_COMMIT, 3, {**committing(9), "transactional_id": "app", "producer_id": 1, "producer_epoch": 0}),
)
"""Requests that a coordinator of groups answers."""


def error_of(found: dict[str, Any]) -> str:
    """Return the name of an answer's error, of its only partition where it has none for the whole."""
    said = found if "error_code" in found else found["topics"][0]["partitions"][0]
    return NAMES[said["error_code"]]


def new_member(clients: Talk, me: int) -> tuple[str, dict[int, list[dict[str, Any]]]]:
    """Join as a new member does: first for an id, then with it; return the id and what was answered to whom."""
    promised = clients.one(me, offer.JOIN_GROUP, 9, joining())
    assert promised["error_code"] == ID_REQUIRED
    return promised["member_id"], clients.ask(me, offer.JOIN_GROUP, 9, joining(promised["member_id"]))


def assign(clients: Talk, me: int, leader: str, generation: int, *members: str) -> dict[int, list[dict[str, Any]]]:
    """Sync as the leader, with an assignment for each member."""
    rows = tuple({"member_id": member, "assignment": member.encode()} for member in members)
    return clients.ask(me, offer.SYNC_GROUP, 4, naming(leader, generation, assignments=rows))


def pair(clients: Talk) -> tuple[int, int, str, str]:
    """Return the connections and ids of a stable group of two, in generation 2; the first one leads."""
    one, two = clients.connect(), clients.connect()
    first, found = new_member(clients, one)
    assert found[one][0]["generation_id"] == 1 and found[one][0]["leader"] == first
    assert assign(clients, one, first, 1, first)[one][0]["assignment"] == first.encode()
    second, found = new_member(clients, two)
    assert found == {}, "the first member has to join again"
    assert clients.one(one, offer.HEARTBEAT, 4, naming(first, 1))["error_code"] == AGAIN
    found = clients.ask(one, offer.JOIN_GROUP, 9, joining(first))
    leader, follower = found[one][0], found[two][0]
    assert (leader["generation_id"], follower["generation_id"], follower["leader"]) == (2, 2, first)
    assert [m["member_id"] for m in leader["members"]] == [first, second] and follower["members"] == ()
    assert clients.ask(two, offer.SYNC_GROUP, 4, naming(second, 2, assignments=())) == {}
    found = assign(clients, one, first, 2, first, second)
    assert (found[one][0]["assignment"], found[two][0]["assignment"]) == (first.encode(), second.encode())
    return one, two, first, second


def test_who_is_silent_is_dropped_and_the_rest_goes_on() -> None:
    """A session that ends makes the others join again; the next generation is without the silent member.

    A second member had made a generation with both, and both answers of a sync waited for the leader's.
    """
    clients = talk()
    one, two, first, second = pair(clients)
    for connection, member in ((one, first), (two, second)):
        assert clients.one(connection, offer.HEARTBEAT, 4, naming(member, 2))["error_code"] == 0
    clients.wait(SESSION - 1)
    assert clients.one(one, offer.HEARTBEAT, 4, naming(first, 2))["error_code"] == 0
    clients.wait(1)
    assert clients.one(one, offer.HEARTBEAT, 4, naming(first, 2))["error_code"] == AGAIN
    joined = clients.one(one, offer.JOIN_GROUP, 9, joining(first))
    assert (joined["generation_id"], [m["member_id"] for m in joined["members"]]) == (3, [first])
    assert second not in clients.host.cluster.groups("b1").groups["g"].members


@pytest.mark.parametrize("topics", [None, ({"name": "t", "partition_indexes": (0,)},)])
def test_offsets_that_are_not_loaded_are_not_said_to_be_none(topics: Any) -> None:
    """A broker is elected whose log has an offset that is not committed: it says that it loads, others that they do not
    coordinate.
    """
    clients = talk(ports=(0, 0, 0))
    one, two, three = range(1, 4)
    while clients.host.cluster.leader("__consumer_offsets-0") != f"b{one}":
        one, two, three = two, three, one
    connections = {broker: clients.connect(broker) for broker in (one, two, three)}

    def fetched(broker: int) -> tuple[str, list[int]]:
        """Return the error of the whole, and offsets."""
        asked = {"group_id": "g", "topics": topics}
        found = clients.one(connections[broker], offer.OFFSET_FETCH, 5, asked)
        return error_of(found), [row["committed_offset"] for topic in found["topics"] for row in topic["partitions"]]

    none = [] if topics is None else [-1]
    assert error_of(clients.one(connections[one], offer.OFFSET_COMMIT, 8, committing(7))) == "NONE"
    assert fetched(one) == ("NONE", [7])
    assert fetched(two) == fetched(three) == ("NOT_COORDINATOR", none)
    for number, other in enumerate((one, two)):
        inject(clients, number, "partition", broker=other, other=three)
    waits = clients.ask(connections[one], offer.OFFSET_COMMIT, 8, committing(8))
    assert waits == {}, "it waits for a replica that hears nobody"
    clients.written(inject(clients, 2, "elect", partition="__consumer_offsets-0"))
    assert fetched(two) == ("COORDINATOR_LOAD_IN_PROGRESS", none)
    assert fetched(one) == ("NOT_COORDINATOR", none)
    for api, version, fields in OF_MEMBERS:
        errors = [error_of(clients.one(connections[broker], api, version, fields)) for broker in (two, one)]
        assert errors == ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"], api
    clients.wait(2_000)
    assert fetched(two) == ("NONE", [8])


@pytest.mark.parametrize("given", ("app-1", "", None))
def test_classic_member_has_the_client_id_of_its_requests(given: str | None) -> None:
    """Its member id begins with it, and it is described with it; a request without one has an empty id."""
    clients = talk()
    clients.ids[me := clients.connect()] = given
    member, _ = new_member(clients, me)
    assert member.startswith(f"{given or ''}-")
    (group,) = clients.one(me, offer.DESCRIBE_GROUPS, 5, {"groups": ("g",)})["groups"]
    assert [(row["member_id"], row["client_id"]) for row in group["members"]] == [(member, given or "")]
