"""A real broker of Apache Kafka from Maven Central, for `kafka-proto conformance --broker` and comparisons.

    python benchmarks/real_broker.py [RELEASE] [PORT] [--transaction-version N] [--advertised PORT]

It needs Java 17 and Maven. Jars are kept in out/kafka-RELEASE; the log is in a temporary folder. The first line on
stdout is `bootstrap.servers=...`, once the broker answers; Ctrl-C or SIGTERM ends it. One node, KRaft, loopback only.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>broker</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{release}</version><exclusions>
<exclusion><groupId>org.apache.kafka</groupId><artifactId>kafka-tools-api</artifactId></exclusion>
</exclusions></dependency></dependencies></project>
"""
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{advertised}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/log
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
transaction.abort.timed.out.transaction.cleanup.interval.ms=200
"""
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
LONGEST_START = 180.0


def jars(release: str) -> Path:
    """Return the folder with the broker's jars, downloaded once."""
    folder = Path("out") / f"kafka-{release}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(POM.format(release=release))
        subprocess.run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime",
                        "-DoutputDirectory=libs"], cwd=folder, check=True, stdout=sys.stderr)
        (folder / "complete").touch()
    return folder.resolve() / "libs"


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return once something listens on a port. Raises SystemExit where the process ends, or takes too long."""
    until = time.monotonic() + LONGEST_START
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"the broker did not start within {LONGEST_START:.0f} s; what it said is above")


def serve(release: str, port: int, level: int | None, advertised: int) -> None:
    """Run a broker until it is told to end; it tells others, and itself, that it is at another port."""
    libs, folder = jars(release), Path(tempfile.mkdtemp(prefix="kafka-"))
    java = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*"]
    properties = folder / "server.properties"
    text = PROPERTIES.format(port=port, advertised=advertised, controller=free_port(), folder=folder)
    unstable = "unstable.feature.versions.enable=true\n" if level and release.startswith("3.") else ""
    properties.write_text(text + unstable)  # before 4.0 no level of transaction.version was released
    feature = [] if level is None else ["--feature", f"transaction.version={level}"]
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        subprocess.run([*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties), *feature],
                       check=True, stdout=sys.stderr)
        with subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=sys.stderr) as process:
            try:
                await_port(port, process)
                print(f"bootstrap.servers=127.0.0.1:{port}", flush=True)
                process.wait()
            finally:
                process.terminate()
    except KeyboardInterrupt:
        pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _interrupt(number: int, frame: types.FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", nargs="?", default="4.4.0")
    parser.add_argument("port", nargs="?", type=int, default=0)
    parser.add_argument("--transaction-version", type=int, default=None)
    parser.add_argument("--advertised", type=int, help="the port of a proxy to it, which it sends its own requests to")
    given = parser.parse_args()
    port = given.port or free_port()
    serve(given.release, port, given.transaction_version, given.advertised or port)


if __name__ == "__main__":
    main()
