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
    done = benchmark(*(word.format(tmp_path) for word in arguments), path=None if has_java is None else str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said.format(tmp_path)) and done.stderr.count("\n") == 1


@pytest.mark.large
def test_benchmark_compares_with_stateright_where_the_states_are_as_many(tmp_path: Path) -> None:
    """Both are run as whole processes; another count ends the benchmark. A stand-in for the example is enough."""
    example = tmp_path / "2pc"
    program(example, "echo 'Done. states=1745408, unique=296448, depth=23, sec=1'\n")
    done = benchmark("--stateright", str(tmp_path), "--only", "2pc-7", "--engine", "python", "--json")
    ours, theirs = json.loads(done.stdout)
    assert (ours["engine"], theirs["engine"], ours["distinct"], theirs["distinct"]) == (
        "python", "stateright", 296_448, 296_448
    )
    assert (ours["stateright_goal"], ours["stateright_cpu_ratio"] >= 0) == (1, True)
    program(example, "echo 'Done. states=1745408, unique=296447, depth=23, sec=1'\n")
    done = benchmark("--stateright", str(tmp_path), "--only", "2pc-7", "--engine", "python")
    assert (done.returncode, "stateright found 296,447" in done.stderr) == (1, True)


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_benchmark_refuses_a_repeat_that_is_no_number(count: str) -> None:
    """`--repeat` takes a number from 1 on."""
    done = benchmark(f"--repeat={count}")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"expected a number from 1 on, got '{count}'" in done.stderr
