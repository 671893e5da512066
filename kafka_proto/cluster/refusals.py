"""P7, answer by answer, on states: what clients and coordinators are refused by, against what has happened by then.

The history is in the state: entries and batches in the logs, epochs of leaders and brokers, connections given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import dropwhile
from operator import attrgetter
from typing import Any

import attrs

from harness.model import FrozenMap, Network, Reason, View
from kafka_proto.broker.controller import PARTITION
from kafka_proto.broker.coordinator.transaction import PREPARED, TransactionMetadata, TransactionRecord
from kafka_proto.broker.look_ups import UNKNOWN
from kafka_proto.broker.messages import FindCoordinatorRequest, LeaderResponse, MetadataRequest, Response
from kafka_proto.broker.parts import (
    CONNECTIONS,
    COORDINATOR,
    GROUPS,
    METADATA,
    NOBODY,
    RECORDS,
    CoordinatorState,
    Metadata,
)
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.client_connections import ClientConnections
from kafka_proto.clients.producer import Family
from kafka_proto.clients.producer.answers import TABLE, AnswerVerdict, verdict
from kafka_proto.cluster.logs import Logs, ReplicatedLogs, epoch_of, itself
from kafka_proto.cluster.reasons import JUDGED, RefusalReason, refused_for_a_reason
from kafka_proto.errors import Error
from kafka_proto.log import NO_PRODUCER_ID
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    ConsumerFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)

Owner = tuple[int, int]
"""A producer id and epoch."""


def cached_of(state: CoordinatorState) -> FrozenMap[str, Owner]:
    """Return the producer id and epoch of each transactional id that a coordinator has."""
    known = ((tid, cached.metadata) for tid, cached in state.cache.transactions.items())
    return FrozenMap((tid, metadata.owner) for tid, metadata in known)


def pending_of(state: CoordinatorState) -> frozenset[str]:
    """Return the transactional ids for which a coordinator waits for an entry, or for the end of a transaction."""
    return frozenset(tid for tid, cached in state.cache.transactions.items()
                     if cached.pending_state is not None or cached.metadata.state in PREPARED)


def has_crashed(state: Metadata) -> bool:
    """Say whether a broker was ever down: it began with leaders, and no crash leaves it any."""
    return state.broker_epoch > 0 or NOBODY in state.known.values()


def entries_of(records: Iterable[TransactionRecord]) -> FrozenMap[str, tuple[TransactionMetadata, ...]]:
    """Return all that a partition of the transaction log has of each transactional id, oldest first."""
    found: dict[str, list[TransactionMetadata]] = {}
    for record in records:
        if record.entry is not None:
            found.setdefault(record.transactional_id, []).append(record.entry)
    return FrozenMap((tid, tuple(entries)) for tid, entries in found.items())


def ends(entry: TransactionMetadata, producer_id: int, epoch: int) -> bool:
    """Say whether an entry prepares the end of a transaction that a producer had, or of a later one."""
    if entry.state not in PREPARED or entry.producer_id != producer_id:
        return False
    return entry.producer_epoch > epoch or (entry.producer_epoch == epoch and not entry.bumps_epoch)


def since(entries: tuple[TransactionMetadata, ...], producer_id: int, epoch: int) -> Iterator[TransactionMetadata]:
    """Yield the entries that a producer's epoch, or a later one, has; all of them if it has no id yet."""
    if producer_id == NO_PRODUCER_ID:
        yield from entries
        return
    later = dropwhile(lambda entry: producer_id not in (entry.producer_id, entry.next_producer_id), entries)
    yield from (entry for entry in later
                if entry.producer_id != producer_id or max(entry.producer_epoch, entry.owner[1]) >= epoch)


def producer_of(request: Any) -> Owner:
    """Return the producer that a request is of."""
    owner = request.batch if isinstance(request, ProduceRequest) else request
    return owner.producer_id, owner.producer_epoch


def errors_of(request: Any, response: Any) -> tuple[Error, ...]:
    """Return the codes of a response that are errors, each once; an answer without a leader stands for a code."""
    if isinstance(response, LeaderResponse):
        return () if response.leader != UNKNOWN else (NO_LEADER[type(request)],)
    found = response.errors.values() if hasattr(response, "errors") else (getattr(response, "error", Error.NONE),)
    return tuple(sorted({each for each in found if each is not Error.NONE}))


NO_LEADER = {MetadataRequest: Error.LEADER_NOT_AVAILABLE, FindCoordinatorRequest: Error.COORDINATOR_NOT_AVAILABLE}
MEMBERS = attrgetter("groups.groups")
LEADER_EPOCH, OPENED = attrgetter("leader_epoch"), attrgetter("opened")
CONNECTED, FETCHES = attrgetter("connections"), attrgetter("fetches")
PARTITION_EPOCH = attrgetter("quorum.partition_epoch")
"""It grows with each change of leader or ISR (KIP-497)."""
FIRST_EPOCH, FIRST_PARTITION_EPOCH, FIRST_OF_LOCAL = 0, 1, 1
"""What a run begins with: the leader and partition epochs of replicated logs, the leader epoch of others."""


@attrs.frozen
class RefusalFacts:
    """Where the reasons of answers are looked for."""

    placement: Placement
    network: Network
    logs: Logs
    family: Family
    """The producers'."""
    commits_later: bool
    """Whether an entry of the transaction log waits to be committed, and others of its id for that."""

    def refused(self, view: View, who: str) -> Reason:
        """P7, of all answers to a client, or of leaders to a coordinator, that are under way.

        Those that are fatal to a producer are judged by what they do to it.
        """
        for message in self.network.contents(view.at("inbox", who)):
            request = self._asked(view, who, message) if isinstance(message, Response) else None
            if isinstance(message, Response) and type(request).__name__ in JUDGED:
                why = next(self._reasons(view, who, request, errors_of(request, message.response)), None)
                if why is not None:
                    return why
        return None

    def _reasons(self, view: View, who: str, request: Any, errors: Iterable[Error]) -> Iterator[str]:
        name = type(request).__name__
        for error in errors:
            if name in TABLE and verdict(self.family, name, error) is AnswerVerdict.FATAL:
                continue
            why = refused_for_a_reason(who, name, error, lambda what: self._has_happened(view, who, request, what))
            if why is not None:
                yield why

    def _asked(self, view: View, who: str, message: Response) -> Any:
        """Return the request that an answer is about, None if it is no longer awaited, or not judged."""
        if who in self.placement.consumers:
            fetches = view.derived(who, FETCHES).values()
            came_on = message.source, message.connection
            return next((each.request for each in fetches if (each.dest, each.connection) == came_on), None)
        if who in self.placement.brokers:
            sent = CONNECTIONS.of(view, who).asked.get(message.correlation)
            is_awaited = sent is not None and (sent.message.dest, sent.message.connection) == (
                message.source, message.connection)
            markers = sent.message.request if sent is not None and is_awaited else None
            return markers if isinstance(markers, WriteTxnMarkersRequest) else None
        connections: ClientConnections = view.derived(who, CONNECTED)
        asked = connections.about(message)
        return None if asked is None else asked.request

    def _has_happened(self, view: View, c: str, request: Any, what: RefusalReason) -> bool:
        p = self._partition(c, request)
        match what:
            case RefusalReason.MOVED:
                return self._moved(view, c, p)
            case RefusalReason.TOO_FEW:
                return self._has_another_isr(view, p)
            case RefusalReason.UNREACHED:
                return any(CONNECTIONS.derived(view, b, OPENED) for b in self.placement.brokers)
            case RefusalReason.GAP:
                return self._has_others(view.derived(c, CONNECTED), request) or self._has_gap(view, p, request)
            case RefusalReason.DELETED:
                return bool(self.logs.made(view, p, itself).log_start_offset > getattr(request, "fetch_offset", 0))
            case RefusalReason.LATER:
                return c not in self.placement.producers and (
                    self._has_later_epoch(view, p, request) or self._is_led_anew(view, p))
            case RefusalReason.SUCCEEDED:
                return bool(self._coordinator_epoch(view, c, request) > request.coordinator_epoch)
            case RefusalReason.REBALANCED:
                return self._is_of_another_generation(view, request) or self._is_led_anew(view, p)
        return c in self.placement.producers and self._happened_to(view, c, request, what)

    def _partition(self, c: str, request: Any) -> str:
        """Return the partition whose leader answers."""
        if isinstance(request, ProduceRequest | ConsumerFetchRequest | MetadataRequest):
            return request.partition
        if isinstance(request, WriteTxnMarkersRequest):
            return request.partitions[0]
        if isinstance(request, FindCoordinatorRequest):
            return self.placement.transaction_partition(request.transactional_id)
        if isinstance(request, TxnOffsetCommitRequest):
            return OFFSETS_PARTITION
        tid = self.placement.tid_of(c) if c in self.placement.producers else None
        return OFFSETS_PARTITION if tid is None else self.placement.transaction_partition(tid)

    def _moved(self, view: View, c: str, p: str) -> bool:
        """Whether a leader epoch began of the partition, or of a producer's coordinator's, or a broker crashed."""
        also = self._partition(c, None) if c in self.placement.producers else p
        return any(self._is_led_anew(view, each) for each in sorted({p, also})) or any(
            METADATA.derived(view, b, has_crashed) for b in self.placement.brokers)

    def _is_led_anew(self, view: View, p: str) -> bool:
        first = FIRST_EPOCH if isinstance(self.logs, ReplicatedLogs) else FIRST_OF_LOCAL
        return self._leader_epoch(view, p) > first

    def _leader_epoch(self, view: View, p: str) -> int:
        epoch: int = PARTITION[p].derived(view, CONTROLLER, epoch_of) if isinstance(self.logs, ReplicatedLogs) else (
            RECORDS[p].derived(view, self.placement.leader(p), LEADER_EPOCH))
        return epoch

    def _has_another_isr(self, view: View, p: str) -> bool:
        """Whether the ISR is another one than in the beginning; a log that is not replicated has none."""
        return isinstance(self.logs, ReplicatedLogs) and (
            PARTITION[p].derived(view, CONTROLLER, PARTITION_EPOCH) > FIRST_PARTITION_EPOCH)

    def _has_later_epoch(self, view: View, p: str, request: Any) -> bool:
        """Whether a batch has a later epoch; of a marker that bumps it, the same one counts, too (KIP-1228)."""
        producer_id, epoch = producer_of(request)
        least = epoch + (1 if getattr(request, "transaction_version", 0) < 2 else 0)
        return any(batch.producer_id == producer_id and batch.producer_epoch >= least
                   for batch in self.logs.made(view, p, itself).batches)

    def _is_of_another_generation(self, view: View, request: TxnOffsetCommitRequest) -> bool:
        """Whether a coordinator has the group without the member, or in another generation."""
        known = (GROUPS.derived(view, b, MEMBERS).get(request.group_id) for b in self.placement.brokers)
        return any(group is not None and (request.member_id not in group.members
                                          or group.generation != request.generation_id) for group in known)

    def _coordinator_epoch(self, view: View, b: str, request: WriteTxnMarkersRequest) -> int:
        """Return the newest coordinator epoch of the transactional id whose markers a broker has written."""
        tids = sorted({sent.transactional_id for sent in CONNECTIONS.of(view, b).asked.values()
                       if sent.message.request == request})
        return max(self._leader_epoch(view, self.placement.transaction_partition(tid)) for tid in tids)

    def _has_others(self, connections: ClientConnections, request: ProduceRequest) -> bool:
        """Whether what was sent before may arrive after: on a connection that was given up, or beside the batch."""
        return bool(connections.opened) or any(
            isinstance(sent.request, ProduceRequest) and sent.request != request for sent in connections.asked.values())

    def _has_gap(self, view: View, p: str, request: ProduceRequest) -> bool:
        """Whether the batch that ends before this one begins is not in the log."""
        batch, log = request.batch, self.logs.made(view, p, itself)
        return batch.base_sequence > 0 and not any(
            (each.producer_id, each.producer_epoch, each.last_sequence)
            == (batch.producer_id, batch.producer_epoch, batch.base_sequence - 1)
            for each in log.batches if each.marker is None)

    def _happened_to(self, view: View, c: str, request: Any, what: RefusalReason) -> bool:
        tid = self.placement.tid_of(c)
        p = self.placement.transaction_partition(tid)
        logged = self.logs.told(view, p, entries_of).get(tid, ())
        if what is RefusalReason.UNDER_WAY:
            later = tuple(since(logged, *producer_of(request)))
            was_later = self.commits_later and (later or self._moved(view, c, p))
            return bool(was_later) or any(entry.state in PREPARED for entry in later) or any(
                tid in COORDINATOR[p].derived(view, b, pending_of) for b in self.placement.brokers)
        mine = producer_of(request)
        if what is RefusalReason.ENDED:
            return any(ends(entry, *mine) for entry in logged)
        known = [*(entry.owner for entry in logged), *filter(None, (
            COORDINATOR[p].derived(view, b, cached_of).get(tid) for b in self.placement.brokers))]
        others = any(producer_id not in (mine[0], NO_PRODUCER_ID) for producer_id, _ in known)
        return others or (what is RefusalReason.FENCED and any(each > mine for each in known if each[0] == mine[0]))
