"""P7, answer by answer, on states: what a producer is refused by, against what has happened by then.

The history is in the state: entries and batches in the logs, epochs of leaders and brokers, connections given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

import attrs

from harness.model import FrozenMap, Network, Reason, View
from kafka_proto.broker.controller import PARTITION
from kafka_proto.broker.coordinator.transaction import PREPARED, TransactionMetadata, TransactionRecord
from kafka_proto.broker.messages import Response
from kafka_proto.broker.parts import CONNECTIONS, COORDINATOR, METADATA, NOBODY, RECORDS, CoordinatorState, Metadata
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.client_connections import ClientConnections, Sent
from kafka_proto.clients.producer import Family
from kafka_proto.clients.producer.answers import AnswerVerdict, verdict
from kafka_proto.cluster.logs import Logs, ReplicatedLogs, epoch_of, itself
from kafka_proto.cluster.reasons import JUDGED, RefusalReason, refused_for_a_reason
from kafka_proto.errors import Error
from kafka_proto.log import NO_PRODUCER_ID
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.requests import OFFSETS_PARTITION, ProduceRequest, TxnOffsetCommitRequest

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


def producer_of(request: Any) -> Owner:
    """Return the producer that a request is of."""
    owner = request.batch if isinstance(request, ProduceRequest) else request
    return owner.producer_id, owner.producer_epoch


def errors_of(response: Any) -> tuple[Error, ...]:
    """Return the codes of a response that are errors, each once."""
    found = response.errors.values() if hasattr(response, "errors") else (getattr(response, "error", Error.NONE),)
    return tuple(sorted({each for each in found if each is not Error.NONE}))


LEADER_EPOCH, OPENED = attrgetter("leader_epoch"), attrgetter("opened")
CONNECTED = attrgetter("connections")
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

    def refused(self, view: View, c: str) -> Reason:
        """P7, of all answers to a producer that are under way; those that are fatal are judged by what they do to it.
        """
        under_way = [message for message in self.network.contents(view.at("inbox", c))
                     if isinstance(message, Response) and errors_of(message.response)]
        if not under_way:
            return None
        connections: ClientConnections = view.derived(c, CONNECTED)
        for message in under_way:
            asked = connections.about(message)
            why = None if asked is None else next(self._reasons(view, c, connections, asked, message), None)
            if why is not None:
                return why
        return None

    def _reasons(
        self, view: View, c: str, connections: ClientConnections, asked: Sent, message: Response
    ) -> Iterator[str]:
        name = type(asked.request).__name__
        for error in errors_of(message.response) if name in JUDGED else ():
            if verdict(self.family, name, error) is AnswerVerdict.FATAL:
                continue
            why = refused_for_a_reason(
                c, name, error, lambda what: self._has_happened(view, c, connections, asked.request, what))
            if why is not None:
                yield why

    def _has_happened(
        self, view: View, c: str, connections: ClientConnections, request: Any, what: RefusalReason
    ) -> bool:
        p = self._partition(c, request)
        match what:
            case RefusalReason.MOVED:
                return self._moved(view, c, p)
            case RefusalReason.TOO_FEW:
                return self._has_another_isr(view, p)
            case RefusalReason.UNREACHED:
                return any(CONNECTIONS.derived(view, b, OPENED) for b in self.placement.brokers)
            case RefusalReason.GAP:
                return self._has_others(connections, request) or self._has_gap(view, p, request)
            case RefusalReason.DELETED:
                return self.logs.made(view, p, itself).log_start_offset > 0
        return c in self.placement.producers and self._happened_to(view, c, request, what)

    def _partition(self, c: str, request: Any) -> str:
        """Return the partition whose leader answers."""
        if isinstance(request, ProduceRequest):
            return request.partition
        if isinstance(request, TxnOffsetCommitRequest):
            return OFFSETS_PARTITION
        tid = self.placement.tid_of(c) if c in self.placement.producers else None
        return OFFSETS_PARTITION if tid is None else self.placement.transaction_partition(tid)

    def _moved(self, view: View, c: str, p: str) -> bool:
        """Whether a leader epoch began of the partition, or of its coordinator's, or a broker crashed."""
        return any(self._is_led_anew(view, each) for each in sorted({p, self._partition(c, None)})) or any(
            METADATA.derived(view, b, has_crashed) for b in self.placement.brokers)

    def _is_led_anew(self, view: View, p: str) -> bool:
        if isinstance(self.logs, ReplicatedLogs):
            return PARTITION[p].derived(view, CONTROLLER, epoch_of) > FIRST_EPOCH
        epoch: int = RECORDS[p].derived(view, self.placement.leader(p), LEADER_EPOCH)
        return epoch > FIRST_OF_LOCAL

    def _has_another_isr(self, view: View, p: str) -> bool:
        """Whether the ISR is another one than in the beginning; a log that is not replicated has none."""
        return isinstance(self.logs, ReplicatedLogs) and (
            PARTITION[p].derived(view, CONTROLLER, PARTITION_EPOCH) > FIRST_PARTITION_EPOCH)

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
            was_later = self.commits_later and (logged or self._moved(view, c, p))
            return bool(was_later) or any(entry.state in PREPARED for entry in logged) or any(
                tid in COORDINATOR[p].derived(view, b, pending_of) for b in self.placement.brokers)
        mine = producer_of(request)
        if what is RefusalReason.ENDED:
            return any(ends(entry, *mine) for entry in logged)
        known = [*(entry.owner for entry in logged), *filter(None, (
            COORDINATOR[p].derived(view, b, cached_of).get(tid) for b in self.placement.brokers))]
        others = any(producer_id not in (mine[0], NO_PRODUCER_ID) for producer_id, _ in known)
        return others or (what is RefusalReason.FENCED and any(each > mine for each in known if each[0] == mine[0]))
