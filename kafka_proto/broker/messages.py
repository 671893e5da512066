"""Requests and responses between clients and brokers, and among brokers, as messages on connections.

Two requests are of these actors only: `kafka_proto.requests` has no look-ups, since one broker needs none.
"""

from __future__ import annotations

import attrs

from harness.model import Message, Value, ordered


@attrs.frozen
class Request(Message):
    """A request of one of `kafka_proto.requests`; its type is that of what it carries.

    After giving a connection up, a client opens another, with the next number, and repeats the same correlation id.
    """

    request: Value
    correlation: int = attrs.field(metadata=ordered("correlation", "source"))
    connection: int = attrs.field(default=0, metadata=ordered("connection", "source", "dest"))
    transaction: str = ""
    """The ghost: the application's transaction that it is part of. No protocol code reads it."""

    @property
    def type(self) -> str:
        return type(self.request).__name__


@attrs.frozen
class Response(Message):
    """The response to a request, on its connection, which the asker opened."""

    response: Value
    correlation: int = attrs.field(metadata=ordered("correlation", "dest"))
    connection: int = attrs.field(default=0, metadata=ordered("connection", "dest", "source"))

    @property
    def type(self) -> str:
        return type(self.response).__name__

    @property
    def opener(self) -> str:
        return self.dest


@attrs.frozen
class Asker:
    """The client that waits for a coordinator's answer, and where the answer goes."""

    client: str
    correlation: int = attrs.field(metadata=ordered("correlation", "client"))
    connection: int = attrs.field(metadata=ordered("connection", "client", "self"))
    transaction: str
    """The ghost of the request."""

    def answered(self, broker: str, response: Value) -> Response:
        """Return a broker's response to the client that waits."""
        return Response(response, self.correlation, self.connection, source=broker, dest=self.client)


def asker_of(message: Request) -> Asker:
    """Return the client that waits for the answer to a request."""
    return Asker(message.source, message.correlation, message.connection, message.transaction)


@attrs.frozen
class PartitionsDeleted:
    """What the coordinator of groups hears when topics are deleted. It is not answered."""

    partitions: tuple[str, ...]
    unused: tuple[str, ...] = ()
    """The groups that go with their last offset."""


@attrs.frozen
class MetadataRequest:
    """Asks for the leader of a partition."""

    partition: str


@attrs.frozen
class FindCoordinatorRequest:
    """Asks for the coordinator of a transactional id."""

    transactional_id: str


@attrs.frozen
class LeaderResponse:
    """The broker that leads what was asked about, as far as the asked one knows; empty if it knows of no leader."""

    about: str
    leader: str


LookUp = MetadataRequest | FindCoordinatorRequest
