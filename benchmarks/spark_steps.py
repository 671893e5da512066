"""What applications ask of Spark's connector to Kafka, step by step: `client_suites.py` starts this.

    python spark_steps.py FOLDER_OF_JARS HOST:PORT [PATTERN]

It needs PySpark and the connector of the same release. A step passes if what is read is what was written. Records that
Spark cannot write, as those of transactions, come from the producer among the connector's jars.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.driver.memory": "1g",
    "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC",
}
CLIENTS = "org.apache.kafka.clients."
LONGEST = 60
AT = 1_700_000_000_000
"""The timestamp, in milliseconds, of a record that is given one."""
ONCE = {"availableNow": True}
EARLIEST = {"startingOffsets": "earliest"}
COMMITTED = {"kafka.isolation.level": "read_committed"}


def expect(found: Any, expected: Any) -> None:
    """Raise AssertionError for what is not as expected."""
    assert found == expected, f"{found!r} in place of {expected!r}"


@attrs.frozen
class Connected:
    """Spark and a cluster, with folders for what streams leave; names of topics begin with the name of the run."""

    spark: SparkSession
    servers: str
    run: str
    files: Path

    def java(self, name: str, *arguments: Any) -> Any:
        """Return a new object of a Java class, or without arguments the class itself."""
        found = self.spark.sparkContext._jvm
        for part in name.split("."):
            found = getattr(found, part)
        return found(*arguments) if arguments else found

    def config(self, **settings: str) -> dict[str, str]:
        """Return settings of a Java client."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return {"bootstrap.servers": self.servers, **named}

    @contextmanager
    def admin(self) -> Iterator[Any]:
        client = self.java(CLIENTS + "admin.AdminClient").create(self.config())
        try:
            yield client
        finally:
            client.close()

    def topic(self, name: str, partitions: int = 1) -> str:
        """Make a topic, and return its name."""
        made, optional = f"{self.run}-{name}", self.java("java.util.Optional")
        with self.admin() as admin:
            admin.createTopics([self.java(CLIENTS + "admin.NewTopic", made, optional.of(partitions), optional.empty())
                                ]).all().get()
        return made

    def delete_before(self, topic: str, offset: int) -> None:
        """Delete the first records of a topic's first partition."""
        methods = self.java("java.lang.Class").forName(CLIENTS + "admin.RecordsToDelete").getMethods()
        (before,) = (each for each in methods if (each.getName(), each.getParameterCount()) == ("beforeOffset", 1))
        arguments = self.spark.sparkContext._gateway.new_array(self.java("java.lang.Object"), 1)
        arguments[0] = offset
        with self.admin() as admin:
            admin.deleteRecords({self.java("org.apache.kafka.common.TopicPartition", topic, 0):
                                 before.invoke(None, arguments)}).all().get()

    @contextmanager
    def producer(self, **settings: str) -> Iterator[Callable[..., None]]:
        """Give what sends values to a partition; with `at` the first gets this timestamp, others later ones."""
        serializer = "org.apache.kafka.common.serialization.StringSerializer"
        client = self.java(CLIENTS + "producer.KafkaProducer", self.config(
            key_serializer=serializer, value_serializer=serializer, **settings))

        def send(topic: str, values: str, partition: int = 0, at: int | None = None, ends: str = "") -> None:
            if settings:
                client.beginTransaction()
            for number, value in enumerate(values):
                client.send(self.java(CLIENTS + "producer.ProducerRecord", topic, partition,
                                      None if at is None else at + number, None, value))
            client.flush()
            if ends:
                getattr(client, f"{ends}Transaction")()

        if settings:
            client.initTransactions()
        try:
            yield send
        finally:
            client.close()

    def write(self, topic: str | None, rows: Sequence[tuple[Any, ...]], schema: str, **options: str) -> None:
        """Write rows as a batch."""
        frame = self.spark.createDataFrame(rows, schema).write.format("kafka").options(**self.options(options))
        (frame.option("topic", topic) if topic else frame).save()

    def send(self, topic: str, values: str, **how: int) -> None:
        """Send each letter of a text as a record."""
        with self.producer() as send:
            send(topic, values, **how)

    def options(self, given: dict[str, str]) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.servers, **given}

    def read(self, topic: str = "", **options: str) -> DataFrame:
        """Return what a batch reads, values as text."""
        source = {"subscribe": topic} if topic else {}
        frame = self.spark.read.format("kafka").options(**self.options({**source, **options})).load()
        return frame.withColumn("value", f.col("value").cast("string"))

    def values(self, topic: str = "", **options: str) -> str:
        """Return the values that a batch reads, in order of the alphabet."""
        return joined(self.read(topic, **options))

    def stream(self, name: str, topic: str, trigger: dict[str, Any] = ONCE, into: str = "", **options: str) -> Any:
        """Start a stream from a topic into files or into another topic, with the checkpoint of its name."""
        source = self.options({"subscribe": topic, **EARLIEST, **options})
        frame = self.spark.readStream.format("kafka").options(**source).load()
        written = frame.select(f.col("value").cast("string")).writeStream.trigger(**trigger)
        sink = (written.format("kafka").options(**self.options({"topic": into})) if into else
                written.format("parquet").option("path", str(self.files / name)))
        return sink.option("checkpointLocation", str(self.files / f"{name}-checkpoint")).start()

    def streamed(self, name: str, topic: str, **how: Any) -> Any:
        """Run a stream to its end, and return the query."""
        query = self.stream(name, topic, **how)
        if not query.awaitTermination(LONGEST):
            query.stop()
            raise AssertionError(f"the stream did not end within {LONGEST} s")
        return query

    def kept(self, name: str) -> str:
        """Return the values that a stream has written into files."""
        return joined(self.spark.read.schema("value string").parquet(str(self.files / name)))


def joined(frame: DataFrame) -> str:
    return "".join(sorted(row["value"] for row in frame.select("value").collect()))


def offsets(topic: str, *numbers: int) -> str:
    """Return offsets, or timestamps, of partitions as the connector wants them."""
    return json.dumps({topic: {str(partition): number for partition, number in enumerate(numbers)}})


def batch_write_and_read(on: Connected) -> None:
    topic, at = on.topic("batch"), time.time()
    rows = [("k", "v"), (None, "w"), ("k", None)]
    on.write(topic, rows, "key string, value string")
    found = on.read(topic, startingOffsets="earliest", endingOffsets="latest").orderBy("offset").collect()
    expect({(row["key"] and row["key"].decode(), row["value"]) for row in found}, {*rows})
    expect([row["offset"] for row in found], [0, 1, 2])
    expect({(row["topic"], row["partition"], row["timestampType"]) for row in found}, {(topic, 0, 0)})
    assert all(abs(row["timestamp"].timestamp() - at) < LONGEST for row in found), found


def offsets_as_json(on: Connected) -> None:
    topic = on.topic("offsets", 2)
    on.send(topic, "abcd")
    on.send(topic, "xyz", partition=1)
    expect(on.values(topic, startingOffsets=offsets(topic, 1, -2), endingOffsets=offsets(topic, 3, 1)), "bcx")
    expect(on.values(topic, startingOffsets=offsets(topic, -2, 2), endingOffsets=offsets(topic, 1, -1)), "az")


def subscribe_pattern(on: Connected) -> None:
    for name, value in (("pattern-1", "a"), ("pattern-2", "b"), ("other", "c")):
        on.send(on.topic(name), value)
    expect(on.values(subscribePattern=f"{on.run}-pattern-.*"), "ab")


def assign(on: Connected) -> None:
    topic = on.topic("assign", 3)
    for partition, value in enumerate("abc"):
        on.send(topic, value, partition=partition)
    expect(on.values(assign=json.dumps({topic: [0, 2]})), "ac")


def timestamps(on: Connected) -> None:
    topic = on.topic("timestamps", 2)
    on.send(topic, "abcd", at=AT)
    on.send(topic, "wxyz", at=AT, partition=1)
    expect(on.values(topic, startingTimestamp=str(AT + 2), endingTimestamp=str(AT + 3)), "cy")
    expect(on.values(topic, startingOffsetsByTimestamp=offsets(topic, AT + 1, AT + 3)), "bcdz")
    expect(on.values(topic, endingOffsetsByTimestamp=offsets(topic, AT + 1, AT + 3)), "awxy")
    expect(on.values(topic, startingTimestamp=str(AT + 9), startingOffsetsByTimestampStrategy="latest"), "")


def headers(on: Connected) -> None:
    topic, sent = on.topic("headers"), [("h", bytearray(b"1")), ("h", bytearray(b"2")), ("n", None)]
    on.write(topic, [("v", sent)], "value string, headers array<struct<key string, value binary>>")
    (row,) = on.read(topic, includeHeaders="true").collect()
    expect([(header["key"], header["value"]) for header in row["headers"]], sent)


def topics_and_partitions_of_rows(on: Connected) -> None:
    one, two = on.topic("one", 2), on.topic("two", 2)
    on.write(None, [(one, 0, "a"), (one, 1, "b"), (two, 1, "c")], "topic string, partition int, value string")
    found = on.read(f"{one},{two}").collect()
    expect(sorted((row["topic"], row["partition"], row["value"]) for row in found),
           [(one, 0, "a"), (one, 1, "b"), (two, 1, "c")])


def compression(on: Connected) -> None:
    topic, codecs = on.topic("compression"), ("none", "gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        on.write(topic, [(codec * 100,)], "value string", **{"kafka.compression.type": codec})
    expect([row["value"] for row in on.read(topic).orderBy("offset").collect()], [codec * 100 for codec in codecs])


def many_records(on: Connected) -> None:
    topic, count = on.topic("many", 3), 50_000
    on.spark.range(count).select(f.col("id").cast("string").alias("value")).write.format("kafka").options(
        **on.options({"topic": topic})).save()
    found = on.read(topic, minPartitions="6").agg(
        f.count("value").alias("rows"), f.countDistinct("value").alias("values"),
        f.sum(f.col("value").cast("long")).alias("sum")).first()
    expect(found and (found["rows"], found["values"], found["sum"]), (count, count, count * (count - 1) // 2))


def minimal_partitions(on: Connected) -> None:
    topic = on.topic("minimal")
    on.send(topic, "abcdef")
    expect(on.read(topic).rdd.getNumPartitions(), 1)
    found = on.read(topic, minPartitions="3")
    expect((found.rdd.getNumPartitions(), joined(found)), (3, "abcdef"))


def stream_resumed(on: Connected) -> None:
    topic = on.topic("resumed", 2)
    on.send(topic, "ab")
    expect(on.streamed("resumed", topic).lastProgress["numInputRows"], 2)
    on.send(topic, "cd", partition=1)
    on.send(topic, "e")
    expect(on.streamed("resumed", topic).lastProgress["numInputRows"], 3)
    expect(on.kept("resumed"), "abcde")


def stream_of_what_comes(on: Connected) -> None:
    topic = on.topic("coming")
    on.send(topic, "a")
    query = on.stream("coming", topic, {"processingTime": "200 milliseconds"}, startingOffsets="latest")
    query.processAllAvailable()
    on.send(topic, "bc")
    query.processAllAvailable()
    on.send(topic, "d")
    query.processAllAvailable()
    query.stop()
    expect(on.kept("coming"), "bcd")


def stream_into_a_topic(on: Connected) -> None:
    one, two = on.topic("from"), on.topic("into", 2)
    for values in ("ab", "cde"):
        on.send(one, values)
        on.streamed("into", one, into=two)
    expect(on.values(two), "abcde")


def continuous_stream(on: Connected) -> None:
    one, two, until = on.topic("continuous"), on.topic("continued"), time.monotonic() + LONGEST
    on.send(one, "ab")
    query = on.stream("continuous", one, {"continuous": "500 milliseconds"}, into=two)
    while on.values(two) != "ab" and query.isActive and time.monotonic() < until:
        pass
    on.send(one, "c")
    while on.values(two) != "abc" and query.isActive and time.monotonic() < until:
        pass
    query.stop()
    expect(on.values(two), "abc")


def stream_in_small_batches(on: Connected) -> None:
    topic = on.topic("small")
    on.send(topic, "abcdefghij")
    progress = on.streamed("small", topic, maxOffsetsPerTrigger="4").recentProgress
    expect([batch["numInputRows"] for batch in progress if batch["numInputRows"]], [4, 4, 2])
    expect((json.loads(progress[-1]["sources"][0]["endOffset"]), on.kept("small")), ({topic: {"0": 10}}, "abcdefghij"))


def stream_of_a_growing_topic(on: Connected) -> None:
    topic = on.topic("growing")
    on.send(topic, "ab")
    on.streamed("growing", topic)
    with on.admin() as admin:
        admin.createPartitions({topic: on.java(CLIENTS + "admin.NewPartitions").increaseTo(2)}).all().get()
    on.send(topic, "cd", partition=1)
    on.streamed("growing", topic)
    expect(on.kept("growing"), "abcd")


def offsets_by_a_group(on: Connected) -> None:
    """The driver finds offsets by a consumer of a group, as before Spark 3.4."""
    topic, setting = on.topic("group", 2), "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    on.spark.conf.set(setting, "true")
    try:
        for partition, values in enumerate(("ab", "cd")):
            on.send(topic, values, partition=partition)
            on.streamed("group", topic)
    finally:
        on.spark.conf.unset(setting)
    expect(on.kept("group"), "abcd")


def read_committed(on: Connected) -> None:
    topic = on.topic("committed")
    with on.producer(transactional_id=f"{on.run}-app") as send:
        send(topic, "ab", ends="commit")
        send(topic, "xy", ends="abort")
        send(topic, "c", ends="commit")
    expect(on.values(topic, **COMMITTED), "abc")
    expect(on.values(topic), "abcxy")
    expect(on.streamed("committed", topic, **COMMITTED).lastProgress["numInputRows"], 3)
    expect(on.kept("committed"), "abc")


def open_transaction(on: Connected) -> None:
    topic = on.topic("open")
    with on.producer(transactional_id=f"{on.run}-open") as send:
        send(topic, "a", ends="commit")
        send(topic, "b")
        on.send(topic, "c")
        expect((on.values(topic, **COMMITTED), on.values(topic)), ("a", "abc"))
        on.streamed("open", topic, **COMMITTED)
        expect(on.kept("open"), "a")
    on.streamed("open", topic, **COMMITTED)  # Java's producer aborts when it is closed
    expect(on.kept("open"), "ac")


def lost_records(on: Connected) -> None:
    topic = on.topic("lost")
    on.send(topic, "ab")
    for name in ("strict", "lenient"):
        on.streamed(name, topic)
    on.send(topic, "cdef")
    on.delete_before(topic, 4)
    expect(on.values(topic), "ef")
    try:
        on.streamed("strict", topic)
    except StreamingQueryException as problem:
        assert "failOnDataLoss" in str(problem), problem
    else:
        raise AssertionError("the stream did not notice that records are lost")
    on.streamed("lenient", topic, failOnDataLoss="false")
    expect((on.kept("strict"), on.kept("lenient")), ("ab", "abef"))


STEPS = (
    batch_write_and_read, offsets_as_json, subscribe_pattern, assign, timestamps, headers,
    topics_and_partitions_of_rows, compression, many_records, minimal_partitions, stream_resumed, stream_of_what_comes,
    stream_into_a_topic, continuous_stream, stream_in_small_batches, stream_of_a_growing_topic, offsets_by_a_group,
    read_committed, open_transaction, lost_records,
)


def main() -> None:
    libs, servers, pattern = sys.argv[1], sys.argv[2], "".join(sys.argv[3:])
    builder = SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", f"{libs}/*")
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.sql.warehouse.dir", folder).config(map=SETTINGS).getOrCreate()
        on = Connected(spark, servers, f"spark-{time.time_ns()}", Path(folder))
        for step in STEPS:
            if re.search(pattern, step.__name__):
                print(f"=== RUN   {step.__name__}", flush=True)
                try:
                    step(on)
                    print(f"--- PASS: {step.__name__}", flush=True)
                except Exception:
                    print(f"{traceback.format_exc(limit=-3)[-3_000:]}\n--- FAIL: {step.__name__}", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
