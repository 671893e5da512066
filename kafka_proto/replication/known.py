"""What a broker knows of who leads a partition."""

from __future__ import annotations

import attrs


@attrs.frozen
class LeaderAndEpoch:
    """A broker's belief about a partition: its leader, and the leader epoch, which is a coordinator's epoch, too."""

    leader_epoch: int
    leader: str


NOBODY = LeaderAndEpoch(-1, "")
"""What a broker knows of a partition until it learns who leads it, and of one that is not there."""
