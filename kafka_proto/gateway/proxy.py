"""A proxy before another cluster's brokers, of any make: faults are ours, what is answered is theirs.

Like `Host` it has no I/O: bytes of clients and of brokers are inputs, so a replay needs neither. Requests are forwarded
as they came, and answers, but for those that say where brokers are. Each connection of a client has one to its broker;
what is given up and comes late, or twice, goes on one that is of no client.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.group.coordinator import Offsets, load
from kafka_proto.broker.versions import version_of
from kafka_proto.cluster.running import RunningCluster
from kafka_proto.gateway import offer as apis
from kafka_proto.gateway.answers import FENCED, ReadRecords, answered, fenced, read, reads
from kafka_proto.gateway.codec import NO_ID, Fields, FrameReader, Malformed, framed, structures
from kafka_proto.gateway.connection import Connection, WireRequest, is_unanswered, read_response
from kafka_proto.gateway.context import AskedBroker
from kafka_proto.gateway.faults import LOST, NO_CONNECTION, Exchanged, Token
from kafka_proto.gateway.front import Front
from kafka_proto.gateway.injected_errors import with_error
from kafka_proto.gateway.inputs import (
    Dial,
    Forward,
    Fronted,
    HangUp,
    Injected,
    Input,
    Learned,
    Opened,
    Output,
    Replied,
)
from kafka_proto.gateway.observed import logged, producer_of, without
from kafka_proto.gateway.offer import Offer, offer_before
from kafka_proto.gateway.outside import Address, Outside, naming
from kafka_proto.gateway.properties import Brokers, with_offsets
from kafka_proto.gateway.records import BadBatch
from kafka_proto.gateway.topic_ids import goes_by_id
from kafka_proto.log import PartitionLog
from kafka_proto.requests import GROUP_TOPIC, Error, topic_of

LONGEST_ANSWER = 2**30
"""In bytes."""
UNKNOWN_ADDRESS = "", 0
INDEXES = ("index", "partition_index", "partition")
"""Fields with the number of a partition."""


@attrs.define
class UpstreamConnection:
    """A connection to a broker, with the requests that it has not answered, in their order."""

    broker: int
    frames: FrameReader = attrs.field(factory=lambda: FrameReader(LONGEST_ANSWER))
    waiting: deque[tuple[Token, WireRequest, str]] = attrs.field(factory=deque)


def asked_for(message: Any) -> dict[str, int]:
    """Return the topics that a request names, each with as many partitions as it needs to have those that it names."""
    found: dict[str, int] = {}
    for topic in structures(message):
        name = topic.get("name") or topic.get("topic")
        if isinstance(name, str):
            numbers = [each for part in structures(topic) for field, each in part.items() if field in INDEXES]
            numbers += [each for each in topic.get("partitions", ()) if isinstance(each, int)]
            found[name] = 1 + max(numbers, default=0)
    return found


class ProxyHost(Front):
    """The clients of another cluster's brokers: `b1` is the one with the lowest node id when the session began."""

    def __init__(self, given: Fronted) -> None:
        super().__init__(given.settings, Offer("", 0, {}))
        self.outside = Outside()
        self._upstream: Address = given.host, given.port
        self._ports = given.settings.ports + given.spare
        self._nodes: list[int] = []
        """Node ids in the order of their ports."""
        self._connections: dict[int, UpstreamConnection] = {}
        self._now = given.now
        self._reads: list[tuple[str, ReadRecords]] = []
        self._fences: list[tuple[tuple[str, int, int], int]] = []
        """What can be judged when the session is over."""
        self._logs: FrozenMap[str, PartitionLog] = FrozenMap()
        self._offsets = Offsets()
        """As coordinators tell them, as far as they are in a log that was read."""
        self._of_groups: tuple[str, ...] = ()

    @property
    def now(self) -> int:
        return self._now

    @property
    def deadline(self) -> int | None:
        return self.faults.deadline

    @property
    def brokers(self) -> Brokers:
        return Brokers(self._logs, FrozenMap(self.outside.entries), offsets=self._offsets, of_groups=self._of_groups)

    def names(self) -> tuple[tuple[str, Address, int], ...]:
        """Return the name of each broker, its address and its node id."""
        return tuple((f"b{place}", self.outside.nodes[node], node) for place, node in enumerate(self._nodes, 1))

    def unjudged(self) -> tuple[str, ...]:
        """Say what could not be judged of a session that is over."""
        partitions = sorted(self.outside.touched - {*self._logs})
        why = {name: self.outside.unread.get(name, "no leader answered") for name in partitions}
        reasons = [f"{name} could not be read to its end ({why[name]}): P1 to P6, P9 and P11 are not judged there"
                   for name in partitions]
        tids = sorted({*self.outside.owners} - {*self.outside.entries})
        reasons += [f"the coordinator of {tid} did not describe it: P5, P7 and P8 are not judged of it" for tid in tids]
        groups = sorted(self.outside.groups - {*self.outside.offsets})
        reasons += [f"no coordinator told the offsets of {group}: P10 is not judged of it" for group in groups]
        unread = sorted({*self.outside.of_groups} - {*self._logs}) if self.outside.groups else []
        reasons += [f"{name} could not be read to its end ({self.outside.unread.get(name, 'no leader answered')}): "
                    "P10 is not judged there" for name in unread if name not in partitions]
        if self.outside.groups and not self.outside.of_groups:
            reasons.append(f"P10 is not judged: the cluster shows no {GROUP_TOPIC}")
        return tuple(reasons)

    def address_of(self, node: int | None) -> Address:
        """Return where a node is. One that says that it is here is where the proxy was told that brokers are."""
        known = self._upstream if node is None else self.outside.nodes[node]
        return self._upstream if known[0] == self.settings.host and known[1] in self._ports else known

    def _pass_time(self, now: int) -> None:
        self._now = max(self._now, now)

    def _go_on_everywhere(self, outputs: list[Output]) -> None:
        while self._resumed:
            self._go_on(self._resumed.popleft(), outputs)

    def _silence(self, changed: Injected) -> None:
        """Brokers behind a proxy do not know of it."""

    def _refused(self, broker: int, request: WireRequest, transaction: str, error: Error) -> Fields | None:
        """Return the answer with an error that a broker of ours would give, had it the topics that are asked for."""
        settings = attrs.evolve(self.settings, ports=self._ports[:1])
        there = RunningCluster(version_of(settings.release, settings.transaction_version), (), 1, now=self._now)
        for name, partitions in asked_for(request.message).items():
            there.create_topic(name, partitions)
        answer = with_error(AskedBroker(settings, there, 1, transaction), request, error)
        ids = {name: topic for topic, name in self.outside.topics.items()}
        for part in structures(answer):
            part["topic_id"] = ids.get(part.get("name") or part.get("topic") or "", NO_ID)
        if answer is not None and request.api_key == apis.METADATA:
            rows = ((node, self._mine(node)) for node in self._nodes)
            answer = {**answer, "brokers": tuple(
                {"node_id": node, "host": host, "port": port} for node, (host, port) in rows)}
        return answer

    def _mine(self, node: int) -> Address:
        """Return where clients find a broker here. Raises Malformed for one too many."""
        if node not in self._nodes:
            if len(self._nodes) == len(self._ports):
                raise Malformed(f"node {node} is one more than the {len(self._ports)} brokers that there are ports for")
            self._nodes.append(node)
        return self.settings.host, self._ports[self._nodes.index(node)]

    def _take_else(self, given: Input, outputs: list[Output]) -> None:
        if isinstance(given, Opened):
            self._dial(given.connection, given.broker, outputs)
        elif isinstance(given, Replied) and given.connection in self._connections:
            self._hear(given.connection, given.data, outputs)
        elif isinstance(given, Learned):
            self._learn(given)

    def _dial(self, number: int, broker: int, outputs: list[Output]) -> None:
        self._connections[number] = UpstreamConnection(broker)
        place = self.address_of(self._nodes[broker - 1]) if broker <= len(self._nodes) else UNKNOWN_ADDRESS
        outputs.append(Dial(number, *place))

    def _connection(self) -> Connection:
        return Connection(self.offer, names=self.outside.topics)

    def _arrived(self, request: WireRequest) -> str:
        if not goes_by_id(request.api_key, request.version):  # those have their names as they come
            self.outside.named(request.message)
        return super()._arrived(request)

    def _ask(self, broker: int, request: WireRequest, transaction: str, token: Token, outputs: list[Output]) -> None:
        """Forward a request; what no client waits for goes on the broker's connection of no client."""
        number = token[0] if token[0] != NO_CONNECTION else NO_CONNECTION - broker
        if number not in self._connections:
            self._dial(number, broker, outputs)
        self.outside.delivered(request, transaction)
        outputs.append(Forward(number, framed(request.frame)))
        if not is_unanswered(request.api_key, request.message):
            self._connections[number].waiting.append((token, request, transaction))
        elif token[0] != NO_CONNECTION:
            client = self.clients[number]
            self._write(number, client.connection.send(request.number, None), outputs)
            self._is_answered(number, client, request.number)

    def _hear(self, number: int, data: bytes, outputs: list[Output]) -> None:
        """Take bytes of a broker, or the end of its connection."""
        connection = self._connections[number]
        try:
            if not data:
                raise Malformed("the broker closed the connection")
            for frame in connection.frames.receive(data):
                if not connection.waiting:
                    raise Malformed("an answer that nobody asked for")
                self._answer(connection.broker, *connection.waiting.popleft(), frame, outputs)
        except Malformed as reason:
            if self._connections.pop(number, None) is not None:
                outputs.append(HangUp(number))
            if number in self.clients:
                self._close(number, f"upstream: {reason}", outputs)
        self._hang_up(number, outputs)

    def _answer(
        self, broker: int, token: Token, request: WireRequest, transaction: str, frame: bytes, outputs: list[Output]
    ) -> None:
        """Note what a broker answered, and let the client hear it that still waits for it."""
        fields = read_response(frame, request.api_key, request.version)[1]
        self.outside.met(fields)
        self.outside.named(fields)
        self.outside.answered(request, transaction, fields)
        if request.api_key == apis.DELETE_TOPICS:
            self._forget_topics(fields)
        number, place = token
        client = self.clients.get(number)
        if client is not None and (client.asked is None or client.asked.number != place):
            client = None
        if client is not None and client.loses:
            self.exchanged.append(Exchanged(number, broker, request, transaction, LOST, fields))
            self._close(number, "a fault lost the answer", outputs)
            return
        self.exchanged.append(Exchanged(number, broker, request, transaction, answer=fields))
        if client is None:
            return
        self._note(request, transaction, fields)
        brokers = list(naming(fields))
        for part, node in brokers:
            part["host"], part["port"] = self._mine(node)
        self._write(number, client.connection.send(place, fields if brokers else framed(frame)), outputs)
        self._is_answered(number, client, place)

    def _note(self, request: WireRequest, transaction: str, fields: Fields) -> None:
        """Note what a client hears; what only the logs can tell is judged when they are read."""
        if request.api_key == apis.FETCH:
            with suppress(BadBatch):
                for name, got in reads(request, fields):
                    if got.is_committed:
                        self.outside.touched.add(name)
                        self._reads.append((name, got))
            return
        self.observed = answered(self.observed, request, transaction, fields, lambda tid: None)
        owner = producer_of(request)
        errors = {part["error_code"] for part in structures(fields) if "error_code" in part}
        self._fences += [(owner, error) for error in sorted(errors & FENCED.keys()) if owner is not None]

    def _forget_topics(self, fields: Fields) -> None:
        deleted = {row["name"] for row in fields["responses"] if row["error_code"] == 0}
        gone = {name for name in self.outside.touched if topic_of(name) in deleted}
        self.observed = without(self.observed, gone)
        self.outside.touched -= gone
        self._reads = [(name, got) for name, got in self._reads if name not in gone]

    def _forget(self, number: int, outputs: list[Output]) -> None:
        super()._forget(number, outputs)
        self._hang_up(number, outputs)

    def _hang_up(self, number: int, outputs: list[Output]) -> None:
        """Give a connection up whose client is gone, once the broker has answered what it was asked."""
        connection = self._connections.get(number)
        if connection is not None and number >= 0 and number not in self.clients and not connection.waiting:
            outputs.append(HangUp(number))
            del self._connections[number]

    def _learn(self, given: Learned) -> None:
        """Take an answer to what the proxy asked itself."""
        fields = read_response(given.data, given.api_key, given.version)[1]
        self.outside.met(fields)
        if given.api_key == apis.API_VERSIONS:
            self.offer = offer_before(fields)
        elif given.api_key == apis.METADATA:
            self.outside.lead(fields)
            self._nodes = self._nodes or sorted(self.outside.nodes)
        elif given.api_key == apis.LIST_OFFSETS:
            self.outside.begin(fields)
        elif given.api_key == apis.FIND_COORDINATOR:
            self.outside.coordinate(fields)
        elif given.api_key == apis.DESCRIBE_TRANSACTIONS:
            self.outside.describe(fields)
            for owner, error in self._fences:
                self.observed = fenced(self.observed, owner, error, self.outside.entries.get)
        elif given.api_key == apis.OFFSET_FETCH:
            self.outside.tell_offsets(fields)
        elif given.api_key == apis.FETCH:
            for name, log in self.outside.fetched(fields):
                self._judge(name, log)

    def _judge(self, name: str, log: PartitionLog) -> None:
        """Take a partition's log, which is whole, and judge what readers were sent of it."""
        self._logs = self._logs.set(name, self.outside.judged(log))
        if topic_of(name) == GROUP_TOPIC:
            self._of_groups = (*self._of_groups, name)
            self._offsets = with_offsets(self._offsets, self.outside.live(load(log.batches)))
        if name not in self.outside.touched:
            return
        self.observed = logged(self.observed, name, log)
        for partition, got in self._reads:
            if partition == name:
                batches = tuple(batch for batch in got.batches if batch.base_offset >= log.log_start_offset)
                self.observed = read(self.observed, name, attrs.evolve(got, batches=batches))
