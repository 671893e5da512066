"""How fast a session goes by itself: the steps of a run a frame, and what is checked against the spec between them."""

from __future__ import annotations

from collections.abc import Callable

from harness.demo.session.live_session import LiveSession

FRAME = 0.04
"""Seconds between two pictures of a run."""
SLICE = 0.02
"""Seconds of a frame in which steps are taken, where a run is to go as fast as it can."""
SOME = 25
"""Steps that are taken in a row before others get their turn."""
SOON = 0.001
"""Seconds that others get if there is more to do."""


def wait(session: LiveSession, more: bool) -> float | None:
    """Return the seconds to the next frame; None if nothing goes on. `more` says if the spec is behind."""
    runner = session.runner
    if runner.running:
        return max(FRAME, 1 / runner.speed) if runner.speed else SLICE
    return SOON if more else None


def steps_of_frame(session: LiveSession) -> int:
    """Return how many steps of a run a frame has; 0 for as many as a slice of it holds."""
    speed = session.runner.speed
    return max(1, round(speed * FRAME)) if speed else 0


def refine(session: LiveSession, clock: Callable[[], float]) -> bool:
    """Check the new steps against the spec for the time of a slice; say whether some are left."""
    until = clock() + SLICE
    while session.refine(SOME):
        if clock() >= until:
            return True
    return False
