"""A clock for brokers that a test sets, so that no test depends on how fast the machine is."""

from __future__ import annotations


class SetClock:
    """Milliseconds since the epoch: they stand still, but for what the test lets pass."""

    def __init__(self, now: int) -> None:
        self._now = now

    def __call__(self) -> int:
        return self._now

    def pass_ms(self, milliseconds: int) -> None:
        """Let time pass; brokers notice when they are asked for something."""
        self._now += milliseconds
