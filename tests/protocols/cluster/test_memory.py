"""Runs after runs of whole transactions leave nothing behind: counts of what is kept, by whoever keeps it."""

from __future__ import annotations

import gc
import weakref
from collections import Counter

import attrs
import pytest

from harness.memo.interning import long_lived
from harness.model import find_model, message, values
from harness.simulate.runs.plan import everything
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from kafka_proto.broker.ghosts import REMEMBERED, committed_offsets, spans
from kafka_proto.cluster.logs import log_of
from kafka_proto.log import EMPTY_LOG, PartitionLog

SIZES = {"producers": 2, "transactional-ids": 2, "consumers": 2, "offsets": 1}
BUDGET = 2_000_000
LARGEST_RUN = 10_000_000
"""What tables may take beyond their budget, since they start over between two runs."""


class Runs:
    """One run after the other, on tables that are full every few runs."""

    def __init__(self, budget: int, **settings: str) -> None:
        model = find_model("kafka/4.0").make(SIZES, settings)
        self.tables = Tables(model, budget=budget)
        self.types = frozenset(model.types)
        self.plan = everything(model)
        self.seed = 0

    def make(self, count: int) -> None:
        """Make so many more."""
        with long_lived():
            for _ in range(count):
                run_plain(self.tables, self.plan, RandomStrategy(self.seed))
                self.seed += 1
                assert self.tables.used < self.tables.budget + LARGEST_RUN

    def left(self) -> Counter[str]:
        """Return how many values of the protocol are in memory once neither tables nor texts hold any."""
        self.tables.start_over()
        values._REMEMBERED.clear()
        message._BRIEF.clear()
        log_of.cache_clear()
        gc.collect()
        gc.unfreeze()  # of earlier tests' values some are still in use: those count too, whichever tests there were
        found = Counter(type(each).__name__ for each in gc.get_objects() if type(each) in self.types)
        gc.freeze()
        return found


@pytest.mark.parametrize("tell", [spans, committed_offsets])
def test_what_a_log_tells_is_forgotten_with_the_log(tell: object) -> None:
    """Of the logs that were looked at last it is remembered; one from long ago is not in memory any more."""
    assert callable(tell)
    logs = [attrs.evolve(EMPTY_LOG, log_start_offset=n, log_end_offset=n) for n in range(1, REMEMBERED + 2)]
    seen = [weakref.ref(log) for log in logs]
    while logs:
        tell(logs.pop(0))
    gc.collect()
    assert [n for n, log in enumerate(seen) if log() is not None] == list(range(1, REMEMBERED + 1))


@pytest.mark.usefixtures("settled")
def test_nothing_is_left_of_runs_that_are_over() -> None:
    """After three runs and after nine, with what is remembered of logs taken away, there is the same."""
    runs, found = Runs(BUDGET), list[Counter[str]]()
    for _ in range(3):
        runs.make(3)
        spans.cache_clear()
        committed_offsets.cache_clear()
        found.append(runs.left())
    assert runs.tables.renewals > 3
    assert found[0]["ClientState"] and found[0]["PartitionLog"]
    assert sum((found[2] - found[0]).values()) < 20


@pytest.mark.large
@pytest.mark.parametrize(("log", "count"), [("at-once", 1_000), ("replicated", 240)])
def test_many_runs_leave_as_many_logs_as_may_be_remembered(log: str, count: int) -> None:
    """Whatever was met: what many runs leave is no more than what the bounds allow."""
    runs = Runs(20_000_000, log=log)
    before, met = runs.left()[PartitionLog.__name__], spans.cache_info().misses
    runs.make(count)
    assert runs.tables.renewals > 10
    most = 2 * REMEMBERED + 100
    assert spans.cache_info().misses - met > most + 500
    assert runs.left()[PartitionLog.__name__] - before < most
