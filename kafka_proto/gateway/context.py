"""What a handler of an API gets, and what it asks of the brokers: requests of one partition or name each.

A handler is a generator: it yields requests for the broker that is asked, all of them sent at once, and is sent their
answers when all have come, which may be later; it returns the fields of the response.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import wraps
from typing import Any

import attrs

from kafka_proto.cluster.running import RunningCluster
from kafka_proto.errors import BY_NAME
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.inputs import Settings
from kafka_proto.requests import INTERNAL_TOPICS, OFFSETS_PARTITION, Error, partition_index, partition_name, topic_of

NO_ERROR = 0
MOST_PARTITIONS = 10_000


@attrs.frozen
class Waits:
    """A handler looks again when something has happened to one of these partitions, or at a time."""

    until: int
    partitions: frozenset[str]


class Closing(Exception):
    """The connection ends instead of an answer; the message says why."""


@attrs.frozen
class Refused:
    """The answer about a partition for which no broker is asked."""

    answer: object


Handling = Generator[tuple[object, ...] | Waits, tuple[Any, ...], Fields | None]
"""It returns None if no response is written."""


@attrs.frozen
class AskedBroker:
    """The cluster as seen by the broker that is asked."""

    settings: Settings
    cluster: RunningCluster
    asked: int
    """The broker's number."""
    transaction: str = ""
    """The ghost: the transaction that the request is of."""

    @property
    def name(self) -> str:
        return f"b{self.asked}"

    @property
    def there(self) -> tuple[int, ...]:
        """Return the brokers that the controller hears."""
        return tuple(number for number in self.settings.brokers if f"b{number}" not in self.cluster.fenced)

    @property
    def controller(self) -> int:
        """Return the broker that clients are told is the controller: any that it hears, or -1 (`NO_CONTROLLER_ID`)."""
        return next(iter(self.there), -1)

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has, 0 if the topic does not exist."""
        return self.cluster.topics.get(topic) or (
            self.cluster.internal.get(topic, 0) if topic in INTERNAL_TOPICS else 0)

    def leader(self, p: str) -> int:
        """Return the number of a partition's leader as the broker knows it, -1 if it knows none."""
        leader = self.cluster.known(self.name, p).leader
        return number_of(leader) if leader else -1

    def address(self, number: int) -> Fields:
        """Return where clients find a broker."""
        return {"host": self.settings.host, "port": self.settings.ports[number - 1]}

    @property
    def loads_groups(self) -> bool:
        """Say whether the broker is to coordinate groups, and has not read their log."""
        return self.leader(OFFSETS_PARTITION) == self.asked and not self.cluster.leads(self.name, OFFSETS_PARTITION)


Api = Callable[[AskedBroker, WireRequest], Handling]


def number_of(broker: str) -> int:
    """Return the number of a broker's name, as 1 of `b1`."""
    return int(broker[1:])


def code(name: str) -> int:
    """Return the number of an error code, by Kafka's name."""
    number = BY_NAME[name].number
    assert number is not None, name
    return number


def number(error: Error) -> int:
    """Return the number of an error code."""
    return code(error.value)


def wrong_place(here: AskedBroker, topic: str, index: int) -> Error | None:
    """Return the error for a partition that is not there, or that another broker leads; None if neither is so."""
    if not 0 <= index < here.partitions(topic):
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return None if here.cluster.leads(here.name, partition_name(topic, index)) else Error.NOT_LEADER_OR_FOLLOWER


MOVED = (code("NOT_LEADER_OR_FOLLOWER"), code("FENCED_LEADER_EPOCH"))


def with_leader(here: AskedBroker, topic: str, index: int, fields: Fields) -> Fields:
    """Return the answer about a partition; one that is led elsewhere, or anew, with its leader (KIP-951)."""
    if fields["error_code"] not in MOVED:
        return fields
    p = partition_name(topic, index)
    epoch = here.cluster.known(here.name, p).leader_epoch
    return {**fields, "current_leader": {"leader_id": here.leader(p), "leader_epoch": epoch}}


def leaders_in(here: AskedBroker, answers: Iterable[Fields]) -> tuple[Fields, ...]:
    """Return where the leaders are that answers name."""
    leaders = {fields["current_leader"]["leader_id"] for fields in answers if "current_leader" in fields}
    return tuple({"node_id": number, **here.address(number)} for number in sorted(leaders) if number >= 0)


def asking(kind: Any, request: WireRequest, said: Fields | None = None, **more: Any) -> Any:
    """Return a request with what a message, or a part of it, says by the names of its fields; and with more.

    What its version does not say has its default. Milliseconds are called so in names here, not in messages.
    """
    said = request.message if said is None else said
    fields = {field.name: field.name.removesuffix("_ms") for field in attrs.fields(kind)}
    return kind(**{"version": request.version, **{ours: said[name] for ours, name in fields.items() if name in said},
                   **more})


def told(answer: Any, **more: Any) -> Fields:
    """Return an answer under the names that a response has for its fields; and more. Others are not written."""
    fields = {field.name.removesuffix("_ms"): getattr(answer, field.name) for field in attrs.fields(type(answer))}
    return {**fields, "error_code": number(answer.error), **more}


def answering(kind: Any, **more: Any) -> Api:
    """Return the handler of an API that asks one thing, and tells its answer as it is."""

    def handling(here: AskedBroker, request: WireRequest) -> Handling:
        return told((yield from ask(asking(kind, request, **more))))

    return handling


def at_once(look: Callable[[AskedBroker, WireRequest], Fields]) -> Api:
    """Return the handler of an API that asks no broker."""

    @wraps(look)
    def handling(here: AskedBroker, request: WireRequest) -> Handling:
        return look(here, request)
        yield  # nothing: what makes it a generator

    return handling


def ask(request: object) -> Generator[tuple[object, ...], tuple[Any, ...], Any]:
    """Ask one thing, and return its answer."""
    (answer,) = yield (request,)
    return answer


def each(
    topics: Iterable[Fields], inner: str, one: Callable[[str, int, Any], object],
    fields: Callable[[str, int, Any], Fields] = lambda topic, index, answer: told(answer),
) -> Generator[tuple[object, ...], tuple[Any, ...], tuple[Fields, ...]]:
    """Ask for each partition of each topic, and return the answers by topic, as a response has them.

    A partition of a message is its number, or has it. `one` is what is asked about it, or its `Refused` already.
    """
    numbered = [(topic, [(partition if isinstance(partition, int) else partition["partition_index"], partition)
                         for partition in topic[inner]]) for topic in topics]
    found = [(topic["name"], [(index, one(topic["name"], index, partition)) for index, partition in rows])
             for topic, rows in numbered]
    asked = tuple(request for _, rows in found for _, request in rows if not isinstance(request, Refused))
    answers = iter((yield asked)) if asked else iter(())
    return tuple(
        {"name": topic, "partitions": tuple(
            {"partition_index": index, **fields(topic, index, request.answer if isinstance(request, Refused)
                                                else next(answers))} for index, request in rows)}
        for topic, rows in found)


def at_leader(
    here: AskedBroker, refusal: Callable[[Error], object], one: Callable[[str, Any], object], checks: bool = False
) -> Callable[[str, int, Any], object]:
    """Return the request about a partition by its name if the broker leads it, else its refusal, for `each`.

    Whether it leads it is seen by the broker itself if it `checks` the leader epoch first.
    """

    def place(topic: str, index: int, partition: Any) -> object:
        wrong = wrong_place(here, topic, index)
        if wrong is Error.NOT_LEADER_OR_FOLLOWER and checks:
            wrong = None
        return one(partition_name(topic, index), partition) if wrong is None else Refused(refusal(wrong))

    return place


def named(topic: str, index: int) -> str:
    """Return the name of a partition that a client speaks of; a number below 0 is in no name that a partition has.

    `t` at -1 would be called as `t-` at 1.
    """
    return partition_name(topic, index) if index >= 0 else f"{topic}/{index}"


def by_topic(names: Iterable[str]) -> list[tuple[str, tuple[int, ...]]]:
    """Return partitions by topic, both sorted."""
    found: dict[str, list[int]] = {}
    for each_name in names:
        found.setdefault(topic_of(each_name), []).append(partition_index(each_name))
    return [(topic, tuple(sorted(indexes))) for topic, indexes in sorted(found.items())]
