"""Answers with an error that a test asks for: the broker does nothing, and says that of the whole request.

A handler gets the error from each thing that it asks of a broker. What is only looked up has it in all its error codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model import FrozenMap
from kafka_proto import requests
from kafka_proto.errors import BY_NAME
from kafka_proto.gateway.apis import TABLE
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import AskedBroker, Closing, Waits, code
from kafka_proto.requests import Error

CHANGING = (
    "CreateTopics", "DeleteTopics", "AlterConfigs", "IncrementalAlterConfigs", "CreatePartitions", "ElectLeaders",
    "ApiVersions",
)
"""What is done before it is answered, or has to be answered as it is."""


def no_answer(name: str, error: str) -> str | None:
    """Return why requests of a name cannot be answered with an error; None if they can."""
    if name in CHANGING:
        return f"{name} cannot be answered with an error here; drop it, or lose its answer"
    known = BY_NAME.get(error)
    if known is None or known.number in (None, 0) or known.name != error:
        return f"{error!r} is no error code of Kafka's; expected its name, as NOT_COORDINATOR"
    return None


def with_error(here: AskedBroker, request: WireRequest, error: Error) -> Fields | None:
    """Return the response to a request with an error in place of what the broker would do.

    None: the connection is closed instead, as nothing is answered to acks=0.
    """
    handling, is_asked = TABLE[request.api_key](here, request), False
    answers: tuple[Any, ...] | None = None
    while True:
        try:
            wanted = next(handling) if answers is None else handling.send(answers)
        except StopIteration as done:
            found: Fields = done.value if is_asked else _everywhere(done.value, code(error.value))
            return found
        except Closing:
            return None
        if isinstance(wanted, Waits):
            raise AssertionError("an answer with an error does not wait")
        is_asked, answers = True, tuple(_refused(one, error) for one in wanted)


def _refused(request: Any, error: Error) -> Any:
    response = getattr(requests, f"{type(request).__name__.removesuffix('Request')}Response")
    if response in (requests.AddPartitionsToTxnResponse, requests.WriteTxnMarkersResponse):
        return response(FrozenMap({p: error for p in request.partitions}))
    return response(error)


def _everywhere(value: Any, number: int) -> Any:
    """Return fields with this number as each of their error codes."""
    if isinstance(value, Mapping):
        return {name: number if name == "error_code" else _everywhere(each, number) for name, each in value.items()}
    return tuple(_everywhere(each, number) for each in value) if isinstance(value, tuple) else value
