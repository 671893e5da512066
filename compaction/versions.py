"""The versions of compaction, of the spec and of a topic that is trimmed, by their decisions; departures from both.

The spec's flaws are repaired, published bugs of Pulsar are built in: each replaces decisions in one place.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import Departure


@attrs.frozen(kw_only=True)
class CompactionVersion:
    """A version of the spec's compaction: as written, or with repairs."""

    collects: bool = False
    """Whether a broker that loads the cursor deletes the ledgers that it does not name; else they stay for ever."""
    horizon_with_context: bool = False
    """Whether a new ledger and its horizon come into effect in one step; else the horizon follows."""
    counts_consumed: bool = False
    """Whether the consumer's step counts, up to a limit; else it changes nothing."""


AS_WRITTEN = CompactionVersion()
DEPARTURES = (
    Departure("S11", "a crash leaves ledgers that nothing names", {"collects": True}),
    Departure("S12", "a new ledger comes into effect before its horizon", {"horizon_with_context": True}),
    Departure("S13", "consuming changes nothing, so nothing terminates", {"counts_consumed": True}),
)


class SealEffect(StrEnum):
    """What a compaction does one after the other when its ledger is sealed, where the topic is trimmed behind it."""

    PERSIST_CURSOR = "PersistCursor"
    """The durable cursor names the new ledger, and has the position that it covers, in one update."""
    PERSIST_POSITION = "PersistPosition"
    """The durable cursor has the new position, and still the old ledger."""
    PERSIST_PROPERTY = "PersistProperty"
    """The durable cursor names the new ledger."""
    INSTALL = "Install"
    """Readers use the new ledger up to the new horizon."""
    MARK_DELETE = "MarkDelete"
    """The topic may be trimmed up to the new position."""
    DELETE_LEDGER = "DeleteLedger"
    """The ledger that was replaced is deleted."""


@attrs.frozen(kw_only=True)
class Trimming:
    """A version of compaction on a topic that is trimmed: as it is right, or with published bugs."""

    effects: tuple[SealEffect, ...] = (
        SealEffect.PERSIST_CURSOR, SealEffect.INSTALL, SealEffect.MARK_DELETE, SealEffect.DELETE_LEDGER
    )
    """Durable first, then what readers see, then what may be trimmed, then what is no longer needed."""
    copies_to_the_end: bool = False
    """Whether phase two goes on behind where phase one ended: it is not known which later messages are the latest."""
    copies_again: bool = False
    """Whether phase two takes all that it reads for new, and not only what is above the last entry that it wrote."""
    reads_ledger_once: bool = False
    """Whether only the first read of a connection is from the ledger."""


RIGHT = Trimming()
FLAWS = (
    Departure("PC-03", "the topic is trimmed before readers use the new ledger", {"effects": (
        SealEffect.PERSIST_CURSOR, SealEffect.MARK_DELETE, SealEffect.INSTALL, SealEffect.DELETE_LEDGER)}),
    Departure("PC-03-inverse", "the cursor is persisted last", {"effects": (
        SealEffect.INSTALL, SealEffect.MARK_DELETE, SealEffect.DELETE_LEDGER, SealEffect.PERSIST_CURSOR)}),
    Departure("PC-04", "the cursor's position is persisted before its ledger", {"effects": (
        SealEffect.PERSIST_POSITION, SealEffect.INSTALL, SealEffect.MARK_DELETE, SealEffect.DELETE_LEDGER,
        SealEffect.PERSIST_PROPERTY)}),
    Departure("PC-05", "phase two goes on to the end of the topic", {"copies_to_the_end": True}),
    Departure("PC-06", "phase two copies again what its reader replays", {"copies_again": True}),
    Departure("PC-07", "only the first read of a connection is from the ledger", {"reads_ledger_once": True}),
)
"""Published bugs of Pulsar, each a departure from what is right in one place."""
