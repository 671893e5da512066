"""Kafka's requests and responses as plain frozen values, each request with its API `version`.

A broker decides per request version, not per cluster, so the version is part of the value. Names are those of Kafka's
message definitions in snake_case. The conformance files, the actors' messages and a codec of the wire map onto these
classes; nothing here decides, and nothing here knows bytes.
"""

from kafka_proto.requests.error import Error
from kafka_proto.requests.names import (
    GROUP_TOPIC,
    INTERNAL_TOPICS,
    OFFSETS_PARTITION,
    TRANSACTION_PARTITION,
    TRANSACTION_TOPIC,
    is_internal,
    partition_index,
    partition_name,
    topic_of,
)
from kafka_proto.requests.offsets import (
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kafka_proto.requests.records import (
    ConsumerFetchRequest,
    ConsumerFetchResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    IsolationLevel,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka_proto.requests.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafka_proto.requests.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    CoordinatorRequest,
    CoordinatorResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

__all__ = [
    "GROUP_TOPIC", "INTERNAL_TOPICS", "OFFSETS_PARTITION", "TRANSACTION_PARTITION", "TRANSACTION_TOPIC",
    "AddOffsetsToTxnRequest", "AddOffsetsToTxnResponse", "AddPartitionsToTxnRequest", "AddPartitionsToTxnResponse",
    "ConsumerFetchRequest", "ConsumerFetchResponse",
    "CoordinatorRequest", "CoordinatorResponse", "CreateTopicsRequest", "CreateTopicsResponse",
    "DeleteRecordsRequest", "DeleteRecordsResponse", "DeleteTopicsRequest", "DeleteTopicsResponse",
    "DescribeTransactionsRequest", "DescribeTransactionsResponse", "EndTxnRequest", "EndTxnResponse", "Error",
    "InitProducerIdRequest", "InitProducerIdResponse", "IsolationLevel", "JoinGroupRequest", "JoinGroupResponse",
    "LeaveGroupRequest", "LeaveGroupResponse", "ListOffsetsRequest", "ListOffsetsResponse", "ListTransactionsRequest",
    "ListTransactionsResponse", "OffsetCommitRequest", "OffsetCommitResponse", "OffsetFetchRequest",
    "OffsetFetchResponse", "ProduceRequest", "ProduceResponse", "TxnOffsetCommitRequest", "TxnOffsetCommitResponse",
    "WriteTxnMarkersRequest", "WriteTxnMarkersResponse", "is_internal", "partition_index", "partition_name", "topic_of",
]
