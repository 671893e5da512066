"""Messages of Kafka's protocol read and written: held against kio's own reader and writer, and against bad bytes."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("kio", reason="needs the extra `gateway`")

from kio.index import load_payload_module
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from kafka_proto.gateway.codec import Malformed, Source, read_message, schema, write_message
from kafka_proto.gateway.offer import RELEASES, offer_of

EVERYTHING = offer_of("4.4.0", 2, RELEASES["4.4.0"])
VERSIONS = [(api, version) for api, (first, last) in EVERYTHING.ranges.items() for version in range(first, last + 1)]

METADATA = {
    "throttle_time": 7, "cluster_id": "c", "controller_id": 1,
    "brokers": ({"node_id": 1, "host": "127.0.0.1", "port": 9092, "rack": None},),
    "topics": ({"error_code": 3, "name": "t", "is_internal": False,
                "partitions": ({"error_code": 0, "partition_index": 2, "leader_id": 1, "leader_epoch": 5,
                                "replica_nodes": (1, 2), "isr_nodes": (1,), "offline_replicas": ()},)},),
}


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_what_is_written_with_defaults_is_read_by_kio_as_defaults(api: int, version: int) -> None:
    """A response in which nothing is said is one that kio reads to its end, and writes as the same bytes."""
    written = write_message("response", api, version, {})
    cls = schema("response", api, version)
    entity, size = entity_reader(cls)(written, 0)
    again = io.BytesIO()
    entity_writer(cls)(again, entity)
    assert (size, again.getvalue()) == (len(written), written)


@pytest.mark.parametrize("version", range(10))
def test_fields_of_a_version_are_written_and_others_left_out(version: int) -> None:
    """One dictionary is written for every version; what kio reads in it are its values."""
    entity, _ = entity_reader(schema("response", 3, version))(write_message("response", 3, version, METADATA), 0)
    (topic,), (broker,) = entity.topics, entity.brokers
    assert (broker.port, topic.error_code, topic.partitions[0].isr_nodes) == (9092, 3, (1,))
    assert getattr(topic.partitions[0], "leader_epoch", 5) == 5
    assert hasattr(entity, "cluster_id") == (version >= 2)
    assert read_message("response", 3, version, Source(write_message("response", 3, version, METADATA)))["topics"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_kio_writes_is_read_as_it_was(data: st.DataObject) -> None:
    """Produce requests with any text and bytes come out of kio's writer and into our reader unchanged."""
    version = data.draw(st.integers(3, 12))
    module: Any = load_payload_module(0, version, EntityType.request)
    partitions = data.draw(st.lists(st.tuples(st.integers(0, 9), st.none() | st.binary(max_size=40)), max_size=3))
    name = data.draw(st.text(st.characters(codec="utf-8"), max_size=20))
    entity = module.ProduceRequest(
        transactional_id=data.draw(st.none() | st.just("tid")), acks=-1, timeout=timedelta(seconds=3),
        topic_data=(module.TopicProduceData(name=name, partition_data=tuple(
            module.PartitionProduceData(index=index, records=records) for index, records in partitions)),),
    )
    out = io.BytesIO()
    entity_writer(module.ProduceRequest)(out, entity)
    source = Source(out.getvalue())
    message = read_message("request", 0, version, source)
    (topic,) = message["topic_data"]
    assert (source.left, message["timeout"], topic["name"]) == (0, 3000, name)
    assert [(p["index"], p["records"]) for p in topic["partition_data"]] == partitions


@pytest.mark.parametrize(
    ("version", "body"),
    [(9, b"\xff\xff\xff\xff\x07"), (9, b"\xff\xff\xff\xff\xff\x01"), (4, b"\x7f\xff\xff\xff"), (4, b"\xff\xff\xff\xfe"),
     (4, b"\0\0\0\1\0\5ab"), (9, b""), (9, b"\x02\x03\xff\xfe\0"), (0, b"\xff\xff\xff\xff")],
    ids=["a huge array", "a varint too long", "a huge legacy array", "an array of length -2", "a string cut off",
         "nothing", "no UTF-8", "null where none may be"],
)
def test_bad_bytes_are_malformed(version: int, body: bytes) -> None:
    """A length that is not followed by as much, or no text where text is expected, is said to be so."""
    with pytest.raises(Malformed):
        read_message("request", 3, version, Source(body))


def test_null_is_read_where_it_may_be() -> None:
    """From version 1 on null asks for all topics, where version 0 has none."""
    assert read_message("request", 3, 1, Source(b"\xff\xff\xff\xff"))["topics"] is None


def test_elements_of_a_message_are_bounded() -> None:
    """An array as long as its bytes, but longer than any client's, is refused before it is read."""
    body = b"\xff\xff\x7f" + b"\x01\0" * 2_100_000
    with pytest.raises(Malformed, match="an array of"):
        read_message("request", 3, 9, Source(body))
