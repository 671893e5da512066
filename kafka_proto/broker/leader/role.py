"""The leader of partitions as a role of a broker: batches, verification, markers, fetches.

They are decided on a log that is derived from the records of the broker's log: a new leader derives it anew. With
`acks=all` a producer is answered when its record is committed, and so is a duplicate; else at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from harness.model import FrozenMap, Local, Message, Value
from kafka_proto.broker.ghosts import Cause
from kafka_proto.broker.leader import fetching, verification
from kafka_proto.broker.leader.admission import CheckedBatch, admit, appended, check, lacks_transactional_id, refusal
from kafka_proto.broker.leader.appending import marker_of
from kafka_proto.broker.leader.epochs import check_epoch, diverges, epochs_of, followed_log, held_log
from kafka_proto.broker.messages import Request, Response, asker_of
from kafka_proto.broker.other_brokers import OtherBrokers
from kafka_proto.broker.parts import LEADER, MARKINGS, Asked, Marking, Markings, exists, known, now
from kafka_proto.broker.roles import Append, Await, Effect, Role, RoleStep
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.log import EMPTY_LOG, Marker, PartitionLog, RecordBatch, read_on, with_high_watermark
from kafka_proto.requests import (
    TRANSACTION_TOPIC,
    AddPartitionsToTxnResponse,
    ConsumerFetchRequest,
    ConsumerFetchResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    Error,
    IsolationLevel,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    topic_of,
)


class MarkerAnswers(Role):
    """What the partitions of one broker answered. A request of one partition leaves nothing here."""

    parts = (MARKINGS,)

    def begun(self, local: Local, message: Request) -> Local:
        """Return the state in which the answers to a request are waited for."""
        partitions = len(message.request.partitions)
        if partitions == 1:
            return local
        waits = (*local[MARKINGS].under_way, Marking(asker_of(message), partitions))
        return local.put(MARKINGS, Markings(waits))

    def answered(
        self, local: Local, message: Request, errors: FrozenMap[str, Error]
    ) -> tuple[Local, FrozenMap[str, Error] | None]:
        """Take what a partition answers, and return what all did, or None while some have not."""
        under_way, asker = local[MARKINGS].under_way, asker_of(message)
        place = next((n for n, each in enumerate(under_way) if each.asker == asker), None)
        if place is None:
            return local, errors
        known, rest = under_way[place], under_way[place + 1:]
        errors = known.errors.update(errors)
        if len(errors) == known.partitions:
            return local.put(MARKINGS, Markings(under_way[:place] + rest)), errors
        waits = attrs.evolve(known, errors=errors)
        return local.put(MARKINGS, Markings((*under_way[:place], waits, *rest))), None


MARKER_TIMEOUT_MS: int | None = 30_000
"""How long a marker may wait for replicas (`request.timeout.ms`)."""
FROM_FOLLOWERS = 11
"""The first version of a fetch by which a consumer may read from a follower (KIP-392)."""
Handler = Callable[[Local, Request, Any], Effect | None]
RecordTimes = Callable[[RecordBatch], Iterable[int]]


REFUSALS: dict[type, Callable[[Error], Value]] = {
    ProduceRequest: ProduceResponse, ConsumerFetchRequest: ConsumerFetchResponse,
    ListOffsetsRequest: ListOffsetsResponse, DeleteRecordsRequest: DeleteRecordsResponse,
    DescribeProducersRequest: DescribeProducersResponse, OffsetForLeaderEpochRequest: OffsetForLeaderEpochResponse,
}
"""What is answered to requests about a partition that is not there, or is led by another broker."""
READS = (ConsumerFetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest, DescribeProducersRequest)


class PartitionLeader(Role):
    """The leader of one broker, of those of its partitions that it leads."""

    loads_at_once = True
    role = "leader"

    def __init__(
        self, name: str, version: BrokerVersion, partitions: tuple[str, ...], others: OtherBrokers,
        marker_answers: MarkerAnswers, record_times: RecordTimes = fetching.written_together,
    ) -> None:
        self.name = name
        self.version = version
        self.partitions = partitions
        self.others = others
        self.marker_answers = marker_answers
        self.record_times = record_times
        """The time stamps of a batch's records."""
        self.parts = tuple(LEADER[p] for p in partitions)
        self.handlers: dict[type, Handler] = {
            ProduceRequest: self.produce, ConsumerFetchRequest: self.fetch, ListOffsetsRequest: self.list_offsets,
            DeleteRecordsRequest: self.delete_records, DescribeProducersRequest: self.describe_producers,
            OffsetForLeaderEpochRequest: self.offset_for_leader_epoch,
        }

    def started(self, local: Local) -> Local:
        for p in self.partitions:
            if known(local, p).leader == self.name:
                local = self.loaded(local, p, ())
        return local

    def serves(self, local: Local, p: str) -> bool:
        return local[LEADER[p]].serves

    def log(self, local: Local, p: str) -> PartitionLog:
        """Return a log to read."""
        log: PartitionLog = local[LEADER[p]].log
        return log

    def loaded(self, local: Local, p: str, records: Iterable[RecordBatch]) -> Local:
        """Return the state with the log derived from its records, producers and transactions included (`rebuild`)."""
        return self.loaded_from(local, p, EMPTY_LOG, records)

    def loaded_from(self, local: Local, p: str, start: PartitionLog, records: Iterable[RecordBatch]) -> Local:
        log = read_on(start, records)
        return local.put(LEADER[p], attrs.evolve(local[LEADER[p]], log=log, serves=True))

    def resigned(self, local: Local, p: str) -> Local:
        """Return the state without the log; a guard that was given is never given again."""
        return local.put(LEADER[p], verification.LeaderState(guards=local[LEADER[p]].guards))

    def compacted(self, local: Local, p: str, log: PartitionLog) -> Local:
        return local.put(LEADER[p], attrs.evolve(local[LEADER[p]], log=log))

    def appended(self, local: Local, p: str, record: RecordBatch) -> Local:
        return local.put(LEADER[p], appended(local[LEADER[p]], record))

    def committed(self, local: Local, p: str, record: RecordBatch) -> Local:
        mine = local[LEADER[p]]
        return local.put(LEADER[p], attrs.evolve(mine, log=with_high_watermark(mine.log, record.last_offset + 1)))

    def completed(self, local: Local, p: str, record: RecordBatch, callback: Request) -> Effect:
        start = local[LEADER[p]].log.log_start_offset
        return self.reply(local, callback, self.response(callback.request, Error.NONE, record.base_offset, start))

    def failed(
        self, local: Local, p: str, callback: Request, error: Error, record: RecordBatch | None = None
    ) -> Effect:
        """Answer with the error; of a batch that was appended with its offset, too (`DelayedProduce`)."""
        offset = -1 if record is None else record.base_offset
        return self.reply(local, callback, self.response(callback.request, error, offset))

    def response(self, request: Any, error: Error, offset: int, start: int | None = None) -> Value:
        """Return the response to the sender of an append; `start` is where the log begins that took it."""
        if isinstance(request, WriteTxnMarkersRequest):
            return WriteTxnMarkersResponse(FrozenMap({request.partitions[0]: error}))
        return ProduceResponse(error, offset, start)

    def reply(self, local: Local, message: Request, response: Value) -> Effect:
        if isinstance(response, WriteTxnMarkersResponse):
            local, errors = self.marker_answers.answered(local, message, response.errors)
            if errors is None:
                return Effect(local)
            response = WriteTxnMarkersResponse(errors)
        return super().reply(local, message, response)

    def receive(self, local: Local, message: Message) -> RoleStep | None:
        """Answer a request about its partitions, or go on with a verified one."""
        if isinstance(message, Request):
            effect = self.answered(local, message, message.request)
        else:
            asked = self.others.about(local, message, self.role)
            if asked is None:
                return None
            assert isinstance(message, Response)
            effect = self.verified(self.others.answered(local, message), asked, message.response)
        return None if effect is None else self.outcome(effect, f"Receive{message.type}", message.source)

    def answered(self, local: Local, message: Request, request: Any) -> Effect | None:
        """Return what follows from a request, or None if it is not for this role, or has to wait."""
        if type(request) not in self.handlers or request.partition not in self.partitions:
            return None
        error = check_epoch(local, request.partition, getattr(request, "current_leader_epoch", None))
        if error is not Error.NONE:
            return self.reply(local, message, REFUSALS[type(request)](error))
        if not local[LEADER[request.partition]].serves:
            return self.not_led(local, message, request)
        return self.handlers[type(request)](local, message, request)

    def not_led(self, local: Local, message: Request, request: Any) -> Effect | None:
        """Refuse what only a leader does; a consumer that may choose replicas is read to by a follower (KIP-392)."""
        if isinstance(request, ConsumerFetchRequest) and request.version >= FROM_FOLLOWERS and request.replica_id < 0:
            log = followed_log(local, request.partition)
            if log is not None:
                return self.read(local, message, request, log)
        return self.reply(local, message, REFUSALS[type(request)](Error.NOT_LEADER_OR_FOLLOWER))

    def produce(self, local: Local, message: Request, request: ProduceRequest) -> Effect:
        """Append a batch, after the coordinator is asked where the version wants that."""
        where = LEADER[request.partition]
        is_led = request.partition in self.partitions
        leader = local[where] if is_led else verification.LeaderState()
        admitted = admit(self.version.leader, leader, request, now=now(local))
        if admitted.error is not Error.NONE:
            return self.reply(local, message, ProduceResponse(admitted.error))
        if is_led:
            local = local.put(where, admitted.leader)
        producer = request.batch.producer_id, request.batch.producer_epoch
        return self.verify(local, message, request.partition, producer, "Produce", admitted.guard)

    def verify(
        self, local: Local, message: Request, partition: str, producer: tuple[int, int], api: str, guard: int
    ) -> Effect:
        """Ask the coordinator whether a partition is part of a transaction, or to make it so, if there is a guard.
        """
        operation = self.version.leader.operation(api, message.request.version)
        if operation is None or guard == verification.NO_GUARD:
            return self.verified_append(local, message, verification.NO_GUARD)
        request = verification.verification_request(operation, message.request.transactional_id, *producer, partition)
        local, sent = self.others.ask(
            local, self.role, request, message.transaction, client=message, partition=partition,
            guard=guard, operation=operation,
        )
        return Effect(local, sent)

    def verified(self, local: Local, asked: Asked, response: AddPartitionsToTxnResponse) -> Effect:
        """Go on with the client's request that waited."""
        message, operation = asked.client, asked.operation
        assert message is not None and operation is not None
        (found,) = response.errors.values()
        error = verification.unverified(found, operation)
        if error is not Error.NONE:
            return self.reply(local, message, self.unverified(message.request, error, operation))
        return self.verified_append(local, message, asked.guard)

    def unverified(self, request: Any, error: Error, operation: verification.SupportedOperation) -> Value:
        return ProduceResponse(self.version.leader.unverified_produce(error, operation))

    def verified_append(self, local: Local, message: Request, guard: int) -> Effect:
        request: ProduceRequest = message.request
        refused = refusal(request)
        if refused is not Error.NONE:
            return self.reply(local, message, ProduceResponse(refused))
        batch = request.batch
        if batch.timestamp < 0 and (clock := now(local)):
            batch = attrs.evolve(batch, timestamp=clock)
        return self.append(local, message, request.partition, batch, verification.Origin.CLIENT, guard)

    def append(
        self, local: Local, message: Request, p: str, batch: RecordBatch, origin: verification.Origin, guard: int
    ) -> Effect:
        """Append a batch if it may be; a duplicate of one that is not committed waits with it."""
        mine = local[LEADER[p]]
        if not mine.serves:
            return self.failed(local, p, message, Error.NOT_LEADER_OR_FOLLOWER)
        return self.checked(local, message, p, batch, check(self.version.leader, mine, batch, origin, guard))

    def checked(self, local: Local, message: Request, p: str, batch: RecordBatch, found: CheckedBatch) -> Effect:
        log = local[LEADER[p]].log
        start = log.log_start_offset
        waits, timeout_ms = True, MARKER_TIMEOUT_MS
        if isinstance(message.request, ProduceRequest):
            waits, timeout_ms = message.request.waits_for_isr, message.request.timeout_ms
        if found.error is not Error.NONE:
            return self.reply(local, message, self.response(message.request, found.error, -1, start))
        if found.duplicate_at is not None:
            if found.duplicate_at < log.high_watermark or not waits:
                return self.reply(local, message, self.response(message.request, Error.NONE, found.duplicate_at, start))
            return Effect(local, awaits=(Await(p, found.duplicate_at, message, timeout_ms),))
        placed = attrs.evolve(batch, base_offset=log.log_end_offset)
        return Effect(local, appends=(Append(p, placed, message, waits, timeout_ms),))

    def write_marker(self, local: Local, message: Request, p: str) -> Effect:
        """Append the marker of a transaction to one partition; its record is the ghost of the marker's cause."""
        request: WriteTxnMarkersRequest = message.request
        marker = marker_of(request, now(local))
        mine = local[LEADER[p]]
        if not mine.serves:
            return self.failed(local, p, message, Error.NOT_LEADER_OR_FOLLOWER)
        kind = Marker.COMMIT if request.committed else Marker.ABORT
        marker = attrs.evolve(marker, records=(Cause(kind, message.transaction),))
        error = self.version.leader.check_marker(
            mine.log.producer(marker.producer_id), marker, request.transaction_version
        )
        return self.checked(local, message, p, marker, CheckedBatch(error))

    def list_offsets(self, local: Local, message: Request, request: ListOffsetsRequest) -> Effect:
        log = self.log(local, request.partition)
        asks = request.current_leader_epoch is not None
        epochs = epochs_of(local, request.partition, self.name, log) if asks else None
        return self.reply(local, message, fetching.list_offsets(
            log, request, self.version.leader.check_time, self.record_times, epochs))

    def offset_for_leader_epoch(self, local: Local, message: Request, request: OffsetForLeaderEpochRequest) -> Effect:
        epochs = epochs_of(local, request.partition, self.name, self.log(local, request.partition))
        end = epochs.end_offset_for(request.leader_epoch)
        return self.reply(
            local, message, OffsetForLeaderEpochResponse(Error.NONE, end.leader_epoch, end.end_offset))

    def describe_producers(self, local: Local, message: Request, request: DescribeProducersRequest) -> Effect:
        producers = self.log(local, request.partition).producers
        return self.reply(local, message, DescribeProducersResponse(Error.NONE, producers))

    def fetch(self, local: Local, message: Request, request: ConsumerFetchRequest) -> Effect | None:
        """Answer a fetch, or let it wait if there is nothing new (`DelayedFetch`)."""
        return self.read(local, message, request, self.log(local, request.partition))

    def read(
        self, local: Local, message: Request, request: ConsumerFetchRequest, log: PartitionLog
    ) -> Effect | None:
        """Answer a fetch from what a leader's log is, or a follower's."""
        at = request.fetch_offset
        if request.last_fetched_epoch is not None and request.last_fetched_epoch >= 0:
            epochs = epochs_of(local, request.partition, self.name, log)
            end = diverges(epochs, at, request.last_fetched_epoch)
            if end is not None:
                return self.reply(local, message, fetching.diverging(log, end))
        committed = request.isolation_level is IsolationLevel.READ_COMMITTED
        news = log.last_stable_offset if committed else log.high_watermark
        if news <= at <= log.log_end_offset and request.min_bytes:
            return None
        return self.reply(local, message, self.version.leader.fetch(log, request))

    def delete_records(self, local: Local, message: Request, request: DeleteRecordsRequest) -> Effect:
        """Move the start of the log."""
        where = LEADER[request.partition]
        mine = local[where]
        shorter, answer = fetching.delete(mine.log, request, self.version.leader.after_deletion)
        effect = self.reply(local.put(where, attrs.evolve(mine, log=shorter)), message, answer)
        return effect if shorter is mine.log else attrs.evolve(effect, begins=((request.partition, shorter),))


class TopicLeader(PartitionLeader):
    """The leader of a topic's partitions. It answers for what is not there, and lets all leaders write markers."""

    def __init__(
        self, name: str, version: BrokerVersion, partitions: tuple[str, ...], others: OtherBrokers,
        marker_answers: MarkerAnswers, leaders: Iterable[PartitionLeader],
        record_times: RecordTimes = fetching.written_together,
    ) -> None:
        super().__init__(name, version, partitions, others, marker_answers, record_times)
        self.leaders = {p: leader for leader in (self, *leaders) for p in leader.partitions}
        """The owner of each partition, the offsets partition included."""

    def answered(self, local: Local, message: Request, request: Any) -> Effect | None:
        if isinstance(request, WriteTxnMarkersRequest):
            return self.write_markers(local, message, request)
        if type(request) not in REFUSALS:
            return super().answered(local, message, request)
        p = request.partition
        is_of_transactions = topic_of(p) == TRANSACTION_TOPIC  # to which clients do not write
        if isinstance(request, ProduceRequest) and is_of_transactions and exists(local, p):
            return self.produce(local, message, request)
        if is_of_transactions and type(request) in READS and exists(local, p):
            return self.read_transactions(local, message, request)
        if p in self.leaders and exists(local, p):
            return super().answered(local, message, request)
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
        if isinstance(request, ProduceRequest) and lacks_transactional_id(request):
            error = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return self.reply(local, message, REFUSALS[type(request)](error))

    def log(self, local: Local, p: str) -> PartitionLog:
        return super().log(local, p) if p in self.partitions else held_log(local, p)

    def read_transactions(self, local: Local, message: Request, request: Any) -> Effect | None:
        """Answer a reader of the transaction log, whose writer is the coordinator."""
        error = check_epoch(local, request.partition, getattr(request, "current_leader_epoch", None))
        if error is Error.NONE and known(local, request.partition).leader != self.name:
            error = Error.NOT_LEADER_OR_FOLLOWER
        if error is not Error.NONE:
            return self.reply(local, message, REFUSALS[type(request)](error))
        return self.handlers[type(request)](local, message, request)

    def write_markers(self, local: Local, message: Request, request: WriteTxnMarkersRequest) -> Effect:
        """Append a transaction's markers, and answer once each partition has its own or refused it."""
        done = Effect(self.marker_answers.begun(local, message))
        for p in request.partitions:
            one = attrs.evolve(message, request=attrs.evolve(request, partitions=(p,)))
            if p in self.leaders and exists(local, p):
                effect = self.leaders[p].write_marker(done.local, one, p)
            else:
                unknown = WriteTxnMarkersResponse(FrozenMap({p: Error.UNKNOWN_TOPIC_OR_PARTITION}))
                effect = self.reply(done.local, one, unknown)
            done = done.then(effect)
        return done
