"""Runs on trio, made as `run_plain` makes them on the plain runtime."""

from __future__ import annotations

from harness.record import Recorder
from harness.simulate.plan import Plan
from harness.simulate.run import Run
from harness.simulate.session import Session
from harness.simulate.strategy import Strategy
from harness.simulate.tables import Tables
from harness.simulate.trio_runtime import drive_on_trio


def run_on_trio(tables: Tables, plan: Plan, strategy: Strategy, recorder: Recorder | None = None) -> Run:
    """Make one run on trio."""
    return drive_on_trio(Session(tables, plan, strategy, recorder))
