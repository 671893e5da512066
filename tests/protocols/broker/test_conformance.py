"""Every situation that was recorded on a real broker, against the broker of the version that stands for its release."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.paths import RECORDED

from harness.model import Refusal
from kafka_proto.broker.versions import (
    KIP_360,
    KIP_890,
    KIP_890_4_1,
    KIP_890_4_4,
    KIP_890_PART_1,
    RELEASES,
    version_of,
)
from kafka_proto.conformance import BadFile, default_files, judge, load, play
from kafka_proto.conformance.command import conformance
from kafka_proto.conformance.playing import differences, is_of_a_cluster, is_of_the_wire

FILE, MORE, DRAWN, HELD, OTHERS, PRODUCE, MESSAGES, CLUSTERS, OWN = (
    RECORDED / f"{name}.json.gz"
    for name in ("kafka", "more", "drawn", "held", "releases", "produce", "messages", "clusters", "own_clusters")
)
ROWS = (
    (FILE, 1573, 99, 6, 20), (MORE, 706, 44, 7, 27), (DRAWN, 280, 280, 7, 25), (HELD, 322, 322, 7, 25),
    (OTHERS, 4149, 492, 15, 65), (PRODUCE, 3705, 196, 7, 19), (CLUSTERS, 13, 11, 3, 3), (OWN, 21, 21, 1, 1),
)
"""Recorded by `--record`, those that are drawn by `benchmarks/drawn_situations.py`, the last ones by
`benchmarks/real_cluster.py`; those about deleted topics and odd batches are mostly frames, and 3.5 has no request for
two of them."""


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    """All records of the file."""
    return load(FILE)


@pytest.fixture(scope="module")
def others() -> list[dict[str, Any]]:
    """Those of the releases and levels that the first file leaves out."""
    return load(OTHERS)


@pytest.mark.parametrize(("path", "records", "situations", "levels", "families"), ROWS)
def test_every_record_of_a_file_is_equal(
    path: Path, records: int, situations: int, levels: int, families: int
) -> None:
    """Same answers, same coordinator, same logs, same producers; so many situations, releases at a level, and these by
    families of clients."""
    if path == PRODUCE:
        pytest.importorskip("kio", reason="needs the extra `gateway`")
    found = load(path)
    pairs = [(one["broker_version"], one["transaction_version"]) for one in found]
    assert (len(found), len({one["situation"] for one in found}), len(set(pairs))) == (records, situations, levels)
    assert len({(*pair, one["family"]) for pair, one in zip(pairs, found, strict=True)}) == families
    assert path in (FILE, CLUSTERS, OWN) or all(record["stable"] for record in found)
    assert [verdict for verdict in map(judge, found) if not verdict.equal] == []


@pytest.mark.parametrize(("path", "about", "count"), [(DRAWN, "", 40), (HELD, "until the epoch", 6), (HELD, "", 46)])
def test_as_many_sessions_are_drawn_for_each_broker_and_level(path: Path, about: str, count: int) -> None:
    """40 of each; in as many others markers are held and members change, and in 6 epochs run out."""
    found = load(path)
    chosen = [one for one in found if about in str([step.get("note") for step in one["steps"]])]
    assert Counter((one["broker_version"], one["transaction_version"]) for one in chosen) == dict.fromkeys((
        ("3.5.2", 0), ("3.9.2", 0), ("3.9.2", 1), ("4.0.0", 2), ("4.2.0", 2), ("4.4.0", 1), ("4.4.0", 2)), count)
    held = sum("is held" in str([step.get("note") for step in one["steps"]]) for one in found)
    assert held == 170 or path != HELD


def test_records_about_bytes_are_told_apart() -> None:
    """A wrong answer, and one thing less that is odd about the bytes, are found out."""
    pytest.importorskip("kio", reason="needs the extra `gateway`")
    record = next(one for one in load(PRODUCE) if one["situation"] == "wrong_checksum_in_transaction")
    assert judge(record).equal
    text = json.dumps(record)
    for before, after in (("CORRUPT_MESSAGE", "NONE"), ('{"wrong_checksum": true}', "{}")):
        assert before in text and not judge(json.loads(text.replace(before, after))).equal


@pytest.mark.parametrize(("each", "count"), [(10, 757), pytest.param(1, 7567, marks=pytest.mark.large)])
def test_everything_is_equal_on_three_brokers_with_replicated_logs(each: int, count: int) -> None:
    """The same brokers, whose logs are replicated: one record of so many, of those that are played by no frames."""
    situations = [record for path in default_files({}) for record in load(path)
                  if not is_of_the_wire(record) and not is_of_a_cluster(record)][::each]
    assert len(situations) == count
    verdicts = [judge(record, player=partial(play, brokers=3)) for record in situations]
    assert [verdict for verdict in verdicts if not verdict.equal] == []


def test_what_a_broker_lists_in_no_order_is_compared_as_a_set() -> None:
    """Its transactions; nothing else."""
    both = [["A", "Empty"], ["B", "Ongoing"]]
    assert list(differences({"mine": both}, {"mine": both[::-1]}, "r")) == []
    assert list(differences({"mine": both}, {"mine": both[:1]}, "r")) != []
    assert list(differences({"log": both}, {"log": both[::-1]}, "r")) != []


@pytest.mark.parametrize(("version", "release", "level", "equal"), [
    (KIP_360, "3.9.2", None, 273), (KIP_890_PART_1, "3.5.2", None, 198), (KIP_890, "3.9.2", None, 292),
    (KIP_890_4_4, "4.0.0", None, 151), (KIP_890, "4.2.0", None, 0),
    *((version_of(neighbour, level), release, level, 0.8) for neighbour, level, release in (
        ("3.5.2", 0, "3.6.2"), ("3.7.2", 0, "3.6.2"), ("3.6.2", 0, "3.7.2"), ("3.8.1", 0, "3.7.2"),
        ("3.7.2", 0, "3.8.1"), ("4.0.0", 2, "4.1.1"), ("4.2.0", 2, "4.1.1"), ("4.2.0", 2, "4.3.1"),
        ("4.0.0", 1, "4.2.0"), ("4.1.1", 0, "4.0.0"))),
    *((version_of(release, wrong), release, right, -1) for wrong, release, right in (
        (1, "4.3.1", 0), (0, "4.3.1", 1), (1, "4.3.1", 2), (1, "4.1.1", 2), (2, "4.0.0", 1))),
])
def test_another_version_is_told_apart(
    records: list[dict[str, Any]], others: list[dict[str, Any]], version: Any, release: str, level: int | None,
    equal: float
) -> None:
    """The judge can say no: of another release so many are equal, of a neighbour at the same level more than a share.

    A release at another level is another version.
    """
    asked = [one for one in (records if level is None else others)
             if one["broker_version"] == release and level in (None, one["transaction_version"])]
    verdicts = (judge(record, version).equal for record in asked)
    if equal < 0:
        assert not all(verdicts)  # the first that differs is enough
        return
    found = sum(verdicts)
    assert found < len(asked) and (found == equal if level is None else found > equal * len(asked))


def test_difference_names_the_step_and_both_values(records: list[dict[str, Any]]) -> None:
    """A record that was changed is found out, at the step that was changed."""
    record = json.loads(json.dumps(next(record for record in records if record["situation"] == "commit_one")))
    record["steps"][0]["response"]["producer_epoch"] = 7
    verdict = judge(record)
    assert not verdict.equal and verdict.differences == ("step 1.response.producer_epoch: expected 7, found 0",)


def test_unknown_api_or_note_is_a_difference_not_a_crash(records: list[dict[str, Any]]) -> None:
    """A file from a newer recorder is played as far as it can be."""
    record = {**records[0], "steps": [{"note": "the moon rose"}]}
    assert judge(record).differences == (
        "not played: ValueError: unknown note 'the moon rose'",)
    asked = {"request": {"api": "Teleport", "version": 1, "fields": {}}, "response": {}}
    assert judge({**records[0], "steps": [asked]}).differences == ("not played: KeyError: 'Teleport'",)


def test_playing_gives_the_recorded_steps_again(records: list[dict[str, Any]]) -> None:
    """What the player returns has the record's own form, so that it can be written as one."""
    record = next(record for record in records if record["situation"] == "prepare_init" and record["family"] == "tv2")
    assert list(differences(record["steps"], play(record), "steps")) == []


def test_files_are_found_read_and_refused(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    """Plain or compressed; what is no file of situations is refused in one sentence."""
    plain = tmp_path / "some.json"
    plain.write_text(json.dumps({"meta": {}, "records": records[:2]}), encoding="utf-8")
    assert load(plain) == records[:2]
    assert default_files({"KAFKA_PROTO_GROUND_TRUTH": str(plain)}) == (plain,)
    known = {FILE, MORE, DRAWN, HELD, OTHERS, PRODUCE, MESSAGES, CLUSTERS, OWN}
    assert known <= set(default_files({})) == set(RECORDED.iterdir())
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(gzip.compress(b'{"records": []}')[:-9])
    for content, said in ((b"{}", "holds no recorded situations"), (b"{", "is not JSON"),
                          (b'{"records": [{}]}', "record 1 of .* has no situation")):
        plain.write_bytes(content)
        with pytest.raises(BadFile, match=said):
            load(plain)
    with pytest.raises(BadFile, match="is not JSON"):
        load(cut)
    with pytest.raises(BadFile, match="cannot read"):
        load(tmp_path / "absent.json")


def test_release_at_a_level_is_a_version_of_its_own_or_refused() -> None:
    """Nothing falls back to another release or level: each pair was recorded, or is refused with those that were."""
    assert version_of("4.1.1", 2) is KIP_890_4_1 and version_of("4.4.0", 1) == KIP_890_4_4.at_level(1)
    for release, level in (("3.4.0", 0), ("4.0.0", 7), ("4.5.0", 2), ("3.8.1", 1), ("4.0.0", -1), ("4", 2), ("", 0)):
        with pytest.raises(ValueError, match=rf"no version stands for Kafka {release} at transaction.version {level}; "
                                             "there are 3.5.2 at 0, .*, 3.9.2 at 0 to 1, 4.0.0 at 0 to 2, .* 4.4.0"):
            version_of(release, level)


def test_every_release_and_level_is_recorded() -> None:
    """No version stands for a pair without records of a real broker."""
    recorded = [record for path in default_files({}) for record in load(path)]
    pairs = {(release, level) for release, versions in RELEASES.items() for level in range(len(versions))}
    assert {(record["broker_version"], record["transaction_version"]) for record in recorded} == pairs


@pytest.mark.parametrize("changed", [
    {"broker_version": "4.5.0"}, {"transaction_version": 3}, {"broker_version": 4}, {"transaction_version": "2"},
])
def test_records_without_version_are_refused_by_the_command(
    records: list[dict[str, Any]], tmp_path: Path, changed: dict[str, Any]
) -> None:
    """One sentence with the pairs that there are; nothing is played, by another version least of all."""
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"meta": {}, "records": [records[0], {**records[0], **changed}]}), encoding="utf-8")
    options: dict[str, str | None] = dict.fromkeys(option.name for option in conformance.options)
    with pytest.raises(Refusal, match=r"^no version stands for Kafka .*; there are 3.5.2 at 0, "):
        conformance.run((str(path),), options)
