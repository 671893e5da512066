"""The classes that occur in the states and messages of the transaction models, for reading recorded values back."""

from __future__ import annotations

from kafka_proto.transactions import messages, records
from kafka_proto.transactions.correspondence import CLASSES

TYPES: tuple[type, ...] = (
    messages.InitProducerIdRequest,
    messages.InitProducerIdResponse,
    messages.AddPartitionsToTxnRequest,
    messages.AddPartitionsToTxnResponse,
    records.TransactionMetadata,
    records.Callback,
    records.LeaderAndEpoch,
    records.ClientRecord,
)
"""Those of actors, whatever their log is."""
SPEC_TYPES = tuple(CLASSES.get(cls, cls) for cls in (*TYPES, records.Entry))
