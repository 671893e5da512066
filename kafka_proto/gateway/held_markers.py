"""What holds markers on their way between brokers, as whoever plays a situation needs it."""

from __future__ import annotations

from typing import Protocol


class HeldMarkers(Protocol):
    """Holds what a coordinator sends to partitions."""

    def hold(self) -> None:
        """Hold all markers that come from now on."""

    def is_holding(self) -> bool:
        """Say whether markers are held, after they had time to come."""

    def deliver(self) -> None:
        """Let go of what is held, and hold nothing from now on."""

    def answered(self) -> tuple[int | None, dict[str, str]]:
        """Return the version of WriteTxnMarkers of what was let go, and the partitions' answers."""
