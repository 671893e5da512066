"""The transaction coordinator as a role of a broker: what it decides becomes answers, records of its log, and markers.

An answer follows the commit of its entry; a coordinator epoch is the leader epoch of the partition of the transaction
log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

import attrs

from harness.model import FrozenMap, Local, Message, Value
from kafka_proto import requests
from kafka_proto.broker import roles
from kafka_proto.broker.coordinator import coordinator as role
from kafka_proto.broker.coordinator.answers import describe, list_transactions, refused_partitions, response
from kafka_proto.broker.coordinator.coordinator import (
    KAFKAS_DEFAULTS,
    Coordinator,
    CoordinatorConfig,
    Effect,
    Markers,
    Step,
    Waiting,
)
from kafka_proto.broker.coordinator.loading import load
from kafka_proto.broker.coordinator.transaction import (
    AT_REST,
    COMPLETE,
    Answer,
    Block,
    Outcome,
    ProducerIds,
    TransactionRecord,
    TxnState,
    entries_of,
    ghosts_after,
    ghosts_of,
    last_entries,
)
from kafka_proto.broker.messages import Request, Response, asker_of
from kafka_proto.broker.other_brokers import OtherBrokers
from kafka_proto.broker.parts import (
    BLOCKS,
    COORDINATOR,
    METADATA,
    NOBODY,
    CoordinatorState,
    GivenBlocks,
    exists,
    known,
    now,
)
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.roles import Append, RoleStep
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.log import RecordBatch
from kafka_proto.requests import Error

ROLE = "coordinator"
BLOCK_SIZE = 10
TRANSACTION_TIMEOUT = "TransactionTimeout"
EXPIRATION = "TransactionalIdExpiration"
REQUESTS = (
    requests.InitProducerIdRequest, requests.AddOffsetsToTxnRequest, requests.EndTxnRequest,
    requests.AddPartitionsToTxnRequest,
)
LOOKS = (requests.DescribeTransactionsRequest, requests.ListTransactionsRequest)
LEADS_NO_LONGER = (Error.NOT_LEADER_OR_FOLLOWER, Error.KAFKA_STORAGE_ERROR)
"""Of a failed append the client is told NOT_COORDINATOR then, else COORDINATOR_NOT_AVAILABLE."""


@attrs.frozen
class EntryCallback:
    """The client that waits for an entry of a transactional id; none if the coordinator acted of itself."""

    transactional_id: str
    token: Value
    request: requests.CoordinatorRequest | None


def block_of(broker: str, placement: Placement, count: int, size: int = BLOCK_SIZE) -> Block:
    """Return a broker's block of producer ids, by how many it had before: no other broker has it."""
    brokers = placement.brokers
    return Block((brokers.index(broker) + count * len(brokers)) * size, size)


class TransactionCoordinator(roles.Role):
    """The coordinator of one broker, for the transactional ids whose partitions it leads."""

    def __init__(
        self, name: str, version: BrokerVersion, placement: Placement, others: OtherBrokers, *, times_out: bool,
        begun: Mapping[str, tuple[TransactionRecord, ...]] = FrozenMap(), block_size: int = BLOCK_SIZE,
        config: CoordinatorConfig = KAFKAS_DEFAULTS,
    ) -> None:
        self.name = name
        self.version = version
        self.placement = placement
        self.others = others
        self.times_out = times_out
        self.begun = begun
        """What its partitions hold at the start; the producer ids there are of its first block."""
        self.block_size = block_size
        self.config = config
        self.partitions = placement.transaction_partitions
        self.exist = frozenset((*placement.partitions, requests.OFFSETS_PARTITION, requests.TRANSACTION_PARTITION))
        self.parts = (*(COORDINATOR[p] for p in self.partitions), BLOCKS)

    def started(self, local: Local) -> Local:
        for p in self.partitions:
            if known(local, p).leader == self.name:
                local = self.loaded(local, p, self.begun.get(p, ()))
        return local.put(BLOCKS, GivenBlocks(1)) if self.begun else local

    def serves(self, local: Local, p: str) -> bool:
        return not local[COORDINATOR[p]].cache.loading

    def loaded(self, local: Local, p: str, records: Iterable[TransactionRecord | RecordBatch]) -> Local:
        """Return the state with the log read; what is prepared is to be completed (`onElection`)."""
        entries = tuple(entry for record in records for entry in entries_of(record))
        cache, effects = load(
            self.version.coordinator, last_entries(entries), known(local, p).leader_epoch, ProducerIds(),
            self.config, now=now(local),
        )
        return local.put(COORDINATOR[p], CoordinatorState(cache, effects, ghosts_of(entries)))

    def resigned(self, local: Local, p: str) -> Local:
        """Return the state without what belongs to a partition (`onResignation`)."""
        local = self.others.without(local, lambda tid: self.placement.transaction_partition(tid) == p)
        return local.put(COORDINATOR[p], CoordinatorState())

    def receive(self, local: Local, message: Message) -> RoleStep | None:
        """Decide on a request of a client, or of a leader; or take the answer to markers."""
        action, who = f"Receive{message.type}", message.source
        if isinstance(message, Request) and isinstance(message.request, REQUESTS):
            return self.outcome(self.decided(local, message), action, who)
        if isinstance(message, Request) and isinstance(message.request, LOOKS):
            return self.outcome(self.reply(local, message, self.looked_up(local, message.request)), action, who)
        asked = self.others.about(local, message, ROLE)
        if asked is None:
            return None
        assert isinstance(message, Response)
        p = self.placement.transaction_partition(asked.transactional_id)
        local = self.others.answered(local, message)
        done = role.marked(
            local[COORDINATOR[p]].cache, asked.transactional_id, asked.message.request,
            message.response.errors, now=now(local),
        )
        return self.outcome(self.carry(local, p, done, pauses=True), action, who)

    def decided(self, local: Local, message: Request) -> roles.Effect:
        """Return what is decided about a request."""
        request = message.request
        if request.transactional_id is None:
            return self.given(local, message)
        p = self.placement.transaction_partition(request.transactional_id)
        verifies = isinstance(request, requests.AddPartitionsToTxnRequest) and request.verify_only
        if isinstance(request, requests.AddPartitionsToTxnRequest):
            there = frozenset(name for name in request.partitions if self.is_there(local, name))
            refused = refused_partitions(request, there)
            if refused is not None:
                return self.reply(local, message, refused)
        if known(local, p).leader != self.name:
            return self.reply(local, message, response(request, Answer(Error.NOT_COORDINATOR)))
        cache = local[COORDINATOR[p]].cache
        if verifies and not cache.loading:
            cached = cache.transactions.get(request.transactional_id)
            answer = self.version.coordinator.verify_partitions(request, cached)
            return self.reply(local, message, requests.AddPartitionsToTxnResponse(answer))
        local, token = self.refilled(local, p), asker_of(message)
        return self.carry(local, p, role.receive(
            self.version.coordinator, local[COORDINATOR[p]].cache, request, now=now(local), token=token
        ), EntryCallback(request.transactional_id, token, request))

    def looked_up(
        self, local: Local, request: requests.DescribeTransactionsRequest | requests.ListTransactionsRequest
    ) -> requests.DescribeTransactionsResponse | requests.ListTransactionsResponse:
        """Return what is asked about the transactional ids of the partitions that it leads."""
        if isinstance(request, requests.DescribeTransactionsRequest):
            p = self.placement.transaction_partition(request.transactional_id)
            if request.transactional_id and known(local, p).leader != self.name:
                return requests.DescribeTransactionsResponse(Error.NOT_COORDINATOR)
            return describe(local[COORDINATOR[p]].cache, request)
        led = (p for p in self.partitions if known(local, p).leader == self.name)
        return list_transactions([local[COORDINATOR[p]].cache for p in led], request, now=now(local))

    def refilled(self, local: Local, p: str) -> Local:
        """Return the state with a block of producer ids, which no other broker has and no restart gives again."""
        cache = local[COORDINATOR[p]].cache
        if cache.loading or cache.ids.next_id is not None:
            return local
        local, block = self.next_block(local)
        return self.cached(local, p, attrs.evolve(cache, ids=ProducerIds(block)))

    def next_block(self, local: Local) -> tuple[Local, Block]:
        """Return a block of producer ids of its own, and the state in which it is given."""
        count = local[BLOCKS].count
        block = block_of(self.name, self.placement, count, self.block_size)
        return local.put(BLOCKS, GivenBlocks(count + 1)), block

    def given(self, local: Local, message: Request) -> roles.Effect:
        """Give a producer without transactional id an id, the first of a block: any broker does, and keeps nothing."""
        local, block = self.next_block(local)
        outcome = self.version.coordinator.init_producer_id(
            message.request, None, producer_id=block.first, now=now(local),
            max_timeout_ms=self.config.transaction_max_timeout_ms, fences=self.version.coordinator.fence,
        )
        assert isinstance(outcome, Outcome)
        return self.reply(local, message, response(message.request, outcome.answer))

    def step(self, local: Local, may_append: Callable[[str], bool]) -> Iterable[RoleStep]:
        """Do what is unfinished: markers of what was prepared before an election, entries that the log refused."""
        for p in self.partitions:
            mine = local[COORDINATOR[p]]
            for place, effect in enumerate(mine.unfinished):
                assert not isinstance(effect, Answer)
                is_entry = isinstance(effect, TransactionRecord)
                if is_entry and not may_append(p):
                    continue
                rest = mine.unfinished[:place] + mine.unfinished[place + 1:]
                after = local.put(COORDINATOR[p], attrs.evolve(mine, unfinished=rest))
                action = "AppendEntryAgain" if is_entry else "CompletePreparedTransaction"
                yield self.outcome(self.carry(after, p, (mine.cache, (effect,))), action, effect.transactional_id)

    def timers(self, local: Local) -> dict[str, int | None]:
        """An open transaction times out once it is open for longer than it may be; an id at rest is forgotten.

        Without a clock, ids are kept.
        """
        found: dict[str, int | None] = {}
        rests = () if local[METADATA].clock is None else AT_REST
        for p in self.partitions if self.times_out else ():
            cache: Coordinator = local[COORDINATOR[p]].cache
            for tid, cached in cache.transactions.items():
                known = cached.metadata
                if cached.pending_state is None and known.state is TxnState.ONGOING:
                    if not self.version.coordinator.times_out(known):
                        continue
                    found[f"{TRANSACTION_TIMEOUT} {tid}"] = role.times_out_at(known)
                elif cached.pending_state is None and known.state in rests:
                    found[f"{EXPIRATION} {tid}"] = role.expires_at(known, cache.config)
        return found

    def timer_fired(self, local: Local, timer: str) -> Iterable[RoleStep]:
        kind, _, tid = timer.partition(" ")
        if kind not in (TRANSACTION_TIMEOUT, EXPIRATION):
            return
        p = self.placement.transaction_partition(tid)
        if kind == EXPIRATION:
            done = role.expire(local[COORDINATOR[p]].cache, tid, now=now(local))
        else:
            local = self.refilled(local, p)
            done = role.time_out(self.version.coordinator, local[COORDINATOR[p]].cache, tid, now=now(local))
        yield self.outcome(self.carry(local, p, done), kind, tid)

    def committed(self, local: Local, p: str, record: TransactionRecord) -> Local:
        mine = local[COORDINATOR[p]]
        return local.put(COORDINATOR[p], attrs.evolve(mine, ghosts=ghosts_after(mine.ghosts, record)))

    def completed(
        self, local: Local, p: str, record: TransactionRecord, callback: EntryCallback | None
    ) -> roles.Effect:
        """Go on after an entry: its answer, and markers where a transaction is prepared now."""
        if callback is None:
            return roles.Effect(local)
        if self.version.coordinator.completes_twice and record.entry is not None and record.entry.state in COMPLETE:
            mine = local[COORDINATOR[p]]
            local = local.put(COORDINATOR[p], attrs.evolve(mine, unfinished=(*mine.unfinished, record)))
        return self.carry(local, p, role.appended(
            self.version.coordinator, local[COORDINATOR[p]].cache, record.transactional_id, now=now(local)
        ), callback)

    def failed(
        self, local: Local, p: str, callback: EntryCallback | None, error: Error, record: Value = None
    ) -> roles.Effect:
        """Give an entry up and tell the client; Complete* is tried again (`txnLogAppendRetryQueue`)."""
        if callback is None:
            return roles.Effect(local)
        mine, tid = local[COORDINATOR[p]], callback.transactional_id
        code = Error.NOT_COORDINATOR if error in LEADS_NO_LONGER else Error.COORDINATOR_NOT_AVAILABLE
        if mine.cache.loading:
            return roles.Effect(local, self.told(callback, Answer(Error.NOT_COORDINATOR)))
        entry = mine.cache.waiting[tid].outcome.entry
        if callback.request is None and entry is not None and entry.state in AT_REST:
            again = attrs.evolve(mine, unfinished=(*mine.unfinished, TransactionRecord(tid, entry)))
            return roles.Effect(local.put(COORDINATOR[p], again))
        return self.carry(local, p, role.append_failed(mine.cache, tid, code), callback)

    def carry(
        self, local: Local, p: str, step: Step, waits: EntryCallback | None = None, *, pauses: bool = False
    ) -> roles.Effect:
        """Return what the decisions want done: an answer to the waiting client, markers, and entries for the log."""
        cache, effects = step
        local, sent, appends = self.cached(local, p, cache), tuple[Message, ...](), tuple[Append, ...]()
        ahead = deque(effects)
        while ahead:
            effect = ahead.popleft()
            if isinstance(effect, Answer):
                sent += self.told(waits, effect)
            elif isinstance(effect, Markers):
                local, more = self.markers(local, p, effect, pauses)
                sent += more
                local, following = self.without_leader(local, p, effect)
                ahead.extend(following)
            else:
                appends += (self.entry(local[COORDINATOR[p]].cache.waiting.get(effect.transactional_id), p, effect),)
        return roles.Effect(local, sent, appends, flush=True)

    def told(self, waits: EntryCallback | None, answer: Answer) -> tuple[Message, ...]:
        """Return the response to the client that waits, if any does."""
        if waits is None or waits.request is None:
            return ()
        return (waits.token.answered(self.name, response(waits.request, answer)),)

    def entry(self, waiting: Waiting | None, p: str, record: TransactionRecord) -> Append:
        """Return an entry for the log, with the ghost of the transaction that caused it.

        Nobody waits for one that is in the log already.
        """
        if waiting is None or (record.entry is not None and waiting.outcome.entry != record.entry):
            return Append(p, record, None, self.version.coordinator.waits)
        is_of_transaction = not (waiting.outcome.repeats or isinstance(waiting.request, requests.InitProducerIdRequest))
        if waiting.token is not None and is_of_transaction:
            record = attrs.evolve(record, transaction=waiting.token.transaction)
        callback = EntryCallback(record.transactional_id, waiting.token, waiting.request)
        timeout_ms = None if record.entry is None else record.entry.timeout_ms
        return Append(p, record, callback, self.version.coordinator.waits, timeout_ms)

    def markers(self, local: Local, p: str, markers: Markers, pauses: bool) -> tuple[Local, tuple[Message, ...]]:
        """Ask the leader of each partition by itself to write its marker."""
        tid, sent = markers.transactional_id, tuple[Message, ...]()
        transaction = local[COORDINATOR[p]].ghosts.causes.get(tid, "")
        for name in markers.request.partitions:
            if not self.takes_markers(local, name):
                continue
            request = attrs.evolve(markers.request, partitions=(name,))
            local, more = self.others.ask(local, ROLE, request, transaction, pauses=pauses, transactional_id=tid)
            sent += more
        return local, sent

    def takes_markers(self, local: Local, name: str) -> bool:
        """Say whether markers go to a partition: its topic may be deleted, and some versions wait for no leader."""
        leader = known(local, name)
        is_skipped = self.version.skips_leaderless and not leader.leader and leader != NOBODY
        return name not in self.partitions and self.is_there(local, name) and not is_skipped

    def is_there(self, local: Local, name: str) -> bool:
        """Say whether a partition is there to be part of a transaction."""
        return name in self.exist and exists(local, name)

    def without_leader(self, local: Local, p: str, markers: Markers) -> tuple[Local, tuple[Effect, ...]]:
        """Go on without the partitions that are not there any more."""
        gone = tuple(name for name in markers.request.partitions if not self.takes_markers(local, name))
        if not gone:
            return local, ()
        cache, effects = role.without_leader(
            local[COORDINATOR[p]].cache, markers.transactional_id, markers.request, gone, now=now(local)
        )
        return self.cached(local, p, cache), effects

    def cached(self, local: Local, p: str, cache: Coordinator) -> Local:
        """Return the state with another cache of a partition."""
        return local.put(COORDINATOR[p], attrs.evolve(local[COORDINATOR[p]], cache=cache))
