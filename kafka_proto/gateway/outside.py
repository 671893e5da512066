"""What a proxy knows of another cluster: from the answers that pass it, and from those that it asked for itself.

Brokers carry no ghosts there. Which transaction a batch is of is seen when it arrives; which one ended the markers of a
partition follows from the order in which ends of transactions were delivered: an end that was acknowledged while
something had been added since the last one is what ended that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import attrs

from harness.model import FrozenMap, Value
from kafka_proto.broker.coordinator.transaction import TransactionMetadata
from kafka_proto.broker.ghosts import Cause, SentRecords
from kafka_proto.broker.group.coordinator import Committed, Key, Offsets
from kafka_proto.gateway import offer as apis
from kafka_proto.gateway.codec import NO_ID, Fields, Malformed, structures
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.internal_records import read_offset
from kafka_proto.gateway.observed import NOBODY, header_of, produced, producer_of
from kafka_proto.gateway.records import BadBatch, BatchHeader, read_header, read_marker, read_records, split
from kafka_proto.log import NO_SEQUENCE, Marker, PartitionLog, RecordBatch, rebuild
from kafka_proto.log.chunks import chunks
from kafka_proto.requests import GROUP_TOPIC, TxnState, partition_name, topic_of

Address = tuple[str, int]
Producer = tuple[int, int]
"""Producer id and epoch."""
IMPLICIT = {apis.PRODUCE: 12, apis.TXN_OFFSET_COMMIT: 5}
"""From these versions on a request adds what it writes to the transaction (KIP-890)."""


@attrs.define
class Outside:
    """Another cluster."""

    nodes: dict[int, Address] = attrs.field(factory=dict)
    """By node id, as they became known."""
    topics: dict[UUID, str] = attrs.field(factory=dict)
    leaders: dict[str, int] = attrs.field(factory=dict)
    """The node that leads each partition, as the proxy heard when it asked last."""
    starts: dict[str, int] = attrs.field(factory=dict)
    """The last stable offset of each partition when the session began: what was before is not looked at."""
    touched: set[str] = attrs.field(factory=set)
    """Partitions that were written to, or from which a reader of committed records was sent something."""
    owners: dict[str, set[int]] = attrs.field(factory=dict)
    """By transactional id: its producer ids."""
    coordinators: dict[str, int] = attrs.field(factory=dict)
    entries: dict[str, TransactionMetadata] = attrs.field(factory=dict)
    reading: dict[str, list[RecordBatch]] = attrs.field(factory=dict)
    """Batches of the partitions that are being read."""
    ends: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    """Of each of them, the next offset, and the high watermark."""
    groups: set[str] = attrs.field(factory=set)
    """Those that offsets were committed for."""
    offsets: dict[str, dict[Key, Committed]] = attrs.field(factory=dict)
    """Of each group whose coordinator told: its offsets; where their records are is not told."""
    unread: dict[str, str] = attrs.field(factory=dict)
    """Partitions that could not be read, and why."""
    _sent: dict[tuple[str, int, int, int], tuple[str, int]] = attrs.field(factory=dict)
    """By partition, producer, epoch and sequence: the transaction of a batch, and how many had ended before it."""
    _open: set[Producer] = attrs.field(factory=set)
    _ended: Counter[Producer] = attrs.field(factory=Counter)
    _causes: dict[tuple[Producer, int], tuple[str, bool]] = attrs.field(factory=dict)

    def met(self, fields: Fields) -> None:
        """Note brokers and topics that a response names."""
        for part in structures(fields):
            if part.get("topic_id", NO_ID) != NO_ID and part.get("name"):
                self.topics[part["topic_id"]] = part["name"]
        for part, node in naming(fields):
            self.nodes[node] = part["host"], part["port"]

    def named(self, message: Any) -> None:
        """Write the names of topics beside their ids."""
        for part in structures(message):
            name = self.topics.get(part.get("topic_id", NO_ID))
            if name is not None:
                part["name"] = part["topic"] = name

    def delivered(self, request: WireRequest, transaction: str) -> None:
        """Note what a broker is about to be sent."""
        owner = producer_of(request)
        if owner is not None:
            self.owners.setdefault(owner[0], set()).add(owner[1])
        if request.api_key in COMMITS:
            self.groups.add(request.message["group_id"])
        if request.api_key != apis.PRODUCE:
            return
        for topic, index, data in produced(request.message):
            name, header = partition_name(topic, index), header_of(data)
            self.touched.add(name)
            if header is not None and header.producer_id >= 0:
                before = self._ended[header.producer_id, header.producer_epoch]
                self._sent.setdefault(_place(name, header), (transaction, before))

    def answered(self, request: WireRequest, transaction: str, fields: Fields) -> None:
        """Note what a broker answered, whether or not a client hears it."""
        owner = producer_of(request)
        if owner is None:
            return
        producer = owner[1:]
        if request.api_key != apis.END_TXN:
            is_adding = request.version >= IMPLICIT.get(request.api_key, 0)
            if is_adding and any(code == 0 for part in structures(fields) for key, code in part.items()
                                 if key in ("error_code", "partition_error_code")):
                self._open.add(producer)
        elif fields["error_code"] == 0 and producer in self._open:
            self._open.remove(producer)
            self._causes[producer, self._ended[producer]] = transaction, bool(request.message["committed"])
            self._ended[producer] += 1

    def describe(self, fields: Fields) -> None:
        """Note what a coordinator knows of transactional ids."""
        for state in fields["transaction_states"]:
            if state["error_code"] == 0 and state["transaction_state"] in STATES:
                names = (partition_name(topic["topic"], index)
                         for topic in state["topics"] for index in topic["partitions"])
                self.entries[state["transactional_id"]] = TransactionMetadata(
                    state["producer_id"], TxnState(state["transaction_state"]), state["producer_epoch"],
                    partitions=tuple(sorted(names)), timeout_ms=state["transaction_timeout"],
                    start_timestamp=state["transaction_start_time"])

    @property
    def of_groups(self) -> tuple[str, ...]:
        """Return the partitions in which groups have their offsets."""
        return tuple(sorted(p for p in self.leaders if topic_of(p) == GROUP_TOPIC))

    def tell_offsets(self, fields: Fields) -> None:
        """Note the offsets that a coordinator tells of its groups."""
        for group in fields["groups"]:
            if group["error_code"] == 0:
                self.offsets[group["group_id"]] = {
                    (group["group_id"], partition_name(topic["name"], row["partition_index"])): Committed(
                        row["committed_offset"], -1, None if row["committed_leader_epoch"] < 0 else
                        row["committed_leader_epoch"], row["metadata"] or None)
                    for topic in group["topics"] for row in topic["partitions"]}

    def live(self, read: Offsets) -> Offsets:
        """Return the offsets that coordinators tell of those that were read in their log, where these are."""
        told = ((key, at, self.offsets.get(key[0], {}).get(key)) for key, at in read.committed.items())
        return attrs.evolve(read, committed=FrozenMap(
            (key, attrs.evolve(known, record_offset=at.record_offset)) for key, at, known in told if known is not None))

    def lead(self, fields: Fields) -> None:
        """Note who leads what."""
        self.leaders = {partition_name(topic["name"], partition["partition_index"]): partition["leader_id"]
                        for topic in fields["topics"] for partition in topic["partitions"]}

    def coordinate(self, fields: Fields) -> None:
        """Note who coordinates transactional ids."""
        for row in fields.get("coordinators") or ():
            if row["error_code"] == 0:
                self.coordinators[row["key"]] = row["node_id"]

    def begin(self, fields: Fields) -> None:
        """Note where partitions end when the session begins."""
        for topic in fields["topics"]:
            for partition in topic["partitions"]:
                if partition["error_code"] == 0:
                    self.starts[partition_name(topic["name"], partition["partition_index"])] = partition["offset"]

    def fetched(self, fields: Fields) -> Iterator[tuple[str, PartitionLog]]:
        """Take what was read of partitions, and yield those that are read to their end."""
        for topic in fields["responses"]:
            for partition in topic["partitions"]:
                name = partition_name(topic["topic"], partition["partition_index"])
                if partition["error_code"] != 0:
                    self.unread[name] = f"error {partition['error_code']}"
                    continue
                known = self.reading.setdefault(name, [])
                begin = max(self.starts.get(name, 0), partition["log_start_offset"])
                try:
                    for data in split(partition["records"] or b""):
                        header = read_header(data)
                        if header.base_offset >= (known[-1].last_offset + 1 if known else begin):
                            known.append(self._batch(name, header, data))
                except (BadBatch, Malformed) as error:
                    self.unread[name] = str(error)
                    continue
                after = known[-1].last_offset + 1 if known else begin
                self.ends[name] = after, partition["high_watermark"]
                if after >= partition["high_watermark"]:
                    yield name, rebuild(PartitionLog(chunks(self._caused(name)), begin, after, after))

    def judged(self, log: PartitionLog) -> PartitionLog:
        """Return a log without open transactions whose coordinator was not asked."""
        known = {producer_id for tid, ids in self.owners.items() if tid in self.entries for producer_id in ids}
        return attrs.evolve(log, open=tuple(txn for txn in log.open if txn.producer_id in known))

    def _batch(self, name: str, header: BatchHeader, data: bytes) -> RecordBatch:
        """Return a batch as it is in a log, with its transaction; the cause of a marker is not known yet."""
        marker, coordinator_epoch, transaction = None, -1, NOBODY
        records: tuple[Value, ...] = ()
        sequence = header.base_sequence
        if topic_of(name) == GROUP_TOPIC and not header.is_control:
            sequence = NO_SEQUENCE  # coordinators give each batch the first one
            found = (read_offset(each.key, each.value) for each in read_records(data, header))
            records = tuple(each if each is not None and each.group_id in self.offsets else None for each in found)
        elif header.is_control:
            kind, coordinator_epoch = read_marker(data, header)
            marker = MARKERS.get(kind)
        else:
            transaction, _ = self._sent.get(_place(name, header), (NOBODY, 0))
        return RecordBatch(
            records or (SentRecords(b"", transaction),),
            header.producer_id, header.producer_epoch, sequence,
            header.is_transactional and (marker is not None or not header.is_control), marker, coordinator_epoch,
            header.max_timestamp, header.base_offset, header.last_offset_delta)

    def _caused(self, name: str) -> Iterator[RecordBatch]:
        """Yield a partition's batches, markers with their causes; unknown ones are of the last batch before them."""
        last: dict[int, tuple[Producer, str, int]] = {}
        for batch in self.reading[name]:
            if batch.marker is None:
                place = (name, batch.producer_id, batch.producer_epoch, batch.base_sequence)
                if batch.is_transactional:
                    transaction, turn = self._sent.get(place, (NOBODY, 0))
                    turn = max(turn, last.get(batch.producer_id, (NOBODY, NOBODY, 0))[2])
                    last[batch.producer_id] = (batch.producer_id, batch.producer_epoch), transaction, turn
                yield batch
                continue
            producer, cause, turn = last.pop(batch.producer_id, ((0, 0), NOBODY, 0))
            ended = self._causes.get((producer, turn))
            if cause != NOBODY and ended is not None and ended[1] == (batch.marker is Marker.COMMIT):
                cause = ended[0]
            yield attrs.evolve(batch, records=(Cause(batch.marker, cause),))


COMMITS = (apis.OFFSET_COMMIT, apis.TXN_OFFSET_COMMIT)
STATES = {state.value for state in TxnState}
MARKERS = {0: Marker.ABORT, 1: Marker.COMMIT}


def _place(partition: str, header: BatchHeader) -> tuple[str, int, int, int]:
    return partition, header.producer_id, header.producer_epoch, header.base_sequence


def naming(fields: Fields) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the structures of a response that say where a broker is, with its node id."""
    for part in structures(fields):
        node = part.get("node_id", part.get("broker_id"))
        if node is not None and part.get("host") and part.get("port", -1) > 0:
            yield part, node
