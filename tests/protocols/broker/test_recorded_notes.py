"""Notes of every kind, control batches and fetches in short, as given files may have them, through the command."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import Outcome, call
from support.paths import RECORDED

from kafka_proto.conformance import load
from kafka_proto.conformance.player import DELIVERED

Record = dict[str, Any]
AGAIN = [2, "pid1", 0, -1, "txn+ctl", ["COMMIT"]]
OWNER = {"transactional_id": "tid-A", "producer_id": "pid1", "producer_epoch": 0}


@pytest.fixture(scope="module")
def held() -> Record:
    """A commit whose marker is held while it is asked for again, on a broker of 3.5.2."""
    return next(one for one in load(RECORDED / "kafka.json.gz") if one["situation"] == "prepare_end_same_result"
                and one["broker_version"] == "3.5.2" and one["family"] == "java35")


def played(record: Record, folder: Path) -> Outcome:
    path = folder / "given.json"
    path.write_text(json.dumps({"records": [record]}), encoding="utf-8")
    return call("conformance", path)


def delivering(record: Record, note: str) -> Record:
    """Return a record whose markers are delivered so that each partition has them twice."""
    made = copy.deepcopy(record)
    at = next(n for n, step in enumerate(made["steps"]) if step.get("note") == DELIVERED)
    made["steps"][at]["note"] = note
    for step in made["steps"][at:]:
        partition = step["after"]["partitions"]["0"]
        partition["log"].append(AGAIN)
        partition |= {"high_watermark": 3, "last_stable_offset": 3}
    return made


@pytest.mark.parametrize("note", [
    "the held WriteTxnMarkers is delivered twice, the second time late",
    "the held marker is sent again",
    "the held WriteTxnMarkers is delivered and its answer is lost",
    "the answer to the held marker is lost on its way to the coordinator",
])
def test_a_marker_that_comes_twice_or_whose_answer_is_lost(held: Record, tmp_path: Path, note: str) -> None:
    """A partition of 3.5.2 writes it twice; once is a difference."""
    assert played(delivering(held, note), tmp_path).code == 0
    once = copy.deepcopy(held)
    next(step for step in once["steps"] if step.get("note") == DELIVERED)["note"] = note
    assert played(once, tmp_path).code == 1


def test_a_marker_that_comes_late_after_it_was_delivered(held: Record, tmp_path: Path) -> None:
    """The copy comes later, as a step of its own."""
    late = copy.deepcopy(held)
    note = "a copy of the marker comes late, a second time"
    late["steps"].append({"note": note, "after": copy.deepcopy(late["steps"][-1]["after"])})
    assert played(late, tmp_path).code == 1
    made = delivering(late, DELIVERED)
    made["steps"][-3:-1] = copy.deepcopy(held["steps"][-2:])
    assert played(made, tmp_path).code == 0


def test_a_time_out_while_markers_are_held(tmp_path: Path) -> None:
    """The transaction is aborted, and its marker does not arrive before it is delivered."""
    begun = {"transactional_id": "tid-A", "transaction_timeout": 1_000}
    batch = {**OWNER, "partition": 0, "base_sequence": 0, "transactional": True, "records": ["a"]}
    steps: list[Record] = [
        {"request": {"api": "InitProducerId", "version": 1, "fields": begun},
         "response": {"error": "NONE", "producer_id": "pid1", "producer_epoch": 0}},
        {"request": {"api": "AddPartitionsToTxn", "version": 3, "fields": {**OWNER, "partitions": [0]}},
         "response": {"errors": {"0": "NONE"}}},
        {"request": {"api": "Produce", "version": 9, "fields": batch}, "response": {"error": "NONE", "base_offset": 0}},
    ]
    states = (("the transaction times out while its markers are held", "PrepareAbort", ["T-0"]),
              ("the held markers are delivered", "CompleteAbort", []))
    for note, state, partitions in states:
        known = {"state": state, "producer_id": "pid1", "producer_epoch": 1, "partitions": partitions}
        steps.append({"note": note, "after": {"coordinator": {"tid-A": known}}})
    steps[-1] |= {"marker_version": 1, "marker_answer": {"0": "NONE"}}
    record = {"situation": "late", "broker_version": "3.5.2", "transaction_version": 0, "family": "java35",
              "steps": steps}
    assert played(record, tmp_path).code == 0
    steps[-2]["note"] = "the transaction times out"
    assert played(record, tmp_path).code == 1


def test_a_request_whose_answer_is_lost_was_taken(held: Record, tmp_path: Path) -> None:
    """Its record has no response, and what it leaves behind."""
    ended = next(n for n, step in enumerate(held["steps"]) if step.get("request", {}).get("api") == "EndTxn")
    lost = copy.deepcopy(held)
    del lost["steps"][ended]["response"]
    lost["steps"][ended]["note"] = "its answer is lost on the way to the client"
    assert played(lost, tmp_path).code == 0
    never = copy.deepcopy(lost)
    del never["steps"][ended]
    assert played(never, tmp_path).code == 1


def test_control_batches_and_fetches_in_short(held: Record, tmp_path: Path) -> None:
    """A client may write no control batch; a fetch may be told by offsets and values, markers among them."""
    pytest.importorskip("kio", reason="needs the extra `gateway`")
    fields = {**OWNER, "partition": 0, "base_sequence": 1, "transactional": True, "control": True,
              "records": ["COMMIT"]}
    short: list[Any] = [[0, "a"], [1, "COMMIT"]]
    read = {"partition": 0, "fetch_offset": 0, "isolation_level": "read_committed"}
    found = {"error": "NONE", "high_watermark": 2, "last_stable_offset": 2, "aborted_transactions": []}
    control = {"request": {"api": "Produce", "version": 9, "fields": fields},
               "response": {"error": "INVALID_RECORD", "base_offset": -1}}
    fetched = {"request": {"api": "Fetch", "version": 12, "fields": read}}
    for key, rows, code in (("batches", short, 0), ("records", short, 0), ("batches", short[:1], 1)):
        steps = [*held["steps"][:3], control, *held["steps"][3:], {**fetched, "response": {**found, key: rows}}]
        assert played({**held, "steps": steps}, tmp_path).code == code


def test_an_unknown_note_is_refused(held: Record, tmp_path: Path) -> None:
    """In one sentence with the step; nothing is played."""
    made = played({**held, "steps": [held["steps"][0], {"note": "the moon rose"}]}, tmp_path)
    assert made.code == 2 and made.refusal == (
        "step 2 of prepare_end_same_result: unknown note 'the moon rose'; "
        "docs/reference/conformance.md lists the notes")
