"""The harness: model, record, explore, simulate and check protocols. It knows no protocol.

`harness.simulated` (for tests) and `harness.open_cluster` (for trio programs) load their drivers when first used, so
that a protocol that imports `harness.model` loads none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.compiled import use_build

if TYPE_CHECKING:
    from harness.simulate.runtimes.trio_runtime import open_cluster
    from harness.simulate.testing.decorator import SimulationFailed, simulated

__all__ = ["SimulationFailed", "open_cluster", "simulated"]
use_build()


def __getattr__(name: str) -> Any:
    if name in ("simulated", "SimulationFailed"):
        from harness.simulate.testing import decorator

        return getattr(decorator, name)
    if name == "open_cluster":
        from harness.simulate.runtimes.trio_runtime import open_cluster

        return open_cluster
    raise AttributeError(f"module 'harness' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what is here, with what is loaded when first used: for `dir`, `help` and pydoc."""
    return sorted({*globals(), *__all__})
