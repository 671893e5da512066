"""What a stranger can tell from a broker's logs: each property on a log that violates it, and on its repaired twin."""

from __future__ import annotations

import pytest

from kafka_proto.broker.ghosts import Cause
from kafka_proto.log import Marker, RecordBatch
from kafka_proto.reproduce.judging import ApplicationLedger, ObservedLog, shown, violations
from kafka_proto.reproduce.schedule import ScheduledCall

INIT, BEGIN, COMMIT, ABORT = (ScheduledCall("c1", action, n) for action, n in (
    ("InitTransactions", 0), ("BeginTransaction", 1), ("CommitTransaction", 1), ("AbortTransaction", 1)))
SENT = ScheduledCall("c1", "Send", 1, "T-0", "c1.1#1")
SECOND = ScheduledCall("c1", "BeginTransaction", 2)
OTHER = ScheduledCall("c2", "InitTransactions", 0)
TIDS = {"c1": "tid1", "c2": "tid1"}


def log(*entries: str, stable: int | None = None) -> ObservedLog:
    """Return a log of one producer id: records by their text, markers by their type, at offsets from 0."""
    markers = [Marker(entry) if entry in ("COMMIT", "ABORT") else None for entry in entries]
    batches = tuple(
        RecordBatch((Cause(marker, "") if marker else entry,), 7, 0, 0, True, marker, base_offset=n)
        for n, (entry, marker) in enumerate(zip(entries, markers, strict=True)))
    return ObservedLog(batches, len(batches), len(batches) if stable is None else stable)


def ledger(*calls: ScheduledCall, **answered: str) -> ApplicationLedger:
    """Return what the application did, and the outcomes that it was told, by the number of its transaction."""
    heard = {f"c1.{name[1:]}": outcome for name, outcome in answered.items()}
    return ApplicationLedger((INIT, BEGIN, SENT, *calls), heard, TIDS)


ENDED = ledger(COMMIT, t1="commit")
ROWS = {
    "MarkerAttribution": (
        {"T-0": log("c1.1#1", "ABORT", "c1.2#1", "ABORT")}, ledger(ABORT, SECOND, t1="abort"),
        {"T-0": log("c1.1#1", "ABORT", "c1.2#1", stable=2)}, ledger(ABORT, SECOND, t1="abort"),
        "the ABORT of T-0 at offset 3 ends c1.2#1, of a transaction that the application has not ended",
    ),
    "AcknowledgedOutcome": (
        {"T-0": log("c1.1#1", "ABORT")}, ENDED, {"T-0": log("c1.1#1", "COMMIT")}, ENDED,
        "the application was told that c1.1 is committed, but c1.1#1 of T-0 is aborted at offset 1",
    ),
    "Atomicity": (
        {"T-0": log("c1.1#1", "COMMIT"), "T-1": log("c1.1#2", "ABORT")}, ledger(COMMIT),
        {"T-0": log("c1.1#1", "COMMIT"), "T-1": log("c1.1#2", "COMMIT")}, ledger(COMMIT),
        "of c1.1, c1.1#1 of T-0 is committed at offset 1, but c1.1#2 of T-1 is aborted at offset 1",
    ),
    "NoHangingTransaction": (
        {"T-0": log("ABORT", "c1.1#1", stable=1)}, ledger(ABORT, t1="abort"),
        {"T-0": log("c1.1#1", "ABORT")}, ledger(ABORT, t1="abort"),
        "the last stable offset of T-0 is 1, its high watermark 2: the transaction of c1.1#1, producer id 7, epoch "
        "0, is open, and not under way",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_violation_is_seen_and_its_twin_is_silent(name: str) -> None:
    """The bad logs violate the property by the reason given, the repaired ones violate nothing."""
    bad, did, good, did_there, reason = ROWS[name]
    assert violations(bad, did) == {name: reason}
    assert violations(good, did_there) == {}


def test_a_producer_that_is_replaced_may_be_aborted() -> None:
    """A coordinator aborts what a fenced producer left open: nobody else ended it, and nothing is wrong."""
    logs = {"T-0": log("c1.1#1", "ABORT")}
    assert "MarkerAttribution" in violations(logs, ledger())
    assert violations(logs, ledger(OTHER)) == {}


def test_what_is_under_way_may_be_open() -> None:
    """A log is not stable to its end while a transaction is under way."""
    assert violations({"T-0": log("c1.1#1", stable=0)}, ledger()) == {}


def test_logs_are_shown_a_line_each() -> None:
    """Offsets, what is there, and how far it is stable."""
    assert list(shown({"T-1": log(), "T-0": log("c1.1#1", "COMMIT", stable=1)})) == [
        "T-0: 0 c1.1#1, 1 COMMIT (stable up to 1 of 2)", "T-1: nothing (stable up to 0 of 0)"]
