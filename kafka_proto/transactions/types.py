"""The classes that occur in the states and messages of the transaction models, for reading recorded values back."""

from __future__ import annotations

from kafka_proto.transactions import messages, records

TYPES: tuple[type, ...] = (
    messages.InitPidRequest,
    messages.InitPidResponse,
    messages.AddPartitionsToTxnRequest,
    messages.AddPartitionsToTxnResponse,
    records.TxnMetadata,
    records.Callback,
    records.Entry,
    records.LogMetadata,
    records.ClientRecord,
)
