"""The command `check`: exhaustive search of the spec models, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands.command_line import call
from support.searches.plain_search import search

from harness.model import find_model
from harness.record import Recorder, read_trail
from harness.simulate.trails.replay import replay_plain


def test_check_of_a_sound_model_says_ok_with_exact_counts(tmp_path: Path) -> None:
    """The JSON object has the counts of the model checker, the verdict, and what it took."""
    done = call("check", "transactions/repaired", "--size", "clients=1", "--json", "--out", str(tmp_path))
    summary = done.json
    assert done.code == 0
    assert (summary["verdict"], summary["distinct"], summary["generated"], summary["depth"]) == ("ok", 65, 76, 14)
    assert sum(summary["actions"].values()) + summary["initial"] == summary["generated"]


def test_check_of_a_flawed_model_writes_a_shortest_trail_that_replays(tmp_path: Path) -> None:
    """S3 is found in seven states; the trail violates the same when replayed; the exit code is 1."""
    sizes = [f"--size={name}=2" for name in ("clients", "brokers", "txn-log-partitions", "transactional-ids")]
    done = call(
        "check", "transactions/diary-02", *sizes, "--invariant", "OnePidPerTid", "--json", "--out", str(tmp_path)
    )
    (violated,) = done.json["violated"]
    assert done.code == 1
    assert (violated["property"], violated["length"]) == ("OnePidPerTid", 7)
    trail = read_trail(Path(violated["trail"]))
    assert replay_plain(trail, Recorder()).verdict.violated == "OnePidPerTid"


@pytest.mark.parametrize(
    ("model", "sizes", "counts"),
    [
        ("replication/kip-320", ["replicas=2", "max-leader-epoch=1"], (957, 1819, 15)),
        ("compaction/pulsar", ["messages=2", "compactions=2", "keys=1", "values=1", "crashes=0"], None),
        ("replication/async-isr", ["replicas=2", "max-version=1", "max-offset=1"], None),
    ],
)
def test_check_knows_every_protocol(
    model: str, sizes: list[str], counts: tuple[int, int, int] | None, tmp_path: Path
) -> None:
    """Replication and compaction are searched by the same command, as the plain search does."""
    done = call("check", model, *(f"--size={size}" for size in sizes), "--no-stop", "--json", "--out", str(tmp_path))
    summary = done.json
    plain = search(find_model(model).make({k: int(v) for k, v in (size.split("=") for size in sizes)}))
    found = (summary["distinct"], summary["generated"], summary["depth"])
    assert found == (plain.distinct, plain.generated, plain.depth)
    assert counts in (None, found)


def test_check_reports_a_deadlock_as_a_shortest_run(tmp_path: Path) -> None:
    """With --deadlock the end of all work counts as a violation of its own kind."""
    done = call("check", "transactions/repaired", "--size", "clients=1", "--size", "elections=0", "--deadlock",
                "--json", "--out", str(tmp_path))
    (violated,) = done.json["violated"]
    assert (done.code, violated["kind"], violated["length"]) == (1, "deadlock", 9)
