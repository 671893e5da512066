"""The model `gateway`: a host whose every step is an input from outside, for trails to be replayed, shown and verified.

A step's name has what came and, in hexadecimal, the beginning of the SHA-256 of what was to be done about it: a replay
that would send clients other bytes is refused at that step.
"""

from __future__ import annotations

import hashlib
import types
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import attrs

from harness.model import (
    Faults,
    FrozenMap,
    Kind,
    Model,
    Network,
    Process,
    Refusal,
    Step,
    Value,
    View,
    canonical_bytes,
)
from kafka_proto.broker.group.offsets import OffsetRecord
from kafka_proto.broker.group.rebalance import ClassicGroup
from kafka_proto.broker.leader.state import Leader
from kafka_proto.broker.versions import version_of
from kafka_proto.gateway import inputs
from kafka_proto.gateway.broker import Broker, Pair, Token, WaitingFetch
from kafka_proto.gateway.connection import Connection, Kept
from kafka_proto.gateway.faults import Faults as HostFaults
from kafka_proto.gateway.host import Client, Host
from kafka_proto.gateway.inputs import Input, Output, Settings, Started
from kafka_proto.gateway.node import NodeState, running, state_of
from kafka_proto.gateway.observed import Observed
from kafka_proto.gateway.properties import properties

NAME = "gateway"
NO_LEADERS: FrozenMap[str, Leader] = FrozenMap()
DIGITS = 12


@attrs.frozen
class KeptClient:
    """A connection as a value; `asks` says whether its first open request was looked at."""

    connection: Kept
    broker: int
    asks: bool
    ends: str | None
    loses: bool
    unsent: bytes
    transactions: FrozenMap[str, str]


@attrs.frozen
class Rest:
    """What of the brokers is in no slot of its own."""

    topics: FrozenMap[str, int] = FrozenMap()
    member_ids: int = 0
    fetches: FrozenMap[Token, tuple[int, int]] = FrozenMap()
    asked: int = 1
    absent: frozenset[int] = frozenset()
    moved: FrozenMap[str, int] = FrozenMap()
    leader_epoch: int = 0
    cut: frozenset[Pair] = frozenset()


@attrs.frozen
class Slots:
    """The state of a host, slot by slot."""

    settings: Settings | None = None
    rest: Rest = Rest()
    leaders: FrozenMap[str, Leader] = NO_LEADERS
    node: NodeState = NodeState(NO_LEADERS)
    groups: FrozenMap[str, ClassicGroup] = FrozenMap()
    clients: FrozenMap[int, KeptClient] = FrozenMap()
    faults: HostFaults = HostFaults()
    observed: Observed = Observed()


SLOTS = tuple(field.name for field in attrs.fields(Slots))


def slots_of(host: Host) -> Slots:
    """Return a host as a value."""
    broker = host.broker
    fetches = FrozenMap((token, (each.until, each.broker)) for token, each in broker.fetches.items())
    rest = Rest(broker.topics, broker.member_ids, fetches, broker.asked, broker.absent, broker.moved,
                broker.leader_epoch, broker.cut)
    clients = FrozenMap((number, KeptClient(
        client.connection.kept, client.broker, client.asked is not None, client.ends, client.loses, client.unsent,
        FrozenMap((str(place), name) for place, name in client.transactions.items())))
        for number, client in host.clients.items())
    return Slots(broker.settings, rest, broker.node.leaders, attrs.evolve(state_of(broker.node), leaders=NO_LEADERS),
                 broker.groups, clients, host.faults, host.observed)


def host_of(slots: Slots) -> Host:
    """Return a host that goes on from a value."""
    settings, rest = slots.settings, slots.rest
    assert settings is not None
    host = Host(settings, {})
    requests = {}
    for number, kept in slots.clients.items():
        connection = Connection.of(host.offer, kept.connection)
        client = host.clients[number] = Client(
            connection, kept.broker, ends=kept.ends, loses=kept.loses, unsent=kept.unsent,
            transactions={int(place): name for place, name in kept.transactions.items()})
        client.waiting.extend(connection.open_requests)
        if kept.asks:
            client.asked = client.waiting.popleft()
            requests[number, client.asked.number] = client.asked
    node = running(version_of(settings.release, settings.transaction_version),
                   attrs.evolve(slots.node, leaders=slots.leaders))
    fetches = FrozenMap((token, WaitingFetch(requests[token], *each)) for token, each in rest.fetches.items())
    host.broker = Broker(settings, node, rest.topics, slots.groups, rest.member_ids, fetches, rest.asked, rest.absent,
                         rest.moved, rest.leader_epoch, rest.cut)
    host.faults, host.observed = slots.faults, slots.observed
    return host


def step_name(given: Input, outputs: Iterable[Output]) -> tuple[str, tuple[str, ...]]:
    """Return action and arguments of an input: whom it is about, and a digest of what is to be done, if anything."""
    about: tuple[str, ...] = ()
    if isinstance(given, inputs.Opened | inputs.Arrived | inputs.Gone):
        about = (f"c{given.connection}",)
    elif isinstance(given, inputs.Injected | inputs.Ended):
        about = (f"f{given.number}",)
    done = tuple(outputs)
    digest = (hashlib.sha256(canonical_bytes(done)).hexdigest()[:DIGITS],) if done else ()
    return type(given).__name__, (*about, *digest)


class Gateway(Process):
    """The host as a process: input from outside is all that it does."""

    name = NAME

    def outside(self, view: View, value: Value) -> Iterable[Step]:
        """Yield what an input makes of the state; none where the cluster is not started, or is so already."""
        before = Slots(**{name: view[name] for name in SLOTS})
        outputs: list[Output] = []
        if isinstance(value, Started):
            if before.settings is not None:
                return
            try:
                host = Host(value.settings, value.topics, value.now)
            except ValueError as error:  # a release or level that there is not
                raise Refusal(str(error)) from None
        elif before.settings is None or not isinstance(value, typing.get_args(Input)):
            return
        else:
            host = host_of(before)
            outputs = host.take(value)
        after = slots_of(host)
        writes = tuple((name, getattr(after, name)) for name in SLOTS if getattr(after, name) != getattr(before, name))
        action, args = step_name(value, outputs)
        yield Step(action, args, writes, detail=", ".join(host.said), kind=Kind.INPUT)


def _look(view: View) -> tuple[Observed, NodeState]:
    observed: Observed = view["observed"]
    node: NodeState = view["node"]
    return observed, attrs.evolve(node, leaders=view["leaders"])


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
) -> Model:
    """Build the model, of a cluster that is not started."""
    start = Slots()
    return Model(
        NAME, (Gateway(),), ({name: getattr(start, name) for name in SLOTS},), network, faults, properties(_look),
        sizes=sizes, settings=settings, types=types_in(Slots, OffsetRecord, *typing.get_args(Input)),
    )


@cache
def types_in(*classes: type) -> tuple[type, ...]:
    """Return the attrs classes that occur in values of some classes, by their annotations."""
    found: dict[type, None] = {}
    waiting: list[Any] = list(classes)
    while waiting:
        each = waiting.pop()
        if typing.get_origin(each) is not None or isinstance(each, types.UnionType):
            waiting += typing.get_args(each)
            each = typing.get_origin(each)
        if isinstance(each, type) and attrs.has(each) and each not in found:
            found[each] = None
            waiting += typing.get_type_hints(each).values()
    return tuple(sorted(found, key=lambda cls: cls.__name__))

