"""`serve --page`: the session with real clients in the demo's page, and faults from there while they run."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")
pytest.importorskip("hypercorn", reason="needs the extra `demo`")

from support.commands.command_line import wait_until
from support.gateway.scripted_client import Scripted
from support.gateway.serve_process import live

from harness.model import Refusal
from harness.record import read_trail
from harness.simulate.trails.replay import replay_plain
from kafka_proto.gateway.command import serve


class Page:
    """The page's server, asked as the page asks it."""

    def __init__(self, address: str) -> None:
        self.address = address

    def session(self) -> dict[str, Any]:
        """Return the whole picture."""
        with urllib.request.urlopen(f"{self.address}api/events", timeout=30) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    found: dict[str, Any] = json.loads(line[6:])
                    return found
        raise AssertionError("the page says nothing")

    def get(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.address}api/{path}", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def post(self, verb: str, **body: object) -> None:
        asked = urllib.request.Request(f"{self.address}api/{verb}", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert answer.status == 200

    def labels(self) -> list[str]:
        return [one["label"] for one in self.session()["present"]["enabled"]]

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the picture is so, and return it."""
        wait_until(lambda: holds(self.session()))
        return self.session()


def test_what_clients_do_is_shown_and_a_request_is_held_from_the_page(tmp_path: Path) -> None:
    """Its step waits as a message in flight, and goes on with its release; the trail has both faults."""
    trail = tmp_path / "live.trail.jsonl"
    with live("t=2", "--trail", str(trail), folder=tmp_path) as (address, servers), Scripted(servers) as producer:
        page = Page(address)
        producer.init()
        assert producer.write(0, b"one") == 0
        shown = page.until(lambda now: any(step["action"] == "Produce" for step in now["steps"]))
        assert shown["is_live"] and shown["lifelines"] == ["test", "b1", "environment"]
        page.post("take", label="Hold the next EndTxn")
        assert "Do not hold the next EndTxn" in page.labels()
        with ThreadPoolExecutor(1) as beside:
            ended = beside.submit(producer.end, True)
            held = page.until(lambda now: any(one["state"] == "held" for one in now["present"]["in_flight"]))
            (message,) = held["present"]["in_flight"]
            assert message["type"] == "EndTxn commit" and not ended.done()
            (release,) = [one for one in held["present"]["enabled"] if one["message"] == message["id"]]
            page.post("take", label=release["label"])
            assert ended.result(timeout=30) == 0
        shown = page.until(lambda now: any(one["label"] == "delay EndTxn ends" for one in now["steps"]))
        step = shown["present"]["step"]
        logs = page.get(f"logs?step={step}")["logs"]
        assert [entry["kind"] for entry in logs[0]["entries"]] == ["committed", "commit marker"]
    replayed = replay_plain(read_trail(trail))
    assert replayed.verdict.ok and any(label.label.startswith("Injected(f1) delay") for label in replayed.trail.choices)


def test_brokers_crash_and_start_leaders_change_and_links_are_cut_from_the_page(tmp_path: Path) -> None:
    """Each deed is offered while it is possible, and what it did stands on the broker's lifeline."""
    with live("t=2", "--brokers", "3", folder=tmp_path) as (address, servers), Scripted(servers) as producer:
        page = Page(address)
        producer.init()
        deeds = page.labels()
        assert {"Crash b2", "Shut down b1", "Pause b3", "Partition b1 b2", "Partition b2", "Elect t-0"} <= set(deeds)
        page.post("take", label="Crash b2")
        shown = page.until(lambda now: now["present"]["gates"].get("b2", {}).get("status") == "down")
        assert shown["steps"][-1]["sort"] == "crash" or any(step["sort"] == "crash" for step in shown["steps"])
        assert "Start b2" in page.labels() and "Crash b2" not in page.labels()
        page.post("take", label="Start b2")
        page.until(lambda now: not now["present"]["gates"])
        page.post("take", label="Elect t-0")
        page.post("take", label="Partition b1 b3")
        page.until(lambda now: now["present"]["gates"].get("b1", {}).get("partitioned_from") == ["b3"])
        page.post("take", label="Heal b1 b3")
        with pytest.raises(urllib.error.HTTPError) as refused:
            page.post("take", label="Heal b1 b3")
        assert refused.value.code == 400
        refused.value.close()


def test_going_back_lets_what_comes_wait(tmp_path: Path) -> None:
    """At an earlier step the page stays there; forward to the end it goes on with what clients did meanwhile."""
    with live("t=2", folder=tmp_path) as (address, servers), Scripted(servers) as producer:
        page = Page(address)
        producer.init()
        page.until(lambda now: any(step["action"] == "InitProducerId" for step in now["steps"]))
        page.post("rewind", to=1)
        assert producer.write(0, b"one") == 0
        there = page.session()
        assert there["present"]["step"] == 1 and there["ahead"] > 0
        page.post("forward", to=1 + there["ahead"])
        page.until(lambda now: any(step["action"] == "Produce" for step in now["steps"]))


@pytest.mark.parametrize(("given", "said"), [("x", "--page must be a number from 0 to 65535, not 'x'")])
def test_an_impossible_port_is_refused(given: str, said: str) -> None:
    options = dict.fromkeys(option.name for option in serve.options)
    with pytest.raises(Refusal, match=said):
        serve.run((), {**options, "--page": given})
