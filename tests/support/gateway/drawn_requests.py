"""Requests and sessions that Hypothesis draws: fields by the schemas of the messages, times, connections, faults."""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import cache
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from kafka_proto.gateway.codec import FORMATS, schema
from kafka_proto.gateway.inputs import OF_BROKERS, OF_REQUESTS, Arrived, Ended, Gone, Injected, Input, Opened, Passed
from kafka_proto.gateway.offer import Offer
from kafka_proto.gateway.records import WireRecord, write_batch
from support.gateway.wire import request_bytes

NAMES = ("t", "g", "app", "m", "consumer", "range", "u", "")
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "error_code": 16, "timedelta_i32": 32, "timedelta_i64": 64,
        "datetime_i64": 64}
PRODUCERS = ((-1, -1, -1), (0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))
BATCHES = tuple(write_batch([WireRecord(None, b"v")] * records, base_timestamp=5, is_transactional=producer >= 0,
                            producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
                for records in (1, 2) for producer, epoch, sequence in PRODUCERS)
REQUESTS = ("EndTxn", "Produce", "AddPartitionsToTxn", "InitProducerId", "Fetch", "JoinGroup")
BROKERS = 2


def numbers(kafka_type: str) -> st.SearchStrategy[Any]:
    """Return numbers of a type: mostly such as mean something."""
    if kafka_type == "bool":
        return st.booleans()
    if kafka_type == "float64":
        return st.just(0.0)
    if kafka_type not in BITS:
        return st.integers(0, 2 ** int(kafka_type[4:]) - 1)
    bits = BITS[kafka_type]
    return st.sampled_from((-1, 0, 1, 2, 5, 100)) | st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@cache
def values(kafka_type: str, name: str) -> st.SearchStrategy[Any]:
    """Return values of a field."""
    if kafka_type in FORMATS:
        return numbers(kafka_type)
    if kafka_type == "uuid":
        return st.just(UUID(int=0))
    if kafka_type == "string":
        return st.sampled_from(NAMES) | st.text(st.characters(codec="utf-8"), max_size=4)
    return st.sampled_from(BATCHES) | st.binary(max_size=24)


@cache
def fields(cls: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Return messages, or structures inside them, of one of kio's classes."""
    hints, found = typing.get_type_hints(cls), {}
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        options = [hint] if not isinstance(hint, types.UnionType) else [
            option for option in typing.get_args(hint) if option is not type(None)]
        inner, is_nullable = options[0], isinstance(hint, types.UnionType)
        is_array = typing.get_origin(inner) is tuple
        item = typing.get_args(inner)[0] if is_array else inner
        kafka_type = field.metadata.get("kafka_type")
        each = fields(item) if kafka_type is None else values(kafka_type, field.name)
        if is_array:
            each = st.lists(each, max_size=3).map(tuple)
        may_be_null = is_nullable and (is_array or kafka_type not in FORMATS) and kafka_type != "uuid"
        found[field.name] = st.none() | each if may_be_null else each
    return st.fixed_dictionaries(found)


@cache
def requests(offer: Offer) -> st.SearchStrategy[bytes]:
    """Return whole requests of all that is offered, and bytes that are none."""
    offered = [(api, version) for api, (first, last) in offer.ranges.items() for version in range(first, last + 1)]
    by_schema = st.sampled_from(offered).flatmap(lambda asked: fields(schema("request", *asked)).map(
        lambda message: request_bytes(*asked, message)))
    return st.one_of(by_schema, by_schema, by_schema, st.binary(max_size=64).map(
        lambda data: len(data).to_bytes(4, "big") + data))


def session(offer: Offer, most: int) -> st.SearchStrategy[list[Input]]:
    """Return sessions of some connections that may come and go, each input later than the one before or as late."""

    def input_of(drawn: tuple[int, int, int, bytes, int]) -> list[Input]:
        kind, connection, passed, data, number = drawn
        if kind == 0:
            return [Gone(connection, passed), Opened(connection, passed, 1 + number % BROKERS)]
        if kind == 1:
            return [Passed(passed)]
        if kind == 2:
            return [Injected(number, OF_REQUESTS[number % 4], passed, REQUESTS[number % 6], number % 3,
                             for_ms=None if number % 2 else 100)]
        if kind == 3:
            return [Injected(number, (*OF_BROKERS, "elect")[number % 4], passed, broker=1 + number % BROKERS,
                             for_ms=500)]
        if kind == 4:
            return [Ended(number, passed)]
        return [Arrived(connection, data, passed)]

    step = st.tuples(st.integers(0, 29), st.integers(0, 2), st.sampled_from((0, 0, 0, 1, 100, 5_000)), requests(offer),
                     st.integers(0, 23)).map(input_of)
    return st.lists(step, min_size=most // 2, max_size=most).map(
        lambda steps: [given for each in steps for given in each])
