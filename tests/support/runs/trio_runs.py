"""Runs on trio, made as `run_plain` makes them on the plain runtime."""

from __future__ import annotations

from harness.record import Recorder
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import Session
from harness.simulate.runtimes.trio_runtime import drive_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import Strategy


def run_on_trio(tables: Tables, plan: Plan, strategy: Strategy, recorder: Recorder | None = None) -> Run:
    """Make one run on trio."""
    return drive_on_trio(Session(tables, plan, strategy, recorder))
