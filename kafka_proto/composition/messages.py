"""What the actors exchange: a client's request or a broker's response in an envelope with a correlation id."""

from __future__ import annotations

import attrs

from harness.model import Message, fresh
from kafka_proto.clients.producer import Request, Response


@attrs.frozen
class ClientRequest(Message):
    request: Request
    correlation: int = attrs.field(metadata=fresh("correlation", "source"), kw_only=True)


@attrs.frozen
class BrokerResponse(Message):
    response: Response
    correlation: int = attrs.field(metadata=fresh("correlation", "dest"), kw_only=True)
