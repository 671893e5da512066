"""The benchmarks that judge and that of the search: what they measured, and what they refuse in one sentence."""

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


def ran(script: str, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a benchmark, with another PATH if that is said."""
    return subprocess.run([sys.executable, str(FOLDER / script), *arguments], capture_output=True, text=True,
                          timeout=600, env=None if path is None else {"PATH": path})


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
    assert "| pc-01-leaked-ledger | NoLeak | 7: 31 → 9 | 3: 47 → 9 | 1: 27 → 9 | 1: 27 → 9 | 9 |" in done.stdout


def test_each_search_beside_tlc_has_a_size_for_each_constant() -> None:
    """What TLC is given of a case is made of the sizes that ours has."""
    program = ("import model_checker, search\n"
               "for case in search.CASES:\n"
               "    if case.module:\n"
               "        print(case.name, model_checker.configuration(case.module, case.sizes, case.invariants))\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=FOLDER, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("CONSTANTS") == 5 and "ConsumeTimesLimit = 2" in done.stdout


def test_isolation_runs_find_a_flaw_and_nothing_where_a_search_found_nothing() -> None:
    """What clients saw and what states say, of two versions; a scenario whose clients are not seen is refused."""
    done = ran("isolation_runs.py", "late-batch-joins-repaired", "--runs", "20")
    assert done.returncode == 0, done.stderr
    assert "20 runs: clients saw anomalies in 0, states violate in 0, both disagree in 0" in done.stdout
    found = ran("isolation_runs.py", "late-batch-joins", "--runs", "2", "--first", "54")
    assert found.returncode == 1, found.stderr
    assert "late-batch-joins, seed 54: G1a: c1.1#1 was sent to log T-0 in operation" in found.stdout
    refused = ran("isolation_runs.py", "record-sent-again-repaired")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)


def test_workers_do_not_outlive_a_benchmark_that_is_killed() -> None:
    """SIGKILL of the driver: nobody goes on making runs that nobody counts."""
    command = [sys.executable, str(FOLDER / "exhibits.py"), "rp-03-unknown-epoch", "--runs", "1000000"]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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


def test_benchmark_refuses_a_name_that_nobody_knows() -> None:
    """One sentence that names it, and exit code 2."""
    done = ran("exhibits.py", "no-such-thing")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-thing" in done.stderr and "Traceback" not in done.stderr and done.stderr.count("\n") == 1


def program(path: Path, text: str) -> None:
    """Write a stand-in for a program."""
    path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
    path.chmod(0o755)


HALF = "TLC needs both --tlc CLASSPATH and --modules FOLDER"
TLC = ("--tlc", "tla2tools.jar")


@pytest.mark.parametrize(("arguments", "has_java", "said"), [
    (("--only", "diary-3"), None, "there is no case 'diary-3'; the cases are diary-01, diary-02, "),
    (TLC, None, HALF), (("--modules", "."), None, HALF),
    (("--only", "three-clients", "--engine", "python"), None, "three-clients is too large for --engine python"),
    ((*TLC, "--modules", "."), False,
     "TLC needs Java, and there is no java on the PATH; install one or leave out --tlc\n"),
    (("--tlc", "{0}/absent.jar", "--modules", "{0}"), True,
     "the class path of TLC names {0}/absent.jar, which does not exist\n"),
    (("--tlc", "{0}/java", "--modules", "{0}"), True, "{0}/diary-01/kafka_transactions.tla is missing"),
    (("--stateright", "{0}", "--only", "2pc-7"), None,
     "{0}/2pc is missing; build stateright's examples and give "),
])
def test_benchmark_refuses_in_one_sentence(
    arguments: tuple[str, ...], has_java: bool | None, said: str, tmp_path: Path
) -> None:
    """An unknown case, one that the engine cannot do, half of what TLC needs, and what is not there, by its name.

    Where Java matters, a stand-in for it is enough.
    """
    if has_java:
        program(tmp_path / "java", "")
    done = ran("search.py", *(word.format(tmp_path) for word in arguments),
               path=None if has_java is None else str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said.format(tmp_path)) and done.stderr.count("\n") == 1


@pytest.mark.large
def test_benchmark_compares_with_stateright_where_the_states_are_as_many(tmp_path: Path) -> None:
    """Both are run as whole processes; another count ends the benchmark. A stand-in for the example is enough."""
    example = tmp_path / "2pc"
    program(example, "echo 'Done. states=1745408, unique=296448, depth=23, sec=1'\n")
    done = ran("search.py", "--stateright", str(tmp_path), "--only", "2pc-7", "--engine", "python", "--json")
    ours, theirs = json.loads(done.stdout)
    assert (ours["engine"], theirs["engine"], ours["distinct"], theirs["distinct"]) == (
        "python", "stateright", 296_448, 296_448
    )
    assert (ours["stateright_goal"], ours["stateright_cpu_ratio"] >= 0) == (1, True)
    program(example, "echo 'Done. states=1745408, unique=296447, depth=23, sec=1'\n")
    done = ran("search.py", "--stateright", str(tmp_path), "--only", "2pc-7", "--engine", "python")
    assert (done.returncode, "stateright found 296,447" in done.stderr) == (1, True)


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_benchmark_refuses_a_repeat_that_is_no_number(count: str) -> None:
    """`--repeat` takes a number from 1 on."""
    done = ran("search.py", f"--repeat={count}")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"expected a number from 1 on, got '{count}'" in done.stderr
