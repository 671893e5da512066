"""A person at a terminal, as tests play one: the command line on a pseudo-terminal, its screen as a person sees it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pyte

PATIENCE_S = 60
COMMAND = (
    "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from harness.cli import main; main()"
)
"""The command line with the terminal as its own, so that it hears of another window size."""
ENTER, TAB, ESCAPE, INTERRUPT, END, PAGE_DOWN, UP = "\r", "\t", "\x1b", "\x03", "\x04", "\x1b[6~", "\x1b[A"


class Person:
    """Somebody who types and looks. Used as a context; the process does not outlive it."""

    def __init__(self, *arguments: object, columns: int = 100, rows: int = 30, folder: Path | None = None) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        self._set_size(slave, columns, rows)
        environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, cwd=folder, env=environment,
        )
        os.close(slave)

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._master)

    def _set_size(self, where: int, columns: int, rows: int) -> None:
        fcntl.ioctl(where, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        self.screen.resize(rows, columns)
        self._set_size(self._master, columns, rows)

    def lose_the_cursor(self) -> None:
        """Put the cursor where the command does not expect it, as a paint that is cut off does."""
        self.screen.cursor_position(5, 40)

    def type(self, text: str, *shown: str) -> None:
        """Press keys, and wait until all these texts are on the screen."""
        os.write(self._master, text.encode())
        self.wait(*shown)

    def say(self, line: str, *shown: str) -> None:
        """Type a line, and wait likewise."""
        self.type(line + ENTER, *shown)

    def look(self) -> list[str]:
        """Return the lines of the screen."""
        return [line.rstrip() for line in self.screen.display]

    def sees(self, *texts: str) -> bool:
        """Say whether all these texts are on the screen now."""
        shown = "\n".join(self.look())
        return all(text in shown for text in texts)

    def wait(self, *texts: str) -> None:
        """Wait until all these texts are on the screen."""
        self.wait_until(lambda: self.sees(*texts), f"for {texts}")

    def still_sees(self, text: str, seconds: float) -> bool:
        """Say whether a text is on the screen after a time, too."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read(0.1)
        return self.sees(text)

    def wait_until(self, true: Callable[[], bool], what: str = "") -> None:
        """Wait until something is true of the screen."""
        end = time.monotonic() + PATIENCE_S
        while not true():
            shown = "\n".join(self.look())
            assert time.monotonic() < end, f"waited in vain {what}; the screen is\n{shown}"
            self._read(0.1)

    def _read(self, seconds: float) -> bool:
        """Take what was written within a time; say whether there may be more."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # nobody has the other end any more
            return False
        self._stream.feed(data)
        return bool(data)

    def ended(self) -> int:
        """Wait for the end of the command, and return its exit code."""
        end = time.monotonic() + PATIENCE_S
        while self._read(0.1) and time.monotonic() < end:
            pass
        return self.process.wait(timeout=PATIENCE_S)
