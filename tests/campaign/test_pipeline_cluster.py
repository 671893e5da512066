"""A Spark standalone cluster of two workers on loopback: tables and counts are those of this machine alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands.command_line import call, ended, files_below, started, wait_until
from support.spark.campaigns_made import markers, rows_by_table
from support.spark.spark_cluster import LONG_S, Cluster, cluster
from support.spark.spark_session import need_java

CAMPAIGN = ["campaign", "rp-04-fast-failover", "--runs", 600, "--block", 25, "--keep", "all", "--coverage", 0.1]
TABLES = ("runs", "events", "violations", "coverage")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the campaign as this machine makes it alone."""
    need_java()
    out = tmp_path_factory.mktemp("local") / "campaign"
    outcome = call(*CAMPAIGN, "--out", out, "--master", "local[2]")
    assert outcome.code == 0, outcome.err
    return out


@pytest.fixture
def two_workers(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of two workers with a core each."""
    with cluster(tmp_path) as running:
        yield running


@pytest.mark.large
@pytest.mark.parametrize("killed", ["nobody", "executor", "worker"])
def test_a_campaign_on_a_cluster_has_the_rows_of_the_local_one(
    killed: str, two_workers: Cluster, local: Path, tmp_path: Path
) -> None:
    """Two workers, one core each: every row of every table is equal, digests among them; both workers had a part.

    SIGKILL in the middle loses nothing: an executor is started again, the blocks of a lost worker go to the other one.
    """
    out, before = tmp_path / "far", 0
    with started(*CAMPAIGN, "--out", out, "--master", two_workers.url) as process:
        if killed == "nobody":
            wait_until(lambda: all(two_workers.executors(n) for n in range(2)), LONG_S)
        else:
            wait_until(lambda: bool(two_workers.executors(0)) and markers(out) >= 2, LONG_S)
            before = markers(out)
        if killed == "executor":
            os.kill(two_workers.executors(0)[0], signal.SIGKILL)
        elif killed == "worker":
            os.killpg(two_workers.workers[0].pid, signal.SIGKILL)
        assert process.wait(LONG_S) == 0
    assert before < markers(out) == 24
    found = rows_by_table(out, *TABLES)
    assert found == rows_by_table(local, *TABLES)
    assert len({row["digest"] for row in found["runs"]}) > 100 and len(found["runs"]) == 600


@pytest.mark.large
@pytest.mark.parametrize("is_disturbed", [False, True], ids=["calm", "killed-executor"])
def test_a_search_on_a_cluster_has_the_counts_of_the_local_one(
    is_disturbed: bool, two_workers: Cluster, tmp_path: Path
) -> None:
    """23,312 states in 18 levels, whether or not an executor is killed on the way."""
    sizes = [f"--size={name}={size}" for name, size in {
        "brokers": 2, "clients": 2, "txn-log-partitions": 2, "transactional-ids": 2}.items()]
    command = ("check", "transactions/diary-01", *sizes, "--out", tmp_path / "out", "--json")
    folder = tmp_path / "search"
    with started(*command, "--engine", "spark", "--master", two_workers.url, "--checkpoint", folder) as process:
        if is_disturbed:
            wait_until(lambda: len(list(folder.glob("level-*"))) > 5 and bool(two_workers.executors(0)), LONG_S)
            os.kill(two_workers.executors(0)[0], signal.SIGKILL)
        process.wait(LONG_S)
        outcome = ended(process)
    assert outcome.code == 0, outcome.err
    here, there = call(*command).json, outcome.json
    for name in ("initial", "distinct", "generated", "depth", "verdict", "complete", "actions", "witnesses"):
        assert there[name] == here[name]
    assert (there["distinct"], there["depth"], there["engine"]) == (23_312, 18, "spark")


@pytest.mark.large
def test_a_counterexample_from_a_cluster_is_the_local_one(two_workers: Cluster, tmp_path: Path) -> None:
    """The shortest way to a violation, and its files, are those of the engine of this machine."""
    command = ("check", "transactions/gist", "--size", "clients=1")
    with started(*command, "--engine", "spark", "--master", two_workers.url, "--checkpoint", tmp_path / "search",
                 "--out", tmp_path / "there") as process:
        process.wait(LONG_S)
        assert ended(process).code == 1
    assert call(*command, "--out", tmp_path / "here").code == 1
    assert files_below(tmp_path / "there") == files_below(tmp_path / "here") != {}
