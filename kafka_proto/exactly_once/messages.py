"""Requests and responses between clients and brokers, and among brokers, as messages on connections."""

from __future__ import annotations

import attrs

from harness.model import Message, Value


@attrs.frozen
class Request(Message):
    """A request of one of `kafka_proto.requests`; its type is that of what it carries.

    Who gives a connection up opens another, with the next number, and asks again with the same correlation id.
    """

    request: Value
    correlation: int
    connection: int = 0
    transaction: str = ""
    """The ghost: the application's transaction that it is part of. No protocol code reads it."""

    @property
    def type(self) -> str:
        return type(self.request).__name__


@attrs.frozen
class Response(Message):
    """The response to a request, on its connection."""

    response: Value
    correlation: int
    connection: int = 0

    @property
    def type(self) -> str:
        return type(self.response).__name__
