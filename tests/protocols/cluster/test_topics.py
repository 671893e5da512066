"""The topics that are looked at: what each says is what its log, the markers and the consumers say."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from support.brokers.leader import log_of

from harness.model import EntryKind, Kind, ShownLog, View, find_model, find_scenario, model_of
from kafka_proto.broker.coordinator.transaction import last_entries
from kafka_proto.broker.ghosts import spans
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.consumer import ReaderState
from kafka_proto.cluster.logs import LocalLogs
from kafka_proto.cluster.topics import shown
from kafka_proto.log import Marker, RecordBatch, marker_batch, with_high_watermark
from kafka_proto.requests import OFFSETS_PARTITION

KINDS = {Marker.COMMIT: EntryKind.COMMITTED, Marker.ABORT: EntryKind.ABORTED, None: EntryKind.OPEN}


def check(placement: Placement, view: View, logs: tuple[ShownLog, ...]) -> Counter[str]:
    """Hold the logs of a state against its markers and its consumers; return how often each kind of entry is there."""
    found: Counter[str] = Counter()
    count = len(placement.partitions)
    assert [log.partition for log in logs] == [*placement.partitions, *placement.transaction_partitions]
    for log in logs[count:]:
        last = {entry.note.split()[0]: entry for entry in log.entries}
        known = LocalLogs(placement).told(view, log.partition, last_entries)
        assert {tid: entry.text for tid, entry in last.items()} == {tid: entry.state for tid, entry in known.items()}
        assert dict(log.details).keys() == known.keys() and log.marks[0].offset == log.end
        found["transaction log"] += log.end
    for log in logs[:count]:
        ((holder, kept),) = LocalLogs(placement).held(view, log.partition)
        kinds = {record.text: KINDS[span.marker] for span in spans(kept) for record in span.records}
        assert (log.holder, log.end) == (placement.leader(log.partition), len(log.entries)) and holder == log.holder
        assert [entry.offset for entry in log.entries] == list(range(log.end))
        records = [entry for entry in log.entries if "marker" not in entry.kind]
        assert {entry.text: entry.kind for entry in records} == kinds
        marks = {mark.label: mark.offset for mark in log.marks}
        open_from = min((entry.offset for entry in records if entry.kind is EntryKind.OPEN), default=log.end)
        assert (marks["HW"], marks["LSO"]) == (log.end, open_from)
        state: ReaderState = view["r1"]
        assert marks["r1"] == state.consumer.positions.get(log.partition, 0) <= marks["LSO"]
        assert [entry.text for entry in log.entries if entry.seen_by] == list(state.seen.get(log.partition, ()))
        found.update(entry.kind for entry in log.entries)
        found["seen"] += sum(bool(entry.seen_by) for entry in log.entries)
        found["open from"] += sum("open from offset" in value for _, value in log.details)
    return found


def test_logs_of_each_state_are_what_markers_and_consumers_say() -> None:
    """Two producers that interleave, and a consumer of committed records: every kind of entry occurs."""
    model = model_of(find_scenario("exactly-once-interleaved"))
    placement, reached = Placement.of(model.sizes), Counter[str]()
    assert model.logs is not None
    for seed in range(4):
        chance, state = random.Random(seed), model.initial_states()[0]
        for _ in range(80):
            choices = model.choices(state)
            if not choices:
                break
            calm = [choice for choice in choices if choice.step.kind is not Kind.TIMER] or choices
            state = model.apply(state, chance.choice(calm))
            reached += check(placement, View(state), model.logs(View(state)))
    assert set(reached) == {*EntryKind, "seen", "open from", "transaction log"} - {EntryKind.PLAIN}


def test_replicas_of_all_partitions_are_shown() -> None:
    """With replicated logs each holder has a log of its own; a follower's high watermark may be behind its end."""
    model = find_model("kafka/4.0").make(settings={"log": "replicated"})
    placement, chance, state, behind = Placement.of(model.sizes), random.Random(1), model.initial_states()[0], 0
    assert model.logs is not None
    for _ in range(150):
        choices = model.choices(state)
        calm = [choice for choice in choices if choice.step.kind is not Kind.TIMER] or choices
        state = model.apply(state, chance.choice(calm))
        logs = model.logs(View(state))
        partitions = [p for p in placement.all_partitions if p != OFFSETS_PARTITION]
        assert sorted((log.partition, log.holder) for log in logs) == [(p, b) for p in sorted(partitions)
                                                                      for b in placement.brokers]
        behind += sum(mark.label == "HW" and mark.offset < log.end for log in logs for mark in log.marks)
    assert behind and {entry.kind for log in logs for entry in log.entries} > {EntryKind.PLAIN}


@pytest.mark.parametrize("high_watermark", [0, 2, 4])
def test_marks_of_a_log_that_is_not_replicated_yet(high_watermark: int) -> None:
    """The last stable offset is the first open record, and never above the high watermark; a plain record is plain."""
    log = log_of(
        RecordBatch(("plain",)), RecordBatch(("a", "b"), 7, 0, 0, is_transactional=True),
        marker_batch(7, 0, Marker.COMMIT, 3), RecordBatch(("c",), 8, 1, 0, is_transactional=True),
    )
    found = shown("T-0", "b1", with_high_watermark(log, high_watermark), {"r1": (1, ("plain",))})
    kinds = [str(entry.kind) for entry in found.entries]
    assert kinds == ["plain", "committed", "committed", "commit marker", "open"]
    # The marker at offset 3 counts once it is replicated.
    stable = {0: 0, 2: 1, 4: 4}[high_watermark]
    assert {mark.label: mark.offset for mark in found.marks} == {"LSO": stable, "HW": high_watermark, "r1": 1}
    assert [entry.text for entry in found.entries if entry.seen_by] == ["plain"]
    assert found.details == (
        ("producer id 7", "epoch 0, last sequence 1, coordinator epoch 3, no open transaction"),
        ("producer id 8", "epoch 1, last sequence 0, open from offset 4"),
    )
