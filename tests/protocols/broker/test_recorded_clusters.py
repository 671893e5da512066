"""Situations that were recorded on clusters of three brokers: replicas, elections, pauses, and what may be lost."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import attrs
import pytest
from support.paths import RECORDED

from harness.model import Refusal
from kafka_proto.broker.versions import BrokerVersion, version_of
from kafka_proto.cluster.failures import Replication
from kafka_proto.conformance import judge, load, replicas
from kafka_proto.conformance.command import conformance
from kafka_proto.conformance.replicated import check_note, in_turn

RECORDS = load(RECORDED / "clusters.json.gz") + load(RECORDED / "own_clusters.json.gz")


def the(situation: str, release: str = "4.4.0") -> dict[str, Any]:
    return next(each for each in RECORDS if (each["situation"], each["broker_version"]) == (situation, release))


def version(record: dict[str, Any]) -> BrokerVersion:
    return version_of(record["broker_version"], record["transaction_version"])


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record['situation']}-{record['broker_version']}")
def test_clusters_answer_the_same_over_the_wire(record: dict[str, Any]) -> None:
    """Frames of Kafka's protocol, faults as verbs: the same answers, logs, leader epochs and high watermarks."""
    pytest.importorskip("kio", reason="needs the extra `gateway`")
    from kafka_proto.conformance.replicas_by_frames import play_by_frames

    assert judge(record, player=lambda each: play_by_frames(each, version(each))).differences == ()


@pytest.mark.parametrize(("situation", "changed"), [
    ("acks_all_isr_shrinks", {"min_insync_replicas": 1}),
    ("acks_all_times_out", {"replica_lag_time_max_ms": 500}),
    ("truncation_on_failover", {"auto_leader_rebalance_enable": True}),
    ("paused_leader_acknowledges_and_loses", {"session_timeout_ms": 60_000}),
])
def test_a_cluster_that_is_set_up_otherwise_is_told_apart(
    situation: str, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge can say no: each setting is seen in the answers."""
    assert judge(the(situation)).equal
    monkeypatch.setattr(replicas, "CONFIGURED", attrs.evolve(replicas.CONFIGURED, **changed))
    assert not judge(the(situation)).equal


@pytest.mark.parametrize(("situation", "other"), [
    ("commit_while_a_partition_has_no_leader", ("4.2.0", 2)), ("eligible_leader_after_unclean_shutdown", ("4.0.0", 2)),
    ("acks_all_isr_shrinks", ("3.9.2", 0)),
])
def test_another_release_is_told_apart(situation: str, other: tuple[str, int]) -> None:
    """KAFKA-20734 is of 4.3 and later; eligible leaders, and a high watermark that waits for them, of 4.1 and later."""
    assert judge(the(situation)).equal and not judge(the(situation), version_of(*other)).equal


def test_the_more_alike_of_two_passes_is_compared() -> None:
    """One of two passes caught the next coordinator while it loads; a record that is neither is found out."""
    record = the("coordinator_moves")
    assert judge(record).equal and not judge({**record, "second_pass": None}).equal
    text = json.dumps(record).replace('"PrepareAbort"', '"Ongoing"').replace('"CompleteCommit"', '"CompleteAbort"')
    assert not judge(json.loads(text)).equal


def test_brokers_that_shut_down_are_elected_where_those_that_died_are_not() -> None:
    """KIP-966: a clean shutdown leaves a broker among the eligible leaders; an unclean one does not."""
    record = json.loads(json.dumps(the("eligible_leader_after_unclean_shutdown")).replace(
        "b2 dies; waited until the ISR is b1", "b2 shuts down; waited until the ISR is b1"))
    found = judge(record).differences
    assert "step 9.after.partition.leader: expected None, found 'b2'" in found


def test_notes_are_read_by_their_words() -> None:
    """A note that means nothing is refused, by the command in one sentence; so is one that waits for the unknown."""
    for note in ("the moon rose", "waited until the moon rose"):
        with pytest.raises(ValueError, match=r"does not know (what happens|how to wait)"):
            check_note({"note": note})
    for note in ("b1 and b3 die", "all brokers are killed", "5 s later", "it goes on; waited until nobody leads"):
        check_note({"note": note})
    asked = [{"request": {"api": api}} for api in ("Fetch", "Fetch", "Fetch", "Produce")]
    assert in_turn("the last one on a connection of its own", asked) == [0, 1, 3, 2]
    assert in_turn("on one connection", asked) == [0, 1, 2, 3]


def test_the_command_plays_them_and_refuses_what_it_cannot_read(tmp_path: Any) -> None:
    """As any other file of records."""
    options: dict[str, str | None] = dict.fromkeys(option.name for option in conformance.options)
    path = tmp_path / "clusters.json"
    record = the("high_watermark_lags")
    path.write_text(json.dumps({"meta": {}, "records": [record]}), encoding="utf-8")
    assert conformance.run((str(path),), options).exit_code == 0
    record = {**record, "steps": [{"note": "the moon rose"}]}
    path.write_text(json.dumps({"meta": {}, "records": [record]}), encoding="utf-8")
    with pytest.raises(Refusal, match=r"step 1 of high_watermark_lags: .*'the moon rose'"):
        conformance.run((str(path),), options)


def test_brokers_are_set_up_as_the_recorded_ones() -> None:
    """What the file says of them, but that the ISR is looked at each half of the lag that is allowed."""
    assert partial(Replication, 3, 2)(3_000, 3_750, False) == replicas.CONFIGURED
