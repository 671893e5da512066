"""Faults as values: which request is hit, what is held back, who is paused. What becomes of it is the host's affair."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.inputs import Injected

FOREVER = -1
NO_CONNECTION = -1
"""Whose answers nobody gets."""
Token = tuple[int, int]
"""A connection and the number of its request: who is answered."""


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
    requests: tuple[tuple[WireRequest, str], ...]


@attrs.frozen
class FaultsUnderWay:
    """All that is under way."""

    rules: tuple[RequestFault, ...] = ()
    held: tuple[Held, ...] = ()
    brokers: FrozenMap[int, tuple[Injected, ...]] = FrozenMap()
    """Faults of each broker that do not let it take requests."""
    links: tuple[Injected, ...] = ()
    """Faults between two brokers."""

    def hit(self, name: str) -> tuple[FaultsUnderWay, tuple[Injected, ...]]:
        """Count a request for each rule of its name, and return the faults that hit it."""
        rules = tuple(attrs.evolve(rule, seen=rule.seen + (rule.fault.request == name)) for rule in self.rules)
        found = (rule.fault for rule in rules if rule.fault.request == name and rule.fault.nth in (0, rule.seen))
        return attrs.evolve(self, rules=rules), tuple(found)

    def is_stalled(self, broker: int) -> bool:
        """Say whether a broker takes no requests."""
        return broker in self.brokers

    def is_down(self, broker: int) -> bool:
        """Say whether a broker crashed and did not start again."""
        return any(fault.kind == "crash" for fault in self.brokers.get(broker, ()))

    def stalled_by(self, broker: int) -> tuple[int, int] | None:
        """Return which fault keeps a broker from taking requests, and until when; None where none does."""
        fault = self.brokers.get(broker, (None,))[-1]
        return None if fault is None else (fault.number, until(fault))

    def holds(self, number: int) -> bool:
        """Say whether a fault holds a request back."""
        return any(each.number == number for each in self.held)

    @property
    def deadline(self) -> int | None:
        """Return when something is over."""
        times = (*(each.until for each in self.held), *map(until, self._lasting()))
        return min((at for at in times if at != FOREVER), default=None)

    def over(self, now: int) -> tuple[int, ...]:
        """Return the numbers of faults of brokers whose time is over."""
        return tuple(fault.number for fault in self._lasting() if until(fault) != FOREVER and until(fault) <= now)

    def _lasting(self) -> tuple[Injected, ...]:
        return (*(fault for faults in self.brokers.values() for fault in faults), *self.links)


def until(fault: Injected) -> int:
    """Return when a fault is over by itself."""
    return FOREVER if fault.for_ms is None else fault.now + fault.for_ms
