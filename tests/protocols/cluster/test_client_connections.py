"""Which answers a client still waits for, once it has given a connection up."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.messages import LeaderResponse, Response
from kafka_proto.clients.client_connections import ClientConnections


def test_an_answer_of_a_connection_that_was_given_up_answers_nothing() -> None:
    """The request goes again, with its number, over the next one: the answer to the first must not count as its."""
    connections, message = ClientConnections().ask("c1", "b1", "request", "c1.1")
    answer = Response(LeaderResponse("t-0", "b1"), message.correlation, message.connection, source="b1", dest="c1")
    sent = connections.about(answer)
    assert sent is not None and sent.request == "request"
    assert connections.about(attrs.evolve(answer, correlation=message.correlation + 1)) is None
    given_up = attrs.evolve(connections, opened=FrozenMap({"b1": message.connection + 1}))
    assert given_up.about(answer) is None
    assert given_up.about(attrs.evolve(answer, connection=message.connection + 1)) == sent
