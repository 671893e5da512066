"""Anomalies within drawn histories: each is found among what is legal, and its repaired twin is silent."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from support.queues.lines import operations_of
from support.queues.queue import legal, mingled
from verify.test_anomalies import HISTORIES

from harness.model.log_operations import LogOperation
from harness.verify.isolation.anomalies import ANOMALIES, LEVELS
from harness.verify.isolation.judge import LogJudge

SEEDS = range(10)


def found(history: Iterable[LogOperation], level: str) -> set[str]:
    judge = LogJudge(level)
    for operation in history:
        judge.look(operation)
    return {one.anomaly for one in judge.anomalies()}


@pytest.mark.parametrize("anomaly", sorted(HISTORIES))
def test_an_anomaly_is_found_among_what_is_legal(anomaly: str) -> None:
    """Ten histories that have it, and ten neighbours that do not: the operations of others come in between."""
    bad, twin, _ = HISTORIES[anomaly]
    level = ANOMALIES[anomaly][1]
    for seed in SEEDS:
        around = legal(seed, one_by_one=level == LEVELS[-1])
        assert anomaly in found(mingled(seed, around, list(operations_of(bad))), level), seed
        assert found(mingled(seed, around, list(operations_of(twin))), level) == set(), seed


def test_no_legal_history_has_an_anomaly() -> None:
    """Overlapping transactions, aborts, unknown outcomes and crashes of readers: nothing of what Kafka forbids."""
    assert {seed: names for seed in range(400) if (names := found(legal(seed), "read_committed"))} == {}
