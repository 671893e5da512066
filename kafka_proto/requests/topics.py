"""What an operator asks about topics, as far as transactions see it: one topic at a time, by name."""

from __future__ import annotations

import attrs

from kafka_proto.errors import Error


@attrs.frozen
class CreateTopicsRequest:
    version: int
    topic: str
    partitions: int


@attrs.frozen
class CreateTopicsResponse:
    error: Error


@attrs.frozen
class DeleteTopicsRequest:
    version: int
    topic: str


@attrs.frozen
class DeleteTopicsResponse:
    error: Error
