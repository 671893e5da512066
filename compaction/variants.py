"""The rules that a model is built with: whether null keys are retained, and the single repairs of the spec's flaws."""

from __future__ import annotations

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
