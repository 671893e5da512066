"""Servers of Kafka's protocol as processes, to compare: ours, franz-go's kfake, and Kafka itself.

Each needs its tools: kfake Go, Kafka Java 17 and Maven. What is not there is said, and left out.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache" / "kafka-proto"
READY = "bootstrap.servers="


class Missing(Exception):
    """A server cannot be had on this machine."""


@contextmanager
def running(command: list[str], ends: int = signal.SIGTERM) -> Iterator[tuple[str, int]]:
    """Run a server while the block lasts; yield where clients find it, and its process id."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if line.startswith(READY)), None)
            if line is None:
                raise Missing(f"{command[0]} ended before it served")
            yield line.strip().removeprefix(READY), process.pid
        finally:
            process.send_signal(ends)
            process.wait(60)


def ours(brokers: int, *options: str) -> list[str]:
    """Return the command of brokers of this project; of three replicas two have to have a record."""
    here = [sys.executable, "-c", "from harness.cli import main; main()"]
    least = ["--min-insync-replicas", "2"] if brokers > 2 else []
    return [*here, "serve", "t=1", "--brokers", str(brokers), *least, *options]


def kfake(brokers: int) -> list[str]:
    """Return the command of franz-go's kfake, built once; its brokers do not replicate."""
    if shutil.which("go") is None:
        raise Missing("go is not installed")
    program = CACHE / "kfake"
    built = subprocess.run(["go", "-C", str(HERE / "kfake"), "build", "-o", str(program), "."], capture_output=True,
                           text=True)
    if built.returncode != 0:
        raise Missing(f"kfake does not build: {built.stderr.strip().splitlines()[-1]}")
    return [str(program), str(brokers)]


def kafka(brokers: int) -> list[str]:
    """Return the command of one broker of Kafka 4.4.0."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        raise Missing("Java 17 or Maven is not installed")
    if brokers > 1:
        raise Missing("one broker only")
    return [sys.executable, str(HERE / "real_broker.py"), "4.4.0"]


SERVERS: dict[str, Callable[[int], list[str]]] = {"ours": ours, "kfake": kfake, "Kafka 4.4.0": kafka}
