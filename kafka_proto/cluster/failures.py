"""Brokers that fail: they crash, shut down, start again, are paused or cut off, and a controller notices.

Nothing here knows I/O, chance or a clock: the driver says what time it is, and what fails.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeVar

import attrs

from harness.model import FrozenMap, Local, Turn, durable, survivor
from kafka_proto.broker.controller import PARTITION
from kafka_proto.broker.failover import REGISTRATIONS, FailoverController
from kafka_proto.broker.logs.local import LocalLog
from kafka_proto.broker.parts import METADATA, REPLICA, Records
from kafka_proto.cluster.running_actors import REPLICA_LAG_MS, Pair, RunningActors
from kafka_proto.errors import Error
from kafka_proto.log.chunks import gone, rewritten, section
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.quorum import Quorum
from kafka_proto.replication.replica_state import ReplicaState

T = TypeVar("T")
SESSION = "BrokerSession"
"""The controller's timer for a broker whose heartbeats are missing."""
CHECKPOINT_MS = 5_000
"""How often high watermarks are written to disk (`replica.high.watermark.checkpoint.interval.ms`)."""
PAUSE_MS = 1_000
"""After which a paused broker is fenced, where no session time-out is set."""


@attrs.frozen
class Replication:
    """Replicas and elections, by the names of Kafka's settings."""

    factor: int = 3
    min_insync_replicas: int = 1
    session_timeout_ms: int | None = None
    """After which a broker is fenced that crashed, is paused or cut off (`broker.session.timeout.ms`).

    None: at once, and after a second if it is paused.
    """
    replica_lag_time_max_ms: int = REPLICA_LAG_MS
    auto_leader_rebalance_enable: bool = True
    """Whether a broker leads again at once what it leads by preference; in Kafka it may take five minutes."""


KAFKAS = Replication()


@attrs.frozen
class Told:
    """What the controller says of a partition."""

    leader: str | None
    leader_epoch: int
    last_known: str | None
    """KIP-966: who led last, while nobody leads and nobody is in sync."""


@attrs.frozen
class Leadership:
    """Who leads a partition, in which epoch, and who is in sync; empty where nobody leads."""

    leader: str
    epoch: int
    isr: tuple[str, ...]


@attrs.frozen
class Reassignment:
    """A partition gets other replicas: what it had, and what it is to have."""

    original: tuple[str, ...]
    target: tuple[str, ...]

    @property
    def adding(self) -> frozenset[str]:
        return frozenset(self.target) - frozenset(self.original)

    @property
    def removing(self) -> frozenset[str]:
        return frozenset(self.original) - frozenset(self.target)

    @property
    def replicas(self) -> tuple[str, ...]:
        """Return the replicas until it is complete."""
        return (*self.target, *(b for b in self.original if b in self.removing))


class FailingBrokers(RunningActors):
    """Brokers whose partitions have replicas, and the controller that elects their leaders."""

    def __init__(self, brokers: Sequence[str], now: int, replication: Replication) -> None:
        super().__init__(brokers, now)
        self.replication = replication
        self.replica_lag_ms = replication.replica_lag_time_max_ms
        self._replicas: dict[str, tuple[str, ...]] = {}
        self._silent: dict[str, int] = {}
        """The brokers that the controller does not hear and has not fenced, and when it will."""
        self._flushed: dict[str, Local] = {}
        """What brokers had when their disks became slow: of their logs, nothing later is on disk."""
        self.looked_at: dict[str, tuple[object, ...]] = {}
        """What of each partition was when its replicas were looked at last."""
        self._lossy: set[str] = set()
        """Partitions whose replicas need not agree: an unclean election or a disk has lost records of theirs."""
        self._kept: dict[str, dict[type, Any]] = {}
        self._checkpoint: Mapping[str, Local] = {}
        self._checkpointed = now // CHECKPOINT_MS
        self._led: tuple[tuple[object, tuple[str, ...]], FrozenMap[str, Leadership]] | None = None

    @property
    def led(self) -> FrozenMap[str, Leadership]:
        """Return who leads each partition, as the controller knows it."""
        by = self._states[CONTROLLER] if self.is_replicated else self._states[self.brokers[0]][METADATA].known
        mine = by, tuple(self._replicas)
        if self._led is None or self._led[0][0] is not mine[0] or self._led[0][1] != mine[1]:
            self._led = mine, FrozenMap((p, self._led_by(p)) for p in self._replicas)
        return self._led[1]

    def _led_by(self, p: str) -> Leadership:
        if not self.is_replicated:
            return Leadership(self.brokers[0], self.known(self.brokers[0], p).leader_epoch, self.brokers)
        quorum = self._quorum(p)
        return Leadership(quorum.leader or "", quorum.leader_epoch, self.in_sync(p))

    @property
    def is_replicated(self) -> bool:
        return len(self.brokers) > 1

    def replicas(self, p: str) -> tuple[str, ...]:
        """Return the brokers that have a partition, its first leader before the others."""
        return self._replicas[p]

    def in_sync(self, p: str) -> tuple[str, ...]:
        """Return the ISR of a partition, as the controller has it."""
        if not self.is_replicated:
            return self.brokers
        isr = self._quorum(p).isr
        return tuple(b for b in self._replicas[p] if b in isr)

    def eligible(self, p: str) -> tuple[str, ...]:
        """Return the eligible leaders of a partition that are not in its ISR (KIP-966)."""
        found = self._states[CONTROLLER][PARTITION[p]].eligible if self.is_replicated else ()
        return tuple(b for b in self._replicas[p] if b in found)

    def told(self, p: str) -> Told:
        """Return what the controller says of a partition's leader."""
        found = self._states[CONTROLLER][PARTITION[p]]
        return Told(found.quorum.leader, found.quorum.leader_epoch, found.last_known)

    @property
    def fenced(self) -> frozenset[str]:
        """Return the brokers that the controller does not hear."""
        if not self.is_replicated:
            return self.absent
        found: frozenset[str] = self._states[CONTROLLER][REGISTRATIONS].fenced
        return found

    def _quorum(self, p: str) -> Quorum:
        found: Quorum = self._states[CONTROLLER][PARTITION[p]].quorum
        return found

    def leader(self, p: str) -> str:
        """Return the leader of a partition as the controller knows it; of a missing partition, any broker."""
        if p not in self._replicas or not self.is_replicated:
            return self.brokers[0]
        return self._quorum(p).leader or self._replicas[p][0]

    def elect(self, p: str) -> None:
        """Let the next member of a partition's ISR lead it; a leader without others leads on in a new epoch.

        Where nobody leads, nobody may.
        """
        if not self.is_replicated:
            (b,) = self.brokers
            broker = self._broker(b)
            assert isinstance(broker.log, LocalLog)
            self._keep(b, broker.log.elected(self._states[b], p))
            self._settle(())
        elif (leader := self._quorum(p).leader) is not None:
            isr = self.in_sync(p)
            order = self._replicas[p]
            at = order.index(leader)
            nexts = [b for b in (*order[at + 1:], *order[:at]) if b in isr and b not in self.absent]
            self._elect(p, nexts[0] if nexts else leader)
        self._ask_again()

    def elect_preferred(self, p: str, unclean: bool = False) -> Error:
        """Let the first replica lead a partition if it is in sync; or any that runs, where nobody leads."""
        leader = self.told(p).leader if self.is_replicated else self.brokers[0]
        if unclean:
            there = [b for b in self._replicas[p] if b not in self.fenced]
            if leader is not None:
                return Error.ELECTION_NOT_NEEDED
            if not there:
                return Error.ELIGIBLE_LEADERS_NOT_AVAILABLE
            self._lossy.add(p)
            self._announce(self._controller().elected_uncleanly(self._states[CONTROLLER], p, there[0]))
        else:
            first = self._replicas[p][0]
            if leader == first:
                return Error.ELECTION_NOT_NEEDED
            if first not in self.in_sync(p) or first in self.fenced:
                return Error.PREFERRED_LEADER_NOT_AVAILABLE
            self._elect(p, first)
        self._ask_again()
        return Error.NONE

    def crash(self, broker: str) -> None:
        """Let a broker lose what is not on its disk. Others lead; it is down until it starts again."""
        if broker in self.down:
            return
        self._stop(broker, flushes=False)
        self._lost(broker, self.replication.session_timeout_ms)

    def shut_down(self, broker: str) -> None:
        """Let a broker leave its offices and stop, with all it has on its disk; it is down until it starts again."""
        if broker in self.down:
            return
        if self.is_replicated:
            self._announce(self._controller().fenced(self._states[CONTROLLER], broker, is_clean=True))
        self._stop(broker, flushes=True)
        self._silent.pop(broker, None)
        self._ask_again()

    def at(self, now: int) -> None:
        """Let it be a time; what brokers have then is the last checkpoint of their high watermarks."""
        if now // CHECKPOINT_MS > self._checkpointed:
            self._checkpoint, self._checkpointed = dict(self._states), now // CHECKPOINT_MS
        super().at(now)

    def slow_disks(self, brokers: Collection[str]) -> None:
        """Let the disks of these brokers, and no others, write nothing of a log until they are told otherwise."""
        self._flushed = {b: self._flushed.get(b, self._states[b]) for b in brokers}

    def _logs_as_on_disk(self, broker: str, local: Local) -> Local:
        """Return a state without what a slow disk has not written."""
        before = self._flushed.get(broker, local)
        for part in (part for part in before if part in local):
            state = local[part]
            if isinstance(state, ReplicaState):
                kept = _common(state.log, before[part].log)
                self._lossy |= {p for p in self._replicas if len(kept) < len(state.log) and part == REPLICA[p]}
                local = local.put(part, attrs.evolve(state, log=kept))
            elif isinstance(state, Records):
                kept = _common(state.committed, before[part].committed)
                starts = state.epoch_starts and tuple(start for start in state.epoch_starts if start[1] <= len(kept))
                local = local.put(part, attrs.evolve(state, committed=kept, epoch_starts=starts))
        return local

    def _high_watermarks_as_on_disk(self, broker: str, local: Local) -> Local:
        """Return a state with the high watermarks of the last checkpoint, 0 if there was none."""
        before = self._checkpoint.get(broker)
        for part in local:
            if isinstance(state := local[part], ReplicaState):
                saved = before[part].high_watermark if before is not None and part in before else 0
                high_watermark = max(min(saved, state.high_watermark, len(state.log)), gone(state.log))
                local = local.put(part, attrs.evolve(state, high_watermark=high_watermark))
        return local

    def kept(self, broker: str, kind: type[T]) -> T:
        """Return what a driver keeps of a kind for a broker, until that stops."""
        found: T = self._kept.setdefault(broker, {}).setdefault(kind, kind())
        return found

    def _stop(self, broker: str, flushes: bool) -> None:
        self.down |= {broker}
        self._kept.pop(broker, None)
        before = self._states[broker]
        initial = local = self._broker(broker).initial
        for part in before:
            disk = durable(before[part])
            local = local.put(part, survivor(initial[part], disk) if disk else initial[part])
        self._keep(broker, local if flushes else self._high_watermarks_as_on_disk(
            broker, self._logs_as_on_disk(broker, local)))
        self._unanswered = {
            (source, id_): dest for (source, id_), dest in self._unanswered.items() if broker not in (source, dest)}
        self.held = [message for message in self.held if broker not in (message.source, message.dest)]

    def start(self, broker: str) -> None:
        """Start a broker that is down, and let it lead again what it led at first."""
        self.down -= {broker}
        self._silent.pop(broker, None)
        self._keep(broker, self._broker(broker).restarted(self._states[broker]))
        self._tell_time(broker)
        self._settle(())
        self._ask_again()
        self._prefer(broker)

    def cut_link(self, links: Collection[Pair]) -> None:
        """Let these pairs of brokers, and no others, not hear each other."""
        self.links = frozenset(links)
        self._deliver_held()
        self._ask_again()

    def pause(self, brokers: Collection[str]) -> None:
        """Let these brokers, and no others, take nothing."""
        before, self.paused = self.paused, frozenset(brokers)
        for b in sorted(self.paused - before):
            after = self.replication.session_timeout_ms
            self._lost(b, PAUSE_MS if after is None else after)
        self._deliver_held()
        self._heard(before - self.paused)

    def isolate(self, brokers: Collection[str]) -> None:
        """Let these brokers, and no others, be cut off from everybody: others lead what they led."""
        before, self.cut_off = self.cut_off, frozenset(brokers)
        for b in sorted(self.cut_off - before):
            self._lost(b, self.replication.session_timeout_ms)
        self._deliver_held()
        self._ask_again()
        self._heard(before - self.cut_off)

    def _controller(self) -> FailoverController:
        controller = self._actors[CONTROLLER]
        assert isinstance(controller, FailoverController)
        return controller

    def _lost(self, broker: str, after: int | None) -> None:
        """Let the controller not hear a broker from now on, and find out after a time; None: at once."""
        if after is None:
            self._fence(broker)
        elif self.is_replicated:
            self._silent.setdefault(broker, self.now + after)

    def _heard(self, brokers: Collection[str]) -> None:
        """Let the controller hear brokers again that run: they may lead again."""
        for b in sorted(frozenset(brokers) - self.absent - self.paused) if self.is_replicated else ():
            self._silent.pop(b, None)
            if b in self._states[CONTROLLER][REGISTRATIONS].fenced:
                self._announce(self._controller().unfenced(self._states[CONTROLLER], b))
                self._ask_again()
                self._prefer(b)

    def deadlines(self) -> list[tuple[int, str, str]]:
        return [*super().deadlines(), *((at, b, SESSION) for b, at in self._silent.items())]

    def _fire(self, name: str, timer: str) -> None:
        if timer == SESSION:
            del self._silent[name]
            self._fence(name)
        else:
            super()._fire(name, timer)

    def _fence(self, broker: str, partitions: Collection[str] | None = None) -> None:
        """Let the controller find out that a broker does not answer: it leaves each ISR and office."""
        if self.is_replicated:
            self._announce(self._controller().fenced(self._states[CONTROLLER], broker, partitions))
            self._ask_again()

    def _elect(self, p: str, broker: str) -> None:
        self._announce(self._controller().elected(self._states[CONTROLLER], p, broker))

    def _announce(self, turn: Turn[Local]) -> None:
        """Let the controller take a turn of its own."""
        self._keep(CONTROLLER, turn.local)
        self._settle(turn.sent)

    def _prefer(self, broker: str) -> None:
        """Let a broker lead again what it led at first, where it is in sync (`auto.leader.rebalance.enable`)."""
        moves = self.is_replicated and self.replication.auto_leader_rebalance_enable
        for p, replicas in self._replicas.items() if moves else ():
            if replicas[0] == broker and broker in self.in_sync(p) and self.leader(p) != broker:
                self._elect(p, broker)
        self._ask_again()


def _common(log: Any, other: Any) -> Any:
    """Return what two logs begin with; both have what either has forgotten or compacted."""
    start = max(rewritten(log), rewritten(other))
    pairs = zip(section(log, start, len(log)), section(other, start, len(other)), strict=False)
    return log[:start + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))]
