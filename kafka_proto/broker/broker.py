"""The broker: its metadata cache, roles, and the log that they share.

It routes messages and carries outcomes out. What a coordinator decides is said in its role. How records are replicated
and committed, and leaders learned, is said in its log: `ReplicatedLog`, or `LocalLog` where leaders stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import attrs

from harness.model import Actor, FrozenMap, Local, Message, Part, Turn, Value
from kafka_proto.broker.parts import METADATA, NOBODY, LeaderAndEpoch, Metadata
from kafka_proto.broker.roles import Log, Role, RoleStep, owners


class Broker(Actor[Local]):
    """The actor of one broker."""

    may_crash = True

    def __init__(self, name: str, log: Log, roles: tuple[Role, ...]) -> None:
        self.name = name
        self.log = log
        self.roles = roles
        first = Local.first(name, METADATA, *(part for role in roles for part in role.parts), *log.parts)
        self.initial = first.put(METADATA, Metadata(FrozenMap({p: NOBODY for p in owners(roles)})))
        self.timed: dict[Part[Any], Role | str] = {part: role for role in roles for part in role.parts}
        """By part of the state: the role, or the partition of the log, whose timers it arms."""
        self.timed |= dict(zip(log.parts, log.named, strict=True))

    def started(self, known: Mapping[str, LeaderAndEpoch], replicas: Mapping[Part[Any], Value] = FrozenMap()) -> Local:
        """Return the state at the start: everybody has heard of the first election; `replicas` are parts of its log."""
        local = self.initial.put_all({METADATA: Metadata(FrozenMap(known)), **replicas}).folded()
        for role in self.roles:
            local = role.started(local)
        return local

    def restarted(self, local: Local) -> Local:
        """Start a new incarnation from what is on disk."""
        metadata = local[METADATA]
        local = local.put(METADATA, attrs.evolve(metadata, broker_epoch=metadata.broker_epoch + 1))
        for role in self.roles:
            local = role.restarted(local)
        return self.log.restarted(local)

    def step(self, local: Local, rested: Local | None = None) -> Iterable[Turn[Local]]:
        """Yield what it may do of its own accord; `rested` is a state before in which there was nothing."""
        metadata = local[METADATA]
        before = None if rested is None else rested[METADATA]
        is_same = before is not None and (before.known, before.registering) == (metadata.known, metadata.registering)
        if not is_same and NOBODY in metadata.known.values() and not metadata.registering:
            after = local.put(METADATA, attrs.evolve(metadata, registering=True))
            sent = (self.log.registration(local),)
            yield Turn("RegisterBroker", (self.name,), after, sent, flush=self.log.numbered)
        yield from self.log.step(local, None if rested is None else keys(local.touched(rested)))
        for role in self.roles:
            yield from map(self.carry_out, role.step(local, partial(self.log.may_append, local)))

    def on_message(self, local: Local, message: Message) -> Iterable[Turn[Local]]:
        turn = self.log.receive(local, message)
        if turn is not None:
            yield turn
            return
        taken = (role.receive(local, message) for role in self.roles)
        yield from (self.carry_out(outcome) for outcome in taken if outcome is not None)

    def carry_out(self, outcome: RoleStep) -> Turn[Local]:
        """Return the turn that an outcome is, its records appended."""
        done = self.log.carried_out(outcome)
        return Turn(outcome.action, outcome.who, done.local, done.sent, done.flush)

    def asks(self, local: Local) -> tuple[Message, ...]:
        """Return what it sends again until it is answered."""
        register = (self.log.registration(local),) if local[METADATA].registering else ()
        return (*register, *self.log.resend(local))

    def timers(self, local: Local) -> tuple[str, ...]:
        return tuple(self.deadlines(local))

    def deadlines(self, local: Local) -> dict[str, int | None]:
        """Return when each armed timer fires, in milliseconds; None if it has no time."""
        found: dict[str, int | None] = {"BrokerRequestTimeout": None} if self.asks(local) else {}
        for role in self.roles:
            found.update(role.timers(local))
        return {**found, **self.log.timers(local)}

    def armed(self, local: Local, source: Role | str) -> Mapping[str, int | None]:
        """Return the timers that a role, or a partition of the log, has armed."""
        return self.log.armed(local, source) if isinstance(source, str) else source.timers(local)

    def timer_fired(self, local: Local, timer: str) -> Iterable[Turn[Local]]:
        """Ask again for what was not answered, or let the log do what it is time for."""
        if timer == "BrokerRequestTimeout":
            yield Turn(timer, (self.name,), local, self.asks(local))
            return
        for role in self.roles:
            yield from map(self.carry_out, role.timer_fired(local, timer))
        yield from self.log.timer_fired(local, timer)


def keys(parts: Iterable[Part[Any]]) -> frozenset[str]:
    """Return the partitions that parts of a state are about; of others, the parts' names."""
    return frozenset(part.index[-1] for part in parts)
