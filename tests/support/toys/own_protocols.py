"""Protocols of other packages for tests: where they stand, and how they are found as if they were installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any
from unittest.mock import patch

from harness.model import registry, systems
from support.paths import ROOT

LOCK_SERVICE = ROOT / "docs" / "examples" / "lock_service.py"
TWO_PHASE = ROOT / "tests" / "data" / "two_phase"
ENTRIES = (("lock-service", "lock_service:system"), ("two-phase", "two_phase:system"))
MODULES = ("lock_service", "two_phase", "two_phase_messages")


@contextmanager
def found() -> Iterator[None]:
    """Let both protocols be found through their entry points, in this process."""
    ours = [EntryPoint(name, value, registry.GROUP) for name, value in ENTRIES]

    def faked(**chosen: Any) -> EntryPoints:
        return EntryPoints([*entry_points(group=registry.GROUP), *ours]).select(**chosen)

    with patch.object(sys, "path", [*sys.path, str(LOCK_SERVICE.parent), str(TWO_PHASE)]), \
            patch.object(registry, "entry_points", faked):
        systems.cache_clear()
        try:
            yield
        finally:
            systems.cache_clear()
            for name in MODULES:
                sys.modules.pop(name, None)
