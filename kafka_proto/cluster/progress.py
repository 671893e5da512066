"""P8 and P5 at rest, transaction by transaction, on states: what is awaited, and of whom.

A verdict names client, operation, producer id and epoch, the request that nobody has answered, and the partitions
without the marker of a prepared end. `guarantees` decides; the answers to "where" are looked for when it has.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from harness.model import Reason, View
from kafka_proto.broker.coordinator.transaction import (
    Answer,
    TransactionMetadata,
    TransactionRecord,
    TxnState,
    ghosts_of,
    last_entries,
)
from kafka_proto.broker.ghosts import spans
from kafka_proto.broker.parts import CONNECTIONS, COORDINATOR
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.client_connections import Sent
from kafka_proto.clients.producer.answers import backs_off
from kafka_proto.clients.producer_client import ClientState
from kafka_proto.cluster import guarantees
from kafka_proto.cluster.logs import Logs, all_entries, itself
from kafka_proto.log import Marker, PartitionLog
from kafka_proto.requests import OFFSETS_PARTITION


def has_marker(log: PartitionLog, entry: TransactionMetadata, cause: str) -> bool:
    """Say whether the last batch of a producer in a partition is the marker of its transaction's prepared end."""
    last = next((batch for batch in reversed(tuple(log.batches)) if batch.producer_id == entry.producer_id), None)
    if last is None or last.marker is None or last.producer_epoch != entry.producer_epoch:
        return False
    kind = Marker.COMMIT if entry.state is TxnState.PREPARE_COMMIT else Marker.ABORT
    return last.marker is kind and last.records[0].transaction == cause


def named(sent: Sent) -> str:
    """Return an unanswered request, and who has not answered it."""
    return f"{sent.dest} has not answered its {type(sent.request).__name__}"


@attrs.frozen
class ProgressFacts:
    """Where it is looked for what is pending."""

    placement: Placement
    logs: Logs

    def pending(self, view: View) -> Reason:
        """P8: what applications wait for ends, and what is prepared is completed; all that does not is said."""
        return "; ".join((*self._operations(view), *self._records(view), *self._prepared(view))) or None

    def stays_open(self, view: View) -> Reason:
        """P5 at rest, of each transaction that is open in a partition."""
        entries = tuple(all_entries(self.logs, self.placement, view))
        for partition in (*self.placement.partitions, OFFSETS_PARTITION):
            log = self.logs.made(view, partition, itself)
            open_ = (span for span in self.logs.made(view, partition, spans) if span.marker is None)
            why = guarantees.nothing_stays_open(partition, log.last_stable_offset, log.high_watermark, open_, entries)
            if why is not None:
                return why
        return None

    def _operations(self, view: View) -> Iterator[str]:
        """Of producers with transactions."""
        for c in self.placement.producers:
            state: ClientState = view[c]
            if state.operation:
                about = self.placement.tid_of(c) if state.operation == "init" else f"{c}.{state.transactions}"
                yield guarantees.is_not_answered(
                    c, f"{state.operation} of {about}", _owner(state), _awaited(state))

    def _records(self, view: View) -> Iterator[str]:
        """Of producers without transactions: the oldest record without an answer."""
        for i in self.placement.idempotent_producers:
            state: ClientState = view[i]
            if state.producer.batches:
                yield guarantees.is_not_answered(
                    i, f"the answer to {state.producer.batches[0].records[0]}", _owner(state), _awaited(state))

    def _prepared(self, view: View) -> Iterator[str]:
        """Of transactions whose end is prepared in the log."""
        for p in self.placement.transaction_partitions:
            for item in self.logs.told(view, p, last_entries).items():
                why = guarantees.prepared_is_completed([item], lacks=lambda *each: self.lacks(view, *each))
                if why is not None:
                    yield why

    def lacks(self, view: View, tid: str, entry: TransactionMetadata) -> str:
        """Say what a prepared end lacks: markers of partitions, or else the entry that it is complete."""
        p = self.placement.transaction_partition(tid)
        coordinator, _ = self.logs.led_by(view, p)
        mine = COORDINATOR[p].of(view, coordinator)
        about = [asked.message for asked in CONNECTIONS.of(view, coordinator).asked.values()
                 if asked.transactional_id == tid]
        asked_of = {message.request.partitions[0]: message.dest for message in about}
        cached = mine.cache.transactions.get(tid)
        unheard = () if cached is None else cached.metadata.partitions
        cause = self.logs.told(view, p, ghosts_of).causes.get(tid, "")
        found = []
        for name in entry.partitions:
            is_there = has_marker(self.logs.made(view, name, itself), entry, cause)
            if is_there and name not in unheard:
                continue
            asks = f"{coordinator} asks nobody for it"
            if name in asked_of:
                asks = f"{asked_of[name]} has not answered {coordinator}'s WriteTxnMarkersRequest"
            found.append(f"{name} {'has' if is_there else 'lacks'} the marker, and {asks}")
        if found:
            return ", ".join(found)
        again = any(isinstance(effect, TransactionRecord) and effect.transactional_id == tid
                    for effect in mine.unfinished if not isinstance(effect, Answer))
        waits = f"waits for {coordinator} to commit it" if tid in mine.cache.waiting else (
            f"is still to be written by {coordinator}" if again else f"is not under way at {coordinator}")
        return f"it has all its markers, and the entry that it is complete {waits}"


def _owner(state: ClientState) -> tuple[int, int]:
    return state.producer.producer_id, state.producer.producer_epoch


def _awaited(state: ClientState) -> str:
    """Say what a client waits for: answers, or a pause before it asks again."""
    found = [named(sent) for sent in state.connections.asked.values()]
    if not found and (backs_off(state.producer) or state.connections.leaders.resting):
        call = state.producer.call
        return f"it pauses before its {'next request' if call is None else type(call.request).__name__}"
    return " and ".join(found) or "no request of it is under way"
