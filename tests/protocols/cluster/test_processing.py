"""The model `kafka/kip-447`: instances in a group process each record once, unless they read offsets too early."""

from __future__ import annotations

import pytest
from support.runs.made_runs import first_bad, scenario_runs

from harness.model import Refusal, find_model, find_scenario
from kafka_proto.broker.ghosts import Noted, Span
from kafka_proto.cluster.processing import SCENARIOS, processed_once
from kafka_proto.log import Marker


@pytest.mark.parametrize(("markers", "reason"), [
    ((Marker.COMMIT, Marker.COMMIT),
     "i0#1 is processed twice: c1.1#1 i0#1 and c2.1#1 i0#1 are committed in T-1"),
    ((Marker.ABORT, Marker.COMMIT), None),
    ((None, Marker.COMMIT), None),
])
def test_two_committed_results_of_one_record_are_seen(markers: tuple[Marker | None, ...], reason: str | None) -> None:
    """Results that are aborted, or still open, are none."""
    texts = ("c1.1#1 i0#1", "c2.1#1 i0#1")
    spans = [Span(n, 0, (Noted(n, text.partition("#")[0], text),), marker)
             for n, (text, marker) in enumerate(zip(texts, markers, strict=True))]
    assert processed_once("T-1", spans) == reason


def test_an_offset_that_is_read_too_early_is_found_and_the_twin_is_silent() -> None:
    """They differ in `require_stable` of OffsetFetch only."""
    row, twin = find_scenario("offset-read-too-early"), find_scenario("offset-read-too-early-repaired")
    assert row is not None and twin is not None
    assert (twin.sizes, twin.faults, twin.claims) == (row.sizes, row.faults, row.claims)
    found = first_bad(scenario_runs(row, "pct", 27))
    assert found is not None and found.verdict.violated == "ProcessedOnce"
    assert first_bad(scenario_runs(twin, "pct", 60)) is None


def test_members_are_replaced_and_refused_and_wait_for_offsets() -> None:
    """All that P1 to P11 promise holds, too."""
    missing = set(SCENARIOS[0].witnesses)
    for run in scenario_runs(SCENARIOS[0], "pct", 100):
        assert run.verdict.ok, (run.trail.seed, run.verdict)
        missing -= run.witnessed
    assert not missing


@pytest.mark.parametrize(("sizes", "settings", "said"), [
    ({"partitions": 1}, {}, "read one partition and write to another"),
    ({}, {"log": "replicated"}, "replicated logs are empty at the start"),
])
def test_what_cannot_be_processed_is_refused(sizes: dict[str, int], settings: dict[str, str], said: str) -> None:
    with pytest.raises(Refusal, match=said):
        find_model("kafka/kip-447").make(sizes=sizes, settings=settings)
