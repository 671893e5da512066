"""Each anomaly of a history of logs: a history that has it, its nearest legal neighbour, and the proof."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from support.queues.lines import operations_of

from harness.verify.isolation.anomalies import ANOMALIES, LEVELS
from harness.verify.isolation.judge import LogJudge

HISTORIES: dict[str, tuple[str, str, str]] = {
    "lost-write": (
        "0 send x1@0  0 send x2@1  0 send x3@2  1 poll x1@0 x3@2",
        "0 send x1@0  0 send x2@1 info  0 send x3@2  1 poll x1@0 x3@2",
        "x2 was acknowledged at offset 1 of log x in operation 4 (send by 0) and is read by nobody, though operation 8 "
        "(poll by 1) reads offset 2",
    ),
    "unseen": (
        "1 assign x  0 send x1@0  1 poll x1@0  0 send x2@1  1 poll",
        "1 assign x  0 send x1@0  1 poll x1@0  1 poll  0 send x2@1",
        "x2 was acknowledged at offset 1 of log x in operation 8 (send by 0) and is read by nobody, though operation "
        "10 (poll by 1) begins later and finds nothing more",
    ),
    "int-poll-skip": (
        "0 send x1 x2 x3 info  1 poll x1@0 x3@2  2 poll x2@1",
        "0 send x1 x2 x3 info  1 poll x1@0  1 assign y  1 assign x  1 poll x3@2  2 poll x2@1",
        "operation 6 (poll by 2) reads x2 at offset 1 of log x, and operation 4 (poll by 1) passes over it from offset "
        "0 to 2",
    ),
    "poll-skip": (
        "0 send x1 x2 x3 info  1 poll x1@0  1 poll x3@2  2 poll x2@1",
        "0 send x1 x2 x3 info  1 poll x1@0  1 crash  1 poll x3@2  2 poll x2@1",
        "operation 8 (poll by 2) reads x2 at offset 1 of log x, and operation 6 (poll by 1) passes over it, from "
        "offset 0 in operation 4 (poll by 1) to 2",
    ),
    "inconsistent-offsets": (
        "0 send x1@0 info  1 poll x1@0  2 send x2@0",
        "0 send x1@0 info  2 send x2@0",
        "offset 0 of log x is x1 in operation 4 (poll by 1) and x2 in operation 6 (send by 2)",
    ),
    "int-nonmonotonic-poll": (
        "0 send x1@0 x2@1  1 subscribe x  1 poll x2@1 x1@0",
        "0 send x1@0 x2@1  1 subscribe x  1 poll x2@1  1 poll x1@0",
        "1 reads offset 0 of log x in operation 6, after offset 1 in the same one",
    ),
    "nonmonotonic-poll": (
        "0 send x1@0 x2@1  1 assign x  1 poll x1@0 x2@1  1 poll x2@1",
        "0 send x1@0 x2@1  1 assign x  1 poll x1@0 x2@1  1 assign x from-start  1 poll x1@0",
        "1 reads offset 1 of log x in operation 8, after offset 1 in operation 6",
    ),
    "wrong-offset": (
        "0 send x1@0  1 poll x1@1",
        "0 send x1@1  1 poll x1@1",
        "operation 2 (send by 0) was told that x1 is at offset 0 of log x, and operation 4 (poll by 1) reads it at "
        "offset 1",
    ),
    "duplicate": (
        "0 send x1@0  1 poll x1@0 x1@1",
        "0 send x1@0  0 send x2@1  1 poll x1@0 x2@1",
        "x1 of operation 2 (send by 0) is in log x twice: operation 4 (poll by 1) reads it at offset 0, operation 4 "
        "(poll by 1) at offset 1",
    ),
    "garbage-read": (
        "0 send x1@0  1 poll x1@0 x9@1",
        "0 send x1@0  0 send x9 info  1 poll x1@0 x9@1",
        "operation 4 (poll by 1) reads x9 at offset 1 of log x, and nobody sent that",
    ),
    "wrong-key": (
        "0 send x1@0  0 send y:x2 info  1 poll x1@0 x2@1",
        "0 send x1@0  0 send x2 info  1 poll x1@0 x2@1",
        "x2 was sent to log y in operation 4 (send by 0), and operation 6 (poll by 1) reads it in log x",
    ),
    "future-read": (
        "0 poll x1@0  1 send x1@0",
        "1 begins-send x1  0 poll x1@0  1 ends-send x1@0",
        "operation 2 (poll by 0) reads x1 of log x before operation 4 (send by 1) begins to send it",
    ),
    "int-nonmonotonic-send": (
        "0 send x1@1 x2@0",
        "0 send x1@0 x2@1",
        "operation 2 (send by 0) sent x1 before x2, and in log x they are at the offsets 1 and 0",
    ),
    "nonmonotonic-send": (
        "0 send x1@1  0 send x2@0",
        "0 send x1@1  1 send x2@0",
        "operation 2 (send by 0) sent x1 before operation 4 (send by 0) sent x2, and in log x they are at the offsets "
        "1 and 0",
    ),
    "G1a": (
        "0 txn x1 y2 fail  1 poll x1@0",
        "0 txn x1 y2 info  1 poll x1@0",
        "x1 was sent to log x in operation 2 (txn by 0), which failed, and operation 4 (poll by 1) reads it",
    ),
    "precommitted-read": (
        "0 txn x1@0 poll x1@0",
        "0 txn x1@0  0 txn y2@0 poll x1@0",
        "operation 2 (txn by 0) reads x1 of log x, which it sent itself",
    ),
    "torn-transaction": (
        "0 txn x1 y2 info  2 send y3@5  1 assign x y  1 poll x1@0 y3@5  1 poll",
        "0 txn x1 y2 info  2 send y3@5  1 assign x y  1 poll x1@0 y3@5 y2@6  1 poll",
        "operation 2 (txn by 0) sent x1 to log x and y2 to log y; operation 8 (poll by 1) reads x1, but nobody reads "
        "y2, though operation 10 (poll by 1) begins after that, and finds nothing more in log y",
    ),
    "G1c": (
        "0 begins-txn x1 poll  1 begins-txn y2 poll  0 ends-txn x1@0 poll y2@0  1 ends-txn y2@0 poll x1@0",
        "0 begins-txn x1 poll  1 begins-txn y2 poll  0 ends-txn x1@0 poll  1 ends-txn y2@0 poll x1@0",
        "operation 3 (txn by 0) is before operation 4 (txn by 1) is before operation 3 (txn by 0): operation 3 (txn by "
        "0) sent x1 at offset 0 of log x, which operation 4 (txn by 1) reads; operation 4 (txn by 1) sent y2 at offset "
        "0 of log y, which operation 3 (txn by 0) reads",
    ),
    "G0": (
        "0 begins-txn x1 y2  1 begins-txn x3 y4  0 ends-txn x1@0 y2@1  1 ends-txn x3@1 y4@0",
        "0 begins-txn x1 y2  1 begins-txn x3 y4  0 ends-txn x1@0 y2@0  1 ends-txn x3@1 y4@1",
        "operation 3 (txn by 0) is before operation 4 (txn by 1) is before operation 3 (txn by 0): operation 3 (txn by "
        "0) sent what is before x3 at offset 1 of log x, which operation 4 (txn by 1) sent; operation 4 (txn by 1) "
        "sent what is before y2 at offset 1 of log y, which operation 3 (txn by 0) sent",
    ),
    "G1c-ww": (
        "0 begins-txn x1 y2  1 begins-txn poll y3  0 ends-txn x1@0 y2@1  1 ends-txn y3@0 poll x1@0",
        "0 begins-txn x1 y2  1 begins-txn poll y3  0 ends-txn x1@0 y2@0  1 ends-txn y3@1 poll x1@0",
        "",
    ),
    "G-single": (
        "0 send x1@0  1 begins-txn poll  0 txn x2@1 y3@0  1 ends-txn poll x1@0 y3@0",
        "0 send x1@0  1 begins-txn poll  0 txn x2@1 y3@0  1 ends-txn poll x1@0 x2@1 y3@0",
        "",
    ),
    "G2-item": (
        "0 txn x1@0 y2@0  1 begins-txn poll y3  2 begins-txn poll x4  1 ends-txn y3@1 poll x1@0  "
        "2 ends-txn x4@1 poll y2@0",
        "0 txn x1@0 y2@0  1 begins-txn poll y3  2 begins-txn poll x4  1 ends-txn y3@1 poll x1@0  "
        "2 ends-txn x4@1 poll y2@0 y3@1",
        "",
    ),
}
"""By anomaly: a history, its repaired twin, and the sentence. `support.queues.lines` says how they are written."""


def anomalies(text: str, level: str = "serializable") -> Iterable[tuple[str, str]]:
    """Return what a history violates at a level."""
    judge = LogJudge(level)
    for operation in operations_of(text):
        judge.look(operation)
    return [(one.anomaly, one.reason) for one in judge.anomalies()]


def test_every_anomaly_has_a_history() -> None:
    assert set(HISTORIES) == set(ANOMALIES)


@pytest.mark.parametrize("anomaly", sorted(HISTORIES))
def test_a_history_with_an_anomaly_is_told_from_its_repaired_twin(anomaly: str) -> None:
    """The anomaly and no other one, where it is forbidden; nothing in the twin, and nothing below its level."""
    bad, twin, reason = HISTORIES[anomaly]
    least = ANOMALIES[anomaly][1]
    for level in LEVELS:
        found = list(anomalies(bad, level))
        is_forbidden = LEVELS.index(level) >= LEVELS.index(least)
        names = {name for name, _ in found} - ({"G1c-ww"} if level == LEVELS[-1] != least else set())
        assert names == ({anomaly} if is_forbidden else set()), level
        assert reason in " ".join(said for _, said in found) or not is_forbidden
        assert list(anomalies(twin, level)) == [], level
