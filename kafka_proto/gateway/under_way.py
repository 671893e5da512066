"""Connections of clients, and requests that brokers have taken of them."""

from __future__ import annotations

from collections import deque

import attrs

from kafka_proto.gateway import offer as apis
from kafka_proto.gateway.codec import Fields, api_name
from kafka_proto.gateway.connection import Connection, WireRequest
from kafka_proto.gateway.context import AskedBroker, Handling
from kafka_proto.gateway.faults import FOREVER, Token


@attrs.define
class ServedConnection:
    """A connection with its broker and what waits on it."""

    connection: Connection
    broker: int
    waiting: deque[WireRequest] = attrs.field(factory=deque)
    asked: WireRequest | None = None
    """The request that is looked at, or held back, until it is answered."""
    ends: str | None = None
    """Why it will be closed once its requests are answered."""
    loses: bool = False
    """Whether it is closed in place of the answer to what is asked."""
    unsent: bytes = b""
    """What a broker that is paused has not written."""
    transactions: dict[int, str] = attrs.field(factory=dict)
    """Of requests that were not answered, by number."""


@attrs.frozen(eq=False)
class Exchanged:
    """A request that a connection's broker looks at, with the faults that hit it; or what is answered to it."""

    connection: int
    broker: int
    request: WireRequest
    transaction: str
    faults: tuple[str, ...] = ()
    answer: Fields | None = None


@attrs.define(eq=False)
class UnderWay:
    """A request that a broker has taken and not answered: what it asked and waits for, or until when it looks again."""

    token: Token
    here: AskedBroker
    request: WireRequest
    handling: Handling
    asked: tuple[int, ...] = ()
    """Correlation ids."""
    until: int = FOREVER
    changes: int = -1
    """How much had happened when it looked last."""


def name_of(request: WireRequest) -> str:
    return api_name(request.api_key, request.version)


def words_of(request: WireRequest, transaction: str) -> str:
    """Return a request in words: its name, what an EndTxn asks for, and the transaction that it is of."""
    end = ("commit" if request.message["committed"] else "abort") if request.api_key == apis.END_TXN else ""
    return " ".join(filter(None, (name_of(request), end, transaction)))
