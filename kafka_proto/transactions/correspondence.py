"""How the specs call what Kafka and the actors call otherwise: one table, for specs, refinement and docs.

A class of the specs is one of Kafka's whose fields have the names that they have in the TLA+: its values are written
so, and decisions take both. Who constructs or changes one says Kafka's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, TypeVar

import attrs

from harness.model import Value
from kafka_proto.replication.known import LeaderAndEpoch
from kafka_proto.transactions import messages, records
from kafka_proto.transactions.messages import Error

T = TypeVar("T")

FIELDS: Mapping[str, str] = {
    "transactional_id": "tid",
    "producer_id": "pid",
    "last_producer_id": "last_pid",
    "producer_epoch": "pepoch",
    "last_producer_epoch": "last_pepoch",
    "leader_epoch": "cepoch",
    "coordinator": "tc",
    "error": "code",
    "ClientRecord.producer_epoch": "epoch",
}
"""Kafka's names of fields, and the specs'."""
CLASSES: dict[type, type] = {}
"""Kafka's classes, and the specs': those below."""


def of_the_specs(cls: type[T]) -> type[T]:
    """Make a class of the specs: its fields are those of the class that it inherits from, under the specs' names."""
    of_kafka = cls.__bases__[0]
    fields = [field.name for field in attrs.fields(of_kafka)]
    own = {name: FIELDS.get(f"{cls.__name__}.{name}", FIELDS.get(name, name)) for name in fields}

    def renamed(_: type, fields: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
        return [
            field if own[field.name] == field.name
            else field.evolve(name=own[field.name], alias=field.name, inherited=False) for field in fields
        ]

    made = attrs.frozen(cls, field_transformer=renamed)
    for name in fields:
        if own[name] != name:
            setattr(made, name, made.__dict__[own[name]])
    CLASSES[of_kafka] = made
    return made


@of_the_specs
class InitPidRequest(messages.InitProducerIdRequest):
    tid: ClassVar[str]


@of_the_specs
class InitPidResponse(messages.InitProducerIdResponse):
    code: ClassVar[Error]
    pid: ClassVar[int]
    pepoch: ClassVar[int]


@of_the_specs
class AddPartitionsToTxnRequest(messages.AddPartitionsToTxnRequest):
    tid: ClassVar[str]
    pid: ClassVar[int]
    pepoch: ClassVar[int]


@of_the_specs
class AddPartitionsToTxnResponse(messages.AddPartitionsToTxnResponse):
    code: ClassVar[Error]


@of_the_specs
class TxnMetadata(records.TransactionMetadata):
    pid: ClassVar[int]
    pepoch: ClassVar[int]


@of_the_specs
class Entry(records.Entry):
    tid: ClassVar[str]


@of_the_specs
class LogMetadata(LeaderAndEpoch):
    cepoch: ClassVar[int]


@of_the_specs
class ClientRecord(records.ClientRecord):
    tc: ClassVar[str | None]
    tid: ClassVar[str | None]
    pid: ClassVar[int]
    epoch: ClassVar[int]


Request = InitPidRequest | AddPartitionsToTxnRequest
Response = InitPidResponse | AddPartitionsToTxnResponse
NAMES: Mapping[str, str] = {of_kafka.__name__: own.__name__ for of_kafka, own in CLASSES.items()}
"""Kafka's names of classes, and the specs'."""


def of_actors(action: str) -> str:
    """Return what actors call an action of the specs that sends or receives a message."""
    named = (action.replace(own, name) for name, own in NAMES.items() if action.endswith(own))
    return next(named, action)


TYPES = tuple(CLASSES.get(cls, cls) for cls in (*records.TYPES, records.Entry))
"""What occurs in the states and messages of the specs."""
KEPT = frozenset({str, int, bool, type(None), *CLASSES.values()})
"""Types whose values are the specs' already."""


def in_spec(value: Value, **fields: Value) -> Value:
    """Return a value, or what was decided, with the specs' records for Kafka's; `fields` are what differs in it.

    Those have Kafka's names, and their values the specs' records already.
    """
    if isinstance(value, tuple):
        return tuple([in_spec(item) for item in value])
    form = _form(value.__class__)
    if form is None:
        return value
    made, names = form
    for alias, name in names:
        if alias not in fields:
            item = getattr(value, name)
            fields[alias] = item if type(item) in KEPT else in_spec(item)
    if made is records.Callback:
        fields["type"] = NAMES.get(value.type, value.type)
    return made(**fields)


@cache
def _form(kind: type) -> tuple[type, tuple[tuple[str, str], ...]] | None:
    """Return the specs' record for one of Kafka's, and its fields: as it is made, and in Kafka's. None for all else."""
    try:
        fields = attrs.fields(kind)
    except attrs.exceptions.NotAnAttrsClassError:
        return None
    return CLASSES.get(kind, kind), tuple((field.alias or field.name, field.name) for field in fields)
