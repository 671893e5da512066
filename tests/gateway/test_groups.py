"""The classic group protocol over the wire: joins that wait for each other, assignments, silence, static members."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, inject, talk

from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer

SESSION, REBALANCE = 10_000, 30_000
FENCED, UNKNOWN, ILLEGAL, AGAIN, ID_REQUIRED = 82, 25, 22, 27, 79


def joining(member: str = "", instance: str | None = None, protocols: tuple[str, ...] = ("range",)) -> dict[str, Any]:
    return {"group_id": "g", "session_timeout": SESSION, "rebalance_timeout": REBALANCE, "member_id": member,
            "group_instance_id": instance, "protocol_type": "consumer",
            "protocols": tuple({"name": name, "metadata": b"m-" + name.encode()} for name in protocols)}


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


def new_member(clients: Talk, me: int, **how: Any) -> tuple[str, dict[int, list[dict[str, Any]]]]:
    """Join as a new member does: first for an id, then with it; return the id and what was answered to whom."""
    promised = clients.one(me, offer.JOIN_GROUP, 9, joining(**how))
    assert promised["error_code"] == ID_REQUIRED
    return promised["member_id"], clients.ask(me, offer.JOIN_GROUP, 9, joining(promised["member_id"], **how))


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


def test_two_members_get_what_their_leader_gives_them() -> None:
    """A second member makes a generation with both; both answers of a sync wait for the leader's."""
    clients = talk()
    one, two, first, second = pair(clients)
    for connection, member in ((one, first), (two, second)):
        assert clients.one(connection, offer.HEARTBEAT, 4, naming(member, 2))["error_code"] == 0


def test_requests_of_others_and_of_old_generations_are_refused() -> None:
    """Who is no member, or speaks of another generation, is told so; and so is a commit of offsets."""
    clients = talk()
    one, _, first, _ = pair(clients)
    assert clients.one(one, offer.HEARTBEAT, 4, naming("nobody", 2))["error_code"] == UNKNOWN
    assert clients.one(one, offer.HEARTBEAT, 4, naming(first, 1))["error_code"] == ILLEGAL
    assert clients.one(one, offer.SYNC_GROUP, 4, naming(first, 1, assignments=()))["error_code"] == ILLEGAL
    assert clients.one(one, offer.JOIN_GROUP, 9, joining("nobody"))["error_code"] == UNKNOWN
    assert clients.one(one, offer.JOIN_GROUP, 9, joining(protocols=("other",)))["error_code"] == 23

    def committed(generation: int) -> int:
        rows = ({"name": "t", "partitions": ({"partition_index": 0, "committed_offset": 7},)},)
        fields = {"group_id": "g", "member_id": first, "generation_id_or_member_epoch": generation, "topics": rows}
        return int(clients.one(one, offer.OFFSET_COMMIT, 8, fields)["topics"][0]["partitions"][0]["error_code"])

    assert (committed(1), committed(2)) == (ILLEGAL, 0)
    asked = {"groups": ({"group_id": "g", "topics": None},), "require_stable": True}
    (group,) = clients.one(one, offer.OFFSET_FETCH, 8, asked)["groups"]
    assert group["topics"][0]["partitions"][0]["committed_offset"] == 7


def test_who_is_silent_is_dropped_and_the_rest_goes_on() -> None:
    """A session that ends makes the others join again; the next generation is without the silent member."""
    clients = talk()
    one, _, first, second = pair(clients)
    clients.wait(SESSION - 1)
    assert clients.one(one, offer.HEARTBEAT, 4, naming(first, 2))["error_code"] == 0
    clients.wait(1)
    assert clients.one(one, offer.HEARTBEAT, 4, naming(first, 2))["error_code"] == AGAIN
    joined = clients.one(one, offer.JOIN_GROUP, 9, joining(first))
    assert (joined["generation_id"], [m["member_id"] for m in joined["members"]]) == (3, [first])
    assert second not in clients.host.cluster.groups("b1").groups["g"].members


def test_two_who_are_silent_are_dropped_at_once_where_the_first_ends_a_rebalance() -> None:
    """Time may pass in one step, over both sessions and the rebalance that a third member began."""
    clients = talk()
    pair(clients)
    three = clients.connect()
    third, _ = new_member(clients, three)
    clients.wait(REBALANCE)
    assert list(clients.host.cluster.groups("b1").groups["g"].members) == [third]


def test_who_does_not_join_again_in_time_is_left_behind() -> None:
    """A rebalance ends with those that joined when its time is over, though the other still heartbeats."""
    clients = talk()
    one, two, first, second = pair(clients)
    assert clients.ask(two, offer.JOIN_GROUP, 9, joining(second, protocols=("range", "sticky"))) == {}
    for _ in range(4):
        clients.wait(REBALANCE // 5)
        assert clients.one(one, offer.HEARTBEAT, 4, naming(first, 2))["error_code"] == AGAIN
    (joined,) = clients.wait(REBALANCE // 5)[two]
    assert (joined["generation_id"], joined["leader"]) == (3, second)
    assert clients.one(one, offer.HEARTBEAT, 4, naming(first, 2))["error_code"] == UNKNOWN


def test_a_member_that_leaves_is_gone_at_once() -> None:
    """LeaveGroup makes the others join again; leaving twice is an unknown member."""
    clients = talk()
    one, two, first, second = pair(clients)
    leaving = {"group_id": "g", "members": ({"member_id": second},)}
    (left,) = clients.one(two, offer.LEAVE_GROUP, 4, leaving)["members"]
    (again,) = clients.one(two, offer.LEAVE_GROUP, 4, leaving)["members"]
    assert (left["error_code"], again["error_code"]) == (0, UNKNOWN)
    assert clients.one(one, offer.HEARTBEAT, 4, naming(first, 2))["error_code"] == AGAIN


@pytest.mark.parametrize("version", [5, 8, 9])
def test_a_static_leader_comes_back_without_a_rebalance(version: int) -> None:
    """A new process of the same instance takes over the assignment, and its former self is fenced (KIP-345).

    It shall not assign anew: its former self is said to lead, from version 9 on it is told so (KAFKA-7728, KIP-814).
    """
    clients = talk()
    one, two = clients.connect(), clients.connect()
    joined = clients.one(one, offer.JOIN_GROUP, version, joining(instance="i"))
    former = joined["member_id"]
    assign(clients, one, former, 1, former)
    back = clients.one(two, offer.JOIN_GROUP, version, joining(instance="i"))
    assert (back["error_code"], back["generation_id"]) == (0, 1)
    told = back["leader"], [member["member_id"] for member in back["members"]], back.get("skip_assignment", False)
    assert told == ((back["member_id"], [back["member_id"]], True) if version == 9 else (former, [], False))
    synced = clients.one(two, offer.SYNC_GROUP, 4, naming(back["member_id"], 1, group_instance_id="i", assignments=()))
    assert synced["assignment"] == former.encode()
    late = clients.one(one, offer.HEARTBEAT, 4, naming(former, 1, group_instance_id="i"))
    assert late["error_code"] == FENCED


def test_the_protocol_is_one_that_all_members_know() -> None:
    """Members vote for what they prefer among what all know."""
    clients = talk()
    one, two = clients.connect(), clients.connect()
    first, _ = new_member(clients, one, protocols=("sticky", "range"))
    _, found = new_member(clients, two, protocols=("range", "round"))
    assert found == {}
    found = clients.ask(one, offer.JOIN_GROUP, 9, joining(first, protocols=("sticky", "range")))
    assert {found[one][0]["protocol_name"], found[two][0]["protocol_name"]} == {"range"}


def test_an_id_that_nobody_comes_back_with_lapses() -> None:
    """A rebalance waits for who was given an id, but no longer than a session."""
    clients = talk()
    one, two = clients.connect(), clients.connect()
    assert clients.one(two, offer.JOIN_GROUP, 9, joining())["error_code"] == ID_REQUIRED
    _, found = new_member(clients, one)
    assert found == {}
    assert clients.wait(SESSION)[one][0]["generation_id"] == 1
    assert clients.one(two, offer.JOIN_GROUP, 9, {**joining(), "session_timeout": 5})["error_code"] == 26


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
