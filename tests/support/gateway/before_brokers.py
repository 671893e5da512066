"""A proxy before brokers of ours without sockets: what the brokers answer may be changed on its way."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kafka_proto.gateway.codec import SIZE, Source
from kafka_proto.gateway.connection import WireRequest, encode_response, read_head, read_response
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import (
    Arrived,
    Close,
    Dial,
    Forward,
    Fronted,
    Gone,
    HangUp,
    Input,
    Learned,
    Opened,
    Output,
    Passed,
    Replied,
    Settings,
    Write,
)
from kafka_proto.gateway.proxy import ProxyHost
from kafka_proto.gateway.questions import Pause, Question, after, before
from kafka_proto.gateway.recording import Recording
from support.gateway.wire import Talk, request_bytes

OURS, THEIRS, SPARE = 100, 200, 2
"""The first port of the proxy's, and of the brokers'; ports for brokers that come later."""
OWN = 1_000
"""The connections of the proxy itself are numbered from here on."""
Change = Callable[[int, dict[str, Any]], object]
"""Is handed the API and the fields of each answer."""


class BeforeBrokers:
    """A proxy, as clients see it: `take` carries out what it wants of its brokers. `change` changes their answers."""

    def __init__(self, brokers: int = 1, topics: int = 2, now: int = 1_000_000, **settings: Any) -> None:
        ports = tuple(THEIRS + n for n in range(1, brokers + 1))
        self.brokers = Host(Settings(ports=ports, **settings), {"t": topics}, now)
        given = Fronted(Settings(ports=tuple(OURS + n for n in range(1, brokers + 1))), "127.0.0.1", THEIRS + 1,
                        tuple(OURS + brokers + n for n in range(1, SPARE + 1)), now)
        self.proxy = ProxyHost(given)
        self.recording = Recording(self.proxy, given)
        self.change: Change = lambda api, fields: None
        self._asked: dict[int, deque[WireRequest]] = defaultdict(deque)
        self._interview(before(self.proxy))

    def take(self, given: Input) -> list[Output]:
        """Take an input of a client, or a fault, and return what clients get."""
        if isinstance(given, Passed):
            return [*self._given(given), *self._routed(self.brokers.take(given))]
        return self._given(given)

    def over(self) -> dict[str, str]:
        """End the session, and return what it violates."""
        self._interview(after(self.proxy))
        return self.proxy.problems()

    def _given(self, given: Input) -> list[Output]:
        outputs = self.proxy.take(given)
        self.recording.see(given, outputs)
        return [found for output in outputs for found in self._carried_out(output)]

    def _carried_out(self, output: Output) -> Iterable[Output]:
        now = self.proxy.now
        if isinstance(output, Dial):
            return self._routed(self.brokers.take(Opened(output.connection, now, output.port - THEIRS)))
        if isinstance(output, Forward):
            api, version, number = read_head(Source(output.data[SIZE:]))
            self._asked[output.connection].append(WireRequest(0, api, version, number, None, {}))
            return self._routed(self.brokers.take(Arrived(output.connection, output.data, now)))
        if isinstance(output, HangUp):
            return self._routed(self.brokers.take(Gone(output.connection, now)))
        return [output]

    def _routed(self, outputs: list[Output]) -> list[Output]:
        """Hand what brokers write to the proxy, and return what clients get of it."""
        found = list[Output]()
        for output in outputs:
            if isinstance(output, Write):
                found += self._given(Replied(output.connection, b"".join(self._changed(output)), self.proxy.now))
            elif isinstance(output, Close):
                found += self._given(Replied(output.connection, b"", self.proxy.now))
        return found

    def _changed(self, written: Write) -> Iterator[bytes]:
        at = 0
        while at < len(written.data):
            end = at + SIZE + int.from_bytes(written.data[at : at + SIZE], "big")
            request = self._asked[written.connection].popleft()
            fields = read_response(written.data[at + SIZE : end], request.api_key, request.version)[1]
            self.change(request.api_key, fields)
            yield encode_response(request, fields)
            at = end

    def _interview(self, questions: Iterator[Question | Pause]) -> None:
        for place, question in enumerate(questions, OWN):
            if isinstance(question, Pause):
                continue
            now, number = self.proxy.now, place + OWN * len(self._asked)
            data = request_bytes(question.api_key, question.version, question.message)
            api, version, correlation = read_head(Source(data[SIZE:]))
            self._asked[number].append(WireRequest(0, api, version, correlation, None, {}))
            self.brokers.take(Opened(number, now, self.proxy.address_of(question.node)[1] - THEIRS))
            (written,) = self.brokers.take(Arrived(number, data, now))
            assert isinstance(written, Write)
            frame = b"".join(self._changed(written))[SIZE:]
            self._given(Learned(question.api_key, question.version, frame, now))
            self.brokers.take(Gone(number, now))


def before_brokers(**settings: Any) -> tuple[BeforeBrokers, Talk]:
    """Return a proxy, and clients of it."""
    proxy = BeforeBrokers(**settings)
    return proxy, Talk(proxy)



