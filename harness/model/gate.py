"""What the environment does to one address: it is down or paused, cannot hear some sources, its clock runs skewed."""

from __future__ import annotations

import attrs


@attrs.frozen
class Gate:
    """What stands between one address and the world. `skew` is its clock's speed in percent of true time."""

    status: str = "up"
    """`up`, `paused` (messages wait) or `down` (messages are lost)."""
    deaf_to: frozenset[str] = frozenset()
    """Sources whose messages are cut off: those under way wait; those sent meanwhile are lost, or wait behind them
    where the link is reliable."""
    skew: int = 100


OPEN = Gate()
