"""`kafka-proto check --memory`: a bound of the whole process that holds for every engine, and what it is by default."""

from __future__ import annotations

import resource
import shlex
import subprocess
from pathlib import Path

import pytest
from support.commands.command_line import COMMAND, Outcome, run

from harness.explore import machine
from harness.explore.packed import kernel

ENGINES = ("python", "plain", pytest.param("kernel", marks=pytest.mark.skipif(
    not kernel.is_available(), reason="the kernel cannot be compiled here")))
WHOLE = ("kafka/4.0", *(f"--size={name}=1" for name in ("producers", "transactional-ids", "consumers")))
"""Whole transactions, whose states never come again: most of the memory is what is known about steps."""
SPEC = ("transactions/diary-01", "--size=clients=5", "--size=brokers=4")
"""States by the million, about which little has to be known."""
MANY = ("--states", 10**9, "--json")


@pytest.mark.parametrize("what", [WHOLE, SPEC], ids=["actors", "spec"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("most", [0.2, pytest.param(2, marks=pytest.mark.large)])
def test_no_search_takes_more_memory_than_it_may(
    most: float, engine: str, what: tuple[str, ...], tmp_path: Path
) -> None:
    """It ends with a sentence, and the process never had more."""
    done = run("check", *what, *MANY, "--memory", most, "--engine", engine, "--out", tmp_path)
    assert done.refusal.startswith(f"the search needs more than {most:g} GB of memory after ")
    assert done.json["limit"] == {"name": "memory", "value": most}
    assert done.json["distinct"] > 10_000
    assert done.json["peak_memory_bytes"] <= most * 1e9


@pytest.mark.skipif(not machine.STATM.exists(), reason="what a process has is not known here")
def test_a_search_without_a_bound_ends_before_the_memory_does(tmp_path: Path) -> None:
    """What the shell allows is the bound; nothing runs out."""
    command = [*COMMAND, "check", *WHOLE, *map(str, MANY), "--engine", "python", "--out", str(tmp_path)]
    limited = subprocess.run(["sh", "-c", f"ulimit -v 350000; exec {shlex.join(command)}"], capture_output=True,
                             text=True, check=False)
    done = Outcome(limited.returncode, limited.stdout, limited.stderr)
    assert "GB of memory after" in done.refusal
    assert done.json["limit"]["name"] == "memory"
    assert done.json["peak_memory_bytes"] < 350_000 * 1024


def test_what_is_free_leaves_others_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least of what the machine, a container and the shell leave counts, and what the process has is its own.

    Where nothing is known there is no bound.
    """
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9000 kB\nMemAvailable: 5000 kB\n", encoding="utf-8")
    monkeypatch.setattr(machine, "MEMINFO", meminfo)
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    monkeypatch.setattr(machine, "resident", lambda: 500)
    assert machine.free() == 4500 * 1024 + 500
    (tmp_path / "memory.max").write_text("3000000\n", encoding="utf-8")
    (tmp_path / "memory.current").write_text("1000000\n", encoding="utf-8")
    assert machine.free() == 1_800_500
    (tmp_path / "memory.max").write_text("max\n", encoding="utf-8")
    meminfo.unlink()
    assert machine.free() == 0
    assert not machine.is_beyond(0)
    assert machine.is_beyond(1)
