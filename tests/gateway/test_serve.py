"""Plans of faults through the command line: verbs, a scenario by its name, lines while it runs; and a violation."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.commands.command_line import PATIENCE_S, call, wait_until
from support.gateway.scripted_client import Scripted
from support.gateway.serve_process import serving
from support.gateway.wire import request_bytes

from harness.model import Refusal
from harness.record import read_trail
from harness.simulate.trails.replay import replay_plain
from kafka_proto.gateway import offer
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.command import serve


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """End the command, and return its exit code, the lines that it prints then, and what is on stderr."""
    process.send_signal(signal.SIGTERM)
    said, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said.splitlines(), errors


def tell(process: subprocess.Popen[str], line: str) -> str:
    """Write a line to the command, and return what it says about that."""
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stderr.readline().strip()


def test_another_address_than_loopback_comes_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    """The warning is there before anybody could connect; an address that this machine does not have is refused."""
    options = dict.fromkeys(option.name for option in serve.options)
    with pytest.raises(Refusal, match=re.escape("cannot listen on 192.0.2.1 port 0")):
        serve.run((), {**options, "--host": "192.0.2.1"})
    assert "warning: anyone who reaches 192.0.2.1 can read and write" in capsys.readouterr().err


def test_brokers_may_listen_elsewhere_than_clients_find_them() -> None:
    """As in a container: one address is listened on, clients are told another, and nothing listens there."""
    asked = request_bytes(offer.METADATA, 9, {"topics": None})
    with serving("--host", "127.0.0.2", "--listen", "127.0.0.3") as (address, _):
        host, port = address.split(":")
        with socket.create_connection(("127.0.0.3", int(port)), 20) as client:
            client.sendall(asked)
            assert host == "127.0.0.2" and b"\x0a127.0.0.2" in client.recv(4096)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)), 20)


def test_faults_come_as_lines_and_a_violation_is_left_as_a_trail_that_replays(tmp_path: Path) -> None:
    """KAFKA-17754 by hand: the first EndTxn is held until `end 1`; P1 is named, and the printed command finds it."""
    with serving("t=2", "--faults", "-", folder=tmp_path) as (address, process), Scripted(address) as producer:
        assert tell(process, "delay EndTxm") == (
            "kafka-proto: --faults 'delay EndTxm': clients send no request 'EndTxm'; did you mean EndTxn?")
        assert tell(process, "end 1") == "kafka-proto: there is no fault 1; 0 began so far"
        assert tell(process, "delay EndTxn") == "fault 1: delay EndTxn nth=1"
        assert (producer.init(), producer.write(0, b"a")) == (0, 0)
        producer.end_and_give_up(True)
        assert (producer.end(True), producer.write(1, b"b"), producer.end(False), producer.write(0, b"x")) == (0,) * 4
        assert producer.read(0) == [b"a"]
        assert tell(process, "end 1\nelect t-0") == "fault 2: elect t-0"
        assert producer.state() == "CompleteCommit"
        code, lines, errors = ended(process)
    assert (code, errors) == (1, "")
    assert lines[1:] == [
        "MarkerAttribution is violated: the COMMIT of t-0 at offset 3 was caused by app#1, but ends offset 2 of app#3",
        "kafka-proto replay out/serve.trail.jsonl"]
    replayed = call("replay", tmp_path / "out" / "serve.trail.jsonl")
    assert replayed.code == 1 and "MarkerAttribution" in replayed.out


def test_a_plan_has_verbs_and_the_faults_of_a_scenario(tmp_path: Path) -> None:
    """An end is late, then its markers wait between brokers, for a time or for ever; the trail has it all."""
    path = tmp_path / "plan.trail.jsonl"
    links = "partition b1 b2 for_ms=900; partition b1 b3\npartition b2 b3 for_ms=900"
    with serving("t=3", "--brokers", "3", "--release", "3.5.2", "--faults", f"late-end timeout_ms=400;{links}",
                 "--trail", str(path), "--host", "127.0.0.2") as (address, process), Scripted(address) as producer:
        assert address.count("127.0.0.2:") == 3, "loopback, too, so there is no warning"
        assert (producer.init(), [producer.write(n, b"a") for n in range(3)]) == (0, [0, 0, 0])
        assert (producer.coordinator, sorted(producer.leaders)) == (1, [1, 2, 3])
        first, second, third = (producer.leaders.index(broker) for broker in (1, 2, 3))
        producer.end_and_give_up(True)
        wait_until(lambda: producer.read(first) == producer.read(second) == [b"a"])
        assert (producer.read(third), producer.state()) == ([], "PrepareCommit")
        code, lines, errors = ended(process)
    assert (code, lines[1:], errors) == (0, [f"kafka-proto replay {path}"], "")
    trail = read_trail(path)
    labels = [chosen.label for chosen in trail.choices]
    assert [label for label in labels if label.startswith("Injected")] == [
        "Injected(f1) delay EndTxn", "Injected(f2) partition b1 b2", "Injected(f3) partition b1 b3",
        "Injected(f4) partition b2 b3"]
    late = next(n for n, label in enumerate(labels) if "late EndTxn commit app#1" in label)  # with whatever comes then
    assert labels.index("Arrived(c3) EndTxn commit app#1 delay") < late
    assert replay_plain(trail).verdict.ok


def test_a_session_replays_in_which_a_broker_with_twelve_connections_crashed(tmp_path: Path) -> None:
    """They are closed by number, 9 before 10, live and in the replay."""
    path = tmp_path / "crash.trail.jsonl"
    with serving("--faults", "-", "--trail", str(path)) as (address, process), ExitStack() as clients:
        host, _, port = address.partition(":")
        sockets = [clients.enter_context(socket.create_connection((host, int(port)), 20)) for _ in range(12)]
        for client in sockets:
            client.sendall(request_bytes(offer.API_VERSIONS, 0, {}))
            assert client.recv(1), "it is open at the broker, and idle from now on"
        assert tell(process, "crash b1 for_ms=300") == "fault 1: crash b1 for_ms=300"
        for client in sockets:
            while client.recv(4096):
                pass
        code, lines, errors = ended(process)
    assert (code, lines[1:], errors) == (0, [f"kafka-proto replay {path}"], "")
    opened = [chosen for chosen in read_trail(path).choices if chosen.label.startswith("Opened")]
    replayed = call("replay", path)
    assert len(opened) == 12 and replayed.code == 0, replayed


def test_num_partitions_is_part_of_the_session(tmp_path: Path) -> None:
    """A topic that is first asked for by its name has so many partitions, in the replay, too."""
    path = tmp_path / "made.trail.jsonl"
    with serving("t=1", "--num-partitions", "4", "--trail", str(path)) as (address, process):
        host, port = address.split(":")
        with Client(host, int(port)) as client:
            asked = {"topics": ({"name": "made"}, {"name": "t"}), "allow_auto_topic_creation": True}
            found = client.ask(offer.METADATA, 9, asked)["topics"]
        assert [len(topic["partitions"]) for topic in found] == [4, 1]
        code, lines, errors = ended(process)
    assert (code, lines[1:], errors) == (0, [f"kafka-proto replay {path}"], "")
    trail = read_trail(path)
    assert trail.choices[0].input is not None and '"num_partitions":4' in trail.choices[0].input.text
    assert replay_plain(trail).verdict.ok
