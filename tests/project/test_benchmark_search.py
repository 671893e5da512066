"""The search benchmark's arguments: what it refuses, in one sentence and with exit code 2, before it runs anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT


def benchmark(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "search.py"), *arguments], capture_output=True, text=True,
        check=False, timeout=60, env=None if path is None else {"PATH": path},
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "diary-3"), "there is no case 'diary-3'; the cases are diary-01, diary-02, "),
        (("--tlc", "tla2tools.jar"), "TLC needs both --tlc CLASSPATH and --modules FOLDER"),
        (("--only", "three-clients", "--engine", "python"), "three-clients is too large for --engine python"),
        (("--modules", "."), "TLC needs both --tlc CLASSPATH and --modules FOLDER"),
    ],
)
def test_benchmark_refuses_in_one_sentence(arguments: tuple[str, ...], said: str) -> None:
    """An unknown case, one that the engine cannot do, and half of what TLC needs are refused."""
    done = benchmark(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_benchmark_says_that_java_is_missing(tmp_path: Path) -> None:
    """Without a java on the PATH, TLC is refused."""
    done = benchmark("--tlc", "tla2tools.jar", "--modules", ".", path=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "TLC needs Java, and there is no java on the PATH; install one or leave out --tlc\n"


def test_benchmark_names_a_missing_class_path_and_a_missing_module(tmp_path: Path) -> None:
    """What does not exist is named: an entry of the class path, then a module. A stand-in for java is enough."""
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n", encoding="utf-8")
    java.chmod(0o755)
    done = benchmark("--tlc", str(tmp_path / "absent.jar"), "--modules", str(tmp_path), path=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == f"the class path of TLC names {tmp_path / 'absent.jar'}, which does not exist\n"
    done = benchmark("--tlc", str(java), "--modules", str(tmp_path), path=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith(f"{tmp_path / 'diary-01' / 'kafka_transactions'}.tla is missing")


def test_benchmark_names_a_missing_example_of_stateright(tmp_path: Path) -> None:
    """A folder without the built examples is refused, with where they would be."""
    done = benchmark("--stateright", str(tmp_path), "--only", "2pc-7")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{tmp_path / '2pc'} is missing; build stateright's examples and give ")
    assert done.stderr.count("\n") == 1


@pytest.mark.large
def test_benchmark_compares_with_stateright_where_the_states_are_as_many(tmp_path: Path) -> None:
    """Both are run as whole processes; another count ends the benchmark. A stand-in for the example is enough."""
    example = tmp_path / "2pc"
    example.write_text("#!/bin/sh\necho 'Done. states=1745408, unique=296448, depth=23, sec=1'\n", encoding="utf-8")
    example.chmod(0o755)
    done = benchmark("--stateright", str(tmp_path), "--only", "2pc-7", "--engine", "python", "--json")
    ours, theirs = json.loads(done.stdout)
    assert (ours["engine"], theirs["engine"], ours["distinct"], theirs["distinct"]) == (
        "python", "stateright", 296_448, 296_448
    )
    assert (ours["stateright_goal"], ours["stateright_cpu_ratio"] >= 0) == (1, True)
    example.write_text("#!/bin/sh\necho 'Done. states=1745408, unique=296447, depth=23, sec=1'\n", encoding="utf-8")
    done = benchmark("--stateright", str(tmp_path), "--only", "2pc-7", "--engine", "python")
    assert (done.returncode, "stateright found 296,447" in done.stderr) == (1, True)


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_benchmark_refuses_a_repeat_that_is_no_number(count: str) -> None:
    """`--repeat` takes a number from 1 on."""
    done = benchmark(f"--repeat={count}")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"expected a number from 1 on, got '{count}'" in done.stderr
