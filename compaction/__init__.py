"""Pulsar's topic compaction as the module `compaction` (seed 002) specifies it.

Rooms: `records`; decisions in `compactor` and `reader`; `variants`; the spec composition in `spec`; `properties`;
`models`.
"""

from __future__ import annotations

from harness.model import System


def system() -> System:
    """Return the models of topic compaction."""
    from compaction.models import MODELS
    from compaction.scenarios import SCENARIOS

    return System("compaction", MODELS, SCENARIOS)
