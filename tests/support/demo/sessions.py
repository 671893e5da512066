"""Sessions of the demo that have come some way, and what its terminal says to a script, for its tests."""

from __future__ import annotations

import io
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from typing import Any

from harness.demo.session.live_session import LiveSession
from harness.demo.session.opened_model import open_what
from harness.demo.terminal.terminal import Script, console_of
from harness.demo.terminal.trio_stepper import TrioStepper

TXN = "kafka/4.0"


def opened(what: str = TXN, budget: str | None = None) -> LiveSession:
    """Open a model or a scenario."""
    return LiveSession(open_what(what, budget=budget))


def toured(name: str, to: int | None = None) -> LiveSession:
    """Open a tour, and go to a step of it, or to its end."""
    session = opened()
    session.tour(name)
    session.forward(session.branch.length if to is None else to)
    return session


def going(session: LiveSession, steps: int | None = None, until: str = "end", **strategy: Any) -> LiveSession:
    """Let a session's strategy take steps, or one that is described."""
    session.set_strategy(**strategy)
    session.start(until, steps)
    session.run()
    return session


def ran(what: str, steps: int, seed: int = 0, inject_faults: bool = True) -> LiveSession:
    """Open something, and let the random strategy take steps."""
    return going(opened(what), steps, strategy="random", seed=seed, inject_faults=inject_faults)


def found_violation() -> LiveSession:
    """Run the scenario of a flaw with one seed after the other, until the claim breaks."""
    session = opened("s4-copied-tail")
    for seed in range(50):
        session.rewind(0)
        if going(session, 120, "violation", strategy="pct", seed=seed).violation is not None:
            return session
    raise AssertionError("no seed finds it")


def run_script(*lines: str, what: str = TXN, on_trio: bool = False) -> tuple[int, str, str]:
    """Give a session lines as a script does; return exit code, output and errors."""
    out, err, session = io.StringIO(), io.StringIO(), opened(what)
    with redirect_stdout(out), redirect_stderr(err), TrioStepper(session) if on_trio else nullcontext() as stepper:
        code = Script(console_of(session, stepper)).run(lines)
    return code, out.getvalue(), err.getvalue()


def told(*lines: str, what: str = TXN) -> str:
    """Return the output of a script in which nothing is refused."""
    code, out, err = run_script(*lines, what=what)
    assert (code, err) == (0, "")
    return out
