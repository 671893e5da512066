"""The properties of whole transactions, on states: logs, what applications were told, what consumers got.

Each is written over the ghosts: which of the application's transactions a record, an end, a marker belongs to. Every
reason names who and where, so that it can be checked by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.model import FrozenMap, Network, Property, Reason, View, always, eventually, sometimes
from kafka_proto.broker.coordinator.transaction import PREPARED, TransactionMetadata, TxnState
from kafka_proto.broker.ghosts import Span, committed_offsets, spans, transaction_of
from kafka_proto.broker.group.offsets import Offsets, load
from kafka_proto.broker.messages import Response
from kafka_proto.broker.parts import COORDINATOR, GROUPS, LEADER, CoordinatorState, GroupState, LeaderState
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.producer import ProducerStatus
from kafka_proto.clients.reader import ReaderState
from kafka_proto.clients.transactional_client import ClientState, Written
from kafka_proto.cluster import moves, plain_records
from kafka_proto.cluster.epochs import is_on_another_id
from kafka_proto.cluster.logs import Logs, ReplicatedLogs, all_entries, itself
from kafka_proto.log import Marker, PartitionLog, batches_between
from kafka_proto.requests import OFFSETS_PARTITION, ConsumerFetchResponse, Error, IsolationLevel

INVARIANTS = (
    "MarkerAttribution", "Atomicity", "AcknowledgedOutcome", "NoIntermediateRead", "NoHangingTransaction",
    "AcknowledgedOnce", "FencedForAReason", "ReadBound", "OffsetsAsCommitted", "ProducerStateGrows",
)
LIVENESS = ("OperationsEnd", "NothingStaysOpen")
WITNESSES = ("TransactionCommitted", "TransactionAborted", "RequestRepeated", "ProducerBumped", "ProducerIsFenced",
             "AbortedRecordSkipped", "MarkersUnderWay", "OffsetStaged", "EpochsRanOut", "EpochTakenUnasked")


def offsets_of(state: GroupState) -> Offsets:
    return state.groups.offsets


def cached_of(state: CoordinatorState) -> FrozenMap[str, tuple[int, int]]:
    """Return the producer id and epoch of each transactional id that a coordinator has."""
    known = ((tid, cached.metadata) for tid, cached in state.cache.transactions.items())
    return FrozenMap((tid, (metadata.producer_id, metadata.producer_epoch)) for tid, metadata in known)


def acknowledged_of(state: ClientState) -> tuple[Written, ...]:
    return state.acknowledged


def outcomes_of(state: ClientState) -> FrozenMap[str, str]:
    return state.outcomes


def level_of(state: ReaderState) -> IsolationLevel:
    return state.consumer.isolation_level


def positions_of(state: ReaderState) -> FrozenMap[str, int]:
    return state.consumer.positions


def seen_of(state: ReaderState) -> FrozenMap[str, tuple[str, ...]]:
    return state.seen


def older_epoch(log: PartitionLog) -> Reason:
    """Say what a log has of an older epoch than was there before it, of a producer or of its coordinator."""
    epochs: dict[int, int] = {}
    coordinators: dict[int, int] = {}
    for batch in log.batches:
        producer_id = batch.producer_id
        if batch.producer_epoch < epochs.get(producer_id, -1):
            return (
                f"has epoch {batch.producer_epoch} of producer id {producer_id} at offset {batch.base_offset}, after "
                f"epoch {epochs[producer_id]}"
            )
        epochs[producer_id] = batch.producer_epoch
        if batch.marker is None:
            continue
        if batch.coordinator_epoch < coordinators.get(producer_id, -1):
            return f"has the marker of an older coordinator at offset {batch.base_offset}"
        coordinators[producer_id] = batch.coordinator_epoch
    return None


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

    def spans(self, view: View, partition: str) -> tuple[Span, ...]:
        return self.logs.made(view, partition, spans)

    def entries(self, view: View) -> Iterator[TransactionMetadata]:
        return all_entries(self.logs, self.placement, view)

    def client(self, view: View, c: str) -> ClientState:
        state: ClientState = view[c]
        return state

    def ends(self, view: View) -> Iterator[tuple[str, str, str, Span]]:
        """Yield each record with its transaction, its partition and the span that it is in."""
        for partition in self.of_records:
            for span in self.spans(view, partition):
                for text in span.records:
                    yield transaction_of(text), text, partition, span

    def marker_attribution(self, view: View, partition: str) -> Reason:
        """P1: a marker closes only records of the transaction whose end, or time-out, caused it."""
        for span in self.spans(view, partition):
            foreign = [text for text in span.records if span.marker and transaction_of(text) != span.cause]
            if foreign:
                return (
                    f"the {span.marker} of {partition} at offset {span.marker_at} was caused by {span.cause}, "
                    f"but ends {', '.join(foreign)}"
                )
        return None

    def atomicity(self, view: View, c: str) -> Reason:
        """P2: of a transaction's acknowledged records all are committed or none."""
        acknowledged = {written.record for written in view.derived(c, acknowledged_of)}
        ends: dict[str, dict[Marker, str]] = {}
        for transaction, text, partition, span in self.ends(view):
            if span.marker is not None and text in acknowledged:
                ends.setdefault(transaction, {})[span.marker] = f"{text} of {partition}"
        for transaction, found in sorted(ends.items()):
            if len(found) > 1:
                committed, aborted = found[Marker.COMMIT], found[Marker.ABORT]
                return f"of {transaction}, {committed} is committed, but {aborted} is aborted"
        return None

    def outcome(self, view: View, c: str) -> Reason:
        """P3: what was committed for the application is not aborted, and what was aborted is never committed."""
        outcomes = view.derived(c, outcomes_of)
        acknowledged = {written.record for written in view.derived(c, acknowledged_of)}
        for transaction, text, partition, span in self.ends(view):
            told = outcomes.get(transaction)
            if told == "abort" and span.marker is Marker.COMMIT:
                return f"{c} was told that {transaction} is aborted, but {text} of {partition} is committed"
            if told == "commit" and span.marker is Marker.ABORT and text in acknowledged:
                return f"{c} was told that {transaction} is committed, but {text} of {partition} is aborted"
        return None

    def intermediate_read(self, view: View, r: str) -> Reason:
        """P4: a consumer of committed records gets those of decided transactions only."""
        if view.derived(r, level_of) is not IsolationLevel.READ_COMMITTED:
            return None
        committed = frozenset[str]().union(
            *(self.logs.ghosts(view, p).committed for p in self.placement.transaction_partitions)
        )
        plain = self.placement.idempotent_producers
        for partition, seen in view.derived(r, seen_of).items():
            for text in seen:
                if transaction_of(text) not in committed and transaction_of(text) not in plain:
                    return f"{r} got {text} of {partition}, but no commit of {transaction_of(text)} was decided"
        return None

    def hanging(self, view: View, partition: str) -> Reason:
        """P5: a transaction that is open in a partition is under way at its coordinator, and lists the partition."""
        for span in self.spans(view, partition):
            if span.marker is None and not any(is_of(entry, span, partition) for entry in self.entries(view)):
                return (
                    f"{span.records[0]} of {partition} is in a transaction of producer id {span.producer_id}, epoch "
                    f"{span.producer_epoch}, that is open there, but no coordinator has it under way"
                )
        return None

    def once(self, view: View, partition: str) -> Reason:
        """P6: each acknowledged record is in its partition once, and in the order in which they were written."""
        at: dict[str, int] = {}
        for span in self.spans(view, partition):
            for text, offset in zip(span.records, span.offsets, strict=True):
                if text in at:
                    return f"{text} is in {partition} twice, at the offsets {at[text]} and {offset}"
                at[text] = offset
        for c in self.placement.producers:
            before = ""
            for written in view.derived(c, acknowledged_of):
                if written.partition != partition:
                    continue
                if written.record not in at:
                    return f"{written.record} was acknowledged, but is not in {partition}"
                if before and at[before] > at[written.record] and transaction_of(before) == transaction_of(
                    written.record
                ):
                    return f"{before} was acknowledged before {written.record}, but is after it in {partition}"
                before = written.record
        return plain_records.written_once(self.placement, view, partition, self.logs)

    def fenced(self, view: View, c: str) -> Reason:
        """P7: a producer fails for good only where its coordinator has another epoch for its transactional id.

        A fence is in force before it is logged (up to 3.9 even if it never is): its cache counts, too.
        """
        producer = self.client(view, c).producer
        if producer.status is not ProducerStatus.FATAL_ERROR:
            return None
        tid = self.placement.tid_of(c)
        entry = self.logs.entries(view, self.placement.transaction_partition(tid)).get(tid)
        mine = producer.producer_id, producer.producer_epoch
        if entry is not None and (entry.producer_id, entry.producer_epoch) != mine:
            return None
        p = self.placement.transaction_partition(tid)
        for b in self.placement.brokers:
            cached = COORDINATOR[p].derived(view, b, cached_of).get(tid)
            if cached is not None and (cached[0] != mine[0] or cached[1] > mine[1]):
                return None
        return (
            f"{c} failed by {producer.last_error.value} with producer id {mine[0]}, epoch {mine[1]}, but nobody "
            f"has fenced it"
        )

    def read_bound(self, view: View, r: str) -> Reason:
        """P9: an answer ends below the last stable offset and lists each aborted transaction that overlaps it."""
        for message in self.network.contents(view.at("inbox", r)):
            assert isinstance(message, Response)
            answer = message.response
            if not isinstance(answer, ConsumerFetchResponse):
                continue
            if answer.aborted_transactions is None or not answer.batches:
                continue
            last = answer.batches[-1].last_offset
            if last >= answer.last_stable_offset:
                return f"{r} is sent records up to offset {last}, the last stable offset is {answer.last_stable_offset}"
            listed = {(txn.producer_id, txn.first_offset) for txn in answer.aborted_transactions}
            texts = {text for batch in answer.batches if batch.marker is None for text in batch.records}
            for partition in self.placement.partitions:
                for span in self.spans(view, partition):
                    hit = span.marker is Marker.ABORT and texts & set(span.records)
                    if hit and (span.producer_id, span.offsets[0]) not in listed:
                        return f"{r} is sent {sorted(hit)[0]} of {partition} without being told that it is aborted"
        return None

    def grows(self, view: View, partition: str) -> Reason:
        """P11: what a partition knows of a producer's epoch, and of its coordinator's, never becomes older."""
        why = older_epoch(self.logs.made(view, partition, itself))
        return None if why is None else f"{partition} {why}"

    def offsets(self, view: View, b: str) -> Reason:
        """P10: a group's offset is that of the last committed record; a replay of the log gives the live view."""
        log = LEADER[OFFSETS_PARTITION].derived(view, b, served)
        if log is None:
            return None
        live, expected = GROUPS.derived(view, b, offsets_of), committed_offsets(log)
        for (group, partition), known in live.committed.items():
            last = expected.get((group, partition))
            if last != known.offset:
                return f"the offset of {group} in {partition} is {known.offset}, the last committed one is {last}"
        for group, partition in expected:
            if (group, partition) not in live.committed:
                return f"an offset of {group} in {partition} is committed, but nobody knows it"
        if load(batches_between(log, 0, log.high_watermark)) != live:
            return "a replay of the offsets log gives other offsets than there are"
        return None

    def pending(self, view: View) -> Reason:
        """P8: what applications wait for ends, and what is prepared is completed."""
        waiting = [c for c in self.placement.producers if self.client(view, c).operation]
        if waiting:
            return ", ".join(f"{c} waits for {self.client(view, c).operation}" for c in waiting)
        unanswered = plain_records.waits(self.placement, view)
        if unanswered is not None:
            return unanswered
        prepared = [entry for entry in self.entries(view) if entry.state in PREPARED]
        return f"producer id {prepared[0].producer_id} stays in {prepared[0].state}" if prepared else None

    def stays_open(self, view: View) -> Reason:
        """P5 at rest: where no transaction is under way, committed readers reach the end of each partition."""
        if any(entry.state is TxnState.ONGOING for entry in self.entries(view)):
            return None
        for partition in self.of_records:
            log = self.logs.made(view, partition, itself)
            if log.last_stable_offset < log.high_watermark:
                return (
                    f"the last stable offset of {partition} is {log.last_stable_offset}, "
                    f"its high watermark {log.high_watermark}"
                )
        return None


def is_of(entry: TransactionMetadata, span: Span, partition: str) -> bool:
    """Say whether an entry of a coordinator's log is of the transaction that a span is a part of."""
    if entry.producer_id != span.producer_id or partition not in entry.partitions:
        return False
    if entry.state is TxnState.ONGOING:
        return entry.producer_epoch == span.producer_epoch
    return entry.state in PREPARED and entry.producer_epoch >= span.producer_epoch


def properties(placement: Placement, network: Network, logs: Logs) -> tuple[Property, ...]:
    """Return every property of the composition."""
    facts = Facts(placement, network, logs)
    partitions, producers, consumers = placement.partitions, placement.producers, placement.consumers

    def some(check: Callable[[ClientState], bool]) -> Callable[[View], bool]:
        return lambda view: any(view.derived(c, check) for c in producers)

    def skipped(view: View) -> bool:
        """Whether a consumer of committed records is past a record that is aborted."""
        for r in consumers:
            positions, got = view.derived(r, positions_of), view.derived(r, seen_of)
            for partition in partitions:
                past, seen = positions.get(partition, 0), got.get(partition, ())
                for span in facts.spans(view, partition):
                    if span.marker is Marker.ABORT and span.offsets[0] < past and span.records[0] not in seen:
                        return True
        return False

    return (
        always("MarkerAttribution", facts.marker_attribution, over=facts.of_records, source="ours: P1"),
        always("Atomicity", facts.atomicity, over=producers, source="ours: P2"),
        always("AcknowledgedOutcome", facts.outcome, over=producers, source="ours: P3"),
        always("NoIntermediateRead", facts.intermediate_read, over=consumers, source="ours: P4"),
        always("NoHangingTransaction", facts.hanging, over=facts.of_records, source="ours: P5"),
        always("AcknowledgedOnce", facts.once, over=partitions, source="ours: P6"),
        always("FencedForAReason", facts.fenced, over=producers, source="ours: P7"),
        always("ReadBound", facts.read_bound, over=consumers, source="ours: P9"),
        always("OffsetsAsCommitted", facts.offsets, over=placement.brokers, source="ours: P10"),
        always("ProducerStateGrows", facts.grows, over=facts.of_records, source="ours: P11"),
        eventually("OperationsEnd", facts.pending, source="ours: P8"),
        eventually("NothingStaysOpen", facts.stays_open, source="ours: P5"),
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
            GROUPS.derived(view, b, offsets_of).staged for b in placement.brokers
        )),
        sometimes("MarkersUnderWay", lambda view: any(e.state in PREPARED for e in facts.entries(view))),
        sometimes("EpochsRanOut", lambda view: any(map(is_on_another_id, facts.entries(view)))),
        sometimes("EpochTakenUnasked", lambda view: plain_records.took_next_epoch(placement, view)),
        *(moves.witnesses(placement, logs, some(lambda state: state.connections.leaders.asked > 0))
          if isinstance(logs, ReplicatedLogs) else ()),
    )
