"""Records played over the wire against a broker at an address: those of its level of `transaction.version`.

A broker's answers become records themselves: what is played is the requests, whatever else a record has.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harness.model import Refusal
from kafka_proto.conformance.player import OF_MARKERS, ClusterMarkers, HeldMarkers, kind_of
from kafka_proto.conformance.playing import RecordVerdict, differences, is_of_a_cluster, judge
from kafka_proto.conformance.situations import MOST_PAUSES, PAUSE_MS, Situation
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.codec import Malformed
from kafka_proto.gateway.offer import API_VERSIONS, FIND_COORDINATOR, INIT_PRODUCER_ID, METADATA, OFFSET_FETCH
from kafka_proto.gateway.server import wall_clock_ms

RUN = re.compile(r"run([0-9]+)-")
FEATURE = "transaction.version"
GROUP, TRANSACTION = 0, 1
"""What a coordinator is looked up for."""


def left_out(record: Mapping[str, Any], markers: HeldMarkers | None = None, patient: bool = False) -> str | None:
    """Return why a situation is not played over the wire, or None."""
    if is_of_a_cluster(record):
        return "brokers of a cluster are stopped in it"
    kinds = {kind_of(step)[0] for step in record["steps"]}
    if markers is None and kinds & OF_MARKERS:
        return "a marker is held between brokers"
    if kinds & {"twice", "lost"} and not isinstance(markers, ClusterMarkers):
        return "a marker is sent twice, or its answer lost"
    return "it takes tens of thousands of requests" if "repeated" in kinds and not patient else None


def play_at(
    records: list[dict[str, Any]], host: str, port: int, any_level: bool = False
) -> tuple[list[RecordVerdict], tuple[str, ...]]:
    """Play records of a release; return their verdicts, and lines about those that were left out.

    Played are those of the broker's level; with `any_level` all of them, if none is of it. Raises Refusal if no broker
    answers, or no record is of the broker's level.
    """
    with _connected(host, port) as client:
        level = level_of(client)
        run = new_run(client)
        of_level = [record for record in records if record["transaction_version"] == level]
        mine = records if any_level and not of_level else of_level
        reasons = Counter(reason for record in mine if (reason := left_out(record)) is not None)
        played = [(n, record) for n, record in enumerate(mine) if left_out(record) is None]
        await_coordinators(client)
        verdicts = [judge(record, player=Situation(client.ask, pauses(), f"{run}-{n}", wall_clock_ms()).play)
                    for n, record in played]
    if not mine:
        raise Refusal(f"the broker has {FEATURE} {level}, but no record has that level; serve another level")
    return verdicts, tuple(f"{count} not played: {reason}" for reason, count in sorted(reasons.items()))


def record_at(
    scripts: list[dict[str, Any]], host: str, port: int, release: str, markers: HeldMarkers | None = None,
    patient: bool = False,
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the records that a broker of a release makes of scripts, each played twice, and lines about what is odd.

    A script is a record whose steps need no response, and whose `after` names transactional ids and partitions. With
    `patient`, what takes tens of thousands of requests is recorded, too. Raises Refusal if no broker answers, and for a
    request that is not known here.
    """
    records: list[dict[str, Any]] = []
    said: list[str] = []
    with _connected(host, port) as client:
        level, run = level_of(client), new_run(client)
        await_coordinators(client)
        for n, script in enumerate(scripts):
            who = f"{script['situation']} ({script['family']})"
            if (reason := left_out(script, markers, patient)) is not None:
                said.append(f"{who} is not recorded: {reason}")
                continue
            try:
                first, second = (Situation(client.ask, pauses(), f"{run}-{n}.{again}", wall_clock_ms(), markers)
                                 .play(script) for again in (1, 2))
            except (KeyError, TypeError, ValueError) as error:
                raise Refusal(f"{who} cannot be played ({type(error).__name__}: {error}); "
                              "docs/reference/conformance.md has the form of a situation") from None
            records.append({"situation": script["situation"], "about": script.get("about", ""),
                            "broker_version": release, "transaction_version": level, "family": script["family"],
                            "steps": first, "stable": first == second})
            if first != second:
                odd = (difference for number, (one, other) in enumerate(zip(first, second, strict=True), 1)
                       for difference in differences(one, other, f"step {number}"))
                said.append(f"{who} differs when played again: {next(odd)}")
    return records, tuple(said)


@contextmanager
def _connected(host: str, port: int) -> Iterator[Client]:
    """Give a connection to a broker. Raises Refusal if no broker answers."""
    try:
        with Client(host, port) as client:
            yield client
    except (OSError, Malformed) as error:
        raise Refusal(f"{host}:{port} does not answer as a broker ({error}); start one, as kafka-proto serve does"
                      ) from None


def level_of(client: Client) -> int:
    """Return the level of `transaction.version` that a broker has finalised."""
    answer = client.ask(API_VERSIONS, 3, {"client_software_name": "kafka-proto", "client_software_version": "1"})
    features = answer["finalized_features"]
    return next((int(each["max_version_level"]) for each in features if each["name"] == FEATURE), 0)


def await_coordinators(client: Client) -> None:
    """Wait until a broker coordinates groups and transactional ids: a new one makes the topics for that first."""
    pause = pauses()
    while any(client.ask(FIND_COORDINATOR, 3, {"key": FEATURE, "key_type": kind})["error_code"]
              for kind in (GROUP, TRANSACTION)) and pause():
        pass
    while client.ask(INIT_PRODUCER_ID, 4, {"transactional_id": FEATURE, "transaction_timeout": 60_000,
                                           "producer_id": -1, "producer_epoch": -1})["error_code"] and pause():
        pass
    while client.ask(OFFSET_FETCH, 7, {"group_id": FEATURE, "topics": None})["error_code"] and pause():
        pass


def new_run(client: Client) -> str:
    """Return a name that no topic at a broker begins with: a broker may be played against again."""
    topics = client.ask(METADATA, 8, {"topics": None})["topics"]
    before = [int(found[1]) for topic in topics if (found := RUN.match(topic["name"]))]
    return f"run{max(before, default=0) + 1}"


def pass_ms(milliseconds: int) -> None:
    """Let time pass."""
    threading.Event().wait(milliseconds / 1000)


def pauses() -> Any:
    """Return what lets a little time pass, so many times."""
    left = [MOST_PAUSES]

    def pause() -> bool:
        pass_ms(PAUSE_MS)
        left[0] -= 1
        return left[0] > 0

    return pause
