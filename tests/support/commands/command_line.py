"""The command line as tests call it: in this process for speed, or as a process of its own for signals and pipes."""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs

from harness.cli import main

COMMAND = (sys.executable, "-c", "from harness.cli import main; main()")
PATIENCE_S = 300


@attrs.frozen
class Outcome:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        data = json.loads(self.out)
        assert isinstance(data, dict)
        return data

    @property
    def refusal(self) -> str:
        """The one sentence of wrong use or bad input."""
        assert self.code == 2, (self.code, self.err)
        return self.sentence

    @property
    def sentence(self) -> str:
        """The one line on stderr."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("kafka-proto: "), self.err
        assert "Traceback" not in self.out + self.err
        return lines[0].removeprefix("kafka-proto: ")


def call(*arguments: object) -> Outcome:
    """Call the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    return Outcome(code_of(["", *map(str, arguments)], out, err), out.getvalue(), err.getvalue())


def code_of(words: list[str], out: io.StringIO, err: io.StringIO) -> int:
    """Call the command line in this process with these words, and return its exit code."""
    code = None
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    with (
        redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", words),
        patch.object(gc, "freeze"),  # what a search leaves to the end of its process is garbage here
    ):
        try:
            main()
        except SystemExit as done:
            code = done.code
        finally:
            for number, handler in handlers:
                signal.signal(number, handler)
    assert isinstance(code, int)
    return code


def run(*arguments: object) -> Outcome:
    """Run the command line in a process of its own, however long it takes."""
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


@contextmanager
def started(*arguments: object, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """Start the command line as a process in a group of its own, which does not outlive the test."""
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=stdout, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None or alive_in_group(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def ended(process: subprocess.Popen[str]) -> Outcome:
    """Wait for a process to end by itself."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return Outcome(process.returncode, out or "", err)


def wait_until(true: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait until something is true."""
    end = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def alive_in_group(group: int) -> list[int]:
    """Return the processes of a group that still run (zombies of the machine's init do not)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(of_group) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


def files_below(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(*arguments: object) -> str:
    """Return the sentence that refuses a command, after checking that no file was left or changed."""
    before = files_below(Path.cwd().parent)
    sentence = call(*arguments).refusal
    assert files_below(Path.cwd().parent) == before
    return sentence


@contextmanager
def holding(program: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Give a process of a program of Python that has printed a line and goes on; it is killed in the end."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()
            yield process
        finally:
            process.kill()
