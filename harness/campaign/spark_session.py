"""Spark sessions: started quietly, bound to loopback if nothing else is needed, and stopped in order."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.campaign.requirements import require_java, require_packages
from harness.model import Refusal
from harness.record.files import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(,[1-9]\d*)?\])?")
CLUSTER = re.compile(r"spark://([^:/,]+):(\d+)(,[^:/,]+:\d+)*|yarn|k8s://.+")
ATTEMPTS = 4
"""How often a task is tried: a worker that was killed must not end a campaign."""
PATIENCE = 5.0
"""Seconds that a master may take to answer before a session is started."""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.task.maxFailures": str(ATTEMPTS),
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    "spark.driver.memory": "1g",
}
"""Tables are small beside the runs that they describe; shuffles are, too."""
LEAN = "-XX:+IgnoreUnrecognizedVMOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a Java that only hands bytes on: compiling itself well, beside the workers, costs it more than that brings."""


def checked_master(master: str) -> str:
    """Return a master's URL as Spark should get it. Raises Refusal for an invalid one, or if it does not answer."""
    local = LOCAL.fullmatch(master)
    if local:
        threads = local.group(2) or "1"
        return f"local[{threads}{local.group(3) or f',{ATTEMPTS}'}]"
    cluster = CLUSTER.fullmatch(master)
    if not cluster:
        raise Refusal(f"{master!r} is not a Spark master; give --master as local[N], local[*], spark://HOST:PORT, yarn "
                      "or k8s://...")
    if cluster.group(1) and not cluster.group(3):
        try:
            with socket.create_connection((cluster.group(1), int(cluster.group(2))), PATIENCE):
                pass
        except (OSError, OverflowError) as error:
            raise Refusal(f"there is no Spark master at {master}: {reason_of(error)}; start one, or leave --master "
                          "out") from None
    return master


@contextmanager
def spark_session(master: str, log: Path | None = None, is_lean: bool = False) -> Iterator[SparkSession]:
    """Start Spark, and stop it when the block ends; what it has to say goes to a log. Raises Refusal.

    With `is_lean` all work is in Python, and none in the tables of Spark SQL. A session that this process has already
    is used as it is, and lasts.
    """
    require_packages()
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    session = running or start(master, log, is_lean)
    try:
        yield session
    finally:
        if running is None:
            session.stop()


def start(master: str, log: Path | None = None, is_lean: bool = False) -> SparkSession:
    """Start Spark and return its session; what it has to say on stderr goes to a file, or nowhere. Raises Refusal."""
    require_packages()
    require_java()
    url = checked_master(master)
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    here = url.startswith("local") or re.match(r"spark://(127\.|localhost:)", url) is not None
    _choose_python(here)
    settings = SETTINGS | ({"spark.driver.extraJavaOptions": LEAN} if is_lean else {})
    if here:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    conf = SparkConf().setMaster(url).setAppName("kafka-proto").setAll(list(settings.items()))
    with _said_elsewhere(log), _own_interrupts():
        try:
            if SparkContext._gateway is None:
                with _held_back():
                    # Java must outlive a signal to our whole group: what is under way is ended through it, in order.
                    launched = launch_gateway(conf, {"process_group": 0})  # type: ignore[no-untyped-call]
                SparkContext(conf=conf, gateway=launched)
            return SparkSession.builder.config(conf=conf).getOrCreate()
        except Exception as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise Refusal(f"Spark does not start with --master {master}: {said}; see {log or 'its log'}") from None


def _choose_python(here: bool) -> None:
    """Let workers on this machine run this very Python; on others it may lie elsewhere, where PYSPARK_PYTHON says."""
    if here or not os.environ.get("PYSPARK_PYTHON"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the handlers of interrupts: Spark puts its own in their place."""
    try:
        before = signal.getsignal(signal.SIGINT)
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _held_back() -> Iterator[None]:
    """Hold interrupts back until the block ends: Java that is interrupted while it starts would stay for ever."""
    noted: list[int] = []
    before = [(number, signal.signal(number, lambda came, _: noted.append(came)))
              for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    if noted:
        signal.raise_signal(noted[0])


@contextmanager
def _said_elsewhere(log: Path | None) -> Iterator[None]:
    """Let what is started in the block, and its own children, write their stderr to a file instead of the terminal."""
    sys.stderr.flush()
    kept = os.dup(2)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    target = os.open(log, flags, 0o644) if log is not None else os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)
