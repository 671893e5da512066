"""Actors whose messages arrive at once and in order, but for those that are down, paused or cut off; and their timers.

Nothing here knows I/O, chance or a clock: the driver says what time it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Self, TypeGuard

import attrs

from harness.model import Actor, FrozenMap, Local, Message, Turn
from kafka_proto import requests
from kafka_proto.broker.broker import Broker
from kafka_proto.broker.messages import Request, Response
from kafka_proto.broker.other_brokers import REQUEST_TIMEOUT
from kafka_proto.broker.parts import CONNECTIONS, METADATA, LeaderAndEpoch, known
from kafka_proto.broker.roles import Role
from kafka_proto.requests import Error

MOST_MESSAGES = 100_000
"""Of one input: more means that the brokers do not come to rest."""
RETRY_MS = 100
"""After which a broker asks another one again that did not do what it was asked."""
REQUEST_TIMEOUT_MS = 30_000
"""After which it asks one again that does not answer (`request.timeout.ms`)."""
EXPAND_ISR = "ProposeExpandIsr"
REPLICA_LAG_TIME = "ReplicaLagTime"
REPLICA_LAG_MS = 500
"""How long a follower may hold up the high watermark; Kafka's `replica.lag.time.max.ms` is 30,000."""
Pair = frozenset[str]
"""Two brokers."""


@attrs.define
class BrokerTimers:
    """The armed timers of a broker in a state, by role or partition of its log."""

    local: Local
    by_source: Mapping[Role | str, Mapping[str, int | None]]
    armed: Mapping[str, int | None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.by_source = {source: timers for source, timers in self.by_source.items() if timers}
        self.armed = {timer: at for timers in self.by_source.values() for timer, at in timers.items()}


class RunningActors:
    """Brokers and, where logs are replicated, their controller, with what is between them."""

    def __init__(self, brokers: Sequence[str], now: int) -> None:
        self.brokers = tuple(brokers)
        self.now = now
        """In milliseconds."""
        self.replica_lag_ms = REPLICA_LAG_MS
        self.answers: dict[int, Any] = {}
        """By correlation id: what was answered and is not taken yet."""
        self.holds_markers = False
        """Whether markers stay on their way, whatever their links."""
        self.held: list[Message] = []
        """What is on its way and does not arrive, in the order in which it was sent."""
        self.marked: list[Request] = []
        """The markers that have arrived, until the driver takes note."""
        self.written: list[tuple[str, Error]] = []
        """What partitions answered to markers of the coordinators."""
        self.down: frozenset[str] = frozenset()
        self.paused: frozenset[str] = frozenset()
        self.cut_off: frozenset[str] = frozenset()
        """Brokers that are cut off from all others, the controller included."""
        self.links: frozenset[Pair] = frozenset()
        """Brokers that do not hear each other."""
        self.changes = 0
        """How many turns changed something: where it is the same, nothing happened."""
        self._actors: dict[str, Actor[Local]] = {}
        self._states: dict[str, Local] = {}
        self._armed: dict[tuple[str, str], int] = {}
        self._timers: dict[str, BrokerTimers] = {}
        self._rested: dict[str, Local] = {}
        """The states in which actors had nothing to do of their own accord, with failures as in `_failed`."""
        self._failed: tuple[frozenset[Any], ...] = ()
        self.stirred: set[str] = set()
        """Partitions, and names of other parts of states, that changed since the driver emptied it."""
        self._unanswered: dict[tuple[str, int], str] = {}
        """What brokers have taken of each other and not answered: by asker and correlation id, the broker asked."""

    @property
    def absent(self) -> frozenset[str]:
        """Return the brokers that are down or cut off: they cannot be asked, and lead nothing."""
        return self.down | self.cut_off

    def known(self, broker: str, p: str) -> LeaderAndEpoch:
        """Return leader and epoch of a partition, as a broker knows them."""
        return known(self._states[broker], p)

    def fork(self) -> Self:
        """Return brokers that go on from here by themselves."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list):
                setattr(other, name, copy(value))
        return other

    def pass_time(self, now: int) -> None:
        """Let it be a time, which does not go back, and what is due then happen."""
        self.at(now)
        fired = set[tuple[int, str, str]]()
        while due := [each for each in self.deadlines() if each[0] <= self.now and each not in fired]:
            _, name, timer = earliest = min(due)
            fired.add(earliest)
            self._armed.pop((name, timer), None)
            self._fire(name, timer)

    def at(self, now: int) -> None:
        """Let it be a time; nothing that is due happens."""
        if now <= self.now:
            return
        self.now = now
        for name in self.brokers:
            self._tell_time(name)

    @property
    def deadline(self) -> int | None:
        """Return when something is due."""
        return min((each[0] for each in self.deadlines()), default=None)

    def deliver_held(self) -> tuple[tuple[str, Error], ...]:
        """Deliver the markers that were held, and return the answers of their partitions."""
        self.holds_markers, self.written = False, []
        self._deliver_held()
        return tuple(self.written)

    def _broker(self, name: str) -> Broker:
        broker = self._actors[name]
        assert isinstance(broker, Broker)
        return broker

    def _tell_time(self, name: str) -> None:
        local = self._states[name]
        self._states[name] = local.put(METADATA, attrs.evolve(local[METADATA], clock=self.now)).folded()

    def _ask_again(self) -> None:
        """Let all actors ask again what was not answered: leaders may have changed, and messages may be lost."""
        for name in sorted(self._actors):
            if name in self.down:
                continue
            for timer in self._actors[name].timers(self._states[name]):
                kind, _, dest = timer.partition(" ")
                if kind in ("BrokerRequestTimeout", "ResendLeaderAndIsr") or (
                        kind == REQUEST_TIMEOUT and (not self._waits(name, dest) or self._has_moved(name, dest))):
                    self._fire(name, timer)

    def _has_moved(self, name: str, dest: str) -> bool:
        """Say whether markers are on their way to a broker that does not lead their partition any longer."""
        asked = (each.message for each in self._states[name][CONNECTIONS].asked.values() if each.message.dest == dest)
        return any(marks(each) and self.known(name, each.request.partitions[0]).leader not in ("", dest)
                   for each in asked)

    def _became(self, name: str, local: Local) -> None:
        self.changes += local is not self._states[name]
        self._keep(name, local)

    def _keep(self, name: str, local: Local) -> None:
        """Let an actor have a state, and note what changed of it."""
        before = self._states[name]
        if local is not before:
            self.stirred.update(part.index[-1] for part in local.touched(before))
            self._states[name] = local.folded()

    def _fire(self, name: str, timer: str) -> None:
        """Do what an armed timer makes a broker do; if it is about several followers, go on until it has none."""
        kind, _, dest = timer.partition(" ")
        if kind == REQUEST_TIMEOUT and self._waits(name, dest):  # what is on its way is lost with the connection
            self.held = [each for each in self.held if (each.source, each.dest) != (name, dest) or not marks(each)]
        while (turn := next(iter(self._actors[name].timer_fired(self._states[name], timer)), None)) is not None:
            self._became(name, turn.local)
            self._settle(turn.sent)
            if not timer.startswith(REPLICA_LAG_TIME):
                return

    def deadlines(self) -> list[tuple[int, str, str]]:
        """Return when armed timers are due, with the broker's name and the timer's."""
        found = []
        armed = {}
        for name in self.brokers:
            if name in self.absent or name in self.paused:
                continue
            for timer, at in self._timers_of(name).items():
                if at is None:
                    since = armed[name, timer] = self._armed.get((name, timer), self.now)
                    at = self._due(name, timer, since)
                if at is not None:
                    found.append((at, name, timer))
        self._armed = armed
        return found

    def _timers_of(self, name: str) -> Mapping[str, int | None]:
        """Return the armed timers of a broker; those of parts of its state that did not change are known."""
        local, broker, known = self._states[name], self._broker(name), self._timers.get(name)
        if known is None:
            known = BrokerTimers(local, {source: broker.armed(local, source) for source in broker.timed.values()})
        elif known.local is not local:
            changed = {source for part in local.touched(known.local) if (source := broker.timed.get(part)) is not None}
            known = BrokerTimers(local, {
                **known.by_source, **{source: broker.armed(local, source) for source in changed}}) if changed else (
                attrs.evolve(known, local=local))
        self._timers[name] = known
        return known.armed

    def _due(self, name: str, timer: str, since: int) -> int | None:
        """Return when a timer that has no time of its own is due: so long after it was armed, or never."""
        kind, _, about = timer.partition(" ")
        if kind == REQUEST_TIMEOUT:
            if self._waits(name, about) or self.holds_markers:
                return None
            asked = self._states[name][CONNECTIONS].asked
            is_taken = all((name, id_) in self._unanswered for id_ in asked if asked[id_].message.dest == about)
            return since + (REQUEST_TIMEOUT_MS if is_taken else RETRY_MS)
        if kind == REPLICA_LAG_TIME:
            return since + self.replica_lag_ms
        return None

    def _waits(self, source: str, dest: str) -> bool:
        """Say whether what one sends another does not arrive now."""
        if source not in self._actors or dest not in self._actors:
            return False
        ends = {source, dest}
        return bool(ends & self.cut_off) or frozenset(ends) in self.links or dest in self.paused

    def _deliver_held(self) -> None:
        held, self.held = self.held, []
        self._settle(held)

    def _settle(self, sent: Iterable[Message]) -> None:
        """Deliver what was sent, and all that follows, until nothing is on its way and no actor has anything to do."""
        ahead, delivered = deque(sent), 0
        failed = (self.down, self.paused, self.cut_off, self.links)
        if failed != self._failed:
            self._failed, self._rested = failed, {}
        while True:
            while ahead:
                delivered += 1
                if delivered > MOST_MESSAGES:
                    raise RuntimeError(f"the brokers do not come to rest after {MOST_MESSAGES:,} messages")
                ahead.extend(self._delivered(ahead.popleft()))
            for name in self._actors:
                turn = self._own_turn(name)
                if turn is not None:
                    self._became(name, turn.local)
                    ahead.extend(turn.sent)
                    break
            else:
                return

    def _own_turn(self, name: str) -> Turn[Local] | None:
        """Return what an actor does of its own accord, None if there is nothing, as in the state in which it rests."""
        local, rested, actor = self._states[name], self._rested.get(name), self._actors[name]
        if rested is local or name in self.absent or name in self.paused:
            return None
        steps = actor.step(local, rested) if isinstance(actor, Broker) else actor.step(local)
        turn = next((turn for turn in steps if not self._expands_to_the_silent(turn)), None)
        if turn is None:
            self._rested[name] = local
        return turn

    def _expands_to_the_silent(self, turn: Turn[Local]) -> bool:
        """Say whether a leader would let a follower into its ISR that it does not hear: Kafka's does so at a fetch."""
        if turn.action != EXPAND_ISR:
            return False
        leader, _, follower = turn.args
        return follower in self.down or follower in self.paused or self._waits(follower, leader)

    def _delivered(self, message: Message) -> tuple[Message, ...]:
        """Let a message arrive, and return what is sent then."""
        source, dest = message.source, message.dest
        if dest not in self._actors:
            if isinstance(message, Response):
                self.answers[message.correlation] = message.response
            return ()
        if source in self.down:
            return ()
        if dest in self.down or self._waits(source, dest):
            if isinstance(message, Request) and isinstance(message.request, requests.AddPartitionsToTxnRequest):
                return self._taken(refused(message))
            if dest not in self.down:
                self.held.append(message)
            return ()
        if self.holds_markers and source in self._actors and marks(message):
            self.held.append(message)
            return ()
        if isinstance(message, Request) and source in self._actors:
            self._unanswered[source, message.correlation] = dest
        if isinstance(message, Response):
            self._unanswered.pop((dest, message.correlation), None)
            if isinstance(message.response, requests.WriteTxnMarkersResponse):
                self.written += message.response.errors.items()
        if source in self._actors and marks(message):
            self.marked.append(message)
        return self._taken(message)

    def _taken(self, message: Message) -> tuple[Message, ...]:
        """Let a broker, or the controller, take a message that has arrived, and return what it sends then."""
        dest = message.dest
        turn = next(iter(self._actors[dest].on_message(self._states[dest], message)), None)
        if turn is None:
            return ()
        self._became(dest, turn.local)
        return turn.sent


def marks(message: Message) -> TypeGuard[Request]:
    """Say whether a message asks for markers."""
    return isinstance(message, Request) and isinstance(message.request, requests.WriteTxnMarkersRequest)


def refused(message: Request) -> Response:
    """Return what a leader makes of a coordinator that it cannot ask: its connection is refused."""
    errors = FrozenMap({p: Error.NETWORK_EXCEPTION for p in message.request.partitions})
    return Response(
        requests.AddPartitionsToTxnResponse(errors), message.correlation, message.connection, source=message.dest,
        dest=message.source,
    )
