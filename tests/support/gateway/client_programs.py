"""Real clients as programs: built where their tools are, and asked for a feature by a line on stdin.

What is downloaded and built is kept outside of the tree, in $XDG_CACHE_HOME/kafka-proto/clients (~/.cache where nothing
is set): a folder for each client, release and digest of the sources.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from kafka_proto.gateway.cluster import KafkaCluster

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-proto" / "clients"
SOURCES = Path(__file__).resolve().parent / "clients"
PYTHON = {"librdkafka": "confluent_kafka", "kafka-python": "kafka", "aiokafka": "aiokafka"}
DISTRIBUTIONS = {"librdkafka": "confluent-kafka"}
PROGRAMS = {"librdkafka": "librdkafka.py", "kafka-python": "kafka_python.py", "aiokafka": "aio.py"}
NEWEST = {"java": "4.4.0", "franz-go": "1.22.2"}
OLD = {"librdkafka": "2.3.0", "aiokafka": "0.10.0", "java": "3.5.2"}
CLUSTERS = (("3.5.2", 0), ("3.9.2", 1), ("4.4.0", 2))
FEATURES = ("produce", "group", "commit", "abort", "offsets", "fencing", "retries")
LONGEST_BUILD = 1_800.0
LONGEST_ANSWER = 120.0


class Missing(Exception):
    """What the machine lacks for a client, in words."""


@attrs.frozen
class Client:
    """A client in a release, where nothing is said the one that is installed."""

    name: str
    release: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.release}".strip()


CLIENTS = (*map(Client, PROGRAMS), *(Client(*each) for each in (*NEWEST.items(), *OLD.items())))


def command_of(client: Client) -> list[str]:
    """Return the command that runs a client, which is built first. Raises Missing."""
    if client.name in PROGRAMS:
        if client.release:
            return _python(client)
        if importlib.util.find_spec(PYTHON[client.name]) is None:
            raise Missing(f"{client.name} is not installed")
        return [sys.executable, str(SOURCES / PROGRAMS[client.name])]
    return {"java": _java, "franz-go": _franz_go}[client.name](client.release)


def version(client: Client) -> str:
    """Return the release of a client, which is the installed one where none is said."""
    if client.release:
        return client.release
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(client.name, client.name))
    except importlib.metadata.PackageNotFoundError:
        return ""


def _python(client: Client) -> list[str]:
    """Return the command of a Python client in a release that is not the installed one."""
    distribution = DISTRIBUTIONS.get(client.name, client.name)
    folder = CACHE / f"{distribution}-{client.release}"
    if not (folder / "complete").exists():
        _run(sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--target", str(folder),
             f"{distribution}=={client.release}")
        (folder / "complete").touch()
    return ["env", f"PYTHONPATH={folder}", sys.executable, str(SOURCES / PROGRAMS[client.name])]


def _java(release: str) -> list[str]:
    folder = _folder("java", release)
    if not (folder / "complete").exists():
        _run("mvn", "-q", "-B", "-f", str(SOURCES / "java" / "pom.xml"), "dependency:copy-dependencies",
             "-DincludeScope=runtime", f"-Drelease={release}", f"-DoutputDirectory={folder / 'libs'}")
        _run("javac", "-nowarn", "-Xlint:none", "-d", str(folder / "classes"), "-cp", f"{folder / 'libs'}/*",
             *map(str, sorted((SOURCES / "java").glob("*.java"))))
        (folder / "complete").touch()
    return ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp",
            f"{folder / 'classes'}:{folder / 'libs'}/*", "Features"]


def _franz_go(release: str) -> list[str]:
    program = _folder("go", release) / "features"
    if not program.exists():
        _run("go", "-C", str(SOURCES / "go"), "build", "-o", str(program), ".")
    return [str(program)]


def _folder(language: str, release: str) -> Path:
    """Return where a client in a release is built."""
    sources = hashlib.sha256()
    for path in sorted((SOURCES / language).iterdir()):
        sources.update(path.read_bytes())
    folder = CACHE / f"{language}-{release}-{sources.hexdigest()[:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(tool: str, *words: str) -> None:
    """Run a tool that builds. Raises Missing where it is not there, or what it needs cannot be had."""
    if shutil.which(tool) is None:
        raise Missing(f"{tool} is not installed")
    done = subprocess.run([tool, *words], capture_output=True, text=True, timeout=LONGEST_BUILD)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        offline = ("Could not transfer", "UnknownHost", "dial tcp", "no such host", "Could not resolve")
        if any(word in line for line in lines for word in offline):
            raise Missing(f"{tool} reaches no registry")
        raise AssertionError("\n".join([f"{tool} failed:", *lines[-20:]]))


class Running:
    """A client that runs. `said` has what it writes to stdout besides answers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.said: dict[str, str] = {}

    def ask(self, line: str, seconds: float = LONGEST_ANSWER) -> str:
        """Have it run a feature, and return what went wrong, nothing where all is well."""
        assert self._process.stdin is not None and self._process.stdout is not None
        ends = threading.Timer(seconds, self._process.kill)
        ends.start()
        try:
            print(line, file=self._process.stdin, flush=True)
            for answer in self._process.stdout:
                found = json.loads(answer)
                if "feature" in found:
                    return str(found["error"])
                self.said |= found
        except BrokenPipeError:
            pass
        finally:
            ends.cancel()
        return f"it ended, or gave no answer within {seconds:.0f} s"


@contextmanager
def running(command: Sequence[str], servers: str) -> Iterator[Running]:
    """Run a client against brokers; what it logs is thrown away."""
    with subprocess.Popen([*command, servers], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


def played(cluster: KafkaCluster, client: Running, features: Sequence[str] = FEATURES) -> dict[str, str]:
    """Play features, and return what went wrong in each. In `retries` brokers fail."""
    found = {}
    for feature in features:
        if feature == "retries":
            cluster.lose("EndTxn", nth=2)
            cluster.drop("Produce", nth=4)
            cluster.elect()
            cluster.crash("b2", for_ms=700)
        found[feature] = client.ask(feature)
    return found
