"""Consumer groups (KIP-848) over the wire: who has which partitions when, and what fences a member."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, inject, talk

from kafka_proto.broker.group import consumer_group
from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.cluster import KafkaCluster

REBALANCE_MS, SESSION_MS = 10_000, 45_000
OFFSETS = "__consumer_offsets-0"


def error(row: dict[str, Any]) -> str:
    return NAMES[row["error_code"]]


class Group:
    """Members of the group `g` that heartbeat on one connection; a member has the partitions that it was told."""

    def __init__(self, clients: Talk, version: int = 1) -> None:
        self.clients, self.version = clients, version
        self.here = clients.connect()
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, list[int]] = {}
        (row,) = clients.one(self.here, offer.METADATA, 13, {"topics": ({"name": "t"},)})["topics"]
        self.topic_id = row["topic_id"]

    def ask(self, member: str, **said: Any) -> dict[str, Any]:
        """Send a heartbeat, of what is said and nothing else."""
        return self.clients.one(self.here, offer.CONSUMER_GROUP_HEARTBEAT, self.version, {
            "group_id": "g", "member_id": member, "rebalance_timeout": -1, "topic_partitions": None,
            "subscribed_topic_names": None, **said})

    def beat(self, member: str, **said: Any) -> list[int]:
        """Send a heartbeat of a member, and return the partitions that it may have now."""
        partitions = ({"topic_id": self.topic_id, "partitions": tuple(self.owned[member])},)
        self.heard(member, self.ask(member, **{
            "member_epoch": self.epochs[member], "topic_partitions": partitions, **said}))
        return self.owned[member]

    def join(self, member: str, **said: Any) -> list[int]:
        self.owned[member] = []
        self.heard(member, self.ask(member, **{
            "member_epoch": 0, "rebalance_timeout": REBALANCE_MS, "topic_partitions": (),
            "subscribed_topic_names": ("t",), **said}))
        return self.owned[member]

    def heard(self, member: str, answer: dict[str, Any]) -> None:
        assert error(answer) == "NONE", answer
        self.epochs[member] = answer["member_epoch"]
        if answer["assignment"] is not None:
            rows = answer["assignment"]["topic_partitions"]
            assert all(row["topic_id"] == self.topic_id for row in rows)
            self.owned[member] = [index for row in rows for index in row["partitions"]]

    def commit(self, member: str, epoch: int, version: int = 9, offset: int = 5) -> str:
        found = self.clients.one(self.here, offer.OFFSET_COMMIT, version, {
            "group_id": "g", "member_id": member, "generation_id_or_member_epoch": epoch,
            "topics": ({"name": "t", "partitions": ({"partition_index": 0, "committed_offset": offset},)},)})
        return error(found["topics"][0]["partitions"][0])

    def fetch(self, member: str | None, epoch: int) -> str:
        groups = ({"group_id": "g", "member_id": member, "member_epoch": epoch, "topics": None},)
        return error(self.clients.one(self.here, offer.OFFSET_FETCH, 9, {"groups": groups})["groups"][0])

    def fetched(self, member: str, epoch: int) -> tuple[int, str]:
        """Return the offset of the first partition, and its error."""
        topics = ({"name": "t", "partition_indexes": (0,)},)
        groups = ({"group_id": "g", "member_id": member, "member_epoch": epoch, "topics": topics},)
        (found,) = self.clients.one(self.here, offer.OFFSET_FETCH, 9, {"groups": groups})["groups"]
        (row,) = found["topics"][0]["partitions"]
        return row["committed_offset"], error(row)

    def described(self) -> dict[str, Any]:
        (row,) = self.clients.one(self.here, offer.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": ("g",)})["groups"]
        return dict(row)


def test_a_partition_is_given_away_before_another_member_has_it() -> None:
    """One member has all; with a second it is told to give two up, and only when it has are they the other's."""
    group = Group(talk({"t": 4}))
    assert group.join("a") == [0, 1, 2, 3]
    assert group.join("b") == [] and group.described()["group_state"] == "Reconciling"
    assert group.epochs == {"a": 1, "b": 2}
    assert group.beat("a") == [0, 1] and group.epochs["a"] == 1  # it still has to give the others up
    assert group.beat("b") == []
    assert group.beat("a") == [0, 1] and group.epochs["a"] == 2
    assert group.beat("b") == [2, 3]
    found = group.described()
    assert (found["group_state"], found["group_epoch"], found["assignment_epoch"], found["assignor_name"]) == (
        "Stable", 2, 2, "uniform")
    assert [(row["member_id"], row["member_epoch"], row["assignment"]["topic_partitions"][0]["partitions"])
            for row in found["members"]] == [("a", 2, (0, 1)), ("b", 2, (2, 3))]
    group.ask("a", member_epoch=-1)
    assert group.beat("b") == [0, 1, 2, 3] and group.epochs["b"] == 3


@pytest.mark.parametrize("given", ("app-1", "", None))
def test_member_has_the_client_id_of_its_requests(given: str | None) -> None:
    """A request without one is one with an empty id: the protocol's field is nullable, the description's is not."""
    group = Group(talk({"t": 1}))
    group.clients.ids[group.here] = given
    group.join("a")
    assert [row["client_id"] for row in group.described()["members"]] == [given or ""]


def test_offsets_are_fenced_by_the_members_epoch() -> None:
    """A commit or fetch of another epoch is stale, before version 9 there is none to say; nobody else may commit."""
    group = Group(talk({"t": 1}))
    group.join("a")
    assert group.commit("a", 1) == "NONE" and group.commit("a", 0) == "STALE_MEMBER_EPOCH"
    assert group.commit("a", 1, version=8) == "UNSUPPORTED_VERSION"
    assert group.commit("b", 1) == "UNKNOWN_MEMBER_ID" and group.commit("", -1) == "UNKNOWN_MEMBER_ID"
    assert [group.fetch(*who) for who in (("a", 1), (None, -1), ("a", 7), ("b", 1))] == [
        "NONE", "NONE", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"]
    assert [group.fetched("a", epoch) for epoch in (1, 7)] == [(5, "NONE"), (-1, "STALE_MEMBER_EPOCH")]
    group.ask("a", member_epoch=-1)
    assert group.commit("", -1) == "NONE" and group.described()["group_state"] == "Empty"


def test_a_silent_member_is_dropped_and_so_is_one_that_gives_nothing_up() -> None:
    """After 45 s without a heartbeat; after its own rebalance time-out with partitions that others are to have."""
    group = Group(talk({"t": 2}))
    group.join("a")
    group.join("b")
    group.beat("a")
    group.clients.wait(REBALANCE_MS)
    assert error(group.ask("a", member_epoch=1)) == "UNKNOWN_MEMBER_ID"
    assert group.beat("b") == [0, 1]
    group.clients.wait(SESSION_MS - 1)
    assert group.beat("b") == [0, 1]
    group.clients.wait(SESSION_MS)
    assert error(group.ask("b", member_epoch=group.epochs["b"])) == "UNKNOWN_MEMBER_ID"


def test_members_outlive_their_coordinator() -> None:
    """The next coordinator knows epochs, assignments and what is to be given up; the one before is none."""
    group = Group(talk({"t": 2}, ports=(0, 0, 0)))
    group.join("a")
    group.join("b")
    assert group.beat("a") == [0]
    inject(group.clients, 1, "elect", partition=OFFSETS)
    assert error(group.ask("a", member_epoch=1)) == "NOT_COORDINATOR"
    group.here = group.clients.connect(2)
    assert group.beat("a") == [0] and group.beat("b") == [1]
    assert group.described()["group_state"] == "Stable"


def test_an_instance_may_come_back_under_another_name() -> None:
    """With -2 its place is kept for 45 s; while it is there nobody takes its name; the one before is fenced."""
    group = Group(talk({"t": 2}))
    group.join("a", instance_id="one")
    group.join("b", instance_id="two")
    for member in "abab":
        group.beat(member, instance_id={"a": "one", "b": "two"}[member])
    assert (group.owned["a"], group.owned["b"]) == ([0], [1])
    joins = {"member_epoch": 0, "rebalance_timeout": REBALANCE_MS, "topic_partitions": (),
             "subscribed_topic_names": ("t",), "instance_id": "one"}
    assert error(group.ask("c", **joins)) == "UNRELEASED_INSTANCE_ID"
    assert group.ask("a", member_epoch=-2, instance_id="one")["member_epoch"] == -2
    assert group.beat("b", instance_id="two") == [1]
    assert group.join("c", instance_id="one") == [0] and group.epochs["c"] == group.epochs["b"]
    assert error(group.ask("a", member_epoch=2, instance_id="one")) == "FENCED_INSTANCE_ID"
    group.ask("b", member_epoch=-2, instance_id="two")
    group.clients.wait(SESSION_MS - 1)
    assert group.beat("c", instance_id="one") == [0]
    group.clients.wait(1)
    assert group.beat("c", instance_id="one") == [0, 1]


def test_a_lost_answer_may_be_asked_for_again() -> None:
    """With the epoch before, and no partition that the member was not given; others of an old epoch are fenced."""
    group = Group(talk({"t": 2}))
    group.join("a")
    group.join("a")  # its answer was lost
    assert group.epochs["a"] == 1
    group.join("b")
    group.beat("a")
    group.beat("a")
    owned = ({"topic_id": group.topic_id, "partitions": (0, 1)},)
    assert error(group.ask("a", member_epoch=1, topic_partitions=owned)) == "FENCED_MEMBER_EPOCH"
    assert error(group.ask("a", member_epoch=1)) == "FENCED_MEMBER_EPOCH"
    assert group.beat("a", member_epoch=1) == [0] and group.epochs["a"] == 2
    assert error(group.ask("a", member_epoch=3)) == "FENCED_MEMBER_EPOCH"


def test_topics_that_come_and_a_subscription_that_changes_make_a_new_epoch() -> None:
    """By name before the topic is there, and by regular expression."""
    group = Group(talk({"t": 1, "u": 1}))
    assert group.join("a", subscribed_topic_names=("none",)) == []
    assert group.epochs["a"] == 1
    assert group.beat("a", subscribed_topic_names=("t",)) == [0] and group.epochs["a"] == 2
    group.ask("a", member_epoch=-1)
    joins = {"member_epoch": 0, "rebalance_timeout": REBALANCE_MS, "topic_partitions": ()}
    found = group.ask("b", **joins, subscribed_topic_regex="t|u.*")
    assert [row["partitions"] for row in found["assignment"]["topic_partitions"]] == [(0,), (0,)]
    made = {"name": "u2", "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
    group.clients.one(group.here, offer.CREATE_TOPICS, 7, {"topics": (made,)})
    found = group.ask("b", member_epoch=found["member_epoch"])
    assert len(found["assignment"]["topic_partitions"]) == 3


REFUSED: dict[str, dict[str, Any]] = {
    "INVALID_REQUEST": {"member_epoch": 0, "rebalance_timeout": REBALANCE_MS, "topic_partitions": ()},
    "UNSUPPORTED_ASSIGNOR": {"member_epoch": 1, "server_assignor": "sticky"},
    "INVALID_REGULAR_EXPRESSION": {"member_epoch": 1, "subscribed_topic_regex": "("},
    "GROUP_ID_NOT_FOUND": {"member_epoch": 1},
    "UNKNOWN_MEMBER_ID": {"member_epoch": -1, "group_id": "known"},
    "INVALID_GROUP_ID": {"member_epoch": 1, "group_id": ""},
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_heartbeat_is_refused(name: str) -> None:
    """With the error of each thing that is wrong with it."""
    group = Group(talk())
    group.join("a", group_id="known")
    assert error(group.ask("b", **REFUSED[name])) == name


@pytest.mark.parametrize("wrong", [
    {"member_epoch": -3}, {"member_epoch": -2}, {"member_id": "", "member_epoch": 1}, {"instance_id": ""},
    {"member_epoch": 0, "topic_partitions": None}, {"member_epoch": 0, "rebalance_timeout": -1},
])
def test_what_no_member_says_is_an_invalid_request(wrong: dict[str, Any]) -> None:
    """Epochs below -2, no member id, an empty instance, a first heartbeat without all that it has to say."""
    said = {"member_epoch": 1, "rebalance_timeout": 5, "topic_partitions": (), "subscribed_topic_names": ("t",)}
    assert error(Group(talk()).ask("a", **{**said, **wrong})) == "INVALID_REQUEST"


def test_members_of_other_types_are_refused() -> None:
    """Others than consumers do not mix with consumer groups, which are not described as classic ones."""
    group = Group(talk())
    group.join("a")
    join = {"group_id": "g", "session_timeout": 10_000, "rebalance_timeout": 10_000, "member_id": "",
            "protocol_type": "connect", "protocols": ({"name": "range", "metadata": b""},)}
    classic = group.clients.one(group.here, offer.JOIN_GROUP, 3, join)
    assert error(classic) == "INCONSISTENT_GROUP_PROTOCOL"
    listed = group.clients.one(group.here, offer.LIST_GROUPS, 5, {"types_filter": ("consumer",)})["groups"]
    assert [(row["group_id"], row["group_type"], row["group_state"]) for row in listed] == [("g", "consumer", "Stable")]
    assert error(group.clients.one(group.here, offer.DESCRIBE_GROUPS, 6, {"groups": ("g",)})["groups"][0]) == (
        "GROUP_ID_NOT_FOUND")
    (deleted,) = group.clients.one(group.here, offer.DELETE_GROUPS, 2, {"groups_names": ("g",)})["results"]
    assert error(deleted) == "NON_EMPTY_GROUP"
    group.ask("a", member_epoch=-1)
    assert error(group.clients.one(group.here, offer.JOIN_GROUP, 3, join)) == "NONE"
    refused = group.ask("a", member_epoch=0, rebalance_timeout=5, topic_partitions=(), subscribed_topic_names=("t",))
    assert (error(refused), refused["error_message"]) == ("GROUP_ID_NOT_FOUND", (
        "Cannot upgrade classic group g to consumer group because the group does not use the consumer embedded "
        "protocol."))
    assert error(group.described()) == "GROUP_ID_NOT_FOUND"


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_group_whose_members_have_left_changes_its_protocol_and_keeps_its_offsets(brokers: int) -> None:
    """Classic, of consumers, classic again; each time the next coordinator finds it as it is."""
    kafka = pytest.importorskip("confluent_kafka")
    with KafkaCluster({"t": 1}, brokers=brokers) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        producer = kafka.Producer(servers)
        for index in range(9):
            producer.produce("t", str(index).encode())
        assert producer.flush(20) == 0
        for turn, protocol in enumerate(("classic", "consumer", "classic")):
            consumer = kafka.Consumer({**servers, "group.id": "g", "group.protocol": protocol,
                                       "auto.offset.reset": "earliest", "enable.auto.commit": False})
            consumer.subscribe(["t"])
            read = [message.value() for message in consumer.consume(3, timeout=20)]
            assert read == [str(3 * turn + index).encode() for index in range(3)]
            consumer.commit(offsets=[kafka.TopicPartition("t", 0, 3 * turn + 3)], asynchronous=False)
            consumer.close()
            cluster.elect(OFFSETS)
        assert cluster.verdict() is None


def test_two_consumers_of_librdkafka_share_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `group.protocol=consumer`: all is read, each gets half, and the one that stays gets all."""
    kafka = pytest.importorskip("confluent_kafka")
    monkeypatch.setattr(consumer_group, "HEARTBEAT_MS", 500)  # by heartbeats members learn what is theirs
    with KafkaCluster({"t": 4}, brokers=3) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        producer = kafka.Producer(servers)
        for index in range(40):
            producer.produce("t", str(index).encode(), partition=index % 4)
        assert producer.flush(20) == 0
        settings = {**servers, "group.id": "g", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
        first, second = kafka.Consumer(settings), kafka.Consumer(settings)
        first.subscribe(["t"])
        assert len(first.consume(40, timeout=20)) == 40

        def until(wanted: list[int], *consumers: Any) -> None:
            for _ in range(200):
                for consumer in consumers:
                    consumer.poll(0.1)
                if [len(consumer.assignment()) for consumer in consumers] == wanted:
                    return
            raise AssertionError([consumer.assignment() for consumer in consumers])

        second.subscribe(["^t$"])
        until([2, 2], first, second)
        first.close()
        until([4], second)
        second.close()
    assert cluster.verdict() is None
