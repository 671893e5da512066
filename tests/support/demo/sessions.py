"""Sessions of the demo that have come some way, what there is to see of one, and its terminal, for its tests."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from typing import Any

from harness.demo.session.live_session import LiveSession
from harness.demo.session.opened_model import open_what
from harness.demo.session.snapshot import snapshot_text
from harness.demo.terminal.terminal import Script, console_of
from harness.demo.terminal.trio_stepper import TrioStepper
from harness.simulate.strategies.chance import Seeded

TXN = "kafka/4.0"
HURT = (TXN, "replication/kip-320/actors", "compaction/pulsar/actors")


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


def snapshot(session: LiveSession) -> dict[str, Any]:
    """Return all of a session, as a page gets it but for the catalogue."""
    found: dict[str, Any] = json.loads(snapshot_text(session, "null"))
    return found


def seen(session: LiveSession) -> dict[str, Any]:
    """Return all there is to see of a session that verbs bring about and take back."""
    session.refine()
    shown = snapshot(session)
    for name in ("version", "epoch", "spec"):
        del shown[name]
    for name in ("can_undo", "strategy", "seed", "until"):
        del shown["present"][name]
    return shown


def meddle(session: LiveSession, chance: Seeded, verbs: int) -> Iterator[str]:
    """Do what a person may do, at random, and say each time what was done."""
    for _ in range(verbs):
        verb = ("take", "take", "take", "rewind", "forward", "switch", "run")[chance.index(7, "verb")]
        if verb == "take" and session.node.options:
            session.take(chance.index(len(session.node.options), "step"), at=session.at)
        elif verb == "rewind":
            session.rewind(session.at - chance.index(min(session.at, 8) + 1, "back"))
        elif verb == "forward":
            session.forward(session.at + chance.index(session.branch.length - session.at + 1, "on"))
        elif verb == "switch":
            session.switch(list(session.branches)[chance.index(len(session.branches), "branch")])
        elif verb == "run":
            session.start("end", 3)
            session.run()
        else:
            continue
        yield verb
