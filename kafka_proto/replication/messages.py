"""Messages of the replication protocol among actors.

Names are Kafka's; a consumer's fetch is a `Poll`. `partition` says which partition a message is about where a broker
hosts several, and is absent where there is one. A broker epoch says how often a broker was started again.
"""

from __future__ import annotations

import attrs

from harness.model import FrozenMap, Message, Value, absent_if_none, fresh, ordered
from kafka_proto.errors import Error
from kafka_proto.log.chunks import Chunks
from kafka_proto.replication.records import Isr, ReplicaEntry
from kafka_proto.replication.truncation import EpochEnd


@attrs.frozen
class PartitionMessage(Message):
    """A message about a partition."""

    partition: str | None = attrs.field(default=None, metadata=absent_if_none(), kw_only=True)


@attrs.frozen
class LeaderAndIsrRequest(PartitionMessage):
    """The controller tells a replica the leader (None: no leader), its epoch, and the ISR."""

    leader: str | None
    leader_epoch: int
    isr: Isr
    partition_epoch: int
    broker_epoch: int = attrs.field(metadata=ordered("broker_epoch", "dest"))
    """Of the receiver: a replica that was started again meanwhile does not obey."""
    again: bool = False
    """Whether it was sent before, so that the controller wants to hear that it arrived."""


@attrs.frozen
class LeaderAndIsrResponse(PartitionMessage):
    """A replica has heard of a leader epoch."""

    leader_epoch: int
    broker_epoch: int = attrs.field(metadata=ordered("broker_epoch", "source"))


@attrs.frozen
class BrokerRegistrationRequest(PartitionMessage):
    """A replica that was started again tells its new broker epoch."""

    broker_epoch: int = attrs.field(metadata=ordered("broker_epoch", "source"))


@attrs.frozen
class FetchRequest(PartitionMessage):
    """A follower asks for the record at its end offset, and so tells what it holds."""

    fetch_offset: int
    current_leader_epoch: int
    """That the follower is in; it matters to KIP-320 only."""
    last_fetched_epoch: int
    """Of the record below `fetch_offset`; it matters to the first try at KIP-320 only."""
    high_watermark: int
    """That the follower knows (KIP-1166): the leader answers when it has something newer."""
    broker_epoch: int = attrs.field(metadata=ordered("broker_epoch", "source"))
    correlation: int = attrs.field(metadata=ordered("fetch", "source", "partition", "broker_epoch"))
    log_start_offset: int | None = attrs.field(default=None, metadata=absent_if_none())
    """Of a follower that has forgotten the beginning of its log."""


@attrs.frozen
class FetchResponse(PartitionMessage):
    """The next record, or none if only the high watermark is new, or an error."""

    error: Error
    entry: ReplicaEntry | None
    high_watermark: int
    broker_epoch: int = attrs.field(metadata=ordered("broker_epoch", "dest"))
    correlation: int = attrs.field(metadata=ordered("fetch", "dest", "partition", "broker_epoch"))
    diverging_epoch: EpochEnd | None = attrs.field(default=None, metadata=absent_if_none())
    """With DIVERGING_EPOCH: what the leader has of the follower's last epoch."""
    gone: Chunks[ReplicaEntry] | None = attrs.field(default=None, metadata=absent_if_none())
    """What the leader has forgotten, if that is more than the follower has: their log begins after it."""
    more: tuple[ReplicaEntry, ...] | None = attrs.field(default=None, metadata=absent_if_none())
    """The records behind that one, on brokers that run."""


@attrs.frozen
class OffsetsForLeaderEpochRequest(PartitionMessage):
    """A new follower asks where the leader's log leaves an epoch."""

    leader_epoch: int
    current_leader_epoch: int
    """Of the LeaderAndIsrRequest that is being obeyed; it matters to KIP-320 only."""
    broker_epoch: int = attrs.field(metadata=ordered("broker_epoch", "source"))
    correlation: int = attrs.field(metadata=ordered("fetch", "source", "partition", "broker_epoch"))


@attrs.frozen
class OffsetsForLeaderEpochResponse(PartitionMessage):
    """The answer; None if the leader's log cannot tell (KIP-101)."""

    error: Error
    answer: EpochEnd | None
    broker_epoch: int = attrs.field(metadata=ordered("broker_epoch", "dest"))
    correlation: int = attrs.field(metadata=ordered("fetch", "dest", "partition", "broker_epoch"))


@attrs.frozen
class AlterPartitionRequest(PartitionMessage):
    """A leader proposes an ISR to the controller (KIP-497), and says which broker epochs it means (KIP-903)."""

    leader_epoch: int
    new_isr: Isr
    partition_epoch: int
    """The partition epoch that the proposal replaces."""
    broker_epochs: FrozenMap[str, int] = attrs.field(metadata=ordered("broker_epoch", "key"))


@attrs.frozen
class AlterPartitionResponse(PartitionMessage):
    """What the controller made of a proposal, and what holds now."""

    error: Error
    leader_epoch: int
    isr: Isr
    partition_epoch: int
    proposed: int
    """The partition epoch of the proposal that is answered."""
    refused: FrozenMap[str, int] | None = attrs.field(
        default=None, metadata=absent_if_none() | ordered("broker_epoch", "key")
    )
    """The broker epochs of a proposal that is refused for them, which tell it from another one for the same epoch."""


@attrs.frozen
class ProduceRequest(PartitionMessage):
    """A client wants a record appended; `acks` is `all` or `1`."""

    value: Value
    acks: str
    correlation: int = attrs.field(metadata=fresh("produce", "source"))


@attrs.frozen
class ProduceResponse(PartitionMessage):
    """The offset of the record, or the error; and another replica to ask instead."""

    error: Error
    base_offset: int
    correlation: int = attrs.field(metadata=fresh("produce", "dest"))
    current_leader: str | None = None


@attrs.frozen
class Poll(PartitionMessage):
    """A consumer wants the record at an offset."""

    offset: int
    correlation: int


@attrs.frozen
class PollResponse(PartitionMessage):
    """The record, or none if the high watermark is not above the offset; and another replica to ask instead."""

    error: Error
    entry: ReplicaEntry | None
    high_watermark: int
    leader_epoch: int
    correlation: int
    leader: str | None = None


OF_REPLICAS: tuple[type, ...] = (
    LeaderAndIsrRequest, LeaderAndIsrResponse, BrokerRegistrationRequest, FetchRequest, FetchResponse,
    OffsetsForLeaderEpochRequest, OffsetsForLeaderEpochResponse, AlterPartitionRequest, AlterPartitionResponse,
    EpochEnd, ReplicaEntry,
)
"""Those that replicas and the controller send each other, with what is in them."""
TYPES: tuple[type, ...] = (*OF_REPLICAS, ProduceRequest, ProduceResponse, Poll, PollResponse)
