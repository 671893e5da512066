"""One broker behind the wire, as a frozen value: a request goes in, answers come out, perhaps to earlier requests.

Transactions, logs and offsets are those of `gateway.node`; here are topics, the classic group protocol, and what waits:
a fetch for records, a join for the other members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.group import rebalance
from kafka_proto.broker.group.rebalance import ClassicGroup
from kafka_proto.broker.versions import version_of
from kafka_proto.errors import BY_NAME
from kafka_proto.gateway import node as nodes
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import Request
from kafka_proto.gateway.inputs import Settings
from kafka_proto.gateway.node import Node, new_node, next_deadline, pass_time

Token = tuple[int, int]
"""A connection and the number of its request: who is answered."""
Pair = tuple[int, int]
"""Two brokers, the lower number first."""
MOST_PARTITIONS = 10_000
MOST_GROUPS = 10_000


@attrs.frozen
class Broker:
    """The brokers' whole state: one node that has all roles. `topics` has the number of partitions of each."""

    settings: Settings
    node: Node
    topics: FrozenMap[str, int] = FrozenMap()
    groups: FrozenMap[str, ClassicGroup] = FrozenMap()
    member_ids: int = 0
    """How many were made."""
    fetches: FrozenMap[Token, WaitingFetch] = FrozenMap()
    asked: int = 1
    """The broker that the request came to which is looked at."""
    absent: frozenset[int] = frozenset()
    """Brokers that lead nothing: they are down, or cut off."""
    moved: FrozenMap[str, int] = FrozenMap()
    """By partition, how far its leadership was moved on."""
    leader_epoch: int = 0
    """Of all partitions: how many elections there were."""
    cut: frozenset[Pair] = frozenset()
    """Brokers that do not hear each other."""

    @property
    def now(self) -> int:
        """Return the time in milliseconds."""
        return self.node.now


@attrs.frozen
class WaitingFetch:
    """A fetch that waits for records until a time."""

    request: Request = attrs.field(eq=False)
    until: int
    broker: int = 1


@attrs.frozen
class Answer:
    """The response to a request, by its token; None where none is written. With `closes` the connection ends."""

    token: Token
    response: Fields | None = attrs.field(eq=False)
    closes: str | None = None
    """Why."""


Turn = tuple[Broker, tuple[Answer, ...]]
Api = Callable[[Broker, Request, Token], Turn]


def new_broker(settings: Settings, topics: Mapping[str, int], now: int = 0) -> Broker:
    """Return a broker with empty topics. Raises ValueError for a release and level that no version stands for."""
    version = version_of(settings.release, settings.transaction_version)
    broker = Broker(settings, attrs.evolve(new_node(version, ()), now=now))
    for name, partitions in topics.items():
        broker = with_topic(broker, name, partitions)
    return broker


def with_topic(broker: Broker, name: str, partitions: int) -> Broker:
    """Return a broker that has one more topic."""
    node = nodes.with_topic(broker.node, name, partitions)
    return attrs.evolve(broker, node=node, topics=broker.topics.set(name, partitions))


def without_topic(broker: Broker, name: str) -> Broker:
    """Return a broker that has a topic no more; a group may go with its offsets."""
    node = nodes.without_topic(broker.node, name)
    groups = FrozenMap((group_id, group) for group_id, group in broker.groups.items() if group_id in node.groups.groups)
    return attrs.evolve(broker, node=node, topics=broker.topics.without(name), groups=groups)


def has_partition(broker: Broker, topic: str, index: int) -> bool:
    """Say whether a partition is there for clients: those of internal topics are not."""
    return 0 <= index < broker.topics.get(topic, 0)


def code(name: str) -> int:
    """Return the number of an error code, by Kafka's name."""
    number = BY_NAME[name].number
    assert number is not None, name
    return number


def at(broker: Broker, now: int) -> Broker:
    """Return a broker at a time, what is due in it not done; time does not go back."""
    return attrs.evolve(broker, node=attrs.evolve(broker.node, now=max(now, broker.node.now)))


def asked_at(broker: Broker, number: int) -> Broker:
    """Return the cluster as the broker of a number is asked."""
    return broker if broker.asked == number else attrs.evolve(broker, asked=number)


def due(broker: Broker, now: int) -> Turn:
    """Let time pass: transactions time out, sessions end, rebalances complete. Fetches are the caller's."""
    transactions = next_deadline(broker.node)
    if transactions is not None and transactions <= now:
        broker = attrs.evolve(broker, node=pass_time(broker.node, now))
    broker = at(broker, now)
    answers: tuple[Answer, ...] = ()
    for group_id, group in broker.groups.items():
        deadline = rebalance.next_deadline(group)
        if deadline is not None and deadline <= now:
            broker, more = with_group(broker, group_id, *rebalance.pass_time(group, now))
            answers += more
    return broker, answers


def deadline(broker: Broker) -> int | None:
    """Return when something will be due."""
    groups = (rebalance.next_deadline(group) for group in broker.groups.values())
    fetches = (waiting.until for waiting in broker.fetches.values())
    return min((at for at in (next_deadline(broker.node), *groups, *fetches) if at is not None), default=None)


def with_group(broker: Broker, group_id: str, group: ClassicGroup, answers: rebalance.Answers) -> Turn:
    """Return a broker whose group is another one, by which commits are fenced too, and the answers as fields."""
    fencing = broker.node.groups.groups.set(group_id, rebalance.as_fenced(group))
    node = attrs.evolve(broker.node, groups=attrs.evolve(broker.node.groups, groups=fencing))
    broker = attrs.evolve(broker, node=node, groups=broker.groups.set(group_id, group))
    return broker, tuple(Answer(token, group_fields(answer)) for token, answer in answers)


def group_fields(answer: rebalance.Joined | rebalance.Synced) -> Fields:
    """Return the answer to a join or a sync as the fields of its response."""
    fields = {"error_code": code(answer.error), "protocol_type": answer.protocol_type,
              "protocol_name": answer.protocol_name}
    if isinstance(answer, rebalance.Synced):
        return {**fields, "assignment": answer.assignment}
    members = tuple({"member_id": known, "group_instance_id": instance, "metadata": said}
                    for known, instance, said in answer.members)
    return {**fields, "generation_id": answer.generation_id, "leader": answer.leader, "member_id": answer.member_id,
            "members": members, "skip_assignment": answer.skip_assignment}
