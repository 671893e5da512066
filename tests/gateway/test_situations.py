"""Situations recorded on real brokers, played through the gateway's sockets and compared as in process."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.set_clock import SetClock

from harness.model import Refusal
from kafka_proto.conformance import at_broker, default_files, judge, load
from kafka_proto.conformance.at_broker import play_at
from kafka_proto.conformance.command import conformance
from kafka_proto.gateway.cluster import KafkaCluster

OPTIONS: dict[str, str | None] = dict.fromkeys(option.name for option in conformance.options)


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return [record for path in default_files() for record in load(path)]


def check(records: Iterable[dict[str, Any]]) -> int:
    """Play records, each at a broker of its release and level; return how many were played. None may differ."""
    clusters: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for record in records:
        clusters.setdefault((record["broker_version"], record["transaction_version"]), []).append(record)
    played, differing = 0, []
    for (release, level), mine in sorted(clusters.items()):
        with KafkaCluster(release=release, transaction_version=level) as cluster:
            host, _, port = cluster.bootstrap_servers.partition(":")
            verdicts, _ = play_at(mine, host, int(port))
        differing += [verdict for verdict in verdicts if not verdict.equal]
        played += len(verdicts)
    assert differing == []
    return played


@pytest.fixture
def waiting(clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers' time passes only while a player waits, so that no transaction times out before."""
    monkeypatch.setattr(at_broker, "pass_ms", clock.pass_ms)


@pytest.mark.parametrize("each", [40, pytest.param(1, marks=pytest.mark.large)])
@pytest.mark.usefixtures("waiting")
def test_situations_are_equal_over_the_wire(records: list[dict[str, Any]], each: int) -> None:
    """One of so many records, through sockets: no answer and nothing that is left behind differs.

    All that need no marker to be held and no ten thousand requests: 11,012 but 818, see test_held_markers.py.
    """
    played = check(records[::each])
    assert played == 10_194 if each == 1 else played > len(records[::each]) * 0.8


@pytest.mark.usefixtures("waiting")
def test_an_open_transaction_cut_at_its_start_is_listed_at_its_first_offset(records: list[dict[str, Any]]) -> None:
    """From 4.0 on the last stable offset may lie below the start of the log; the leader's epoch does not hide it."""
    mine = [record for record in records if record["broker_version"] in ("3.9.2", "4.0.0", "4.4.0")
            and record["situation"] in ("delete_within_first", "delete_within_second", "delete_first_then_within")]
    assert check(mine) == 9


SCRIPT = {"records": [{"situation": "mine", "family": "tv2", "steps": [
    {"request": {"api": "InitProducerId", "version": 5, "fields": {
        "transactional_id": "tid-A", "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}},
     "after": {"coordinator": ["tid-A"], "partitions": ["0"]}},
    {"request": {"api": "DeleteRecords", "version": 2, "fields": {"partition": 0, "offset": 0}}},
]}]}


def test_a_new_situation_is_recorded(tmp_path: Path) -> None:
    """A script becomes a record of the broker's release and level, which is equal when it is played."""
    script, made, broken = (tmp_path / name for name in ("script.json", "made.json.gz", "broken.json"))
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    broken.write_text(json.dumps(SCRIPT).replace("DeleteRecords", "Teleport"), encoding="utf-8")
    with KafkaCluster(release="3.9.2") as cluster:
        asked = {**OPTIONS, "--broker": cluster.bootstrap_servers, "--release": "3.9.2", "--record": str(made)}
        assert "recorded 1 situations" in conformance.run((str(script),), asked).text
        with pytest.raises(Refusal, match=r"mine \(tv2\) cannot be played \(KeyError: 'Teleport'\)"):
            conformance.run((str(broken),), {**asked, "--record": str(tmp_path / "none.json")})
    (record,) = load(made)
    assert (record["broker_version"], record["transaction_version"], record["stable"]) == ("3.9.2", 1, True)
    assert record["steps"][0]["response"] == {"error": "NONE", "producer_id": "pid1", "producer_epoch": 0}
    assert record["steps"][0]["after"]["partitions"]["0"]["log"] == []
    assert record["steps"][1]["response"] == {"error": "NONE", "low_watermark": 0}
    assert judge(record).equal and not (tmp_path / "none.json").exists()
    with pytest.raises(Refusal, match="give --broker HOST:PORT as well"):
        conformance.run((str(script),), {**OPTIONS, "--record": str(made)})


def test_records_of_one_release_are_played_against_a_broker_of_another(records: list[dict[str, Any]]) -> None:
    """Those of the broker's level; where the other release has none, all: what differs is what changed in between."""
    with KafkaCluster(release="4.4.0") as cluster:
        asked = {**OPTIONS, "--broker": cluster.bootstrap_servers, "--as": "3.9.2"}
        same = conformance.run((), {**asked, "--situation": "commit_one"})
        assert same.exit_code == 0
        played = {(each["broker_version"], each["transaction_version"]) for each in same.data["records"]}
        assert played == {("3.9.2", 1)}
        other = conformance.run((), {**asked, "--situation": "produce_future_epoch"})
        assert other.exit_code == 1 and not any(each["equal"] for each in other.data["records"])
        newer = conformance.run((), {**asked, "--as": "4.0.0", "--situation": "commit_one"})
        assert {each["transaction_version"] for each in newer.data["records"]} == {2}
        for given, said in (({"--release": "4.4.0"}, "--as chooses the release already; leave --release out"),
                            ({"--record": "out.json"}, "--record writes the answers of a broker.*; leave --as out"),
                            ({"--as": "4.5.0"}, "no record has '4.5.0' for --as"),
                            ({"--broker": None}, "--as needs a broker .*; give --broker HOST:PORT as well")):
            with pytest.raises(Refusal, match=said):
                conformance.run((), {**asked, **given})


def test_a_difference_is_told_and_bad_addresses_are_refused(records: list[dict[str, Any]]) -> None:
    """A record with another answer differs at its step, by the command; an address without broker is refused."""
    asked = {**OPTIONS, "--release": "4.4.0", "--situation": "commit_one"}
    with KafkaCluster() as cluster:
        printed = conformance.run((), {**asked, "--broker": cluster.bootstrap_servers})
        assert (printed.exit_code, len(printed.data["records"])) == (0, 5)
        (record, *_) = [each for each in records if each["situation"] == "commit_one"
                        and each["transaction_version"] == 2 and each["broker_version"] == "4.4.0"]
        wrong = copy.deepcopy(record)
        wrong["steps"][0]["response"]["producer_epoch"] = 7
        host, _, port = cluster.bootstrap_servers.partition(":")
        (verdict,), _ = play_at([wrong], host, int(port))
        assert verdict.differences == ("step 1.response.producer_epoch: expected 7, found 0",)
    for given, said in (({"--broker": "here"}, "must be HOST:PORT"),
                        ({"--broker": cluster.bootstrap_servers}, "does not answer as a broker"),
                        ({"--broker": "127.0.0.1:1", "--release": None}, "give --release as well")):
        with pytest.raises(Refusal, match=said):
            conformance.run((), {**asked, **given})


def test_verdicts_are_written_as_junit(tmp_path: Path) -> None:
    """A case for each record, with what differs; the file is there whole, and nothing of it where none can be."""
    path = tmp_path / "new" / "report.xml"
    with KafkaCluster(release="4.4.0") as cluster:
        asked = {**OPTIONS, "--broker": cluster.bootstrap_servers, "--as": "3.9.2", "--junit": str(path)}
        assert conformance.run((), {**asked, "--situation": "commit_one"}).exit_code == 0
        (suite, *_) = ElementTree.parse(path).getroot().findall("testsuite")
        assert suite.attrib["failures"] == "0" and {case.attrib["name"] for case in suite} == {"commit_one"}
        printed = conformance.run((), {**asked, "--situation": "produce_future_epoch"})
    root = ElementTree.parse(path).getroot()
    assert root.attrib["failures"] == str(len(printed.data["records"]))
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None and failure.attrib["message"] in printed.text
    with pytest.raises(Refusal, match=r"cannot write .*commit_one"):
        conformance.run((), {**OPTIONS, "--situation": "commit_one", "--junit": str(path / "commit_one")})
    with pytest.raises(Refusal, match="--record compares nothing; leave one of them out"):
        conformance.run((), {**asked, "--record": "out.json"})
