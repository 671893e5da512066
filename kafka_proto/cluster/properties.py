"""The properties of whole transactions, on states: logs, what applications were told, what consumers got.

`guarantees` decides each; here is what it decides about: records with the ghosts of their transactions, and what each
application was told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from harness.model import FrozenMap, Network, Property, Reason, View, always, eventually, sometimes
from kafka_proto.broker.coordinator.transaction import (
    PREPARED,
    Answer,
    TransactionMetadata,
    ghosts_of,
    last_entries,
)
from kafka_proto.broker.ghosts import Noted, Span, committed_offsets, noted, spans, transaction_of
from kafka_proto.broker.group.coordinator import load
from kafka_proto.broker.leader.verification import LeaderState
from kafka_proto.broker.messages import Response
from kafka_proto.broker.parts import CONNECTIONS, COORDINATOR, GROUPS, LEADER, CoordinatorState
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.producer import Family, ProducerStatus
from kafka_proto.clients.producer_client import ClientState, Written
from kafka_proto.cluster import guarantees, moves
from kafka_proto.cluster.logs import Logs, ReplicatedLogs, all_entries, itself
from kafka_proto.cluster.progress import ProgressFacts
from kafka_proto.cluster.refusals import RefusalFacts, cached_of
from kafka_proto.log import Marker, PartitionLog, batches_between
from kafka_proto.requests import OFFSETS_PARTITION, ConsumerFetchResponse, Error, IsolationLevel

INVARIANTS = (
    "MarkerAttribution", "Atomicity", "AcknowledgedOutcome", "NoIntermediateRead", "NoHangingTransaction",
    "AcknowledgedOnce", "FencedForAReason", "ReadBound", "OffsetsAsCommitted", "ProducerStateGrows",
    "CommittedIsRead", "PreparedIsCompleted",
)
NOT_CLAIMED = ("FatalForAReason", "RefusedForAReason")
"""What releases from 4.1 on violate as they are (KAFKA-20785); and what looks at every answer under way, for which a
search keeps more orders of steps."""
LIVENESS = ("OperationsEnd", "NothingStaysOpen")
WITNESSES = ("TransactionCommitted", "TransactionAborted", "RequestRepeated", "ProducerBumped", "ProducerIsFenced",
             "AbortedRecordSkipped", "MarkersUnderWay", "OffsetStaged", "EpochsRanOut", "EpochTakenUnasked")
OFFSETS = attrgetter("groups.offsets")
ACKNOWLEDGED, OUTCOMES, SEEN = attrgetter("acknowledged"), attrgetter("outcomes"), attrgetter("seen")
LEVEL, POSITIONS = attrgetter("consumer.isolation_level"), attrgetter("consumer.positions")
START = attrgetter("log_start_offset")


def prepared_of(state: CoordinatorState) -> FrozenMap[str, TransactionMetadata]:
    """Return the entries that a coordinator has in its cache of transactions whose end is prepared."""
    known = ((tid, cached.metadata) for tid, cached in state.cache.transactions.items())
    return FrozenMap((tid, metadata) for tid, metadata in known if metadata.state in PREPARED)


def is_on_another_id(entry: TransactionMetadata) -> bool:
    """Say whether a transactional id has just got another producer id, since the epochs of the last one ran out."""
    return entry.previous_producer_id not in (-1, entry.producer_id)


def texts_of(state: ClientState) -> frozenset[str]:
    return frozenset(written.record for written in state.acknowledged)


def waiting_of(state: ClientState) -> tuple[tuple[str, str], ...]:
    """Return the records that wait for an answer, each after its partition."""
    return tuple((batch.partition, str(record)) for batch in state.producer.batches for record in batch.records)


def numbered(text: str) -> tuple[str, int]:
    """Return a record with the how manieth it is of its producer's, or of its transaction's."""
    return text, int(text.partition("#")[2].partition(" ")[0])


def number_of(written: Written) -> int:
    return numbered(written.record)[1]


def records_of(log: PartitionLog) -> tuple[tuple[str, int], ...]:
    """Return the records of a log, markers left out, each with its offset."""
    return tuple((record.text, record.offset)
                 for batch in log.batches if batch.marker is None for record in noted(batch))


def readable(log: PartitionLog) -> tuple[Noted, ...]:
    """Return what a reader of committed records gets of a log, in order: records of commits, and of no transaction."""
    committed = (record for span in spans(log) if span.marker is Marker.COMMIT for record in span.records)
    plain = (record for batch in log.batches if batch.marker is None and not batch.is_transactional
             for record in noted(batch))
    return tuple(sorted((*committed, *plain), key=attrgetter("offset")))


def served(state: LeaderState) -> PartitionLog | None:
    return state.log if state.serves else None


class Facts:
    """Where the properties look: the parts of brokers, clients and consumers."""

    def __init__(self, placement: Placement, network: Network, logs: Logs) -> None:
        self.placement = placement
        self.logs = logs
        self.network = network
        self.of_records = (*placement.partitions, OFFSETS_PARTITION)
        """Partitions with records of transactions."""
        self.progress = ProgressFacts(placement, logs)

    def spans(self, view: View, partition: str) -> tuple[Span, ...]:
        return self.logs.made(view, partition, spans)

    def entries(self, view: View) -> Iterator[TransactionMetadata]:
        return all_entries(self.logs, self.placement, view)

    def client(self, view: View, c: str) -> ClientState:
        state: ClientState = view[c]
        return state

    def idempotent(self, view: View) -> list[ClientState]:
        return [view[i] for i in self.placement.idempotent_producers]

    def ends(self, view: View) -> Iterator[tuple[str, Span]]:
        """Yield each transaction in a partition, with that."""
        for partition in self.of_records:
            for span in self.spans(view, partition):
                yield partition, span

    def marker_attribution(self, view: View, partition: str) -> Reason:
        return guarantees.marker_attribution(partition, self.spans(view, partition))

    def atomicity(self, view: View, c: str) -> Reason:
        texts = view.derived(c, texts_of)
        if not texts:
            return None
        return guarantees.atomicity(self.ends(view), lambda _, record: record.text in texts)

    def outcome(self, view: View, c: str) -> Reason:
        texts, told = view.derived(c, texts_of), view.derived(c, OUTCOMES)
        if not told:
            return None
        return guarantees.acknowledged_outcome(c, self.ends(view), told, lambda _, record: record.text in texts)

    def intermediate_read(self, view: View, r: str) -> Reason:
        if view.derived(r, LEVEL) is not IsolationLevel.READ_COMMITTED:
            return None
        committed = frozenset(self.placement.idempotent_producers).union(
            *(self.logs.told(view, p, ghosts_of).committed for p in self.placement.transaction_partitions)
        )
        got = ((partition, Noted(-1, transaction_of(text), text))
               for partition, texts in view.derived(r, SEEN).items() for text in texts)
        return guarantees.no_intermediate_read(r, got, committed)

    def committed_is_read(self, view: View, r: str) -> Reason:
        """P4, the other way: what a reader is past, it got, if it is committed."""
        if view.derived(r, LEVEL) is not IsolationLevel.READ_COMMITTED:
            return None
        positions, seen = view.derived(r, POSITIONS), view.derived(r, SEEN)
        return guarantees.first(
            guarantees.committed_is_read(r, p, positions[p], seen.get(p, ()), self.logs.made(view, p, readable))
            for p in self.placement.partitions if p in positions)

    def hanging(self, view: View, partition: str) -> Reason:
        return guarantees.no_hanging_transaction(partition, self.spans(view, partition), self.entries(view))

    def once(self, view: View, where: str) -> Reason:
        """P6 of a partition: nothing is in it twice. P6 of a producer: see `as_acknowledged`."""
        if where in self.placement.partitions:
            return guarantees.written_once(where, self.logs.made(view, where, records_of))
        acknowledged = view.derived(where, ACKNOWLEDGED)
        return guarantees.first(self.as_acknowledged(view, partition, where, mine) for partition, mine in (
            (p, [written for written in acknowledged if written.partition == p]) for p in self.placement.partitions
        ) if mine)

    def as_acknowledged(self, view: View, partition: str, c: str, mine: Sequence[Written]) -> Reason:
        """P6 of what a producer was told of: records of transactions as acknowledged, others by their numbers."""
        together: list[list[tuple[str, int | None]]]
        if c in self.placement.producers:
            texts = (written.record for written in mine)
            together = [[(text, None) for text in of_one] for _, of_one in groupby(texts, transaction_of)]
        else:
            together = [[(written.record, written.offset) for written in sorted(mine, key=number_of)]]
        places = dict(self.logs.made(view, partition, records_of))
        start = self.logs.made(view, partition, START)
        wrong = guarantees.as_acknowledged(partition, together, places.get, start)
        if wrong is not None or start or c not in self.placement.producers:
            return wrong
        waiting = [numbered(text) for where, text in view.derived(c, waiting_of) if where == partition]
        if not waiting:
            return None
        now = transaction_of(waiting[0][0])
        told = (numbered(written.record) for written in mine if transaction_of(written.record) == now)
        return guarantees.acknowledged_in_order(partition, told, waiting, places.__contains__)

    def fenced(self, view: View, c: str) -> Reason:
        """P7. A fence is in force before it is logged (up to 3.9 even if it never is): coordinators' caches count, too.
        """
        return self._fatal(view, c, guarantees.fenced_for_a_reason)

    def fatal(self, view: View, c: str) -> Reason:
        """P7, of the code: it says what happened."""
        return self._fatal(view, c, guarantees.fatal_for_a_reason)

    def _fatal(
        self, view: View, c: str, decide: Callable[[str, str, tuple[int, int], list[tuple[int, int]]], Reason]
    ) -> Reason:
        """Decide about a producer that is unusable by what coordinators have of its transactional id."""
        producer = self.client(view, c).producer
        if producer.status is not ProducerStatus.FATAL_ERROR:
            return None
        tid = self.placement.tid_of(c)
        p = self.placement.transaction_partition(tid)
        entry = self.logs.told(view, p, last_entries).get(tid)
        logged = () if entry is None else (entry.owner,)
        cached = (COORDINATOR[p].derived(view, b, cached_of).get(tid) for b in self.placement.brokers)
        return decide(c, producer.last_error.value, (producer.producer_id, producer.producer_epoch),
                      [*logged, *filter(None, cached)])

    def read_bound(self, view: View, r: str) -> Reason:
        for message in self.network.contents(view.at("inbox", r)):
            assert isinstance(message, Response)
            answer = message.response
            if not isinstance(answer, ConsumerFetchResponse):
                continue
            if answer.aborted_transactions is None or not answer.batches:
                continue
            texts = {text for batch in answer.batches if batch.marker is None for text in batch.records}
            sent = ((partition, record, span) for partition in self.placement.partitions
                    for span in self.spans(view, partition) for record in span.records if record.text in texts)
            listed = {(txn.producer_id, txn.first_offset) for txn in answer.aborted_transactions}
            why = guarantees.read_bound(r, answer.batches[-1].last_offset, answer.last_stable_offset, listed, sent)
            if why is not None:
                return why
        return None

    def grows(self, view: View, partition: str) -> Reason:
        return guarantees.producer_state_grows(partition, self.logs.made(view, partition, itself).batches)

    def offsets(self, view: View, b: str) -> Reason:
        log = LEADER[OFFSETS_PARTITION].derived(view, b, served)
        return None if log is None else guarantees.offsets_as_committed(
            committed_offsets(log), load(batches_between(log, 0, log.high_watermark)), GROUPS.derived(view, b, OFFSETS))

    def given_up(self, view: View, p: str) -> Reason:
        """P8 in every state: what its present coordinator has prepared waits for answers to markers, or its entry."""
        leader, epoch = self.logs.led_by(view, p)
        mine = COORDINATOR[p].of(view, leader)
        if mine.cache.coordinator_epoch < epoch:
            return None
        prepared = COORDINATOR[p].derived(view, leader, prepared_of)
        if not prepared:
            return None
        asked = {about.transactional_id for about in CONNECTIONS.of(view, leader).asked.values()}
        again = {effect.transactional_id for effect in mine.unfinished if not isinstance(effect, Answer)}
        return guarantees.prepared_is_completed(
            prepared.items(), asked | again | set(mine.cache.waiting), lambda *each: self.progress.lacks(view, *each))


def properties(
    placement: Placement, network: Network, logs: Logs, family: Family, *, commits_later: bool = False
) -> tuple[Property, ...]:
    """Return every property of the composition; `commits_later` says whether entries wait to be committed."""
    facts = Facts(placement, network, logs)
    refusals = RefusalFacts(placement, network, logs, family, commits_later)
    partitions, producers, consumers = placement.partitions, placement.producers, placement.consumers

    def some(check: Callable[[ClientState], bool]) -> Callable[[View], bool]:
        return lambda view: any(view.derived(c, check) for c in producers)

    def skipped(view: View) -> bool:
        """Whether a consumer of committed records is past a record that is aborted."""
        for r in consumers:
            positions, got = view.derived(r, POSITIONS), view.derived(r, SEEN)
            for partition in partitions:
                past, seen = positions.get(partition, 0), got.get(partition, ())
                for span in facts.spans(view, partition):
                    start = span.records[0]
                    if span.marker is Marker.ABORT and start.offset < past and start.text not in seen:
                        return True
        return False

    answered = (*producers, *placement.idempotent_producers, *consumers, *placement.brokers)
    return (
        always("MarkerAttribution", facts.marker_attribution, over=facts.of_records, source="ours: P1"),
        always("Atomicity", facts.atomicity, over=producers, source="ours: P2"),
        always("AcknowledgedOutcome", facts.outcome, over=producers, source="ours: P3"),
        always("NoIntermediateRead", facts.intermediate_read, over=consumers, source="ours: P4"),
        always("NoHangingTransaction", facts.hanging, over=facts.of_records, source="ours: P5"),
        always("AcknowledgedOnce", facts.once, over=(*partitions, *producers, *placement.idempotent_producers),
               source="ours: P6"),
        always("FencedForAReason", facts.fenced, over=producers, source="ours: P7"),
        always("FatalForAReason", facts.fatal, over=producers, source="ours: P7"),
        always("RefusedForAReason", refusals.refused, over=answered, source="ours: P7"),
        always("ReadBound", facts.read_bound, over=consumers, source="ours: P9"),
        always("OffsetsAsCommitted", facts.offsets, over=placement.brokers, source="ours: P10"),
        always("ProducerStateGrows", facts.grows, over=facts.of_records, source="ours: P11"),
        always("CommittedIsRead", facts.committed_is_read, over=consumers, source="ours: P4"),
        always("PreparedIsCompleted", facts.given_up, over=placement.transaction_partitions, source="ours: P8"),
        eventually("OperationsEnd", facts.progress.pending, source="ours: P8"),
        eventually("NothingStaysOpen", facts.progress.stays_open, source="ours: P5"),
        sometimes("TransactionCommitted", some(lambda state: "commit" in state.outcomes.values())),
        sometimes("TransactionAborted", some(lambda state: "abort" in state.outcomes.values())),
        sometimes("RequestRepeated", some(
            lambda state: any(state.connections.opened.values()) and bool(state.outcomes)
        )),
        sometimes("ProducerBumped", some(lambda state: state.producer.is_ended)),
        sometimes("ProducerIsFenced", some(
            lambda state: state.producer.last_error in (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
        )),
        sometimes("AbortedRecordSkipped", skipped),
        sometimes("OffsetStaged", lambda view: any(
            GROUPS.derived(view, b, OFFSETS).staged for b in placement.brokers
        )),
        sometimes("MarkersUnderWay", lambda view: any(e.state in PREPARED for e in facts.entries(view))),
        sometimes("EpochsRanOut", lambda view: any(map(is_on_another_id, facts.entries(view)))),
        sometimes("EpochTakenUnasked", lambda view: any(
            state.producer.producer_epoch > 0 for state in facts.idempotent(view)
        )),
        *(moves.witnesses(placement, logs, some(lambda state: state.connections.leaders.asked > 0))
          if isinstance(logs, ReplicatedLogs) else ()),
    )
