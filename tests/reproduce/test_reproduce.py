"""The command `reproduce`: what it refuses, and with librdkafka what our brokers show, release by release."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import call
from support.paths import DATA

TRAILS = DATA / "reproduce"
NOBODY = "127.0.0.1:1"


@pytest.fixture
def kafka() -> Any:
    """What makes brokers of ours for librdkafka, which has to be there."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    from kafka_proto.gateway.cluster import KafkaCluster

    return KafkaCluster


@pytest.mark.parametrize(("words", "sentence"), [
    ((), "reproduce takes one TRAIL; kafka-proto hunt writes them"),
    ((TRAILS / "late-end.trail.jsonl",), "no broker is named; give --broker HOST:PORT, such as 127.0.0.1:9092"),
    ((TRAILS / "late-end.trail.jsonl", "--broker", "here"),
     "--broker must be HOST:PORT, such as 127.0.0.1:9092, not 'here'"),
    ((TRAILS.parent.parent / "trails" / "s4-copied-tail.trail.jsonl", "--broker", NOBODY),
     "only runs of whole transactions (kafka/...) can be played"),
    (("there-is-none", "--broker", NOBODY), "there-is-none"),
], ids=["no trail", "no broker", "bad address", "other model", "no file"])
def test_bad_input_is_refused_in_a_sentence(words: tuple[object, ...], sentence: str) -> None:
    """A trail, a model or an address that will not do is told before anybody is connected to."""
    outcome = call("reproduce", *words)
    assert outcome.code == 2 and sentence in outcome.refusal


def test_a_run_with_a_crash_is_refused_with_its_step(tmp_path: Path) -> None:
    """A run that needs a fault inside a broker names the first step that cannot be had from outside."""
    call("simulate", "leaders-crash", "--seeds", 1, "--out", tmp_path)
    (path,) = tmp_path.glob("*.trail.jsonl")
    outcome = call("reproduce", path, "--broker", NOBODY)
    assert outcome.code == 2 and "cannot be played against a real broker: step" in outcome.refusal


@pytest.mark.usefixtures("kafka")
def test_without_a_broker_it_says_so() -> None:
    """Nobody listens: one sentence, exit code 2."""
    outcome = call("reproduce", TRAILS / "late-end.trail.jsonl", "--broker", NOBODY)
    assert outcome.code == 2 and "127.0.0.1:1 does not answer as a broker" in outcome.refusal


@pytest.mark.parametrize(("release", "level", "name", "violated"), [
    ("3.5.2", 0, "late-end", ["MarkerAttribution"]),
    ("4.4.0", 2, "late-end", ["MarkerAttribution"]),
    ("3.5.2", 0, "hanging-transaction", ["NoHangingTransaction"]),
    ("3.9.2", 1, "hanging-transaction", []),
])
def test_schedules_show_on_our_brokers_what_they_show_on_real_ones(
    kafka: Any, release: str, level: int, name: str, violated: list[str]
) -> None:
    """As on real brokers (docs/use): KAFKA-17754 on all releases, KAFKA-14402 until the leader asks."""
    with kafka(release=release, transaction_version=level) as cluster:
        outcome = call("reproduce", TRAILS / f"{name}.trail.jsonl", "--broker", cluster.bootstrap_servers, "--json")
    assert (outcome.code, list(outcome.json["violated"])) == (0 if violated else 1, violated), outcome.err


def test_a_crash_of_librdkafka_is_told_in_a_sentence(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program ends by a signal each time, as when its threads crash: no verdict, and this process goes on."""
    from kafka_proto.reproduce import playing

    crash = "import os, sys; sys.stdin.readline(); os.abort()"
    monkeypatch.setattr(playing, "PROGRAM", (sys.executable, "-c", crash))
    with kafka() as cluster:
        outcome = call("reproduce", TRAILS / "late-end.trail.jsonl", "--broker", cluster.bootstrap_servers)
    assert outcome.code == 2 and "librdkafka ended with exit code -6" in outcome.err.splitlines()[-1]
    assert "5 times" in outcome.err.splitlines()[-1]


def test_where_librdkafka_crashes_once_the_schedule_is_played_again(
    kafka: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second play is in topics of its own, and has the verdict."""
    from kafka_proto.reproduce import playing

    module, mark = playing.PROGRAM[-1], tmp_path / "crashed"
    once = (f"import os, pathlib, runpy, sys; mark = pathlib.Path({str(mark)!r})\n"
            "if not mark.exists(): mark.touch(); sys.stdin.readline(); os.abort()\n"
            f"runpy.run_module({module!r}, run_name='__main__')")
    monkeypatch.setattr(playing, "PROGRAM", (sys.executable, "-c", once))
    with kafka(release="3.5.2", transaction_version=0) as cluster:
        outcome = call("reproduce", TRAILS / "late-end.trail.jsonl", "--broker", cluster.bootstrap_servers, "--json")
    assert "trying again" in outcome.err and list(outcome.json["violated"]) == ["MarkerAttribution"]
