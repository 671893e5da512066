"""A broker's coordinator of transactions: what its role wants done is done on the broker's state and its links.

An entry of the transaction log is committed at once, or in a turn of its own; an answer always follows its entry.
"""

from __future__ import annotations

from itertools import groupby

import attrs

from harness.model import FrozenMap, Local, Message, Value
from kafka_proto.coordinator import role
from kafka_proto.coordinator.answers import response
from kafka_proto.coordinator.loading import load
from kafka_proto.coordinator.producer_ids import Block, ProducerIds
from kafka_proto.coordinator.role import Answered, CoordinatorConfig, Effect, Logged, Markers
from kafka_proto.coordinator.transaction import PREPARED, TxnState
from kafka_proto.exactly_once.broker_state import CONNECTIONS, COORDINATOR, Asked, CoordinatorState
from kafka_proto.exactly_once.ghosts import Ghosts
from kafka_proto.exactly_once.messages import Request, Response
from kafka_proto.exactly_once.placement import Placement
from kafka_proto.requests import CoordinatorRequest, EndTxnRequest
from kafka_proto.versions import BrokerVersion

BLOCK_SIZE = 10
NOW = 0
"""Deadlines are the driver's affair, so that no decision needs the time."""
Done = tuple[Local, tuple[Message, ...]]


@attrs.frozen
class Coordinating:
    """The coordinator of one broker; `logs_at_once` says whether an append is committed in the same turn."""

    name: str
    number: int
    version: BrokerVersion
    placement: Placement
    logs_at_once: bool

    def loaded(self, local: Local) -> Done:
        """Load the log under the next coordinator epoch, and go on with what is prepared (`onElection`)."""
        mine = local[COORDINATOR]
        block = Block((self.number + mine.blocks * len(self.placement.brokers)) * BLOCK_SIZE, BLOCK_SIZE)
        epoch = mine.coordinator_epoch + 1
        cache, effects = load(
            self.version.coordinator, mine.log, epoch, ProducerIds(block), CoordinatorConfig(), now=NOW
        )
        after = attrs.evolve(mine, cache=cache, coordinator_epoch=epoch, blocks=mine.blocks + 1)
        return self.carry(local.put(COORDINATOR, after), effects)

    def receive(self, local: Local, message: Request) -> Done:
        """Decide on a request of a client, or of a leader that adds a partition."""
        mine = local[COORDINATOR]
        request: CoordinatorRequest = message.request
        if mine.cache.ids.next_id is None and not mine.cache.loading:
            local = self._refilled(local)
            mine = local[COORDINATOR]
        token = (message.source, message.correlation, message.connection, message.transaction)
        cache, effects = role.receive(self.version.coordinator, mine.cache, request, now=NOW, token=token)
        return self.carry(local.put(COORDINATOR, attrs.evolve(mine, cache=cache)), effects)

    def _refilled(self, local: Local) -> Local:
        mine = local[COORDINATOR]
        block = Block((self.number + mine.blocks * len(self.placement.brokers)) * BLOCK_SIZE, BLOCK_SIZE)
        cache = attrs.evolve(mine.cache, ids=ProducerIds(block))
        return local.put(COORDINATOR, attrs.evolve(mine, cache=cache, blocks=mine.blocks + 1))

    def timed_out(self, local: Local, tid: str) -> Done:
        """Abort an open transaction that takes too long."""
        mine = local[COORDINATOR]
        cache, effects = role.time_out(self.version.coordinator, mine.cache, tid, now=NOW)
        return self.carry(local.put(COORDINATOR, attrs.evolve(mine, cache=cache)), effects)

    def marked(self, local: Local, asked: Asked, errors: FrozenMap[str, Value]) -> Done:
        """Take the answer to markers."""
        mine = local[COORDINATOR]
        cache, effects = role.marked(
            mine.cache, asked.transactional_id, asked.message.request, errors, now=NOW
        )
        return self.carry(local.put(COORDINATOR, attrs.evolve(mine, cache=cache)), effects)

    def committed(self, local: Local, tid: str) -> Done:
        """Go on after the entry of a transactional id that was under way to the log."""
        mine = local[COORDINATOR]
        entry = next(logged for logged in mine.unlogged if logged.transactional_id == tid)
        rest = tuple(logged for logged in mine.unlogged if logged is not entry)
        return self._logged(local.put(COORDINATOR, attrs.evolve(mine, unlogged=rest)), entry)

    def carry(self, local: Local, effects: tuple[Effect, ...]) -> Done:
        """Do what the coordinator wants: answers and markers are sent, entries go to the log."""
        sent: tuple[Message, ...] = ()
        for effect in effects:
            if isinstance(effect, Answered):
                sent += (self._answer(effect),)
            elif isinstance(effect, Markers):
                local, more = self._markers(local, effect)
                sent += more
            elif self.logs_at_once:
                local, more = self._logged(local, effect)
                sent += more
            else:
                mine = local[COORDINATOR]
                local = local.put(COORDINATOR, attrs.evolve(mine, unlogged=(*mine.unlogged, effect)))
        return local, sent

    def _answer(self, answered: Answered) -> Message:
        client, correlation, connection, _ = answered.token
        return Response(
            response(answered.request, answered.answer), correlation, connection, source=self.name, dest=client
        )

    def _logged(self, local: Local, logged: Logged) -> Done:
        mine = local[COORDINATOR]
        tid, entry = logged.transactional_id, logged.entry
        log = mine.log.without(tid) if entry is None else mine.log.set(tid, entry)
        ghosts = ghosts_after(mine, logged)
        cache, effects = role.appended(self.version.coordinator, mine.cache, tid, now=NOW)
        return self.carry(
            local.put(COORDINATOR, attrs.evolve(mine, log=log, cache=cache, ghosts=ghosts)), effects
        )

    def _markers(self, local: Local, markers: Markers) -> Done:
        """Send markers to the leaders of the partitions, one request each."""
        transaction = local[COORDINATOR].ghosts.causes.get(markers.transactional_id, "")
        leader = self.placement.leader
        sent: tuple[Message, ...] = ()
        for dest, names in groupby(sorted(markers.request.partitions, key=lambda p: (leader(p), p)), key=leader):
            request = attrs.evolve(markers.request, partitions=tuple(names))
            local, message = ask(self.name, local, dest, request, transaction, tid=markers.transactional_id)
            sent += (message,)
        return local, sent


def ghosts_after(mine: CoordinatorState, logged: Logged) -> Ghosts:
    """Return the ghosts after an entry is in the log: whose transaction is ongoing, and who decided its end."""
    tid, entry, ghosts = logged.transactional_id, logged.entry, mine.ghosts
    if entry is None:
        return ghosts
    waiting = mine.cache.waiting[tid]
    asker = waiting.token[3] if waiting.token else ""
    if entry.state is TxnState.ONGOING:
        return attrs.evolve(ghosts, ongoing=ghosts.ongoing.set(tid, asker))
    if entry.state not in PREPARED:
        return ghosts
    cause = asker if isinstance(waiting.request, EndTxnRequest) else ghosts.ongoing.get(tid, "")
    decided = {cause} if entry.state is TxnState.PREPARE_COMMIT else set()
    return attrs.evolve(ghosts, causes=ghosts.causes.set(tid, cause), committed=ghosts.committed | decided)


def ask(
    name: str, local: Local, dest: str, request: Value, transaction: str, *, tid: str = "", **about: Value
) -> tuple[Local, Message]:
    """Send a request to a broker (itself, perhaps), and remember what it is about."""
    mine = local[CONNECTIONS]
    correlation = mine.correlation + 1
    message = Request(
        request, correlation, mine.opened.get(dest, 0), transaction, source=name, dest=dest
    )
    asked = mine.asked.set(correlation, Asked(message, tid, **about))
    return local.put(CONNECTIONS, attrs.evolve(mine, correlation=correlation, asked=asked)), message
