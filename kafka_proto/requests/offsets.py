"""What consumers and producers ask of a group coordinator about offsets: one partition's at a time."""

from __future__ import annotations

import attrs

from harness.model import absent_if_none
from kafka_proto.errors import Error
from kafka_proto.requests.groups import NO_GENERATION, UNKNOWN_MEMBER


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
