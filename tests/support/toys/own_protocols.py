"""Protocols of other packages for tests: where they stand, and how they are found as if they were installed; and the
examples of the docs, registered."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from types import ModuleType
from typing import Any
from unittest.mock import patch

from harness.model import register, registry, systems
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


def example(name: str) -> ModuleType:
    """Return an example of the docs as a module that nobody else finds."""
    with patch.object(sys, "path", [*sys.path, str(LOCK_SERVICE.parent)]):
        import_module(name)
    return sys.modules.pop(name)


@contextmanager
def registered(*names: str) -> Iterator[None]:
    """Register examples of the docs, and forget them and all that is registered meanwhile."""
    before = list(registry._EXTRA)
    with patch.object(sys, "path", [*sys.path, str(LOCK_SERVICE.parent)]):
        for name in names:
            register(import_module(name).system())
        yield
    registry._EXTRA[:] = before
    systems.cache_clear()
    for name in (*names, "register"):
        sys.modules.pop(name, None)
