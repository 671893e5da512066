"""The commands `serve` and `proxy` in a process of their own, for as long as a test wants it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.paths import ROOT

SERVE = """
import sys
from harness.cli.protocol_commands import as_click
from kafka_proto.gateway import command

name = sys.argv.pop(1)
sys.exit(as_click(name, getattr(command, name))(standalone_mode=False))
"""


@contextmanager
def serving(
    *words: str, folder: Path | None = None, command: str = "serve"
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run the command, in a folder if that matters, and yield the address that its first line has."""
    with subprocess.Popen([sys.executable, "-c", SERVE, command, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, cwd=folder,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        assert process.stdout is not None
        name, _, address = process.stdout.readline().strip().partition("=")
        assert name == "bootstrap.servers", process.communicate()
        try:
            yield address, process
        finally:
            process.terminate()


@contextmanager
def live(*words: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Serve with a page, and yield the page's address and that of the brokers."""
    with serving(*words, "--page", "0", folder=folder) as (servers, process):
        assert process.stdout is not None
        said = process.stdout.readline().split()
        assert said[:4] == ["the", "page", "is", "at"]
        yield said[4], servers
