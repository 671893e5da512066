"""The models of the composition: a version of a broker, a kind of client, and how much they do."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from harness.model import Faults, Model, ModelSpec, Network, Setting, Size
from kafka_proto import requests
from kafka_proto.broker import NodeState
from kafka_proto.clients.family import FAMILIES
from kafka_proto.clients.producer import Producer
from kafka_proto.composition.application import KafkaProducer
from kafka_proto.composition.broker import Broker
from kafka_proto.composition.messages import BrokerResponse, ClientRequest
from kafka_proto.composition.producer import ProducerState, TransactionalProducer
from kafka_proto.composition.properties import properties
from kafka_proto.coordinator import init_producer_id, outcome, producer_ids, role, transaction
from kafka_proto.group import membership, offsets
from kafka_proto.group import role as groups
from kafka_proto.leader import state
from kafka_proto.log import PartitionLog, RecordBatch, chunks, producer_state, transactions
from kafka_proto.versions import (
    KIP_98,
    KIP_360,
    KIP_890,
    KIP_890_4_2,
    KIP_890_4_4,
    KIP_890_4_4_LEVEL_1,
    KIP_890_PART_1,
)

VERSIONS = {version.name: version for version in (
    KIP_98, KIP_360, KIP_890_PART_1, KIP_890, KIP_890_4_2, KIP_890_4_4, KIP_890_4_4_LEVEL_1)}
SIZES = {
    "producers": Size(1, maximum=4, doc="producers, each with a transactional id of its own"),
    "partitions": Size(2, maximum=4, doc="partitions of the topic"),
    "transactions": Size(3, maximum=50, doc="transactions of a producer"),
    "records": Size(2, maximum=9, doc="records of a transaction"),
    "elections": Size(0, minimum=0, maximum=9, doc="how often the broker is elected anew"),
}
SETTINGS = {
    "version": Setting(tuple(VERSIONS), "kip-890/4.4", doc="what the broker decides, see docs/conformance.md"),
    "family": Setting(tuple(FAMILIES), "tv2", doc="the kind of client: versions of its requests"),
}
TYPES: tuple[type, ...] = (
    *(found for found in vars(requests).values() if isinstance(found, type) and attrs.has(found)),
    NodeState, Producer, ProducerState, ClientRequest, BrokerResponse, PartitionLog, RecordBatch, chunks.Chunks,
    producer_state.ProducerState, producer_state.RememberedBatch, transactions.OpenTransaction,
    transactions.EndedTransaction, transactions.AbortedTransaction, role.Coordinator, role.CoordinatorConfig,
    role.Waiting, role.Markers, outcome.Answer, outcome.Outcome, transaction.TransactionMetadata,
    transaction.CachedTransaction, init_producer_id.Fenced, producer_ids.ProducerIds, producer_ids.Block,
    producer_ids.Allocator, groups.GroupCoordinator, membership.Group, offsets.Offsets, offsets.Committed,
    offsets.OffsetRecord, state.Leader, state.Verification,
)


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool,
) -> Model:
    """Build one broker and its producers."""
    partitions = tuple(requests.partition_name("T", index) for index in range(sizes["partitions"]))
    broker = Broker("b1", VERSIONS[settings["version"]], partitions, sizes["elections"])
    producers = tuple(
        TransactionalProducer(f"c{number}", broker.name, FAMILIES[settings["family"]], partitions,
                              sizes["transactions"], sizes["records"])
        for number in range(1, sizes["producers"] + 1)
    )
    start = {broker.name: broker.initial, **{one.name: one.initial for one in producers}}
    return Model(
        "kafka", (*producers, broker), (start,), network, faults,
        properties(broker.name, (one.name for one in producers)),
        history_variables=history_variables, sizes=sizes, settings=settings, types=TYPES, application=KafkaProducer,
    )


MODELS = (ModelSpec("kafka", "Kafka's transactions whole, one broker and its producers as actors", build, SIZES,
                    SETTINGS, ("fifo", "bag"), may_fault=True),)
