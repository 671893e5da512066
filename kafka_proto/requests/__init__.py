"""Kafka's requests and responses as plain frozen values, each request with its API `version`.

A broker decides per request version, not per cluster, so the version is part of the value. Names are those of Kafka's
message definitions in snake_case. The conformance files, the actors' messages and a codec of the wire map onto these
classes; nothing here decides, and nothing here knows bytes.
"""

from kafka_proto.errors import Error as Error
from kafka_proto.requests.groups import HeartbeatRequest as HeartbeatRequest
from kafka_proto.requests.groups import HeartbeatResponse as HeartbeatResponse
from kafka_proto.requests.groups import JoinGroupRequest as JoinGroupRequest
from kafka_proto.requests.groups import JoinGroupResponse as JoinGroupResponse
from kafka_proto.requests.groups import LeaveGroupRequest as LeaveGroupRequest
from kafka_proto.requests.groups import LeaveGroupResponse as LeaveGroupResponse
from kafka_proto.requests.groups import MemberIdentity as MemberIdentity
from kafka_proto.requests.groups import MemberResponse as MemberResponse
from kafka_proto.requests.groups import SyncGroupRequest as SyncGroupRequest
from kafka_proto.requests.groups import SyncGroupResponse as SyncGroupResponse
from kafka_proto.requests.names import GROUP_TOPIC as GROUP_TOPIC
from kafka_proto.requests.names import INTERNAL_TOPICS as INTERNAL_TOPICS
from kafka_proto.requests.names import OFFSETS_PARTITION as OFFSETS_PARTITION
from kafka_proto.requests.names import TRANSACTION_PARTITION as TRANSACTION_PARTITION
from kafka_proto.requests.names import TRANSACTION_TOPIC as TRANSACTION_TOPIC
from kafka_proto.requests.names import is_internal as is_internal
from kafka_proto.requests.names import partition_index as partition_index
from kafka_proto.requests.names import partition_name as partition_name
from kafka_proto.requests.names import topic_of as topic_of
from kafka_proto.requests.offsets import OffsetCommitRequest as OffsetCommitRequest
from kafka_proto.requests.offsets import OffsetCommitResponse as OffsetCommitResponse
from kafka_proto.requests.offsets import OffsetFetchRequest as OffsetFetchRequest
from kafka_proto.requests.offsets import OffsetFetchResponse as OffsetFetchResponse
from kafka_proto.requests.offsets import TxnOffsetCommitRequest as TxnOffsetCommitRequest
from kafka_proto.requests.offsets import TxnOffsetCommitResponse as TxnOffsetCommitResponse
from kafka_proto.requests.records import ConsumerFetchRequest as ConsumerFetchRequest
from kafka_proto.requests.records import ConsumerFetchResponse as ConsumerFetchResponse
from kafka_proto.requests.records import DeleteRecordsRequest as DeleteRecordsRequest
from kafka_proto.requests.records import DeleteRecordsResponse as DeleteRecordsResponse
from kafka_proto.requests.records import DescribeProducersRequest as DescribeProducersRequest
from kafka_proto.requests.records import DescribeProducersResponse as DescribeProducersResponse
from kafka_proto.requests.records import IsolationLevel as IsolationLevel
from kafka_proto.requests.records import ListOffsetsRequest as ListOffsetsRequest
from kafka_proto.requests.records import ListOffsetsResponse as ListOffsetsResponse
from kafka_proto.requests.records import ProduceRequest as ProduceRequest
from kafka_proto.requests.records import ProduceResponse as ProduceResponse
from kafka_proto.requests.records import WriteTxnMarkersRequest as WriteTxnMarkersRequest
from kafka_proto.requests.records import WriteTxnMarkersResponse as WriteTxnMarkersResponse
from kafka_proto.requests.topics import CreateTopicsRequest as CreateTopicsRequest
from kafka_proto.requests.topics import CreateTopicsResponse as CreateTopicsResponse
from kafka_proto.requests.topics import DeleteTopicsRequest as DeleteTopicsRequest
from kafka_proto.requests.topics import DeleteTopicsResponse as DeleteTopicsResponse
from kafka_proto.requests.transactions import AddOffsetsToTxnRequest as AddOffsetsToTxnRequest
from kafka_proto.requests.transactions import AddOffsetsToTxnResponse as AddOffsetsToTxnResponse
from kafka_proto.requests.transactions import AddPartitionsToTxnRequest as AddPartitionsToTxnRequest
from kafka_proto.requests.transactions import AddPartitionsToTxnResponse as AddPartitionsToTxnResponse
from kafka_proto.requests.transactions import CoordinatorRequest as CoordinatorRequest
from kafka_proto.requests.transactions import CoordinatorResponse as CoordinatorResponse
from kafka_proto.requests.transactions import DescribeTransactionsRequest as DescribeTransactionsRequest
from kafka_proto.requests.transactions import DescribeTransactionsResponse as DescribeTransactionsResponse
from kafka_proto.requests.transactions import EndTxnRequest as EndTxnRequest
from kafka_proto.requests.transactions import EndTxnResponse as EndTxnResponse
from kafka_proto.requests.transactions import InitProducerIdRequest as InitProducerIdRequest
from kafka_proto.requests.transactions import InitProducerIdResponse as InitProducerIdResponse
from kafka_proto.requests.transactions import ListTransactionsRequest as ListTransactionsRequest
from kafka_proto.requests.transactions import ListTransactionsResponse as ListTransactionsResponse
