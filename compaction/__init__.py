"""Pulsar's topic compaction as the module `compaction` specifies it.

Rooms: `records`; decisions in `compactor`; `versions`; the spec composition in `spec`; `properties`; `models`.
"""

from __future__ import annotations

from harness.model import System


def system() -> System:
    """Return the models, scenarios and tours of topic compaction."""
    from compaction.models import MODELS
    from compaction.scenarios import SCENARIOS
    from compaction.tours import TOURS

    return System("compaction", MODELS, SCENARIOS, TOURS, package=__name__)
