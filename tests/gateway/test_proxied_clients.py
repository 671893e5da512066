"""Real clients through `kafka-proto proxy` in front of brokers of ours, over sockets."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.commands.command_line import PATIENCE_S, call, wait_until
from support.gateway.client_programs import PROGRAMS, Client, Missing, command_of, running
from support.gateway.scripted_client import Scripted
from support.gateway.serve_process import serving

from harness.model import Refusal
from harness.record import Recorder, read_trail
from harness.simulate.trails.replay import replay_plain
from kafka_proto.broker.changes import CHANGES
from kafka_proto.broker.versions import version_of
from kafka_proto.gateway import host
from kafka_proto.gateway.cluster import KafkaCluster, KafkaProxy
from kafka_proto.gateway.command import proxy


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str], list[str]]:
    """End the command, and return its exit code, what it prints then, and what is on stderr."""
    process.send_signal(signal.SIGTERM)
    said, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said.splitlines(), errors.splitlines()


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_client_does_through_a_proxy_what_it_does_without(client: str, tmp_path: Path) -> None:
    """Groups, transactions, fencing, and retries under faults: all is silent, and the trail has the whole session."""
    try:
        command = command_of(Client(client))
    except Missing as missing:
        pytest.skip(str(missing))
    with KafkaCluster(brokers=3) as behind, KafkaProxy(behind.bootstrap_servers.split(",")[0]) as before:
        with running(command, before.bootstrap_servers) as program:
            found = {feature: program.ask(feature) for feature in ("produce", "group", "commit", "abort", "offsets",
                                                                   "fencing")}
            before.lose("EndTxn", nth=2)
            before.drop("Produce", nth=4)
            before.pause("b2", for_ms=700)
            found["retries"] = program.ask("retries")
        path = tmp_path / "session.trail.jsonl"
        before.write_trail(path)
        assert ({name: error for name, error in found.items() if error}, before.verdict()) == ({}, None)
        assert before.unjudged() == ()
    run = replay_plain(read_trail(path), Recorder(keep=False))
    assert run.verdict.ok and run.digest is not None
    assert run.digest in call("replay", path).out, "another process, without the brokers"
    assert "ok (" in call("verify", path).out, "what clients saw, too"


def test_a_late_end_leaves_a_trail_that_replays_without_client_and_brokers(tmp_path: Path) -> None:
    """KAFKA-17754 before brokers that do not know of the fault; exit code 1, and the printed command finds it."""
    with KafkaCluster({"t": 2}, brokers=2) as behind:
        upstream = behind.bootstrap_servers.split(",")[1]
        words = ("--upstream", upstream, "--faults", "delay EndTxn for_ms=1500")
        with serving(*words, folder=tmp_path, command="proxy") as (address, process), Scripted(address) as producer:
            assert address.count(",") == 1
            assert (producer.init(), producer.write(0, b"a")) == (0, 0)
            producer.end_and_give_up(True)
            assert (producer.end(True), producer.write(1, b"b"), producer.end(False)) == (0, 0, 0)
            assert producer.write(0, b"x") == 0
            wait_until(lambda: producer.state() == "CompleteCommit")
            code, lines, errors = ended(process)
        assert behind.problems() == {}
    assert (code, [re.sub("[0-9]+$", "N", line) for line in errors]) == (
        1, ["b1 is node 1, 127.0.0.1:N", "b2 is node 2, 127.0.0.1:N"])
    assert lines[1:] == [
        "MarkerAttribution is violated: the COMMIT of t-0 at offset 3 was caused by app#1, but ends offset 2 of app#3",
        "kafka-proto replay out/proxy.trail.jsonl"]
    replayed = call("replay", tmp_path / "out" / "proxy.trail.jsonl")
    assert replayed.code == 1 and "MarkerAttribution" in replayed.out


@pytest.mark.parametrize("change", ["", "unlisted"])
def test_a_reader_is_not_told_what_is_aborted(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-5376 in the brokers behind a proxy: what a consumer got is the proof; brokers that list it are silent."""
    if change:
        monkeypatch.setattr(host, "version_of", lambda *of: CHANGES[change].of(version_of(*of), change))
    with KafkaCluster({"t": 1}) as behind, KafkaProxy(behind.bootstrap_servers) as before:
        with Scripted(before.bootstrap_servers) as producer:
            assert (producer.init(), producer.write(0, b"a"), producer.end(False)) == (0, 0, 0)
            producer.until("CompleteAbort")
            assert producer.read(0) == [b"a"][:bool(change)]
        path = tmp_path / "session.trail.jsonl"
        before.write_trail(path)
        assert set(before.problems()) == ({"ReadBound"} if change else set())
    seen = call("verify", path).out
    assert ("(txn by app#1) sends 0.0#0 to log t-0 and fails" in seen) is bool(change)
    assert ("of t-0) reads 0.0#0 at offset 0 of log t-0" in seen) is bool(change)


def test_replicated_brokers_behind_a_proxy_change_leaders_while_a_client_writes(tmp_path: Path) -> None:
    """An upstream broker crashes, another is elected: clients are told the proxy's addresses, and nothing is lost."""
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="needs the extra `clients`")
    with KafkaCluster({"t": 3}, brokers=3, min_insync_replicas=2) as behind, KafkaProxy(
            behind.bootstrap_servers.split(",")[2]) as before:
        own = {"bootstrap.servers": before.bootstrap_servers, "log_level": 0, "socket.timeout.ms": 3000}
        producer = confluent_kafka.Producer({**own, "transactional.id": "app"})
        producer.init_transactions(PATIENCE_S)
        doings = iter((lambda: behind.elect("t-0"), lambda: behind.crash("b2", for_ms=1000), lambda: behind.elect(),
                       lambda: before.lose("EndTxn"), lambda: before.crash("b3", for_ms=500)))
        for turn in range(10):
            producer.begin_transaction()
            for partition in range(3):
                producer.produce("t", b"%d" % turn, partition=partition)
            if turn % 2:
                next(doings)()
            producer.send_offsets_to_transaction(
                [confluent_kafka.TopicPartition("t", 0, turn)],
                confluent_kafka.Consumer({**own, "group.id": "g"}).consumer_group_metadata(), PATIENCE_S)
            producer.commit_transaction(PATIENCE_S)
        reader = confluent_kafka.Consumer({**own, "group.id": "r", "isolation.level": "read_committed",
                                           "auto.offset.reset": "earliest"})
        reader.subscribe(["t"])
        found: list[bytes] = []
        wait_until(lambda: found.extend(each.value() for each in reader.consume(100, 0.5)) or len(found) == 30)
        told = {f"{each.host}:{each.port}" for each in reader.list_topics(timeout=PATIENCE_S).brokers.values()}
        reader.close()
        assert told == {*before.bootstrap_servers.split(",")}
        path = tmp_path / "session.trail.jsonl"
        before.write_trail(path)
        assert (before.verdict(), before.unjudged(), behind.verdict()) == (None, (), None)
    assert sorted(found) == sorted(b"%d" % turn for turn in range(10) for _ in range(3))
    assert replay_plain(read_trail(path), Recorder(keep=False)).verdict.ok
    assert "ok (" in call("verify", path).out, "what clients saw, too"


def test_verbs_come_as_lines_and_from_python() -> None:
    with KafkaCluster({"t": 1}) as behind:
        with serving("--upstream", behind.bootstrap_servers, "--faults", "-", command="proxy") as (address, process):
            assert process.stdin is not None and process.stderr is not None
            assert process.stderr.readline() == f"b1 is node 1, {behind.bootstrap_servers}\n"
            for line, said in (
                ("elect", "kafka-proto: --faults: elect is not possible in front of another cluster, whose brokers do "
                 "not hear the proxy"),
                ("pause b1 for_ms=300", "fault 1: pause b1 for_ms=300"),
            ):
                print(line, file=process.stdin, flush=True)
                assert process.stderr.readline().strip() == said
            with Scripted(address) as producer:
                assert producer.init() == 0
            assert ended(process)[0] == 0
        with KafkaProxy(behind.bootstrap_servers, faults="answer InitProducerId error=NOT_COORDINATOR") as before:
            with Scripted(before.bootstrap_servers) as producer:
                assert (producer.init(), producer.init()) == (16, 0)
            with pytest.raises(ValueError, match="elect is not possible in front of another cluster"):
                before.elect()
            with pytest.raises(ValueError, match="who leads is not known in front of another cluster"):
                before.leader("t-0")
        with pytest.raises(Refusal, match="there is no broker 'b2'"):
            KafkaProxy(behind.bootstrap_servers, faults="crash b2").__enter__()


@pytest.mark.parametrize(("words", "said"), [
    ({}, "no broker is named; give --upstream HOST:PORT, such as 127.0.0.1:9092"),
    ({"--upstream": "here"}, "--upstream must be HOST:PORT, such as 127.0.0.1:9092, not 'here'"),
    ({"--upstream": "127.0.0.1:1"}, "127.0.0.1:1 does not answer as a broker without TLS and password"),
    ({"--upstream": "127.0.0.1:1", "--port": "x"}, "--port must be a number from 0 to 65535, not 'x'"),
])
def test_what_cannot_be_served_is_refused(words: dict[str, str], said: str) -> None:
    with pytest.raises(Refusal, match=re.escape(said)):
        proxy.run((), {**dict.fromkeys(option.name for option in proxy.options), **words})
