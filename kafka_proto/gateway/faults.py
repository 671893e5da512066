"""Faults as values: which request is hit, what is held back, which broker is paused. The host acts on them.

And what they are about: connections of clients.
"""

from __future__ import annotations

from collections import deque

import attrs

from kafka_proto.gateway import offer as apis
from kafka_proto.gateway.codec import Fields, api_name
from kafka_proto.gateway.connection import Connection, WireRequest
from kafka_proto.gateway.inputs import OF_BROKERS, STOPPING, Injected

FOREVER = -1
NO_CONNECTION = -1
"""The answers of this connection are not delivered."""
LOST = ("lost",)
"""The fault of an answer that is not delivered."""
Token = tuple[int, int]
"""A connection and the number of its request: the client to answer."""


@attrs.frozen
class RequestFault:
    """A fault of requests; `seen` is how many of the name came since it began."""

    fault: Injected
    seen: int = 0


@attrs.frozen
class Held:
    """Requests that are held back, until a time or until their fault ends: then their broker takes them.

    It is one while its client waits; those of a connection that its client gave up are of `NO_CONNECTION`. With them
    is the transaction that each is of.
    """

    number: int
    until: int
    broker: int
    connection: int
    client: int
    """The connection that they came on."""
    requests: tuple[tuple[WireRequest, str], ...]


@attrs.frozen
class FaultsUnderWay:
    """All that is under way."""

    rules: tuple[RequestFault, ...] = ()
    held: tuple[Held, ...] = ()
    lasting: tuple[Injected, ...] = ()
    """Faults of brokers, which do not let them take requests, and those between two."""

    def hit(self, name: str, client: str | None = None) -> tuple[FaultsUnderWay, tuple[Injected, ...]]:
        """Count a request of a client for each rule that is about it, and return the faults that hit it."""
        about = [rule.fault.request == name and rule.fault.client in (None, client) for rule in self.rules]
        rules = tuple(attrs.evolve(rule, seen=rule.seen + is_it) for rule, is_it in zip(self.rules, about, strict=True))
        found = (rule.fault for rule, is_it in zip(rules, about, strict=True)
                 if is_it and rule.fault.nth in (0, rule.seen))
        return attrs.evolve(self, rules=rules), tuple(found)

    def without(self, number: int) -> FaultsUnderWay:
        """Return the faults without one; what it holds back stays."""
        return attrs.evolve(self, rules=tuple(rule for rule in self.rules if rule.fault.number != number),
                            lasting=tuple(fault for fault in self.lasting if fault.number != number))

    def of_broker(self, broker: int) -> tuple[Injected, ...]:
        """Return the faults that keep a broker from taking requests."""
        return tuple(fault for fault in self.lasting
                     if fault.broker == broker and not fault.other and fault.kind in OF_BROKERS)

    def is_down(self, broker: int) -> bool:
        """Say whether a broker was stopped and did not start again."""
        return any(fault.kind in STOPPING for fault in self.of_broker(broker))

    def holds(self, number: int) -> bool:
        """Say whether a fault holds a request back."""
        return any(each.number == number for each in self.held)

    @property
    def deadline(self) -> int | None:
        """Return when something ends."""
        times = (*(each.until for each in self.held), *map(until, self.lasting))
        return min((at for at in times if at != FOREVER), default=None)

    def over(self, now: int) -> tuple[int, ...]:
        """Return the numbers of faults whose time is over, first those of brokers, broker by broker."""
        in_turn = sorted(self.lasting, key=lambda fault: (fault.other != 0, fault.broker * (not fault.other)))
        return tuple(fault.number for fault in in_turn if FOREVER != until(fault) <= now)


def until(fault: Injected) -> int:
    """Return when a fault ends by itself."""
    return FOREVER if fault.for_ms is None else fault.now + fault.for_ms


@attrs.define
class ServedConnection:
    """A connection with its broker and what waits on it."""

    connection: Connection
    broker: int
    waiting: deque[WireRequest] = attrs.field(factory=deque)
    asked: WireRequest | None = None
    """The request that is being looked at, or held back, until it is answered."""
    ends: str | None = None
    """Why it will be closed once its requests are answered."""
    loses: bool = False
    """Whether it is closed in place of the answer to what is asked."""
    unsent: bytes = b""
    """What a paused broker has not written."""
    transactions: dict[int, str] = attrs.field(factory=dict)
    """Of requests that were not answered, by number."""


@attrs.frozen(eq=False)
class Exchanged:
    """A request that a connection's broker looks at, with the faults that hit it; or what is answered to it.

    One that was held back is looked at twice: then it is `held` or, if its client has given up, `late`.
    """

    connection: int
    broker: int
    request: WireRequest
    transaction: str
    faults: tuple[str, ...] = ()
    answer: Fields | None = None
    has_come: bool = False
    """Whether it only came: it is looked at when those before it are answered."""

    @property
    def is_again(self) -> bool:
        """Whether it was looked at before, and held back."""
        return self.faults in (("held",), ("late",))


def name_of(request: WireRequest) -> str:
    return api_name(request.api_key, request.version)


def words_of(request: WireRequest, transaction: str) -> str:
    """Return a request in words: its name, what an EndTxn asks for, and the transaction that it is of."""
    end = ("commit" if request.message["committed"] else "abort") if request.api_key == apis.END_TXN else ""
    return " ".join(filter(None, (name_of(request), end, transaction)))
