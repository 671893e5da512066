"""The demo in a terminal: the verbs of the page, typed. Where input is no terminal, lines are read and text is printed.

`fullscreen` draws and reads keys; here is the choice between the two, and the one that prints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from harness.demo.session.live_session import LiveSession
from harness.demo.terminal.console import Console, Stepper
from harness.demo.terminal.trio_stepper import TrioStepper
from harness.demo.terminal.verbs.explaining import EXPLAINING
from harness.demo.terminal.verbs.files import FILES
from harness.demo.terminal.verbs.looking import LOOKING
from harness.demo.terminal.verbs.stepping import LEAVING, STEPPING
from harness.model import Refusal
from harness.record.wording import counted
from harness.render.text import wrap

WIDTH = 100
"""Columns of printed output without a terminal."""
SLICE = 100
"""Steps of a run between two moments at which an interrupt is heard."""
REFUSED = 2
"""Exit code of a script with a line that was refused."""


def run(session: LiveSession) -> int:
    """Let a person, or a script, use the session until they leave; return the exit code. Raises Refusal."""
    try:
        with TrioStepper(session) as stepper:
            console = console_of(session, stepper)
            if not (sys.stdin.isatty() and sys.stdout.isatty()):
                return Script(console).run(sys.stdin)
            _full_screen(console)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; files that were saved are complete") from None
    unsaved = ", not saved" if session.at and not console.is_saved else ""
    click.echo(f"left {session.model.name} after {counted(session.at, 'step')}{unsaved}")
    return 0


def _full_screen(console: Console) -> None:
    try:
        from harness.demo.terminal.fullscreen import FullScreen
    except ImportError as error:
        raise Refusal(
            f"the terminal needs {error.name}, which is not installed; pip install 'kafka-proto[demo]'"
        ) from None
    FullScreen(console).run()


def console_of(session: LiveSession, stepper: Stepper | None = None) -> Console:
    """Return a console that knows every verb; the session takes its steps itself, unless a stepper is given."""
    return Console(session, (*STEPPING, *LOOKING, *EXPLAINING, *FILES, *LEAVING), stepper)


class Script:
    """A console that reads line by line, and whose answers are printed."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.code = 0

    def run(self, lines: Iterable[str]) -> int:
        """Carry the lines out, and return the exit code: 2 where one was refused."""
        self._names()
        self._new(0)
        for line in lines:
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            click.echo(f"> {line}")
            try:
                self._do(line)
            except Refusal as error:
                click.echo(f"kafka-proto: {' '.join(str(error).split())}", err=True)
                self.code = REFUSED
            if self.console.is_left:
                break
        return self.code

    def _names(self) -> None:
        for line in self.console.timeline.names(WIDTH):
            click.echo(line)

    def _do(self, line: str) -> None:
        session = self.console.session
        epoch, branch = session.epoch, session.branch
        before = branch.records[: session.at + 1]
        self.console.do(line)
        if self.console.job is not None:
            self.console.job.do()
        if session.runner.running:
            while self.console.stepper.run(SLICE):
                pass
            self.console.said.append(self.console.why_it_stopped())
        now = session.branch.records[: session.at + 1]
        same = 0
        while same < min(len(before), len(now)) and before[same] is now[same]:
            same += 1
        if epoch != session.epoch:
            self._names()
        self._new(same)
        for text in self.console.said:
            click.echo(text)
        if same < len(before):
            click.echo(f"at step {session.at} of {session.branch.length}, {session.branch.name}")

    def _new(self, same: int) -> None:
        """Print the steps that are new, and what a tour has to say about the last of them."""
        now = self.console.session.branch.records[same : self.console.session.at + 1]
        for record in now:
            for text in self.console.timeline.lines(record, WIDTH):
                click.echo(text)
        if now and (caption := self.console.caption()) is not None:
            for text in wrap(caption, WIDTH - 2, ""):
                click.echo(f"  {text}")
