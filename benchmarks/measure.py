"""Whole processes and what they cost, `kafka-proto check` among them. Shared by the benchmarks, nothing to run here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import attrs


@attrs.frozen
class Cost:
    """What a process and its children used, from start to end."""

    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    """The largest resident size of the process, or of the largest child it waited for."""


@attrs.frozen
class Ended:
    """A process that has ended: its exit code, its output and its cost."""

    code: int
    output: str
    errors: str
    cost: Cost


def fail(sentence: str) -> NoReturn:
    """End the benchmark: the wrong arguments, or something it needs is missing."""
    print(sentence, file=sys.stderr)
    sys.exit(2)


def run(command: Sequence[str], folder: Path | None = None) -> Ended:
    """Run a command to its end and measure it."""
    # A user's Python keeps what it compiled of the modules it imports, so the processes measured may do that too.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=errors, env=environment)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except KeyboardInterrupt:
            process.wait()
            raise
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        cost = Cost(usage.ru_utime + usage.ru_stime, wall, memory)
        return Ended(process.returncode, text(output), text(errors), cost)


def text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode(errors="replace"))


def check(arguments: Sequence[str]) -> tuple[dict[str, Any], Cost]:
    """Run `kafka-proto check ARGUMENTS --json`; return what it says and what the process cost."""
    if not hasattr(os, "wait4"):
        fail("the benchmarks measure processes by os.wait4, which this system does not have; use Linux or macOS")
    program = Path(sys.executable).with_name("kafka-proto")
    if not program.is_file():
        fail(f"{program} is missing; run this with the Python of the project's virtual environment (make setup)")
    with tempfile.TemporaryDirectory() as folder:
        ended = run([str(program), "check", *arguments, "--json", "--out", folder])
    try:
        reported: dict[str, Any] = json.loads(ended.output)
    except ValueError:
        said = (ended.errors or ended.output).strip()[-500:]
        fail(f"kafka-proto check {' '.join(arguments)} ended with code {ended.code} and without its JSON: {said}")
    return reported, ended.cost


def sizes(given: dict[str, int]) -> list[str]:
    """Return sizes as arguments of `check`."""
    return [part for name, number in given.items() for part in ("--size", f"{name}={number}")]


class Watch:
    """Looks several times a second at the resident memory of this process and of all below it, while a block runs.

    `peak` is the largest sum in bytes; pages that processes share count for each, so it is not too low. None where
    there is no /proc to look at.
    """

    EVERY_S = 0.2

    def __init__(self) -> None:
        self.peak: int | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            now = resident(os.getpid())
            if now is not None:
                self.peak = max(now, self.peak or 0)
            if self._over.wait(self.EVERY_S):
                return


def resident(root: int) -> int | None:
    """Return the resident bytes of a process and of all below it; None where the system does not tell."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            reported = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
        except OSError:
            continue  # it has ended
        pid = int(folder.name)
        parents[pid] = int(reported["PPid"])
        sizes[pid] = int(reported.get("VmRSS", "0").split()[0]) * 1024
    if root not in parents:
        return None
    below = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        if not more:
            return sum(sizes[pid] for pid in below)
        below |= more
