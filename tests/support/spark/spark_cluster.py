"""A Spark standalone cluster of the pip package on loopback: a master and its workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
import pyspark

from support.commands.command_line import PATIENCE_S, alive_in_group, wait_until
from support.spark.spark_session import need_java

HOST = "127.0.0.1"
CLASSES = {"master": "org.apache.spark.deploy.master.Master", "worker": "org.apache.spark.deploy.worker.Worker"}
LONG_S = 5 * PATIENCE_S
"""A cluster is five processes of Java on a machine that may have one core."""
EXECUTOR = b"CoarseGrainedExecutorBackend"


@attrs.frozen
class Cluster:
    """A master's URL and its workers; each leads a group of processes that has its executors, too."""

    url: str
    workers: tuple[subprocess.Popen[bytes], ...]

    def executors(self, worker: int) -> list[int]:
        """Return the executors of a worker that run now."""
        return [pid for pid in alive_in_group(self.workers[worker].pid) if EXECUTOR in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def cluster(folder: Path, workers: int = 2, cores: int = 1) -> Iterator[Cluster]:
    """Start a cluster that keeps its files in a folder, and end it."""
    need_java()
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    url = f"spark://{HOST}:{port}"
    with ExitStack() as stack:
        stack.enter_context(_daemon(folder, "master", "--port", str(port)))
        wait_until(lambda: "I have been elected leader" in _said(folder, "master"), LONG_S)
        some = tuple(
            stack.enter_context(_daemon(folder, "worker", "--cores", str(cores), "--memory", "1g", "--work-dir",
                                        str(folder / f"work-{n}"), url, name=f"worker-{n}"))
            for n in range(workers))
        for n in range(workers):
            wait_until(lambda n=n: "Successfully registered with master" in _said(folder, f"worker-{n}"),
                       LONG_S)
        yield Cluster(url, some)


def _said(folder: Path, name: str) -> str:
    return (folder / f"{name}.log").read_text(encoding="utf-8")


@contextmanager
def _daemon(folder: Path, what: str, *arguments: str, name: str = "") -> Iterator[subprocess.Popen[bytes]]:
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "256m",
                   "SPARK_NO_DAEMONIZE": "1"}
    with (folder / f"{name or what}.log").open("wb") as log:
        process = subprocess.Popen(
            [home / "bin" / "spark-class", CLASSES[what], "--host", HOST, "--webui-port", "0", *arguments],
            stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        if alive_in_group(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
