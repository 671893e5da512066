"""Kafka's console tools, call by call, each in a Java of its own: `client_suites.py` starts this.

    python console_tools.py FOLDER_OF_JARS HOST:PORT [PATTERN]

A call passes if the tool ends well, and prints what is expected.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

LONGEST = 60.0
TOOLS = "org.apache.kafka.tools."
CLASSES = {
    "topics": "TopicCommand", "configs": "ConfigCommand", "consumer-groups": "consumer.group.ConsumerGroupCommand",
    "groups": "GroupsCommand", "producer": "ConsoleProducer", "consumer": "consumer.ConsoleConsumer",
    "transactions": "TransactionsCommand", "get-offsets": "GetOffsetShell", "elections": "LeaderElectionCommand",
    "reassign": "reassign.ReassignPartitionsCommand", "delete-records": "DeleteRecordsCommand",
    "producer-perf": "ProducerPerformance", "consumer-perf": "ConsumerPerformance", "log-dirs": "LogDirsCommand",
    "api-versions": "BrokerApiVersionsCommand", "quorum": "MetadataQuorumCommand", "cluster": "ClusterTool",
    "features": "FeatureCommand", "client-metrics": "ClientMetricsCommand",
}


@attrs.frozen
class ToolCall:
    """A call of a tool: its words, what it is given on stdin, and what its output has to have."""

    tool: str
    words: str
    expected: str = ""
    given: str = ""
    has_servers_last: bool = False
    """Whether a subcommand is told where brokers are, not the tool."""

    @property
    def name(self) -> str:
        return f"{self.tool} {self.words}".strip()


def calls(run: str, files: Path) -> Iterator[ToolCall]:
    """Yield the calls; those that come later find what those before have left. `run` is in all names."""
    topic, group = f"tools-{run}", f"group-{run}"
    written = {
        "delete.json": {"partitions": [{"topic": topic, "partition": 0, "offset": -1}], "version": 1},
        "elect.json": {"partitions": [{"topic": topic, "partition": 0}]},
        "move.json": {"partitions": [{"topic": topic, "partition": 0, "replicas": [1]}], "version": 1},
        "topics.json": {"topics": [{"topic": topic}], "version": 1},
    }
    for name, content in written.items():
        (files / name).write_text(json.dumps(content))
    on = f"--topic {topic}"
    yield ToolCall("topics", f"--create {on} --partitions 2 --config retention.ms=3600000", "Created topic")
    yield ToolCall("topics", f"--create --if-not-exists {on}")
    yield ToolCall("topics", "--list", topic)
    yield ToolCall("topics", f"--describe {on}", "PartitionCount: 2")
    yield ToolCall("topics", "--describe --under-replicated-partitions")
    yield ToolCall("topics", "--describe --unavailable-partitions")
    yield ToolCall("topics", f"--alter {on} --partitions 3")
    yield ToolCall("topics", f"--describe {on} --topics-with-overrides", "retention.ms=3600000")
    of_topic = f"--entity-type topics --entity-name {topic}"
    yield ToolCall("configs", f"--describe {of_topic}", "retention.ms=3600000")
    yield ToolCall("configs", f"--describe {of_topic} --all", "cleanup.policy=delete")
    yield ToolCall("configs", f"--alter {of_topic} --add-config max.message.bytes=2000000", "Completed updating")
    yield ToolCall("configs", f"--alter {of_topic} --delete-config retention.ms", "Completed updating")
    yield ToolCall("configs", "--describe --entity-type brokers --entity-name 1 --all", "num.partitions")
    yield ToolCall("configs", "--describe --entity-type brokers --entity-default")
    yield ToolCall("configs", f"--describe --entity-type groups --entity-name {group}")
    yield ToolCall("configs", "--describe --entity-type client-metrics")
    yield ToolCall("configs", "--describe --entity-type clients")
    yield ToolCall("configs", "--describe --entity-type users")
    yield ToolCall("producer", on, given="one\ntwo\nthree\n")
    keyed = f"{on} --reader-property parse.key=true --reader-property key.separator=:"
    yield ToolCall("producer", keyed, given="k:v\n")
    yield ToolCall("producer", f"{on} --compression-codec zstd", given="packed\n")
    read = f"{on} --from-beginning --timeout-ms 8000"
    yield ToolCall("consumer", f"{read} --max-messages 5", "packed")
    yield ToolCall("consumer", f"{read} --max-messages 5 --group {group}", "three")
    yield ToolCall("consumer", f"{read} --max-messages 5 --isolation-level read_committed", "two")
    yield ToolCall("consumer", f"{read} --max-messages 5 --consumer-property group.protocol=consumer", "one")
    yield ToolCall("get-offsets", on, f"{topic}:0:")
    yield ToolCall("get-offsets", f"{on} --time earliest", f"{topic}:0:0")
    yield ToolCall("get-offsets", f"{on} --time max-timestamp", f"{topic}:")
    yield ToolCall("groups", "--list", group)
    yield ToolCall("consumer-groups", "--list", group)
    yield ToolCall("consumer-groups", "--list --state", group)
    yield ToolCall("consumer-groups", f"--describe --group {group}", topic)
    yield ToolCall("consumer-groups", f"--describe --group {group} --members")
    yield ToolCall("consumer-groups", f"--describe --group {group} --state", "Empty")
    reset = f"--reset-offsets --group {group} {on}"
    yield ToolCall("consumer-groups", f"{reset} --to-earliest --dry-run", topic)
    yield ToolCall("consumer-groups", f"{reset} --shift-by -1 --execute", topic)
    yield ToolCall("consumer-groups", f"--delete-offsets --group {group} {on}", topic)
    yield ToolCall("consumer-groups", f"--delete --group {group}", "success")
    yield ToolCall("transactions", "list", "TransactionalId")
    yield ToolCall("transactions", f"describe-producers {on} --partition 0", "ProducerId")
    yield ToolCall("transactions", f"find-hanging {on}")
    yield ToolCall("elections", f"--election-type preferred --path-to-json-file {files}/elect.json")
    yield ToolCall("elections", "--election-type preferred --all-topic-partitions")
    yield ToolCall("reassign", f"--generate --broker-list 1 --topics-to-move-json-file {files}/topics.json", topic)
    yield ToolCall("reassign", f"--execute --reassignment-json-file {files}/move.json", "Successfully started")
    yield ToolCall("reassign", "--list")
    yield ToolCall("delete-records", f"--offset-json-file {files}/delete.json", "low_watermark: ")
    yield ToolCall("log-dirs", "--describe", topic)
    yield ToolCall("api-versions", "", "Produce(0)")
    yield ToolCall("quorum", "describe --status", "LeaderId")
    yield ToolCall("cluster", "cluster-id", "Cluster ID", has_servers_last=True)
    yield ToolCall("features", "describe", "transaction.version")
    yield ToolCall("client-metrics", "--list")
    yield ToolCall("producer-perf", f"{on} --num-records 1000 --record-size 100 --throughput -1", "1000 records sent")
    yield ToolCall("consumer-perf", f"{on} --num-records 500", "data.consumed.in.MB")
    yield ToolCall("topics", f"--delete {on}")


def failed(java: list[str], call: ToolCall, servers: str) -> str:
    """Carry out a call, and return what it printed if that is not well."""
    words, where = call.words.split(), ["--bootstrap-server", servers]
    command = [*java, TOOLS + CLASSES[call.tool], *(words + where if call.has_servers_last else where + words)]
    try:
        done = subprocess.run(command, input=call.given, capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return f"it did not end within {LONGEST:.0f} s"
    said = done.stdout + done.stderr
    return "" if done.returncode == 0 and call.expected in said else f"exit code {done.returncode}: {said[-2_000:]}"


def main() -> None:
    libs, servers, pattern = Path(sys.argv[1]), sys.argv[2], "".join(sys.argv[3:])
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{libs}/*"]
    run = str(time.time_ns())
    for call in calls(run, libs.parent):
        name = call.name.replace(run, "1").replace(str(libs.parent), ".").replace("/", ".")
        if re.search(pattern, name):
            problem = failed(java, call, servers)
            print(f"=== RUN   {name}\n{problem}\n--- {'FAIL' if problem else 'PASS'}: {name}", flush=True)


if __name__ == "__main__":
    main()
