"""Clients' own test suites against the brokers of this project, or against others: what passes, fails, is skipped.

    python benchmarks/client_suites.py NAME [--only PATTERN] [--brokers N] [--replays N] [--against HOST:PORT]
        [--into FOLDER]

`SUITES` names the suites. Sources come from where they are published, at a fixed commit, once; they are built, the
brokers that the suite wants are started, and after it P1 to P11 are judged. It needs git, the extra `gateway`, Go for
kgo, Java and Maven for Java's and Spark's. With `--replays` the session is replayed by so many processes, and the
digests compared. The exit code is 1 if a test failed, a property is violated, or digests differ.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from client_sessions import replayed_elsewhere
from measure import fail

from kafka_proto.gateway.cluster import KafkaCluster

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "tests/support/gateway/clients"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
REPORT, TRAIL = "report.xml", "session.trail.jsonl"
SPARK = "4.2.0"
"""The newest release whose connector is published."""
Outcomes = dict[str, str]
"""By test: how it ended."""


@attrs.frozen
class Place:
    """Where a suite lies and what it is run against."""

    folder: Path
    servers: str = ""
    only: str = ""

    @property
    def sources(self) -> Path:
        return self.folder / "sources"

    @property
    def python(self) -> str:
        return str(self.folder / "venv/bin/python")

    @property
    def address(self) -> str:
        """The first of the servers."""
        return self.servers.partition(",")[0]


@attrs.frozen(kw_only=True)
class Suite:
    """A client's tests: where they are, how they are built and run, and the cluster that they want."""

    repository: str = ""
    """Where it is published; empty for programs of this project."""
    commit: str = ""
    build: Callable[[Place], list[Sequence[str]]]
    """Commands, carried out in the sources, once if these are others'."""
    command: Callable[[Place], Sequence[str]]
    within: str = "."
    """The folder of the sources in which the tests are run."""
    environment: Callable[[Place], Mapping[str, str]] = lambda place: {}
    outcomes: Callable[[Place, str], Outcomes] = lambda place, printed: of_pytest(place)
    cluster: Mapping[str, Any] = {}
    """Arguments of `KafkaCluster`."""


def of_go(place: Place, printed: str) -> Outcomes:
    """Return how the tests of a Go program ended, by what it printed; parts of a test count with it."""
    kinds = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED}
    ran = re.findall(r"^=== RUN   ([^/\n]+)$", printed, re.M)
    ended = {name: kinds[kind] for kind, name in re.findall(r"^--- (PASS|FAIL|SKIP): ([^(\n]*[^(\s])", printed, re.M)}
    return {name: ended.get(name, FAILED) for name in ran}


def of_pytest(place: Place) -> Outcomes:
    """Return how the tests of pytest ended, by its report."""
    report = place.folder / REPORT
    if not report.exists():
        fail("pytest has left no report; what it said is above")
    found: Outcomes = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        kind = FAILED if kinds & {"failure", "error"} else SKIPPED if "skipped" in kinds else PASSED
        name = f"{case.get('classname', '').removeprefix('tests.').removeprefix('test.')}::{case.get('name')}"
        found[name] = FAILED if FAILED in (kind, found.get(name)) else kind
    return found


def in_venv(*packages: str) -> Callable[[Place], list[Sequence[str]]]:
    """Return how packages get into a virtual environment of the suite's own."""
    return lambda place: [
        (sys.executable, "-m", "venv", str(place.folder / "venv")),
        (place.python, "-m", "pip", "install", "-q", "pytest", "pytest-timeout", *packages),
    ]


def copied_jars(place: Place, artifact: str, *others: str) -> Sequence[str]:
    """Return the command that gets the jars of a part of Kafka, or as `others` say."""
    return ("mvn", "-q", "-B", "-f", str(PROGRAMS / "java/pom.xml"), "dependency:copy-dependencies",
            "-DincludeScope=runtime", f"-Dartifact={artifact}", f"-DoutputDirectory={place.folder / 'libs'}", *others)


def built_java(artifact: str, programs: str) -> Callable[[Place], list[Sequence[str]]]:
    """Return how Java programs of this project are built with a part of Kafka."""
    return lambda place: [
        copied_jars(place, artifact),
        ("javac", "-nowarn", "-Xlint:none", "-d", str(place.folder / "classes"), "-cp", f"{place.folder}/libs/*",
         *map(str, sorted((PROGRAMS / programs).glob("*.java"))))]


def java(main_class: str) -> Callable[[Place], list[str]]:
    """Return the command that runs a Java program of this project."""
    return lambda place: ["java", "-cp", f"{place.folder}/classes:{place.folder}/libs/*", main_class, place.servers,
                          place.only]


def pytest(*arguments: str) -> Callable[[Place], list[str]]:
    """Return the command that runs pytest."""
    return lambda place: [
        place.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=300", "--tb=short",
        f"--junitxml={place.folder / REPORT}", *arguments, *(("-k", place.only) if place.only else ())]


SUITES: Mapping[str, Suite] = {
    "kgo": Suite(
        repository="https://github.com/twmb/franz-go",
        commit="adb3a18abe14bdb230f1cd738d03623301013d42",
        build=lambda place: [("go", "test", "-c", "-o", str(place.folder / "kgo.test"), "./pkg/kgo")],
        within="pkg/kgo",
        command=lambda place: (str(place.folder / "kgo.test"), "-test.v", "-test.skip=Share", "-test.timeout=30m",
                               f"-test.run={place.only}"),
        environment=lambda place: {"KGO_TEST_RECORDS": "50000", **os.environ, "KGO_SEEDS": place.servers,
                                   "KGO_TEST_RF": "1", "KGO_LOG_LEVEL": "none"},
        outcomes=of_go,
    ),
    "kafka-python": Suite(
        repository="https://github.com/dpkp/kafka-python",
        commit="a3b3836ff3a4b34ebaa42fd93500bfcb16c1e9b7",
        build=in_venv("pytest-mock", "crc32c", "lz4", "python-snappy", "xxhash", "zstandard", "-e", "."),
        command=pytest("--ignore=test/integration/test_ssl_integration.py", "test/integration"),
        environment=lambda place: {"KAFKA_URI": f"kafka://{place.address}", "KAFKA_VERSION": "4.2.0",
                                   "KAFKA_ROOT": str(place.folder)},
        cluster={"release": "4.2.0", "num_partitions": 4, "config": {"group.min.session.timeout.ms": "1000"}},
    ),
    "aiokafka": Suite(
        repository="https://github.com/aio-libs/aiokafka",
        commit="672947afe85c91b7d953f0259e69837a711d3246",
        build=in_venv("pytest==9.0.2", "pytest-asyncio==1.3.0", "pytest-mock==3.15.1", "docker", "cramjam", "-e", "."),
        command=pytest("-p", "aiokafka_brokers", "--docker-image=any:2.13_4.2.0", "-m", "not ssl",
                       "--ignore=tests/test_sasl.py",
                       "--deselect=tests/test_helpers.py::test_create_ssl_context", "tests"),
        environment=lambda place: {"PYTHONPATH": str(HERE), "SUITE_BROKER": place.address},
        cluster={"release": "4.2.0", "num_partitions": 2},
    ),
    "confluent-kafka-python": Suite(
        repository="https://github.com/confluentinc/confluent-kafka-python",
        commit="8b1c7a613434eee3d0e1287d624d7af04932f410",
        build=in_venv("pytest-asyncio", "trivup", "confluent-kafka[schemaregistry,avro,json,protobuf]==2.15.0",
                      "requests-mock", "respx"),
        command=pytest(*(f"tests/integration/{part}" for part in ("admin", "consumer", "producer"))),
        environment=lambda place: {"BROKERS": place.servers},
        cluster={"release": "4.2.0"},
    ),
    "java": Suite(build=built_java("kafka-clients", "java_calls"), command=java("Calls"), outcomes=of_go),
    "streams": Suite(build=built_java("kafka-streams", "java_streams"), command=java("WordCount"), outcomes=of_go,
                     cluster={"brokers": 3}),
    "console": Suite(
        build=lambda place: [copied_jars(place, "kafka-tools")],
        command=lambda place: (sys.executable, str(HERE / "console_tools.py"), str(place.folder / "libs"),
                               place.servers, place.only),
        outcomes=of_go,
    ),
    "spark": Suite(
        build=lambda place: [
            *in_venv("attrs", f"pyspark=={SPARK}")(place),
            copied_jars(place, "spark-sql-kafka-0-10_2.13", "-Dgroup=org.apache.spark", f"-Drelease={SPARK}",
                        "-DincludeArtifactIds=spark-sql-kafka-0-10_2.13,spark-token-provider-kafka-0-10_2.13,"
                        "kafka-clients,commons-pool2")],
        command=lambda place: (place.python, str(HERE / "spark_steps.py"), str(place.folder / "libs"), place.servers,
                               place.only),
        environment=lambda place: {"SPARK_LOCAL_IP": "127.0.0.1"},
        outcomes=of_go,
    ),
    "librdkafka": Suite(
        repository="https://github.com/confluentinc/librdkafka",
        commit="4c3b017c3de8d9c10de12b9eec0ea688e8d5787d",
        build=lambda place: [("./configure", "--disable-gssapi", "--disable-curl"),
                             *(("make", "-s", "-C", part) for part in ("src", "src-cpp")),
                             ("make", "-s", "-C", "tests", "test-runner")],
        within="tests",
        command=lambda place: (sys.executable, str(HERE / "librdkafka_programs.py"), place.servers, place.only),
        outcomes=of_go,
        cluster={"release": "4.2.0", "brokers": 3, "num_partitions": 4},
    ),
}


def said(command: Sequence[str], folder: Path, environment: Mapping[str, str] = {}) -> str:
    """Run a command, show what it prints, and return it."""
    kept = []
    with subprocess.Popen(command, cwd=folder, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            kept.append(line)
            print(line, end="", file=sys.stderr)
    return "".join(kept)


def prepare(suite: Suite, place: Place) -> None:
    """Fetch and build a suite, once."""
    done = place.folder / f"built-{suite.commit}"
    if suite.commit and done.exists():
        return
    place.sources.mkdir(parents=True, exist_ok=True)
    git = ("git", "-C", str(place.sources))
    fetched: list[Sequence[str]] = [
        (*git, "init", "-q"), (*git, "fetch", "-q", "--depth=1", suite.repository, suite.commit),
        (*git, "checkout", "-q", "FETCH_HEAD")]
    for command in (*(fetched if suite.commit else ()), *suite.build(place)):
        if subprocess.run(command, cwd=place.sources, stdout=sys.stderr).returncode:
            fail(f"{' '.join(command)} failed; what it said is above")
    done.touch()


def run(suite: Suite, place: Place) -> Outcomes:
    """Run a suite, and return how its tests ended."""
    (place.folder / REPORT).unlink(missing_ok=True)
    printed = said(suite.command(place), place.sources / suite.within, suite.environment(place))
    (place.folder / "printed.txt").write_text(printed)
    return suite.outcomes(place, printed)


def told(name: str, outcomes: Outcomes) -> None:
    """Print how tests ended."""
    by_kind = {kind: sorted(test for test, ended in outcomes.items() if ended == kind)
               for kind in (PASSED, FAILED, SKIPPED)}
    print(f"{name}: " + ", ".join(f"{len(tests)} {kind}" for kind, tests in by_kind.items()))
    for kind in (FAILED, SKIPPED):
        for test in by_kind[kind]:
            print(f"  {kind}: {test}")


def replays_equally(trail: Path, times: int) -> bool:
    """Replay a session, each time in a process that hashes in another way, and say whether the digests are equal."""
    digests = {replayed_elsewhere(trail, seed) for seed in range(times)}
    if times:
        print(f"{times} replays: {', '.join(map(str, digests))}")
    return None not in digests and len(digests) <= 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=SUITES)
    parser.add_argument("--only", default="", metavar="PATTERN", help="tests to run, as -run of Go or -k of pytest")
    parser.add_argument("--brokers", type=int, metavar="N", help="default: as the suite wants")
    parser.add_argument("--replays", type=int, default=0, metavar="N")
    parser.add_argument("--against", metavar="HOST:PORT", help="another broker, in place of those of this project")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="default out/suites/NAME")
    given = parser.parse_args()
    suite, folder = SUITES[given.name], (given.into or Path("out/suites") / given.name).resolve()
    place = Place(folder, given.against or "", given.only)
    prepare(suite, place)
    if given.against:
        outcomes, verdict = run(suite, place), None
        told(given.name, outcomes)
    else:
        with KafkaCluster(**{**suite.cluster, **({"brokers": given.brokers} if given.brokers else {})}) as cluster:
            outcomes = run(suite, attrs.evolve(place, servers=cluster.bootstrap_servers))
        told(given.name, outcomes)
        verdict = cluster.verdict()
        print(verdict or "P1 to P11 hold")
        print(cluster.write_trail(folder / TRAIL))
    is_equal = given.against is not None or replays_equally(folder / TRAIL, given.replays)
    sys.exit(0 if is_equal and not verdict and outcomes and FAILED not in outcomes.values() else 1)


if __name__ == "__main__":
    main()
