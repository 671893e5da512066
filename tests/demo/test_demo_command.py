"""`kafka-proto demo` as a process: its address, its end, what it refuses, and a trail that it opens."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("hypercorn")

from support.commands.command_line import COMMAND, PATIENCE_S, call

TXN = "kafka/4.0"


def start(*arguments: str) -> tuple[subprocess.Popen[str], int]:
    """Start the command; return its process and the port it says."""
    process = subprocess.Popen(
        [*COMMAND, "demo", "--port", "0", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    found = re.search(r"the demo is at http://127\.0\.0\.1:(\d+)/ ", said)
    assert found is not None, process.communicate()
    return process, int(found[1])


@pytest.mark.skipif(sys.platform == "win32", reason="interrupts are sent as on Unix")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_ends_the_command_in_order_with_tabs_open(number: signal.Signals) -> None:
    """Exit code 0, nothing on stderr, and it does not take as long as connections may live."""
    process, port = start(TXN)
    connections = []
    for path in ("/api/events", "/api/events", "/"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        connection.request("GET", path)
        connections.append(connection)
        answer = connection.getresponse()
        answer.readline()
    run = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    run.request("POST", "/api/run", '{"until": "end", "speed": 5}')
    assert run.getresponse().status == 200
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (0, "", "")
    for connection in (*connections, run):
        connection.close()


def test_port_in_use_is_one_sentence() -> None:
    """Exit code 2, with what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = call("demo", "--port", port).refusal
    assert said == f"cannot listen on 127.0.0.1 port {port}: Address already in use; give another one with --port N"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nope",), "there is no model 'nope'"), (("nope.jsonl",), "there is no trail at nope.jsonl"),
        ((TXN, "--size", "brokers=99"), "size brokers"), ((TXN, "--size", "brokers"), "expected NAME=N"),
        ((TXN, "--port", "70000"), "70000 is not in the range"), ((TXN, "--faults", "all"), "is not one of 'own'"),
        ((TXN, "--host", "no.such.host.invalid"), "cannot listen on no.such.host.invalid"),
    ],
)
def test_bad_use_of_the_command_is_one_sentence(arguments: tuple[str, ...], said: str) -> None:
    """Before anything is served."""
    assert said in call("demo", *arguments).refusal


def test_demo_opens_the_trail_of_another_command(tmp_path: Path) -> None:
    """At its end; its own sizes and faults are not to be changed, and a damaged one is refused."""
    made = call("simulate", "s4-copied-tail", "--seeds", 40, "--out", tmp_path, "--json").json
    assert "leave out --size" in call("demo", made["trail"], "--size", "brokers=2").refusal
    process, port = start(made["trail"])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", "/api/properties")
    assert json.loads(connection.getresponse().read())["failing"]["LogsAgreeUpToHwm"]
    connection.close()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE_S)[1] == ""
    path = Path(made["trail"])
    path.write_text("\n".join(path.read_text().splitlines()[:-1]), encoding="utf-8")
    assert "is cut off" in call("demo", path).refusal
