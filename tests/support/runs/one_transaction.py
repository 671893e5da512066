"""A coordinator that has one transaction, `tid`, and is asked about it."""

from __future__ import annotations

from typing import Any

from harness.model import FrozenMap
from kafka_proto.broker.coordinator import coordinator as role
from kafka_proto.broker.coordinator.coordinator import Coordinator
from kafka_proto.broker.coordinator.transaction import (
    Answer,
    Block,
    CachedTransaction,
    ProducerIds,
    TransactionMetadata,
    TransactionRecord,
    TxnState,
)
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.requests import Error, InitProducerIdRequest

INIT = InitProducerIdRequest(4, "tid", 60_000)
ONGOING = TransactionMetadata(7, TxnState.ONGOING, 3, partitions=("T-0",), timeout_ms=50, start_timestamp=0)
IDS = ProducerIds(Block(1000, 10))


def coordinator(metadata: TransactionMetadata, pending: TxnState | None = None, **changes: Any) -> Coordinator:
    """Return a coordinator of one transaction."""
    return Coordinator(FrozenMap({"tid": CachedTransaction(metadata, pending)}), **{"ids": IDS, **changes})


def ask(version: BrokerVersion, state: Coordinator, request: Any) -> role.Step:
    """Let a coordinator receive a request."""
    return role.receive(version.coordinator, state, request, now=100)


def error_of(step: role.Step) -> Error:
    """Return the code of the one answer."""
    (answer,) = [effect for effect in step[1] if isinstance(effect, Answer)]
    return answer.error


def entry_of(step: role.Step) -> TransactionMetadata:
    """Return what is logged, where nothing else follows."""
    (logged,) = step[1]
    assert isinstance(logged, TransactionRecord) and logged.entry is not None
    return logged.entry
