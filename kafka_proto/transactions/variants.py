"""The variants of the protocol as values: what each published spec does where they differ, and the single repairs.

The ids S1 to S6 name the flaws of the published specs; `repaired(variant, "S1,S3")` replaces the flawed rules only.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

Metadata = object


def set_back_to_pid(pid_source: int, pid: int) -> int:
    """S1 as written: the source of producer ids becomes the pid just used, even that of an existing id."""
    return pid


def never_back(pid_source: int, pid: int) -> int:
    """S1 repaired: the source of producer ids never goes back."""
    return max(pid_source, pid)


def only_deposed_leader(broker: str, known_leader: str) -> bool:
    """S2 as written in diary 02: only the deposed leader learns of a new epoch."""
    return broker == known_leader


def every_replica(broker: str, known_leader: str) -> bool:
    """The gist's guard, and S2 repaired: every replica behind the epoch learns of it."""
    return True


@attrs.frozen
class Variant:
    """One version of the coordinator's rules; see the field docs for the flaw that each rule carries."""

    name: str
    pid_source_after: Callable[[int, int], int] = set_back_to_pid
    """S1: the source of producer ids after an InitPidRequest, from the source and the pid of the id's metadata."""
    learns_epoch: Callable[[str, str], bool] = only_deposed_leader
    """S2: whether a replica behind the epoch becomes follower, from its name and the leader it knows."""
    keeps_other_metadata: bool = False
    """S3: whether an elected broker keeps the metadata of ids that live on other partitions."""
    copies_leaders_log: bool = False
    """S4: whether a new follower copies the leader's whole log instead of truncating to its own high watermark."""
    completes_partial_txns: bool = True
    """S5: whether an elected coordinator completes prepared transactions."""
    init_resets_last_error: bool = True
    """Whether an OK InitPidResponse clears the client's last state and error."""
    election: str = "ElectLeader"
    """The spec's name of the election action."""


DIARY_02 = Variant("diary-02")
GIST = Variant(
    "gist",
    learns_epoch=every_replica,
    copies_leaders_log=True,
    completes_partial_txns=False,
    init_resets_last_error=False,
    election="BecomeLeader",
)

REPAIRS: dict[str, Callable[[Variant], Variant]] = {
    "S1": lambda variant: attrs.evolve(variant, pid_source_after=never_back),
    "S2": lambda variant: attrs.evolve(variant, learns_epoch=every_replica),
    "S3": lambda variant: attrs.evolve(variant, keeps_other_metadata=True),
    "S4": lambda variant: attrs.evolve(variant, copies_leaders_log=False),
    "S5": lambda variant: attrs.evolve(variant, completes_partial_txns=True),
}


def repaired(variant: Variant, repairs: str) -> Variant:
    """Return the variant with the flaws of a comma-separated list of ids repaired."""
    for flaw in repairs.split(",") if repairs else ():
        variant = REPAIRS[flaw](variant)
    return variant
