"""The rules that a model is built with: whether null keys are retained, and the single repairs of the spec's flaws.

Where the topic is trimmed, the rules are the right ones or those of a published bug, a flaw.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import attrs


@attrs.frozen
class Rules:
    """Where settings and repairs change what is done; as written, every repair is off."""

    retain_null_key: bool = True
    """`RetainNullKey`: whether messages without a key stay in a compacted ledger."""
    collects_on_load: bool = False
    """S11: whether a broker that loads the cursor deletes the compacted ledgers that the cursor does not name."""
    installs_together: bool = False
    """S12: whether a new compacted ledger and its horizon come into effect in one step."""
    counts_consuming: bool = False
    """S13: whether the consumer's step counts how often it consumed."""


REPAIRS = {"S11": "collects_on_load", "S12": "installs_together", "S13": "counts_consuming"}


def rules(retain_null_key: bool, repairs: str) -> Rules:
    """Return the rules with a comma-separated list of flaws repaired."""
    return Rules(retain_null_key, **{REPAIRS[flaw]: True for flaw in repairs.split(",") if flaw})


class Effect(StrEnum):
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


@attrs.frozen
class Trimming:
    """The rules of compaction on a topic that is trimmed; the defaults are right."""

    effects: tuple[Effect, ...] = (Effect.PERSIST_CURSOR, Effect.INSTALL, Effect.MARK_DELETE, Effect.DELETE_LEDGER)
    """Durable first, then what readers see, then what may be trimmed, then what is no longer needed."""
    stops_at_phase_one: bool = True
    """Whether phase two ends where phase one did; if not, it goes on to the end of the topic."""
    skips_replayed: bool = True
    """Whether phase two skips what it has read before its raw reader reconnected."""
    ledger_on_every_read: bool = True
    """Whether each read below the horizon is from the ledger; if not, the first one of a connection only."""


FLAWS: Mapping[str, Trimming] = {
    "none": Trimming(),
    "PC-03": Trimming((Effect.PERSIST_CURSOR, Effect.MARK_DELETE, Effect.INSTALL, Effect.DELETE_LEDGER)),
    "PC-03-inverse": Trimming((Effect.INSTALL, Effect.MARK_DELETE, Effect.DELETE_LEDGER, Effect.PERSIST_CURSOR)),
    "PC-04": Trimming(
        (Effect.PERSIST_POSITION, Effect.INSTALL, Effect.MARK_DELETE, Effect.DELETE_LEDGER, Effect.PERSIST_PROPERTY)
    ),
    "PC-05": Trimming(stops_at_phase_one=False),
    "PC-06": Trimming(skips_replayed=False),
    "PC-07": Trimming(ledger_on_every_read=False),
}
"""Published bugs of Pulsar, each a departure from the right rules in one place."""
