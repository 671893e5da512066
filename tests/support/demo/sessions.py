"""Sessions of the demo that have come some way, for its tests."""

from __future__ import annotations

from harness.demo.session.live_session import LiveSession
from harness.demo.session.opened_model import open_what

TXN = "kafka/4.0"


def opened(what: str, budget: str | None = None) -> LiveSession:
    """Open a model or a scenario."""
    return LiveSession(open_what(what, budget=budget))


def ran(what: str, steps: int, seed: int = 0, inject_faults: bool = True) -> LiveSession:
    """Open something, and let the random strategy take steps."""
    session = opened(what)
    session.set_strategy("random", seed, inject_faults)
    session.start("end", steps)
    session.run()
    return session


def found_violation() -> LiveSession:
    """Run the scenario of a flaw with one seed after the other, until the claim breaks."""
    session = opened("s4-copied-tail")
    for seed in range(50):
        session.rewind(0)
        session.set_strategy("pct", seed)
        session.start("violation", 120)
        session.run()
        if session.violation is not None:
            return session
    raise AssertionError("no seed finds it")
