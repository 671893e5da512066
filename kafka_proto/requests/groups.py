"""What members and producers ask of a group coordinator: the classic protocol (KIP-345, KIP-394), and offsets."""

from __future__ import annotations

import attrs

from harness.model import absent_if_none
from kafka_proto.errors import Error

NO_GENERATION = -1
UNKNOWN_MEMBER = ""


@attrs.frozen
class JoinGroupRequest:
    version: int
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    """From version 1; before that it is the session's."""
    member_id: str
    group_instance_id: str | None
    """From version 5."""
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    """Name and metadata of each, the preferred one first."""
    client_id: str = ""
    """Of the request's header."""


@attrs.frozen
class JoinGroupResponse:
    error: Error
    member_id: str = UNKNOWN_MEMBER
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = UNKNOWN_MEMBER
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """To the leader: each member's id, instance, and metadata for the chosen protocol."""
    skip_assignment: bool = False
    """Whether a leader that has come back is to assign nothing (KIP-814)."""


@attrs.frozen
class SyncGroupRequest:
    version: int
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    """From version 5, as `protocol_name`."""
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()
    """Of the leader: each member's id and assignment."""


@attrs.frozen
class SyncGroupResponse:
    error: Error
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@attrs.frozen
class HeartbeatRequest:
    version: int
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@attrs.frozen
class HeartbeatResponse:
    error: Error


@attrs.frozen
class MemberIdentity:
    """A member that leaves: by its id, or by its instance alone."""

    member_id: str
    group_instance_id: str | None = None


@attrs.frozen
class MemberResponse:
    """What becomes of a member that leaves."""

    member_id: str
    group_instance_id: str | None
    error: Error


@attrs.frozen
class LeaveGroupRequest:
    """Versions before 3 have one member, without instance."""

    version: int
    group_id: str
    members: tuple[MemberIdentity, ...]


@attrs.frozen
class LeaveGroupResponse:
    error: Error
    """Before version 3 that of the only member."""
    members: tuple[MemberResponse, ...] = ()
    """From version 3."""


@attrs.frozen
class OffsetCommitRequest:
    version: int
    group_id: str
    partition: str
    offset: int
    generation_id: int = NO_GENERATION
    member_id: str = UNKNOWN_MEMBER
    group_instance_id: str | None = None
    leader_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())
    metadata: str | None = attrs.field(default=None, metadata=absent_if_none())
    topic_id: bytes | None = attrs.field(default=None, metadata=absent_if_none())
    """Of the partition's topic, where the log of offsets has it (from 4.1)."""


@attrs.frozen
class OffsetCommitResponse:
    error: Error


@attrs.frozen
class TxnOffsetCommitRequest:
    """Versions before 3 have no member, generation or instance (KIP-447)."""

    version: int
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    partition: str
    offset: int
    generation_id: int = NO_GENERATION
    member_id: str = UNKNOWN_MEMBER
    group_instance_id: str | None = None
    leader_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())
    metadata: str | None = attrs.field(default=None, metadata=absent_if_none())
    topic_id: bytes | None = attrs.field(default=None, metadata=absent_if_none())


@attrs.frozen
class TxnOffsetCommitResponse:
    error: Error


@attrs.frozen
class OffsetFetchRequest:
    version: int
    group_id: str
    partition: str
    require_stable: bool = False
    """From version 7 (KIP-447)."""


@attrs.frozen
class OffsetFetchResponse:
    error: Error
    partition_error: Error = Error.NONE
    committed_offset: int = -1
    leader_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())
    metadata: str | None = attrs.field(default=None, metadata=absent_if_none())


@attrs.frozen
class DeleteGroupRequest:
    """One group with all its offsets (Kafka's request may name several)."""

    version: int
    group_id: str


@attrs.frozen
class DeleteGroupResponse:
    error: Error


@attrs.frozen
class OffsetDeleteRequest:
    """A group's offset of one partition (KIP-496)."""

    version: int
    group_id: str
    partition: str


@attrs.frozen
class OffsetDeleteResponse:
    error: Error


@attrs.frozen
class ConsumerGroupHeartbeatRequest:
    """A member of a consumer group joins, goes on or leaves (KIP-848). What has not changed may be left out."""

    version: int
    group_id: str
    member_id: str
    member_epoch: int
    """0 to join, -1 to leave, -2 if an instance will come back."""
    instance_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    """From version 1."""
    server_assignor: str | None = None
    owned: tuple[str, ...] | None = None
    """The partitions that it has not given up."""
    client_id: str = ""
    """Of the request's header."""


@attrs.frozen
class ConsumerGroupHeartbeatResponse:
    error: Error
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: tuple[str, ...] | None = None
    """The partitions that the member may have, if they are others than before."""
