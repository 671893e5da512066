"""Record situations of clusters: three real brokers of Apache Kafka and a controller, each a process of its own.

    python benchmarks/real_cluster.py SCRIPTS.json OUT.json.gz [RELEASE] [--transaction-version N] [--situation NAME]

A script is a record whose steps need no response, and an empty `after` where all is to be looked at; the format is in
docs/reference/conformance.md. Each is played on a new cluster. It needs Java 17, Maven and kill(1)'s signals; a broker
that dies is sent SIGKILL, one that stands still SIGSTOP. What is done is printed on stderr.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from real_broker import CLUSTER_ID, await_port, free_port, jars

from harness.record.files import compact, write_atomically
from kafka_proto.conformance.player import Symbols
from kafka_proto.conformance.replicas_by_frames import WireMessages
from kafka_proto.conformance.replicated import ReplicatedPlayer, Row
from kafka_proto.conformance.verbatim import api_key
from kafka_proto.errors import NAMES
from kafka_proto.gateway.client import Client, request_bytes
from kafka_proto.gateway.codec import SIZE
from kafka_proto.gateway.connection import read_response
from kafka_proto.gateway.offer import (
    CREATE_TOPICS,
    DESCRIBE_TRANSACTIONS,
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    METADATA,
)

DESCRIBE_TOPIC_PARTITIONS = 75
UNKNOWN = 105
"""The code of a transactional id that its coordinator, which has loaded its log, does not know."""
COMMON = """
controller.quorum.voters=100@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
default.replication.factor=3
min.insync.replicas=2
offsets.topic.num.partitions=9
offsets.topic.replication.factor=3
transaction.state.log.num.partitions=9
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=300
replica.lag.time.max.ms=2500
replica.fetch.wait.max.ms=100
unclean.leader.election.interval.ms=1000
auto.leader.rebalance.enable=false
"""
QUIET_SECONDS, LONGEST_SECONDS = 0.25, 20.0
NODES = {"controller": 100, "b1": 1, "b2": 2, "b3": 3}


class RealBrokers(WireMessages):
    """A cluster of three brokers with one partition of `T`, as a player needs it."""

    names = ("b1", "b2", "b3")

    def __init__(self, script: Mapping[str, Any], release: str, level: int | None) -> None:
        self.symbols = Symbols()
        self.now_ms = int(time.time() * 1000)
        self.replicas = tuple(script["replicas"])
        self._tids: dict[str, str] = {}
        self._folder = Path(tempfile.mkdtemp(prefix="cluster-"))
        self._java = ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars(release)}/*"]
        self._ports = {name: free_port() for name in NODES}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._paused: set[str] = set()
        feature = [] if level is None else ["--feature", f"transaction.version={level}"]
        for name in NODES:
            (self._folder / f"{name}.properties").write_text(self._properties(name))
            subprocess.run([*self._java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c",
                            str(self._folder / f"{name}.properties"), *feature],
                           check=True, stdout=subprocess.DEVNULL)
        for name in NODES:
            self.do("start", name)
        ids = tuple(NODES[b] for b in self.replicas)
        self._wait(self.names[0], CREATE_TOPICS, 5, {"timeout": 10_000, "validate_only": False, "topics": ({
            "name": "T", "num_partitions": -1, "replication_factor": -1,
            "assignments": ({"partition_index": 0, "broker_ids": ids},),
            "configs": tuple({"name": name, "value": value} for name, value in script["topic_config"].items())},)})
        until = time.monotonic() + LONGEST_SECONDS
        while time.monotonic() < until and not (self._is_led() and all(map(self._gives_ids, self.names))):
            time.sleep(QUIET_SECONDS)

    def _is_led(self) -> bool:
        """Say whether a broker knows of a leader of the partition."""
        try:
            return self.partition()["leader"] is not None
        except IndexError:  # it does not know of the partition yet
            return False

    def _gives_ids(self, broker: str) -> bool:
        """Say whether a broker has a block of producer ids."""
        asked = {"transactional_id": None, "transaction_timeout": 1_000, "producer_id": -1, "producer_epoch": -1}
        return bool(self._wait(broker, INIT_PRODUCER_ID, 4, asked)["error_code"] == 0)

    def _properties(self, name: str) -> str:
        port, controller = self._ports[name], self._ports["controller"]
        role, listener = ("controller", "CONTROLLER") if name == "controller" else ("broker", "PLAINTEXT")
        return (f"process.roles={role}\nnode.id={NODES[name]}\nlisteners={listener}://127.0.0.1:{port}\n"
                f"log.dirs={self._folder}/{name}\n" + COMMON.format(controller=controller))

    def close(self) -> None:
        """End all processes, and remove what they wrote."""
        for process in self._running.values():
            process.kill()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def do(self, verb: str, broker: str) -> None:
        print(f"  {broker}: {verb}", file=sys.stderr)
        if verb == "start":
            with (self._folder / f"{broker}.out").open("ab") as out:
                self._running[broker] = subprocess.Popen(
                    [*self._java, "kafka.Kafka", str(self._folder / f"{broker}.properties")], stdout=out, stderr=out)
            await_port(self._ports[broker], self._running[broker])
            return
        process = self._running[broker]
        sent = {"crash": signal.SIGKILL, "shut_down": signal.SIGTERM, "pause": signal.SIGSTOP,
                "go_on": signal.SIGCONT}[verb]
        process.send_signal(sent)
        if verb in ("crash", "shut_down"):
            process.wait(60)
            del self._running[broker]
        elif verb == "pause":
            self._paused.add(broker)
            time.sleep(0.4)  # so that no fetch of its waits at a leader
        else:
            self._paused.discard(broker)

    def send(
        self, to: str, api: str, version: int, fields: Mapping[str, Any], shown: tuple[str, ...] = ()
    ) -> Callable[[], Any]:
        connection = socket.create_connection(("127.0.0.1", self._ports[to]), 40)
        connection.sendall(request_bytes(api_key(api, version), version, self.message(api, version, fields)))

        def response() -> Any:
            with connection:
                size = int.from_bytes(_take(connection, SIZE), "big")
                return self.read(api, read_response(_take(connection, size), api_key(api, version), version)[1])

        return response

    def _wait(self, to: str, api: int, version: int, message: Mapping[str, Any]) -> dict[str, Any]:
        with Client("127.0.0.1", self._ports[to]) as client:
            return client.ask(api, version, message)

    def _anybody(self) -> str:
        return next(b for b in self.names if b in self._running and b not in self._paused)

    def pass_ms(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)

    def named(self, transactional_id: str | None) -> str | None:
        return None if transactional_id is None else self._tids.get(transactional_id, transactional_id)

    def coordinator(self, name: str) -> str:
        found = self._wait(self._anybody(), FIND_COORDINATOR, 3, {"key": self.named(name), "key_type": 1})
        return f"b{found['node_id']}" if found["error_code"] == 0 else ""

    def is_coordinated_by(self, name: str, broker: str) -> None:
        for n in count():
            self._tids[name] = f"{name}.{n}"
            while not (found := self.coordinator(name)):
                time.sleep(QUIET_SECONDS)
            if found == broker:
                while self._wait(broker, DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": (self._tids[name],)})[
                        "transaction_states"][0]["error_code"] != UNKNOWN:
                    time.sleep(QUIET_SECONDS)
                return

    def settle(self) -> None:
        """Wait until two looks are the same, or where a broker stands still, until others have fetched again."""
        before, until = None, time.monotonic() + LONGEST_SECONDS
        time.sleep(2 * QUIET_SECONDS if self._paused else 0)
        while not self._paused and time.monotonic() < until:
            seen = self.partition(), {b: self.replica(b) for b in self.replicas}
            if seen == before:
                return
            before = seen
            time.sleep(QUIET_SECONDS)

    def partition(self) -> Row:
        found = self._wait(self._anybody(), DESCRIBE_TOPIC_PARTITIONS, 0, {
            "topics": ({"name": "T"},), "response_partition_limit": 10, "cursor": None})["topics"][0]["partitions"][0]
        return {
            "leader": f"b{found['leader_id']}" if found["leader_id"] >= 0 else None,
            "leader_epoch": found["leader_epoch"], **{ours: sorted(f"b{n}" for n in found[theirs] or ()) for
                                                      ours, theirs in (
                ("isr", "isr_nodes"), ("offline", "offline_replicas"), ("elr", "eligible_leader_replicas"),
                ("last_known_elr", "last_known_elr"))},
            "error": NAMES[self._wait(self._anybody(), METADATA, 9, {"topics": ({"name": "T"},)})[
                "topics"][0]["partitions"][0]["error_code"]],
        }

    def replica(self, broker: str) -> Row:
        folder = self._folder / broker / "T-0"
        data = b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
        rows = list(self._read_rows(data))
        epochs = (folder / "leader-epoch-checkpoint").read_text().split("\n")[2:]
        seen: Row = {
            "log": rows, "log_end_offset": rows[-1][0] + len(rows[-1][-1]) if rows else 0,
            "leader_epochs": [[int(word) for word in line.split()] for line in epochs if line.strip()],
        }
        if broker in self._running and broker not in self._paused:
            wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 2**20, "current_leader_epoch": -1}
            (row,) = self._wait(broker, FETCH, 12, {
                "max_wait": 0, "min_bytes": 0, "max_bytes": 2**20, "isolation_level": 0, "session_epoch": -1,
                "topics": ({"topic": "T", "partitions": (wanted,)},)})["responses"][0]["partitions"]
            seen["fetch"] = {"error": NAMES[row["error_code"]], "high_watermark": row["high_watermark"],
                             "last_stable_offset": row["last_stable_offset"]}
        return seen


def _take(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the broker closed the connection")
        data += more
    return bytes(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("release", nargs="?", default="4.4.0")
    parser.add_argument("--transaction-version", type=int, default=None)
    parser.add_argument("--situation", default=None)
    given = parser.parse_args()
    scripts = json.loads(given.scripts.read_text(encoding="utf-8"))["records"]
    records = []
    for script in scripts:
        if given.situation not in (None, script["situation"]):
            continue
        print(script["situation"], file=sys.stderr, flush=True)
        brokers = RealBrokers(script, given.release, given.transaction_version)
        try:
            steps = ReplicatedPlayer(brokers).play(script)
        finally:
            brokers.close()
        level = 2 if given.transaction_version is None else given.transaction_version
        records.append({**script, "broker_version": given.release, "transaction_version": level, "brokers": 3,
                        "steps": steps, "stable": None})
        write_atomically(given.out, (compact({"meta": {"format": 1}, "records": records}),), given.out.suffix == ".gz")


if __name__ == "__main__":
    main()
