"""Groups that go from the classic protocol to that of consumer groups and back while they go on (KIP-848)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, talk

from kafka_proto.broker.group import consumer_group
from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.cluster import KafkaCluster

Fields = dict[str, Any]
SESSION_MS, REBALANCE_MS = 10_000, 20_000


def error(row: Fields) -> str:
    return NAMES[row["error_code"]]


def partitions_said(*indexes: int) -> bytes:
    """Return partitions of `t` as a consumer has them in its bytes."""
    rows = b"".join(index.to_bytes(4, "big") for index in indexes)
    return (1).to_bytes(4, "big") + b"\x00\x01t" + len(indexes).to_bytes(4, "big") + rows


def subscription(*owned: int) -> bytes:
    return b"\x00\x01" + (1).to_bytes(4, "big") + b"\x00\x01t" + b"\xff" * 4 + partitions_said(*owned)


def assignment(*indexes: int, user_data: bytes = b"\xff" * 4) -> bytes:
    return b"\x00\x01" + partitions_said(*indexes) + user_data


class Mixed:
    """A group `g` of a classic member and others, on one connection."""

    def __init__(self, clients: Talk) -> None:
        self.clients, self.here = clients, clients.connect()
        self.member = ""

    def ask(self, api: int, version: int, **said: Any) -> Fields:
        return self.clients.one(self.here, api, version, {"group_id": "g", **said})

    def join(self, *owned: int, member: str | None = None) -> Fields:
        found = self.ask(offer.JOIN_GROUP, 3, session_timeout=SESSION_MS, rebalance_timeout=REBALANCE_MS,
                         member_id=self.member if member is None else member, protocol_type="consumer",
                         protocols=({"name": "range", "metadata": subscription(*owned)},))
        self.member = found["member_id"] if error(found) == "NONE" and member is None else self.member
        return found

    def sync(self, generation: int, *given: int) -> Fields:
        mine = ({"member_id": self.member, "assignment": assignment(*given)},) if given else ()
        return self.ask(offer.SYNC_GROUP, 3, generation_id=generation, member_id=self.member, assignments=mine)

    def stable(self) -> None:
        """Let the classic member be the only one of a group."""
        assert (self.join()["generation_id"], error(self.sync(1, 0, 1, 2, 3))) == (1, "NONE")

    def beat(self, generation: int) -> str:
        return error(self.ask(offer.HEARTBEAT, 3, generation_id=generation, member_id=self.member))

    def consumer(self, epoch: int, *owned: int, **more: Any) -> Fields:
        return self.ask(offer.CONSUMER_GROUP_HEARTBEAT, 1, **{
            "member_id": "n", "member_epoch": epoch, "rebalance_timeout": REBALANCE_MS if epoch == 0 else -1,
            "topic_partitions": None if epoch else (), "subscribed_topic_names": None if epoch else ("t",), **more})

    def commit(self, generation: int) -> str:
        topics = ({"name": "t", "partitions": ({"partition_index": 0, "committed_offset": 5},)},)
        found = self.ask(offer.OFFSET_COMMIT, 8, member_id=self.member, generation_id_or_member_epoch=generation,
                         topics=topics)
        return error(found["topics"][0]["partitions"][0])

    def kind(self) -> tuple[str, str]:
        (row,) = self.clients.one(self.here, offer.LIST_GROUPS, 5, {})["groups"]
        return row["group_type"], row["group_state"]


def test_a_classic_group_becomes_one_of_consumers_and_is_classic_again() -> None:
    """The classic member gives up half when it joins again, commits as it did, and gets all back in the end."""
    group = Mixed(talk({"t": 4}))
    assert group.join()["generation_id"] == 1
    assert group.sync(1, 0, 1, 2, 3)["assignment"] == assignment(0, 1, 2, 3)
    joined = group.consumer(0)
    assert (error(joined), joined["member_epoch"]) == ("NONE", 2) and joined["assignment"]["topic_partitions"] == ()
    assert group.kind() == ("consumer", "Reconciling")
    assert group.beat(1) == "REBALANCE_IN_PROGRESS" and group.commit(1) == "NONE"
    found = group.join(0, 1, 2, 3)
    assert (found["generation_id"], found["leader"]) == (1, ""), "what it has to give up it still has"
    (kept,) = {group.sync(1)["assignment"]}
    assert kept == assignment(0, 1) and group.beat(1) == "REBALANCE_IN_PROGRESS"
    assert group.join(0, 1)["generation_id"] == 2 and group.sync(2)["assignment"] == assignment(0, 1)
    assert (group.beat(2), group.beat(1)) == ("NONE", "ILLEGAL_GENERATION")
    assert (group.commit(2), group.commit(1)) == ("NONE", "ILLEGAL_GENERATION")
    got = group.consumer(2)["assignment"]["topic_partitions"]
    assert [tuple(row["partitions"]) for row in got] == [(2, 3)] and group.kind() == ("consumer", "Stable")
    described = group.clients.one(group.here, offer.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": ("g",)})["groups"][0]
    assert {row["member_id"]: row["member_type"] for row in described["members"]} == {group.member: 0, "n": 1}
    assert error(group.consumer(-1)) == "NONE" and group.kind() == ("classic", "PreparingRebalance")
    assert group.beat(3) == "REBALANCE_IN_PROGRESS"
    assert group.join(0, 1)["generation_id"] == 4
    assert group.sync(4, 0, 1, 2, 3)["assignment"] == assignment(0, 1, 2, 3) and group.kind() == ("classic", "Stable")


def test_a_classic_member_joins_a_consumer_group_and_leaves_it() -> None:
    """It is one of several members, is dropped when it is silent, or late to join again; others wait for nothing."""
    group = Mixed(talk({"t": 4}))
    assert error(group.consumer(0)) == "NONE"
    assert error(group.join(member="gone")) == "NONE", "as a classic group lets ids in that it does not know"
    asked = group.ask(offer.LEAVE_GROUP, 3, members=({"member_id": "gone", "group_instance_id": None},
                                                     {"member_id": "n", "group_instance_id": None}))
    assert [error(row) for row in asked["members"]] == ["NONE", "UNKNOWN_MEMBER_ID"]
    joined = group.join()
    assert error(joined) == "NONE" and error(group.sync(joined["generation_id"])) == "NONE"
    assert error(group.sync(joined["generation_id"] + 1)) == "ILLEGAL_GENERATION"
    group.clients.wait(SESSION_MS)
    assert group.beat(joined["generation_id"]) == "UNKNOWN_MEMBER_ID" and group.kind()[0] == "consumer"


@pytest.mark.parametrize("metadata", [b"", b"\x00\x01\x00\x00\x00\x09"])
def test_what_members_say_and_nobody_can_read_is_refused(metadata: bytes) -> None:
    group = Mixed(talk())
    wrong = {"session_timeout": SESSION_MS, "rebalance_timeout": REBALANCE_MS, "member_id": "",
             "protocol_type": "consumer", "protocols": ({"name": "range", "metadata": metadata},)}
    group.ask(offer.JOIN_GROUP, 3, **wrong)
    assert error(group.consumer(0)) == "GROUP_ID_NOT_FOUND" and group.kind()[0] == "classic"
    other = Mixed(talk())
    other.consumer(0)
    assert error(other.ask(offer.JOIN_GROUP, 3, **wrong)) == "UNKNOWN_SERVER_ERROR"


def test_assignors_that_say_more_than_partitions_keep_their_group_classic() -> None:
    """What a custom assignor says for its members would be lost; empty bytes of it would not."""
    for user_data, expected in ((b"\x00\x00\x00\x01x", "GROUP_ID_NOT_FOUND"), (b"\x00" * 4, "NONE")):
        group = Mixed(talk({"t": 4}))
        group.join()
        given = ({"member_id": group.member, "assignment": assignment(0, user_data=user_data)},)
        group.ask(offer.SYNC_GROUP, 3, generation_id=1, member_id=group.member, assignments=given)
        assert error(group.consumer(0)) == expected


DISABLED = "Cannot upgrade classic group g to consumer group because online upgrade is disabled."


@pytest.mark.parametrize(("policy", "reason", "joined", "left"), [
    ("bidirectional", None, "NONE", "classic"), ("upgrade", None, "NONE", "consumer"),
    ("downgrade", DISABLED, "NONE", "classic"), ("disabled", DISABLED, "INCONSISTENT_GROUP_PROTOCOL", "consumer"),
])
def test_the_policy_says_which_way_a_group_with_members_may_go(
    policy: str, reason: str | None, joined: str, left: str
) -> None:
    """As a real 4.4.0 answered, for each policy: who is refused, and what a group is when the others have gone."""
    groups = [Mixed(talk({"t": 4}, group_consumer_migration_policy=policy)) for _ in range(2)]
    upgrade, downgrade = groups
    upgrade.stable()
    found = upgrade.consumer(0)
    assert (error(found), found["error_message"]) == ("GROUP_ID_NOT_FOUND" if reason else "NONE", reason)
    assert upgrade.kind()[0] == ("classic" if reason else "consumer")
    assert upgrade.beat(1) == ("NONE" if reason else "REBALANCE_IN_PROGRESS"), "members of a refused group go on"
    assert error(downgrade.consumer(0)) == "NONE"
    answer = downgrade.join()
    assert (error(answer), answer["member_id"] == "") == (joined, joined != "NONE")
    if joined == "NONE":
        assert error(downgrade.sync(answer["generation_id"])) == "NONE"
    assert error(downgrade.consumer(-1)) == "NONE" and downgrade.kind()[0] == left
    if joined == "NONE":
        beat = downgrade.beat(answer["generation_id"])
        assert beat == ("ILLEGAL_GENERATION" if left == "classic" else "REBALANCE_IN_PROGRESS")


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_a_group_without_members_goes_both_ways_with_each_policy(policy: str) -> None:
    group = Mixed(talk({"t": 4}, group_consumer_migration_policy=policy))
    assert error(group.consumer(0)) == error(group.consumer(-1)) == "NONE" and group.kind() == ("consumer", "Empty")
    group.stable()
    assert group.kind() == ("classic", "Stable")
    group.ask(offer.LEAVE_GROUP, 3, members=({"member_id": group.member, "group_instance_id": None},))
    assert error(group.consumer(0)) == "NONE" and group.kind()[0] == "consumer"


def test_a_static_member_that_comes_as_a_classic_one_makes_its_group_classic_if_it_may() -> None:
    """It replaces the only member that was none (`validateOnlineDowngradeWithReplacedMember`)."""
    for policy, kind in (("bidirectional", "classic"), ("upgrade", "consumer")):
        group = Mixed(talk({"t": 4}, group_consumer_migration_policy=policy))
        assert error(group.consumer(0, instance_id="i")) == "NONE"
        found = group.ask(offer.JOIN_GROUP, 5, session_timeout=SESSION_MS, rebalance_timeout=REBALANCE_MS, member_id="",
                          group_instance_id="i", protocol_type="consumer",
                          protocols=({"name": "range", "metadata": subscription()},))
        assert error(found) == "NONE" and group.kind()[0] == kind


@pytest.mark.parametrize(("release", "expected"), [("4.2.0", "NONE"), ("4.3.1", "INCONSISTENT_GROUP_PROTOCOL")])
def test_before_4_3_classic_members_join_consumer_groups_of_any_policy(release: str, expected: str) -> None:
    group = Mixed(talk({"t": 4}, release=release, group_consumer_migration_policy="disabled"))
    assert error(group.consumer(0)) == "NONE" and error(group.join()) == expected


def test_the_policy_is_a_setting_of_brokers() -> None:
    """In any case of letters; DescribeConfigs tells it, and what it is without being set."""
    with KafkaCluster({"t": 1}, config={"group.consumer.migration.policy": "Disabled"}) as cluster:
        host, port = cluster.bootstrap_servers.split(":")
        with Client(host, int(port)) as client:
            (found,) = client.ask(offer.DESCRIBE_CONFIGS, 4, {
                "include_synonyms": False, "include_documentation": False, "resources": (
                    {"resource_type": 4, "resource_name": "1",
                     "configuration_keys": ("group.consumer.migration.policy",)},)})["results"]
    (row,) = found["configs"]
    assert (row["value"], row["config_source"], row["config_type"]) == ("disabled", 4, 2)
    with pytest.raises(ValueError, match="expected bidirectional, upgrade, downgrade, disabled"):
        KafkaCluster(config={"group.consumer.migration.policy": "both"})


@pytest.mark.parametrize("brokers", [1, 3])
def test_consumers_of_librdkafka_are_replaced_one_by_one(brokers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a real 4.4.0: sizes of assignments and kinds of the group, after its coordinator changed, too."""
    kafka = pytest.importorskip("confluent_kafka")
    monkeypatch.setattr(consumer_group, "HEARTBEAT_MS", 500)  # by heartbeats members learn what is theirs
    with KafkaCluster({"t": 4}, brokers=brokers) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        there: dict[str, Any] = {}
        read: list[bytes] = []
        producer = kafka.Producer(servers)
        for index in range(40):
            producer.produce("t", b"%d" % index, partition=index % 4)
        assert producer.flush(20) == 0

        def until(holds: Callable[[dict[str, int]], bool]) -> None:
            end = time.monotonic() + 40
            while not holds(sizes := {name: len(each.assignment()) for name, each in there.items()}):
                assert time.monotonic() < end, sizes
                for each in there.values():
                    message = each.poll(0.05)
                    if message is not None:
                        assert message.error() is None, message.error()
                        read.append(message.value())

        for protocol, name, sizes in (
            ("classic", "a", {"a": 4}), ("classic", "b", {"a": 2, "b": 2}), ("consumer", "c", None),
            ("", "a", {"b": 2, "c": 2}), ("", "b", {"c": 4}), ("classic", "d", {"c": 2, "d": 2}), ("", "c", {"d": 4}),
            ("classic", "e", {"d": 2, "e": 2}),
        ):
            if protocol:
                there[name] = kafka.Consumer({
                    **servers, "group.id": "g", "group.protocol": protocol, "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    **({"session.timeout.ms": 10_000, "heartbeat.interval.ms": 500} if protocol == "classic" else {})})
                there[name].subscribe(["t"])
            else:
                there.pop(name).close()
            until(lambda now, sizes=sizes: now == sizes if sizes else now["c"] > 0 and sum(now.values()) == 4)
            if name == "c" and protocol:
                cluster.elect("__consumer_offsets-0")
        every = {b"%d" % index for index in range(40)}
        until(lambda now: {*read} >= every)
        assert {*read} == every
        for each in there.values():
            each.close()
        assert cluster.verdict() is None
