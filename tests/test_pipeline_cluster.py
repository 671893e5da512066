"""Campaigns on a Spark standalone cluster of two workers on loopback: the tables are those of this machine alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command_line import call, started, wait_until
from spark_cluster import LONG_S, Cluster, cluster

from harness.pipeline.store import MARKERS, Store

CAMPAIGN = ["campaign", "rp-04-fast-failover", "--runs", 600, "--block", 25, "--keep", "all", "--coverage", 0.1]
TABLES = ("runs", "events", "violations", "coverage")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the campaign as this machine makes it alone."""
    out = tmp_path_factory.mktemp("local") / "campaign"
    outcome = call(*CAMPAIGN, "--out", out, "--master", "local[2]")
    assert outcome.code == 0, outcome.err
    return out


@pytest.fixture
def two_workers(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of two workers with a core each."""
    with cluster(tmp_path) as running:
        yield running


def tables(out: Path) -> dict[str, list[dict[str, object]]]:
    """Return all rows by table, block after block, without the columns of the clock."""
    store = Store(out)
    blocks = store.committed()
    store.verify(blocks.values())
    return {
        table: [
            {name: value for name, value in row.items() if name != "wall_us"}
            for path in store.files(table, (blocks[name] for name in sorted(blocks)))
            for row in pq.ParquetFile(path).read().to_pylist()
        ]
        for table in TABLES
    }


def committed(out: Path) -> int:
    """Return how many blocks are committed."""
    return len(list((out / MARKERS).glob("*.json")))


@pytest.mark.large
def test_a_campaign_on_a_cluster_has_the_rows_of_the_local_one(
    two_workers: Cluster, local: Path, tmp_path: Path
) -> None:
    """Two workers, one core each: every row of every table is equal, digests among them; both workers had a part."""
    out = tmp_path / "far"
    with started(*CAMPAIGN, "--out", out, "--master", two_workers.url) as process:
        wait_until(lambda: all(two_workers.executors(n) for n in range(2)), LONG_S)
        assert process.wait(LONG_S) == 0
    found = tables(out)
    assert found == tables(local)
    assert len({row["digest"] for row in found["runs"]}) > 100 and len(found["runs"]) == 600


@pytest.mark.large
@pytest.mark.parametrize("whom", ["executor", "worker"])
def test_a_killed_executor_or_worker_loses_nothing(
    whom: str, two_workers: Cluster, local: Path, tmp_path: Path
) -> None:
    """SIGKILL in the middle: an executor is started again, the blocks of a lost worker go to the other one."""
    out = tmp_path / "far"
    with started(*CAMPAIGN, "--out", out, "--master", two_workers.url) as process:
        wait_until(lambda: bool(two_workers.executors(0)) and committed(out) >= 2, LONG_S)
        before = committed(out)
        if whom == "executor":
            os.kill(two_workers.executors(0)[0], signal.SIGKILL)
        else:
            os.killpg(two_workers.workers[0].pid, signal.SIGKILL)
        assert process.wait(LONG_S) == 0
    assert before < committed(out) == 24
    assert tables(out) == tables(local)
