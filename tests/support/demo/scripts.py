"""What the tests of the demo in a terminal share."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

from harness.demo.session.live_session import LiveSession
from harness.demo.session.opened_model import open_what
from harness.demo.terminal.terminal import Script, console_of
from harness.demo.terminal.trio_stepper import TrioStepper

MODEL = "kafka/4.0"


def run_script(*lines: str, what: str = MODEL, on_trio: bool = False) -> tuple[int, str, str]:
    """Give a session lines as a script does; return exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    session = LiveSession(open_what(what))
    with redirect_stdout(out), redirect_stderr(err):
        if on_trio:
            with TrioStepper(session) as stepper:
                code = Script(console_of(session, stepper)).run(lines)
        else:
            code = Script(console_of(session)).run(lines)
    return code, out.getvalue(), err.getvalue()
