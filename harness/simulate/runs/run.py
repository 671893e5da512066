"""A finished run, and its verdict."""

from __future__ import annotations

from typing import Any

import attrs

from harness.record import Recorder, Trail


@attrs.frozen
class Verdict:
    """The outcome of a run: the first claimed property that it violated, with the reason, at which step; or nothing."""

    violated: str | None = None
    reason: str | None = None
    step: int | None = None
    kind: str | None = None
    """`safety`, `liveness`, `deadlock` or, if protocol code raises, `exception`."""

    @property
    def ok(self) -> bool:
        return self.violated is None

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a JSON object."""
        return {"ok": self.ok, **{k: v for k, v in attrs.asdict(self).items() if v is not None}}


@attrs.frozen
class Run:
    """A finished run: its trail, its verdict, its digest (where recorded), and which witnesses it reached."""

    trail: Trail
    verdict: Verdict
    recorder: Recorder | None
    witnessed: frozenset[str]
    violations: tuple[Verdict, ...] = ()
    """The first violation of each claimed property (all of them where the run went on)."""
    error: Exception | None = None
    """The exception of protocol code; the run ends with the step that raised it, and violates `Exception`."""

    @property
    def digest(self) -> str | None:
        return self.recorder.digest() if self.recorder is not None else None
