"""Real clients against a served broker, over sockets: produce, consume, transactions. Missing clients are skipped."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.commands.command_line import PATIENCE_S
from support.gateway.client_programs import CLUSTERS, FEATURES, PROGRAMS, Client, Missing, command_of, running
from support.gateway.serve_process import serving
from support.gateway.wire import request_bytes, responses

from harness.model import Refusal
from harness.record import read_trail
from harness.simulate.trails.replay import replay_plain
from kafka_proto.gateway.command import serve
from kafka_proto.gateway.offer import METADATA

ASKED = request_bytes(METADATA, 9, {"topics": None})


@pytest.fixture(scope="module", params=CLUSTERS, ids=lambda cluster: f"{cluster[0]} level {cluster[1]}")
def served(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a broker of a release, in a process of its own."""
    release, level = request.param
    with serving("--release", release, "--transaction-version", str(level)) as (address, _):
        yield address


def test_serve_ends_in_order_when_it_is_told_to() -> None:
    """SIGTERM ends it with what it served and exit code 0, connected clients or not."""
    with serving("orders=3") as (address, process):
        host, port = address.split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(ASKED)
            size = int.from_bytes(client.recv(4), "big")
            answer = client.recv(size, socket.MSG_WAITALL)
            ((_, found),) = responses(size.to_bytes(4, "big") + answer, (METADATA, 9))
            assert [(topic["name"], len(topic["partitions"])) for topic in found["topics"]] == [("orders", 3)]
            assert [(broker["host"], str(broker["port"])) for broker in found["brokers"]] == [(host, port)]
            process.send_signal(signal.SIGTERM)
            said, errors = process.communicate(timeout=PATIENCE_S)
        assert (errors, process.returncode) == ("", 0)
        assert said == f"ended after 1 connections and {len(ASKED)} bytes received\n"


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_served_session_is_a_whole_trail_when_it_ends(told: signal.Signals, tmp_path: Path) -> None:
    """With two brokers and faults by chance: however it is told to end, the file is there then, and replays."""
    path = tmp_path / "session.trail.jsonl"
    with serving("t=1", "--brokers", "2", "--faults", "delay=2,pause=1", "--seed", "3", "--trail", str(path)) as (
            address, process):
        host, port = address.split(",")[1].split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(ASKED)
            assert len(client.recv(4)) == 4 and list(tmp_path.iterdir()) == []
            process.send_signal(told)
            said, errors = process.communicate(timeout=PATIENCE_S)
    assert (errors, process.returncode, list(tmp_path.iterdir())) == ("", 0, [path])
    assert said.splitlines()[1] == f"kafka-proto replay {path}"
    trail = read_trail(path)
    assert replay_plain(trail).verdict.ok
    first = next(chosen.label for chosen in trail.choices if chosen.label.startswith("Arrived(c0,"))
    assert first.endswith(" Metadata")


@pytest.mark.parametrize(("words", "said"), [
    (("--release", "4.4"), "there is no release '4.4'; expected one of 3.5.2, 3.6.2, 3.7.2, 3.8.1, 3.9.2, 4.0.0, "
     "4.1.1, 4.2.0, 4.3.1, 4.4.0"),
    (("--release", "3.5.2", "--transaction-version", "1"), "--transaction-version must be a number from 0 to 0"),
    (("--port", "70000"), "--port must be a number from 0 to 65535, not '70000'"),
    (("--host", "0.0.0.0"), "--host must be an IPv4 address of this machine"),
    (("--host", "here"), "--host must be an IPv4 address of this machine that clients can reach, not 'here'"),
    (("--listen", "all"), "--listen must be an IPv4 address of this machine, or 0.0.0.0 for all of them, not 'all'"),
    (("--brokers", "0"), "--brokers must be a number from 1 to 9, not '0'"),
    (("--replication-factor", "2"), "--replication-factor must be a number from 1 to 1, not '2'"),
    (("--min-insync-replicas", "2"), "--min-insync-replicas must be a number from 1 to 1, not '2'"),
    (("--num-partitions", "0"), "--num-partitions must be a number from 1 to 9999, not '0'"),
    (("--faults", "delay"), "--faults 'delay' is not FAULT=COUNT, such as delay=2"),
    (("--trail", "/"), "/ is a folder; give --trail a file"),
    (("orders",), "'orders' is not a topic; expected NAME=PARTITIONS, such as orders=3"),
])
def test_serve_refuses_what_cannot_be_in_one_sentence(words: tuple[str, ...], said: str) -> None:
    """Bad options end it before it listens."""
    with pytest.raises(Refusal, match=re.escape(said)):
        options = dict.fromkeys(option.name for option in serve.options)
        given = dict(zip(words[::2], words[1::2], strict=True)) if words[0].startswith("--") else {}
        serve.run(() if given else words, {**options, **given})


@pytest.mark.parametrize("client", [*map(Client, PROGRAMS)], ids=str)
def test_a_python_client_has_every_feature_but_failures(client: Client, served: str) -> None:
    """It reads what was committed and not what was aborted, alone and in a group, sends offsets, and is fenced."""
    try:
        command = command_of(client)
    except Missing as missing:
        pytest.skip(f"{client}: {missing}")
    with running(command, served) as program:
        found = {feature: program.ask(feature) for feature in FEATURES if feature != "retries"}
    assert {feature: error for feature, error in found.items() if error} == {}
