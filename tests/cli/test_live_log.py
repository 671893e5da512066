"""`--log` and `--log-json`: what commands do as they do it, on stderr, by structlog; nothing without them."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from support.commands.command_line import call, ended, started

from harness.model.live import tell

HUNT = ("hunt", "s3-wiped-metadata", "--seeds", 30, "--json")


def events(text: str) -> list[dict[str, object]]:
    """Return the events of lines of JSON."""
    return [json.loads(line) for line in text.splitlines()]


def test_hunt_tells_of_each_scenario_as_json_lines(tmp_path: Path) -> None:
    """On stderr, with a time and a level; stdout stays one object. With --log debug it says when each begins, too."""
    found = call(*HUNT, "--out", tmp_path, "--log-json")
    hunted = events(found.err)
    assert [(each["event"], each["level"], each["scenario"]) for each in hunted] == [
        ("scenario hunted", "info", "s3-wiped-metadata"), ("scenario hunted", "info", "s3-wiped-metadata-repaired")]
    assert (hunted[0]["violates"], "timestamp" in hunted[0], "violates" in hunted[1]) == ("OnePidPerTid", True, False)
    assert found.json["scenarios"][0]["trail"] == hunted[0]["trail"]
    more = events(call(*HUNT, "--out", tmp_path, "--log", "debug", "--log-json").err)
    assert [each["event"] for each in more].count("scenario begun") == 2


def test_lines_for_people_and_silence_without_the_option(tmp_path: Path) -> None:
    """From a level on; a level that there is not is refused in one sentence; after a command nobody watches."""
    shown = call(*HUNT, "--out", tmp_path, "--log", "info").err.splitlines()
    assert len(shown) == 2 and "scenario hunted" in shown[0] and "scenario=s3-wiped-metadata" in shown[0]
    assert call(*HUNT, "--out", tmp_path, "--log", "error").err == ""
    assert call(*HUNT, "--out", tmp_path).err == ""
    wrong = call(*HUNT, "--log", "loud")
    assert wrong.code == 2 and "loud" in wrong.err and "debug" in wrong.err
    tell("nobody hears this")


def test_serve_tells_of_requests_by_client_broker_and_connection() -> None:
    """Each request and answer, with its error codes, a fault that hits it, and connections from debug on."""
    pytest.importorskip("kio", reason="needs the extra `gateway`")
    from kafka_proto.gateway.client import Client
    from kafka_proto.gateway.offer import FIND_COORDINATOR, METADATA

    delay = "delay Metadata nth=2 for_ms=1"
    with started("serve", "t=1", "--log", "debug", "--log-json", "--faults", delay) as process:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().rpartition("=")[2].rpartition(":")
        with Client(host, int(port)) as client:
            for _ in range(2):
                client.ask(METADATA, 9, {"topics": None})
            client.ask(FIND_COORDINATOR, 3, {"key": "app", "key_type": 9})
        process.send_signal(signal.SIGINT)
        told = events(ended(process).err)
    kinds = [each["event"] for each in told]
    assert kinds[:2] == ["fault begins", "connection opened"] and "connection gone" in kinds
    asked, answers = ([each for each in told if each["event"] == kind] for kind in ("request", "answer"))
    apis = [[each["api"] for each in some] for some in (asked, answers)]
    assert apis == [["Metadata", "Metadata", "FindCoordinator"]] * 2
    assert {(each["broker"], each["connection"]) for each in (*asked, *answers)} == {("b1", 0)}
    assert [each.get("faults") for each in asked] == [None, "delay", None]
    assert [each.get("errors") for each in answers] == [None, None, "INVALID_REQUEST"]
