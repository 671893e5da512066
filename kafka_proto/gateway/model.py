"""The model `gateway`: a host whose every step is an input from outside, so that trails can be replayed and verified.

A step's name has its input and, in hexadecimal, the beginning of the SHA-256 of the outputs: a replay that would send
clients other bytes is refused at that step.
"""

from __future__ import annotations

import hashlib
import types
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import attrs

from harness.model import (
    Faults,
    Kind,
    Model,
    Network,
    Process,
    Refusal,
    Step,
    Value,
    View,
    canonical_bytes,
)
from kafka_proto.broker.ghosts import Cause, SentRecords
from kafka_proto.broker.group.coordinator import GroupMetadata, OffsetRecord
from kafka_proto.gateway import inputs
from kafka_proto.gateway.client_view import SessionView
from kafka_proto.gateway.codec import api_name
from kafka_proto.gateway.inputs import Fronted, Input, Output, Settings, Started
from kafka_proto.gateway.internal_records import CleanedRecord
from kafka_proto.gateway.observed import Observed
from kafka_proto.gateway.properties import Brokers, properties
from kafka_proto.gateway.shown import logs
from kafka_proto.gateway.story import ToldFront, ToldHost, ToldProxy
from kafka_proto.log.chunks import NOTHING, Chunks

NAME = "gateway"
DIGITS = 12


@attrs.frozen
class Slots:
    """The state of a session, slot by slot: what came, from which all the rest is made."""

    inputs: Chunks[Input] = NOTHING
    observed: Observed = Observed()
    brokers: Brokers = Brokers()


SLOTS = tuple(field.name for field in attrs.fields(Slots))


def slots_of(inputs: Chunks[Input], host: ToldFront) -> Slots:
    """Return a host that has taken some inputs as a value."""
    return Slots(inputs, host.observed, host.brokers)


def started(given: Started | Fronted) -> ToldFront:
    """Return the host that a session starts with. Raises Refusal for an unknown release or level."""
    try:
        host = (ToldProxy(given) if isinstance(given, Fronted) else
                ToldHost(given.settings, given.topics, given.now))
    except ValueError as error:
        raise Refusal(str(error)) from None
    host.begun(given)
    return host


def host_of(inputs: Chunks[Input]) -> ToldFront:
    """Return a host that has taken some inputs."""
    first = inputs[0]
    assert isinstance(first, Started | Fronted)
    host = started(first)
    for given in inputs.between(1, len(inputs)):
        host.take(given)
    return host


def step_name(given: Input, outputs: Iterable[Output]) -> tuple[str, tuple[str, ...]]:
    """Return action and arguments of an input: its subject, and a digest of what is to be done, if anything."""
    about: tuple[str, ...] = ()
    if isinstance(given, inputs.Opened | inputs.Arrived | inputs.Gone | inputs.Replied):
        about = (f"c{given.connection}",)
    elif isinstance(given, inputs.Learned):
        about = (api_name(given.api_key, given.version),)
    elif isinstance(given, inputs.Injected | inputs.Ended):
        about = (f"f{given.number}",)
    done = tuple(outputs)
    digest = (hashlib.sha256(canonical_bytes(done)).hexdigest()[:DIGITS],) if done else ()
    return type(given).__name__, (*about, *digest)


class Gateway(Process):
    """The host as a process: input from outside is all that it does."""

    name = NAME

    def __init__(self) -> None:
        self._last: tuple[Chunks[Input], ToldFront] = NOTHING, ToldHost(Settings(), {})
        """A host and its inputs so far: a replay goes on with it, where another one has to take all again."""

    def outside(self, view: View, value: Value) -> Iterable[Step]:
        """Yield what an input makes of the state; none if the cluster is not started, or is so already."""
        inputs: Chunks[Input] = view["inputs"]
        if not isinstance(value, typing.get_args(Input)) or (len(inputs) == 0) != isinstance(value, Started | Fronted):
            return
        outputs: list[Output] = []
        if isinstance(value, Started | Fronted):
            host = started(value)
        else:
            is_last = self._last[0] is inputs or self._last[0] == inputs
            host = self._last[1] if is_last else host_of(inputs)
            outputs = host.take(value)
        assert host.taken is not None
        told = host.taken.telling
        after = slots_of(inputs.add(value), host)
        self._last = after.inputs, host
        writes = tuple((name, getattr(after, name)) for name in SLOTS if getattr(after, name) != view[name])
        action, args = step_name(value, outputs)
        yield Step(action, args, writes, detail=", ".join(host.said), kind=Kind.INPUT, told=told)


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
) -> Model:
    """Build the model, of a cluster that is not started."""
    start = Slots()
    return Model(
        NAME, (Gateway(),), ({name: getattr(start, name) for name in SLOTS},), network, faults, properties(),
        sizes=sizes, settings=settings, logs=logs, tells=True, client_view=lambda: SessionView(started),
        types=types_in(Slots, OffsetRecord, GroupMetadata, CleanedRecord, SentRecords, Cause, *typing.get_args(Input)),
    )


@cache
def types_in(*classes: type) -> tuple[type, ...]:
    """Return the attrs classes that occur in values of some classes, by their annotations."""
    found: dict[type, None] = {}
    waiting: list[Any] = list(classes)
    while waiting:
        each = waiting.pop()
        if typing.get_origin(each) is not None or isinstance(each, types.UnionType):
            waiting += typing.get_args(each)
            each = typing.get_origin(each)
        if isinstance(each, type) and attrs.has(each) and each not in found:
            found[each] = None
            waiting += typing.get_type_hints(each).values()
    return tuple(sorted(found, key=lambda cls: cls.__name__))

