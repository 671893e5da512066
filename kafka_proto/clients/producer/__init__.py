"""The producer of Kafka's clients as pure functions of a frozen value: what `TransactionManager` and `Sender` decide.

Here is which versions of requests a client speaks, what it keeps, and what an application may ask of it: each command
returns the producer as it is then, or raises what Kafka's client raises, by its Java name. `sending` is what is sent
next, `answers` what follows from an answer or a time-out, with the one table of what an error code means, `idempotent`
how sequences go on where no transaction can be aborted. Connections, time and correlation ids belong to the carrier of
the requests.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import FrozenMap, Value, absent_if_none
from kafka_proto import requests
from kafka_proto.log import MAX_SEQUENCE, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from kafka_proto.requests import Error


@attrs.frozen
class Family:
    """A client by the versions of its requests; the name of the real client is in `title`."""

    name: str
    title: str
    init_producer_id: int
    produce: int
    end_txn: int
    txn_offset_commit: int
    add_partitions: int
    add_offsets: int
    enable_2pc: bool | None = None
    """Its transactions have no time-out (`transaction.two.phase.commit.enable`, KIP-939)."""
    keep_prepared_txn: bool | None = None
    """It begins by keeping the transaction of a predecessor (`initTransactions(true)`, KIP-939)."""
    adds_again: bool = True
    """Whether an abort waits until partitions are added whose request timed out; librdkafka ends at once."""
    inits_again: bool = False
    """Whether it asks for a producer id until it has one, unless it is fenced or not allowed to: librdkafka does."""
    replaced_after: tuple[str, ...] = ()
    """Requests after whose time-out no other transaction begins: the application has to make another producer."""
    bumped_after: tuple[str, ...] = ()
    """Requests after whose time-out it asks for the next epoch, once the transaction has ended."""
    bumps_each: bool = False
    """Whether it asks for the next epoch once any transaction has ended."""

    @property
    def adds_partitions(self) -> bool:
        """Whether it adds partitions before it produces; from Produce 12 on their leaders do so (KIP-890)."""
        return self.produce < 12

    @property
    def ends_with_new_epoch(self) -> bool:
        """Whether each end of a transaction brings a new epoch (EndTxn from 5, KIP-890)."""
        return self.end_txn >= 5

    @property
    def bumps_epoch(self) -> bool:
        """Whether it goes on after an error by InitProducerId with its id and epoch (from 3, KIP-360)."""
        return self.init_producer_id >= 3


LIBRDKAFKA = Family("rdkafka", "librdkafka 2.16", 4, 9, 1, 3, 0, 0, adds_again=False, inits_again=True)
OF_TRANSACTIONS = (
    "AddPartitionsToTxnRequest", "AddOffsetsToTxnRequest", "TxnOffsetCommitRequest", "EndTxnRequest",
)
PROPOSED = tuple(
    attrs.evolve(LIBRDKAFKA, name=f"rdkafka-{name}", title=f"librdkafka that {title}", **rule)
    for name, title, rule in (
        ("end", "is replaced after EndTxn timed out", {"replaced_after": OF_TRANSACTIONS[-1:]}),
        ("all", "is replaced after any request of a transaction timed out", {"replaced_after": OF_TRANSACTIONS}),
        ("bump", "takes the next epoch after any of these timed out", {"bumped_after": OF_TRANSACTIONS}),
        ("each", "takes the next epoch after each transaction", {"bumps_each": True}),
    )
)
"""What librdkafka may do until it speaks KIP-890 part 2: the first is proposed in its issue 5423, the others are ours.

A request that timed out may still arrive in the next transaction. In another epoch it is refused: that of the producer
that takes its place, or one that it asks for itself (KIP-360).
"""
FAMILIES = {
    family.name: family
    for family in (
        Family("tv2", "Java from 4.0 and franz-go 1.22 on a cluster of transaction.version 2", 5, 12, 5, 5, 3, 4),
        Family("java39", "Java from 3.8 on a cluster of level 0 or 1", 5, 11, 4, 4, 3, 4),
        Family("java35", "Java 2.8 to 3.7, kafka-python 3.0", 4, 9, 3, 3, 3, 3),
        LIBRDKAFKA,
        *PROPOSED,
        Family("aiokafka", "aiokafka 0.14", 0, 7, 0, 0, 0, 0),
        Family("java23", "Java 2.1 to 2.3", 1, 7, 1, 2, 1, 1),
    )
}
"""By name. What each released one speaks was seen on the wire against released brokers, but for `java23`, which has the
newest versions of 2.3."""


TransactionalRequest = (
    requests.InitProducerIdRequest | requests.AddPartitionsToTxnRequest | requests.AddOffsetsToTxnRequest
    | requests.EndTxnRequest | requests.TxnOffsetCommitRequest
)


class ProducerStatus(StrEnum):
    """`TransactionManager.State`."""

    UNINITIALIZED = "UNINITIALIZED"
    INITIALIZING = "INITIALIZING"
    READY = "READY"
    IN_TRANSACTION = "IN_TRANSACTION"
    PREPARED_TRANSACTION = "PREPARED_TRANSACTION"
    COMMITTING_TRANSACTION = "COMMITTING_TRANSACTION"
    ABORTING_TRANSACTION = "ABORTING_TRANSACTION"
    ABORTABLE_ERROR = "ABORTABLE_ERROR"
    FATAL_ERROR = "FATAL_ERROR"


COMPLETING = (ProducerStatus.COMMITTING_TRANSACTION, ProducerStatus.ABORTING_TRANSACTION)
TRANSACTION_TIMEOUT_MS = 60_000


@attrs.frozen
class Batch:
    """A batch that is not resolved. Its number says which one it is, whatever sequence it has by now."""

    number: int
    partition: str
    records: tuple[Value, ...]
    base_sequence: int = NO_SEQUENCE
    producer_epoch: int = NO_PRODUCER_EPOCH
    in_flight: bool = False
    backs_off: bool = False
    is_renumbered: bool = False
    """It has another sequence than the one that it was last sent with (`sequenceHasBeenReset`)."""

    @property
    def was_sent(self) -> bool:
        """Whether a leader may have it."""
        return self.base_sequence != NO_SEQUENCE

    def after(self, sequence: int) -> int:
        """Return the sequence that follows the batch, if it has this one."""
        return (sequence + len(self.records)) % (MAX_SEQUENCE + 1)


@attrs.frozen
class Sequences:
    """How far the sequences of a partition are (`TxnPartitionEntry`), in an epoch of a producer id."""

    producer_id: int
    producer_epoch: int
    following: int = 0
    """That of the next new record."""
    acknowledged: int = NO_SEQUENCE
    unresolved: int = NO_SEQUENCE
    """What follows the last batch that timed out: a leader may have it or not. A transaction is aborted instead."""


@attrs.frozen
class PreparedTxnState:
    """What an application keeps of a transaction that it prepared (KIP-939)."""

    producer_id: int
    producer_epoch: int


@attrs.frozen
class TransactionalCall:
    """The transactional request under way; at most one. If it is not sent, it is to be sent again as it is."""

    request: TransactionalRequest
    is_sent: bool = False
    backs_off: bool = False


@attrs.frozen
class OffsetsToCommit:
    """What `send_offsets_to_transaction` was given: one partition's offset, for a group as its consumer knows it."""

    group_id: str
    partition: str
    offset: int
    generation_id: int = -1
    member_id: str = ""


@attrs.frozen
class Producer:
    """A producer; without a transactional id it only writes. Partitions are names, sorted."""

    transactional_id: str | None = None
    status: ProducerStatus = ProducerStatus.UNINITIALIZED
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_error: Error = Error.NONE
    needs_new_epoch: bool = False
    """After an abortable error: once the transaction is aborted, InitProducerId with id and epoch (KIP-360)."""
    sequences: FrozenMap[str, Sequences] = FrozenMap()
    """By partition."""
    new_partitions: tuple[str, ...] = ()
    """To be added to the transaction before anything is sent to them."""
    partitions: tuple[str, ...] = ()
    """Part of the transaction; for clients whose leaders add them, those that something was sent to."""
    batches: tuple[Batch, ...] = ()
    """Oldest first."""
    numbers: int = 0
    """How many batches there were."""
    offsets: tuple[OffsetsToCommit, ...] = ()
    groups: tuple[str, ...] = ()
    """Whose offsets partition was added to the transaction."""
    call: TransactionalCall | None = None
    is_in_doubt: bool = False
    """A request timed out that may still arrive, so that no other transaction may begin (`Family.replaced_after`)."""
    is_ended: bool = False
    """The end of the transaction was acknowledged, and a new epoch is still to be asked for."""
    prepared: PreparedTxnState | None = attrs.field(default=None, metadata=absent_if_none())
    """Of the transaction that can only be ended: its own, or one that was kept (KIP-939)."""

    @property
    def is_started(self) -> bool:
        """Whether a coordinator or leader may know of the transaction."""
        return bool(self.partitions or self.groups or self.prepared)

    def ready(self, producer_id: int, producer_epoch: int) -> Producer:
        """Return the producer with an id and epoch, and nothing under way but its batches."""
        return Producer(
            self.transactional_id, ProducerStatus.READY, producer_id, producer_epoch, batches=self.batches,
            numbers=self.numbers,
        )

    def batch(self, number: int) -> Batch | None:
        """Return the batch with a number, None if it is resolved."""
        return next((batch for batch in self.batches if batch.number == number), None)

    def with_batch(self, number: int, batch: Batch | None) -> Producer:
        """Return the producer with another batch of a number, or with none."""
        found = (batch if known.number == number else known for known in self.batches)
        return attrs.evolve(self, batches=tuple(known for known in found if known is not None))

    def sequences_of(self, partition: str) -> Sequences:
        """Return how far a partition is: anew where its id, or epoch, is of before and nothing of it is left."""
        known = self.sequences.get(partition)
        if known is None or (self.is_stale(known) and not self.sent_to(partition)):
            return Sequences(self.producer_id, self.producer_epoch)
        return known

    def with_sequences(self, partition: str, known: Sequences) -> Producer:
        return attrs.evolve(self, sequences=self.sequences.set(partition, known))

    def is_stale(self, known: Sequences) -> bool:
        return (known.producer_id, known.producer_epoch) != (self.producer_id, self.producer_epoch)

    def sent_to(self, partition: str) -> tuple[Batch, ...]:
        """Return the batches of a partition that were sent and are not resolved, oldest first."""
        return tuple(batch for batch in self.batches if batch.partition == partition and batch.was_sent)


class KafkaError(Exception):
    """Kafka's `KafkaException`: the transaction has to be aborted, or the producer closed."""


class ProducerFenced(KafkaError):
    """Another producer with the same transactional id was started; this one can only be closed."""


class IllegalState(Exception):
    """Java's `IllegalStateException`: the call makes no sense in the state that the producer is in."""


FENCING = (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
FENCED = "another producer with the same transactional id was started; close this one"


def init_transactions(producer: Producer) -> Producer:
    """Ask for a producer id and epoch, which fences whoever had the transactional id before."""
    _fail_if_error(producer)
    if producer.status is not ProducerStatus.UNINITIALIZED:
        raise IllegalState(f"init_transactions is called once, first; the producer is {_words(producer)}")
    return attrs.evolve(producer, status=ProducerStatus.INITIALIZING)


def begin_transaction(producer: Producer) -> Producer:
    """Begin a transaction; nothing is sent."""
    _fail_if_error(producer)
    _need(producer, "begin_transaction", ProducerStatus.READY, "init_transactions and the end of the last transaction")
    if producer.is_in_doubt:
        raise KafkaError("a request that timed out may still arrive; close the producer and make another")
    return attrs.evolve(producer, status=ProducerStatus.IN_TRANSACTION)


def send(producer: Producer, partition: str, *records: Value, adds_partitions: bool) -> Producer:
    """Write records to a partition, in one batch; with `adds_partitions` it is added to the transaction first."""
    known, new = producer.partitions, producer.new_partitions
    if producer.transactional_id is not None:
        _fail_if_error(producer)
        _need(producer, "send", ProducerStatus.IN_TRANSACTION, "begin_transaction")
        if not adds_partitions:
            known = tuple(sorted({*known, partition}))
        elif partition not in known:
            new = tuple(sorted({*new, partition}))
    batch = Batch(producer.numbers + 1, partition, records)
    return attrs.evolve(
        producer, batches=(*producer.batches, batch), numbers=batch.number, partitions=known, new_partitions=new
    )


def send_offsets_to_transaction(producer: Producer, offsets: OffsetsToCommit) -> Producer:
    """Commit a group's offset with the transaction."""
    _fail_if_error(producer)
    _need(producer, "send_offsets_to_transaction", ProducerStatus.IN_TRANSACTION, "begin_transaction")
    return attrs.evolve(producer, offsets=(*producer.offsets, offsets))


def commit_transaction(producer: Producer) -> Producer:
    """Send what is not sent yet, then commit."""
    _fail_if_error(producer)
    _need(producer, "commit_transaction", ProducerStatus.IN_TRANSACTION, "begin_transaction")
    return attrs.evolve(producer, status=ProducerStatus.COMMITTING_TRANSACTION)


def abort_transaction(producer: Producer) -> Producer:
    """Give up what was never sent, resolve what was, then abort (`RecordAccumulator.abortUndrainedBatches`)."""
    _fail_if_fatal(producer)
    if producer.status is not ProducerStatus.ABORTABLE_ERROR:
        _need(producer, "abort_transaction", ProducerStatus.IN_TRANSACTION, "begin_transaction")
    return attrs.evolve(
        producer, status=ProducerStatus.ABORTING_TRANSACTION, new_partitions=(), offsets=(),
        batches=tuple(batch for batch in producer.batches if batch.was_sent),
    )


def _fail_if_fatal(producer: Producer) -> None:
    if producer.status is ProducerStatus.FATAL_ERROR:
        if producer.last_error in FENCING:
            raise ProducerFenced(FENCED)
        raise KafkaError(f"the producer failed by {producer.last_error.value}; close it and make another")


def _fail_if_error(producer: Producer) -> None:
    _fail_if_fatal(producer)
    if producer.status is ProducerStatus.ABORTABLE_ERROR:
        raise KafkaError(f"the transaction failed by {producer.last_error.value}; call abort_transaction")


def _need(producer: Producer, command: str, status: ProducerStatus, first: str) -> None:
    if producer.status is not status:
        raise IllegalState(f"{command} is called after {first}; the producer is {_words(producer)}")


def _words(producer: Producer) -> str:
    return producer.status.value.lower().replace("_", " ")
