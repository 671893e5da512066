"""The fixture `kafka_cluster` with real clients: the examples of the docs as they are, and recorded sessions."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.commands.command_line import PATIENCE_S
from support.paths import ROOT

from harness.model import Refusal
from harness.record import Recorder, read_trail
from harness.simulate.trails.replay import replay_plain
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.inputs import TimedFault
from kafka_proto.gateway.offer import CREATE_TOPICS, METADATA

pytest_plugins = ["pytester"]

EXAMPLES = ROOT / "docs" / "examples" / "gateway"
REPLAY = "from harness.cli import main; main()"
FAULTS = "delay=2,drop=1,lose=2,duplicate=2,elect=1"


def examples(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run an example as a reader does."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--harness-out", str(folder),
         "--rootdir", str(EXAMPLES), *words], cwd=EXAMPLES, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=300, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_a_transaction_survives_a_crash(tmp_path: Path) -> None:
    """The first example passes: three brokers, one of which crashes inside a transaction."""
    done = examples(tmp_path, "test_transactions.py")
    assert done.returncode == 0, done.stdout


def test_offsets_outside_the_transaction_are_found(tmp_path: Path) -> None:
    """The second example fails for the application with the bug alone; its trail replays to the same verdict."""
    done = examples(tmp_path, "test_offsets.py")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "test_each_order_is_paid_once[False]" in done.stdout and "kafka-proto replay" in done.stdout
    (path,) = (path for path in tmp_path.iterdir() if ".short." not in path.name)
    assert "ExactlyOnce is violated: orders-0 offset 0 was skipped" in done.stdout
    assert replay_plain(read_trail(path)).verdict.violated == "ExactlyOnce", "no property of Kafka's is violated"


def test_acks_of_one_lose_what_was_acknowledged(tmp_path: Path) -> None:
    """The third example fails with acks=1 alone; brokers have done nothing wrong."""
    done = examples(tmp_path, "test_acks.py")
    assert "1 failed, 1 passed" in done.stdout and "survives_a_failover[1]" in done.stdout, done.stdout
    (path,) = tmp_path.iterdir()
    assert replay_plain(read_trail(path)).verdict.ok


def test_a_known_bug_of_a_client_is_allowed_unless_tests_are_strict(tmp_path: Path) -> None:
    """By its issue; one flag lets it fail the test again, and another issue is refused."""
    text = (EXAMPLES / "test_late_commit.py").read_text(encoding="utf-8")
    test = tmp_path / "test_allowed.py"
    mark = '@pytest.mark.kafka_cluster({"orders": 2}'
    test.write_text(text.replace(mark, f'{mark}, allow="KAFKA-17754"'), encoding="utf-8")
    done = examples(tmp_path / "out", str(test), "-rA")
    assert done.returncode == 0, done.stdout
    assert "MarkerAttribution is violated, which KAFKA-17754 explains and the test allows" in done.stdout
    done = examples(tmp_path / "out", str(test), "--kafka-strict")
    assert done.returncode == 1 and "MarkerAttribution is violated: " in done.stdout
    with pytest.raises(Refusal, match=r"there is no known bug 'KAFKA-1'; did you mean KAFKA-17754\?"):
        KafkaCluster(allow="KAFKA-1")


def test_tx_01_is_shown_with_librdkafka_on_the_newest_release(tmp_path: Path) -> None:
    """The fourth example fails by P1 first; its trail replays to the same, without librdkafka, in another process."""
    done = examples(tmp_path, "test_late_commit.py")
    assert done.returncode == 1, done.stdout
    for name in ("MarkerAttribution", "Atomicity", "AcknowledgedOutcome", "NoIntermediateRead"):
        assert f"{name} is violated: " in done.stdout
    short, path = sorted(tmp_path.iterdir())
    (command,) = {line.strip() for line in done.stdout.splitlines() if line.strip().startswith("kafka-proto replay")}
    assert command == f"kafka-proto replay {path}"
    for each in (path, short):
        assert replayed([each])[0]["verdict"]["violated"] == "MarkerAttribution"
    has, had = (len(read_trail(each).choices) for each in (short, path))
    assert has < had / 2 and f"MarkerAttribution in {has} steps of {had}:\n" in done.stdout
    ended = done.stdout.partition("the end of the session:")[2]
    assert "orders-1=[@0 b; ABORT; @2 y; ABORT]" in ended and "LeaveGroup group=billing" in ended
    assert f"kafka-proto demo {path}\n" in ended and f"kafka-proto demo {short}\n" in ended


def replayed(paths: list[Path]) -> list[dict[str, Any]]:
    """Replay trails in another process, each with a hash seed of its own."""
    found = []
    for seed, path in enumerate(paths):
        done = subprocess.run([sys.executable, "-c", REPLAY, "replay", "--json", str(path)], stdout=subprocess.PIPE,
                              text=True, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed)})
        found.append(json.loads(done.stdout))
    return found


def session(seed: int, path: Path) -> str:
    """Record transactions and reading under faults by chance; return the digest of a replay in this process."""
    kafka: Any = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    release, level = (("4.4.0", 2), ("3.9.2", 1), ("3.5.2", 0))[seed % 3]
    with KafkaCluster({"t": 2}, release=release, transaction_version=level, brokers=1 + seed % 3, faults=FAULTS,
                      seed=seed) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        producer = kafka.Producer({**servers, "transactional.id": "app", "socket.timeout.ms": 1000})
        consumer = kafka.Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest",
                                   "isolation.level": "read_committed"})
        consumer.subscribe(["t"])
        try:
            producer.init_transactions(5)
            for number in range(4):
                producer.begin_transaction()
                producer.produce("t", str(number), partition=number % 2)
                producer.flush(5)
                (producer.abort_transaction if number % 2 else producer.commit_transaction)(5)
                consumer.poll(0.2)
        except kafka.KafkaException:
            pass  # what the faults do to a client is its affair; the session is replayed whatever happened
        consumer.close()
    cluster.write_trail(path)
    digest = replay_plain(read_trail(path), Recorder(keep=False)).digest
    assert digest is not None
    return digest


@pytest.mark.parametrize("count", [3, pytest.param(100, marks=pytest.mark.large)])
def test_recorded_sessions_replay_with_the_same_digest_in_another_process(tmp_path: Path, count: int) -> None:
    """Sessions of librdkafka under faults; every answer of the replay is, byte for byte, the one that it got."""
    paths = [tmp_path / f"{seed}.trail.jsonl" for seed in range(count)]
    digests = [session(seed, path) for seed, path in enumerate(paths)]
    assert [found["digest"] for found in replayed(paths)] == digests
    assert len({*digests}) == count


def test_verbs_may_be_called_from_async_code() -> None:
    """aiokafka loses the answer to its EndTxn, and asks again; the transaction is committed once."""
    aiokafka: Any = pytest.importorskip("aiokafka", reason="aiokafka is not installed")

    async def run(cluster: KafkaCluster) -> list[bytes]:
        servers = {"bootstrap_servers": cluster.bootstrap_servers}
        producer = aiokafka.AIOKafkaProducer(transactional_id="app", **servers)
        await producer.start()
        cluster.lose("EndTxn")
        async with producer.transaction():
            await producer.send_and_wait("t", b"a")
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer("t", isolation_level="read_committed", auto_offset_reset="earliest",
                                             **servers)
        await consumer.start()
        first = await asyncio.wait_for(consumer.getone(), PATIENCE_S)
        await consumer.stop()
        return [first.value]

    with KafkaCluster({"t": 1}, brokers=2) as cluster:
        assert asyncio.run(run(cluster)) == [b"a"]
    assert cluster.verdict() is None


def test_clusters_start_and_stop_and_refuse_what_they_do_not_have() -> None:
    """Ten clusters one after the other, each with its ports free again; unknown brokers and releases are refused."""
    for _ in range(10):
        with KafkaCluster({"t": 1}, brokers=3) as cluster:
            assert cluster.bootstrap_servers.count("127.0.0.1:") == 3
            cluster.elect()
            with pytest.raises(ValueError, match="there is no broker 'b4'; there are b1, b2, b3"):
                cluster.crash("b4")
        assert cluster.verdict() is None
        with pytest.raises(RuntimeError, match="the cluster has ended"):
            cluster.delay("EndTxn")
    with pytest.raises(ValueError, match="no release 4;"), KafkaCluster(release="4"):
        pass


def test_a_plan_of_faults_begins_while_the_cluster_runs() -> None:
    """The second Metadata request from then on is dropped; the first one is answered."""
    with KafkaCluster({"t": 1}) as cluster:
        cluster.inject([TimedFault(0, "drop", "Metadata", 2)])
        host, port = cluster.bootstrap_servers.split(":")
        with Client(host, int(port)) as client:
            assert [topic["name"] for topic in client.ask(METADATA, 9, {"topics": None})["topics"]] == ["t"]
            with pytest.raises(ConnectionError):
                client.ask(METADATA, 9, {"topics": None})


WRONG_MARKS = [
    ('{"orders": -2}', "partitions of the topic 'orders' should be a number from 1 to 9999, not -2"),
    ('{"orders": True}', "partitions of the topic 'orders' should be a number from 1 to 9999, not True"),
    ('{"no/name": 1}', "a topic should be named by up to 249 letters, digits, '.', '_' and '-', not 'no/name'"),
    ('["orders"]', "topics should be names with numbers of partitions, as {'orders': 2}, not ['orders']"),
    ("brokers=50", "brokers should be a number from 1 to 9, not 50"),
    ("brokers=0", "brokers should be a number from 1 to 9, not 0"),
    ("brokers=3, replication_factor=4", "replication_factor should be a number from 1 to 3, not 4"),
    ("brokers=3, replication_factor=2, min_insync_replicas=3",
     "min_insync_replicas should be a number from 1 to 2, not 3"),
    ("num_partitions=0", "num_partitions should be a number from 1 to 9999, not 0"),
    ("broker=2", "there is no 'broker'; did you mean brokers?"),
    ('allow="all"', "there is no known bug 'all'; known are KAFKA-17754"),
    ('exactly_once="orders"', "an application should be declared as 'orders to payments group=billing by=key'"),
    ('release="4"', "no release 4;"),
    ('faults="crash b3"', "--faults 'crash b3': there is no broker 'b3'; there are b1"),
]


def test_a_mark_that_cannot_be_is_refused_in_one_sentence(pytester: pytest.Pytester) -> None:
    """Before the test: what was expected, and what was found; no traceback, and no cluster was started."""
    pytester.makepyfile("import pytest\n" + "".join(f"""
@pytest.mark.kafka_cluster({asked})
def test_{number}(kafka_cluster):
    print("never gets here")
""" for number, (asked, _) in enumerate(WRONG_MARKS)))
    done = pytester.runpytest_subprocess("-q", "-p", "no:xdist")
    done.assert_outcomes(errors=len(WRONG_MARKS))
    for number, (_, said) in enumerate(WRONG_MARKS):
        assert f"\ntest_{number} has a mark kafka_cluster that cannot be: {said}" in done.stdout.str()
    assert "Traceback" not in done.stdout.str() and "cluster.py" not in done.stdout.str()


def test_a_test_is_run_for_each_seed_until_one_fails(pytester: pytest.Pytester) -> None:
    """Each seed is a test with other faults; after the first that fails the others are skipped, and say why."""
    pytester.makepyfile("""
import pytest

@pytest.mark.kafka_cluster({"t": 1}, faults="delay=2,crash=1", seeds=4)
def test_it(kafka_cluster):
    assert kafka_cluster.seed != 2

@pytest.mark.kafka_cluster({"t": 1}, faults="delay=2", seeds=2)
def test_other(kafka_cluster):
    pass
""")
    done = pytester.runpytest_subprocess("-q", "-p", "no:xdist")
    done.assert_outcomes(passed=4, failed=1, skipped=1)
    done.stdout.fnmatch_lines(["*test_it[[]seed-2[]]*"])
    assert "kafka-proto replay out/" in done.stdout.str()
    for wrong in ("seeds=0, faults='delay=1'", "seeds=2", "seeds='2', faults='delay=1'"):
        pytester.makepyfile(f"""
import pytest

@pytest.mark.kafka_cluster({{"t": 1}}, {wrong})
def test_it(kafka_cluster):
    pass
""")
        done = pytester.runpytest_subprocess("-q", "-p", "no:xdist")
        assert "test_it: seeds should be a number from 1 to 10000, beside faults by chance" in done.stdout.str()


def test_num_partitions_is_for_topics_that_are_made_without_a_number(tmp_path: Path) -> None:
    """On first use, and by CreateTopics with -1; topics of the mark keep theirs; the session replays."""
    row = {"name": "made", "num_partitions": -1, "replication_factor": -1, "assignments": (), "configs": ()}
    with KafkaCluster({"given": 1}, num_partitions=3) as cluster:
        host, port = cluster.bootstrap_servers.split(":")
        with Client(host, int(port)) as client:
            (made,) = client.ask(CREATE_TOPICS, 5, {"topics": (row,), "validate_only": False})["topics"]
            assert (made["error_code"], made["num_partitions"]) == (0, 3)
            asked = {"topics": ({"name": "used"},), "allow_auto_topic_creation": True}
            assert [len(topic["partitions"]) for topic in client.ask(METADATA, 9, asked)["topics"]] == [3]
            found = client.ask(METADATA, 9, {"topics": None})["topics"]
    assert {topic["name"]: len(topic["partitions"]) for topic in found} == {"given": 1, "made": 3, "used": 3}
    path = tmp_path / "made.trail.jsonl"
    cluster.write_trail(path)
    assert [each["verdict"]["ok"] for each in replayed([path])] == [True]
