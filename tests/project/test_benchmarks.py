"""The benchmarks that judge: they run, they say what they measured, and a name that nobody knows is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands.command_line import alive_in_group, wait_until
from support.paths import ROOT

FOLDER = ROOT / "benchmarks"


def ran(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(FOLDER / script), *arguments], capture_output=True, text=True)


def test_every_fault_holds_actors_against_claims_and_spec() -> None:
    """A line per model and mode; nothing is violated, nothing leaves the spec."""
    done = ran("every_fault.py", "compaction/pulsar/", "--runs", "8")
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]
    assert [(row[0], row[1], row[2], row[4], row[5]) for row in rows] == [
        ("compaction/pulsar/actors", mode, "4", "0", "0") for mode in ("free", "timed")
    ]


def test_runs_of_every_fault_add_up() -> None:
    """What was made on two occasions are the runs of one."""

    def steps(*arguments: str) -> int:
        lines = ran("every_fault.py", "compaction/pulsar/", *arguments).stdout.splitlines()[2:]
        return sum(int(line.split("|")[4].replace(",", "")) for line in lines)

    assert steps("--runs", "8") == steps("--runs", "4") + steps("--runs", "4", "--first", "2") > 0


def test_many_runs_say_what_is_kept() -> None:
    """A row for each tenth of the steps, with counts of what the tables hold; what cannot be is one sentence."""
    arguments = ("kafka/4.0", "--steps", "400", "--size", "brokers=1", "--set", "log=at-once")
    done = ran("many_runs.py", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = found["tenths"]
    assert [row["steps"] * 10 // 400 for row in rows] == list(range(1, 11))
    assert [row["runs"] for row in rows] == sorted({row["runs"] for row in rows})
    assert all(row["results"] > 0 and row["values"] > 0 and row["renewals"] == 0 for row in rows)
    assert found["grown_bytes"] >= 0 and found["sizes"]["brokers"] == 1
    refused = ran("many_runs.py", arguments[0], "--size", "brokers=9")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "brokers" in refused.stderr


def test_exhibits_are_found_by_each_strategy() -> None:
    """The first run that finds it, its steps, and those that are left; and the length in the spec."""
    done = ran("exhibits.py", "pc-01", "--runs", "10")
    assert done.returncode == 0, done.stderr
    assert "| pc-01-leaked-ledger | NoLeak | 7: 31 → 9 | 3: 47 → 9 | 1: 27 → 9 | 9 |" in done.stdout


@pytest.mark.parametrize(("script", "name", "runs"), [("every_fault.py", "compaction/pulsar/", "1000000"),
                                                      ("exhibits.py", "rp-03-unknown-epoch", "1000000")])
def test_workers_do_not_outlive_a_benchmark_that_is_killed(script: str, name: str, runs: str) -> None:
    """SIGKILL of the driver: nobody goes on making runs that nobody counts."""
    process = subprocess.Popen([sys.executable, str(FOLDER / script), name, "--runs", runs], start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: sum(_is_worker(pid) for pid in alive_in_group(process.pid)) == 2)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        wait_until(lambda: not alive_in_group(process.pid))
    finally:
        if alive_in_group(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_worker(pid: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize("script", ["every_fault.py", "exhibits.py"])
def test_benchmark_refuses_a_name_that_nobody_knows(script: str) -> None:
    """One sentence that names it, and exit code 2."""
    done = ran(script, "no-such-thing")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-thing" in done.stderr and "Traceback" not in done.stderr and done.stderr.count("\n") == 1
