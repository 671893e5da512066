"""Situations in which markers are held on their way, or epochs run out, played by frames and compared as in process."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk

from kafka_proto.conformance import RecordVerdict, default_files, judge, load
from kafka_proto.conformance.at_broker import left_out
from kafka_proto.conformance.player import ClusterMarkers
from kafka_proto.conformance.situations import Situation
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Settings


class Lossy(ClusterMarkers):
    """Lets nothing go."""

    def deliver(self) -> None:
        """Keep everything."""


def verdict(record: dict[str, Any], loses: bool = False) -> RecordVerdict:
    """Play a record at a host of its release and level."""
    talk = Talk(Host(Settings(record["broker_version"], record["transaction_version"]), {}, 1_000_000))
    me, waits = talk.connect(), 0

    def wait() -> bool:
        nonlocal waits
        talk.wait(50)
        waits += 1
        return waits < 50

    markers = (Lossy if loses else ClusterMarkers)(talk.host.cluster)
    assert left_out(record, markers, patient=True) is None
    situation = Situation(lambda api, version, message: talk.one(me, api, version, dict(message)), wait, "run1-0",
                          talk.now, markers)
    return judge(record, player=situation.play)


def records(reason: str) -> list[dict[str, Any]]:
    """Return the records that are left out elsewhere for a reason."""
    return [record for path in default_files() for record in load(path) if reason in (left_out(record) or "")]


@pytest.mark.parametrize(("reason", "each", "least"), [
    ("held", 25, 5), pytest.param("held", 1, 69, marks=pytest.mark.large),
    pytest.param("tens of thousands", 1, 2, marks=pytest.mark.large),
])
def test_what_is_left_out_elsewhere_is_equal_by_frames(reason: str, each: int, least: int) -> None:
    """One of so many: what is asked while a transaction is prepared is answered as by a real broker.

    All markers; last epochs of each release and level, by tens of thousands of requests.
    """
    played = records(reason)[::each]
    if reason != "held":
        played = list({(one["broker_version"], one["transaction_version"]): one for one in played}.values())
    found = [verdict(record) for record in played]
    assert len(found) > least and [one for one in found if not one.equal] == []


def test_other_answers_are_told() -> None:
    """A wrong answer while a marker is held, and a marker that never arrives."""
    record = next(one for one in records("held") if one["situation"] == "prepare_end_same_result")
    assert verdict(record).equal
    found = verdict(record, loses=True).differences
    assert any("marker_version: expected" in line for line in found)
    assert any("PrepareCommit" in line and "CompleteCommit" in line for line in found)
    wrong = copy.deepcopy(record)
    held = next(n for n, step in enumerate(wrong["steps"]) if "is held" in step.get("note", ""))
    wrong["steps"][held + 1]["response"]["error"] = "NONE"
    assert verdict(wrong).differences == (
        f"step {held + 2}.response.error: expected 'NONE', found 'CONCURRENT_TRANSACTIONS'",)
