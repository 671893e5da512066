"""A broker of all roles as an actor. Its log is atomic; what it sends itself, markers, is under way until delivered."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, Kind, Message, Turn
from kafka_proto.broker import (
    NodeState,
    deliver_held,
    elect,
    handle,
    new_node,
    next_deadline,
    pass_time,
    running,
    state_of,
)
from kafka_proto.composition.messages import BrokerResponse, ClientRequest
from kafka_proto.versions import BrokerVersion

TRANSACTION_TIMEOUT = "TransactionTimeout"


class Broker(Actor[NodeState]):
    """The actor of one broker: it answers requests, delivers markers, and is elected anew a number of times."""

    def __init__(self, name: str, version: BrokerVersion, partitions: tuple[str, ...], elections: int) -> None:
        self.name = name
        self.version = version
        self.elections = elections
        self.initial = state_of(attrs.evolve(new_node(version, partitions), holds_markers=True))

    def on_message(self, local: NodeState, message: Message) -> Iterable[Turn[NodeState]]:
        if not isinstance(message, ClientRequest):
            return
        node, response = handle(running(self.version, local), message.request)
        answer = BrokerResponse(response, correlation=message.correlation,  # type: ignore[arg-type]
                                source=self.name, dest=message.source)
        what = type(message.request).__name__.removesuffix("Request")
        yield Turn(f"Receive{what}", (self.name, message.source), state_of(node), (answer,))

    def step(self, local: NodeState) -> Iterable[Turn[NodeState]]:
        if local.held:
            first, rest = local.held[:1], local.held[1:]
            node, _ = deliver_held(attrs.evolve(running(self.version, local), held=first))
            after = attrs.evolve(state_of(node), holds_markers=True, held=(*rest, *node.held))
            yield Turn("WriteTxnMarkers", (self.name, first[0].transactional_id), after)
        if local.coordinator.coordinator_epoch < self.elections:
            node = elect(running(self.version, local))
            yield Turn("Elect", (self.name,), state_of(node), kind=Kind.PERTURBATION)

    def timers(self, local: NodeState) -> tuple[str, ...]:
        return () if next_deadline(running(self.version, local)) is None else (TRANSACTION_TIMEOUT,)

    def timer_fired(self, local: NodeState, timer: str) -> Iterable[Turn[NodeState]]:
        node = running(self.version, local)
        deadline = next_deadline(node)
        if deadline is not None:
            yield Turn(timer, (self.name,), state_of(pass_time(node, deadline)))
