"""A session of real clients is told as a story: who asked whom what, what came back, what faults did, what was read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.commands.command_line import call
from support.gateway.recorded import Recorded
from support.gateway.wire import adding, fetched, initializing, inject, owner_in, produced, transactional_batch
from support.paths import ROOT
from support.runs.named_runs import write_history_of

from harness.record import Recorder, read_trail
from harness.simulate.trails.replay import replay_plain
from kafka_proto.gateway import offer
from kafka_proto.gateway.client import request_bytes
from kafka_proto.gateway.inputs import Arrived, Ended, Gone
from kafka_proto.gateway.records import WireRecord, write_batch

LATE = ROOT / "docs" / "examples" / "gateway" / "late-end.trail.jsonl"


def story(trail: Path, *options: object) -> str:
    """Return what `kafka-proto show` prints of a trail."""
    shown = call("show", trail, "--width", 160, *options)
    assert shown.code == 0, shown.err
    return shown.out


def steps(text: str) -> dict[int, str]:
    """Return the lines of each step by its number, without lifelines."""
    found: dict[int, str] = {}
    at = 0
    for line in text.splitlines():
        if (begins := re.match(r" *(\d+) (ok \d+/\d+|  +\d+/\d+|   )", line)) is not None:
            at = int(begins[1])
        found[at] = f"{found.get(at, '')}{' '.join(line.replace('|', ' ').split())}\n"
    return found


class Session(Recorded):
    """Three brokers, a client `shop` on a connection to each, and one of `till`."""

    def __init__(self) -> None:
        super().__init__(ports=(0, 0, 0))
        for broker in (1, 2, 3):
            self.ids[self.connect(broker)] = "shop"
        self.ids[self.connect(1)] = "till"
        (topic,) = self.one(0, offer.METADATA, 9, {"topics": ({"name": "t"},)})["topics"]
        self.leader = [row["leader_id"] - 1 for row in topic["partitions"]]
        """The connection of `shop` to the leader of each partition."""

    def write(self, partition: int, key: bytes | None, value: bytes) -> dict[int, list[dict[str, Any]]]:
        data = write_batch([WireRecord(key, value)], base_timestamp=5)
        return self.ask(self.leader[partition], offer.PRODUCE, 9, produced((partition, data)))

    def saved(self, path: Path) -> Path:
        self.recording.write(path)
        return path


@pytest.fixture
def session() -> Session:
    return Session()


def test_a_late_end_is_told_with_its_arrow_transaction_and_violation() -> None:
    """The example: requests decoded, their answers, the commit that is held and taken late, and what that violates."""
    told = steps(story(LATE))
    assert "delay EndTxn for 1500 ms" in told[2]
    assert "-> b1 InitProducerId transaction=app\n" in told[6]
    assert "<- b1 InitProducerId: ok producer=0 epoch=0\n" in told[6]
    assert "-> b1 Produce t-0=[a] producer=0 epoch=0 sequence=0 transaction=app#1" in told[8]
    assert "<- b1 Produce: ok t-0=offset 0" in told[8]
    assert "~> b1 EndTxn commit producer=0 epoch=0 transaction=app#1 (held)" in told[10]
    assert "b1->b1 WriteTxnMarkers COMMIT t-0 producer=0 epoch=0 transaction=app#1" in told[11]
    assert "late EndTxn commit" in told[18] and "FAILS 1 MarkerAttribution" in told[18]
    assert "environment" in told[0] and 3 in told and 4 not in told
    assert "t-0: leader b1, leader epoch 0, ISR b1, LSO 4, HW 4\n0 a committed app#1\n" in told[22]
    assert "2 y aborted app#3\n" in told[22] and "0 CompleteAbort app e0\n" in told[22]


def test_uneventful_requests_are_folded_unless_all_are_asked_for(session: Session, tmp_path: Path) -> None:
    """Metadata, FindCoordinator, heartbeats and empty fetches make one line; errors of a fetch do not."""
    for _ in range(3):
        session.one(0, offer.FIND_COORDINATOR, 3, {"key": "app", "key_type": 1})
    session.one(session.leader[0], offer.FETCH, 11, fetched(0))
    session.one(session.leader[0], offer.FETCH, 11, fetched(7))
    trail = session.saved(tmp_path / "s.trail.jsonl")
    told = steps(story(trail))
    assert told[2] == "2 ... 9 steps: 4 connect, 3 FindCoordinator, Metadata, Fetch\n"
    assert "Fetch: OFFSET_OUT_OF_RANGE t-0" in told[11]
    whole = steps(story(trail, "--all"))
    assert set(whole) == set(range(12)) and "-> b1 FindCoordinator key=app" in whole[7]
    assert "FindCoordinator: ok coordinator=b" in whole[7]


def test_records_are_shortened_and_printable(session: Session, tmp_path: Path) -> None:
    """Keys and values in UTF-8, other bytes escaped, long ones cut, many counted; a reader gets them with offsets."""
    session.write(0, b"k\n", "grün".encode())
    session.write(0, None, b"\xff" * 100)
    data = write_batch([WireRecord(b"k%d" % n, None) for n in range(8)], base_timestamp=5)
    session.ask(session.leader[0], offer.PRODUCE, 9, produced((0, data), acks=1))
    session.one(session.leader[0], offer.FETCH, 11, fetched(0))
    told = steps(story(session.saved(tmp_path / "s.trail.jsonl")))
    assert r"Produce t-0=[k\n: grün]" in told[7]
    assert r"Produce t-0=[\xff\xff\xff\xff\xff\xf…]" in told[8] or "…]" in told[8]
    assert "t-0=[k0: null; k1: null; k2: null; k3: null; k4: null; k5: null; 2 more] acks=1" in told[9]
    assert r"Fetch: ok t-0=[@0 k\n: grün; @1" in told[10] and "4 more]" in told[10]
    assert max(map(len, story(tmp_path / "s.trail.jsonl").splitlines())) <= 160


def test_faults_of_requests_are_marks_on_their_arrows(session: Session, tmp_path: Path) -> None:
    """Dropped, lost, duplicated, answered with an error: each on the message that it hit."""
    inject(session, 1, "answer", request="Produce", error="NOT_LEADER_OR_FOLLOWER")
    session.write(0, b"k", b"one")
    inject(session, 2, "duplicate", request="Produce")
    session.write(0, b"k", b"two")
    data = write_batch([WireRecord(b"k", b"three")], base_timestamp=5)
    for number, kind, partition in ((3, "lose", 0), (4, "drop", 1)):
        inject(session, number, kind, request="Produce")
        asked = request_bytes(offer.PRODUCE, 9, produced((partition, data)), client_id="shop")
        session.give(Arrived(session.leader[partition], asked, session.now))
    told = steps(story(session.saved(tmp_path / "s.trail.jsonl")))
    assert "answer Produce with NOT_LEADER_OR_FOLLOWER" in told[7]
    assert "Produce: NOT_LEADER_OR_FOLLOWER t-0 by=a fault" in told[8]
    assert "Produce t-0=[k: two] producer" not in told[10] and "(a copy)" in told[10]
    assert "x> b" in told[12] and "Produce: ok t-0=offset 2 (lost)" in told[12]
    assert "x> b" in told[14] and " Produce t-1=[k: three] (dropped)" in told[14]


def test_faults_of_brokers_and_elections_stand_on_their_lifelines(session: Session, tmp_path: Path) -> None:
    """A crash with the leaders that follow, the start, a pause that holds a request up, an election."""
    leader = session.leader[0] + 1
    inject(session, 1, "crash", broker=leader)
    session.give(Ended(1, session.now))
    inject(session, 2, "elect", partition="t-1")
    other = next(number for number in (1, 2, 3) if number != leader)
    inject(session, 3, "pause", broker=other)
    session.ask(other - 1, offer.INIT_PRODUCER_ID, 4, initializing("app"))
    session.give(Gone(other - 1, session.now))
    session.give(Ended(3, session.now))
    told = steps(story(session.saved(tmp_path / "s.trail.jsonl")))
    assert f"crash b{leader}" in told[7] and re.search(r"t-0: b\d leads in epoch 1, ISR b\d b\d\n", told[7])
    assert f"b{leader} starts" in told[8]
    assert "elect t-1" in told[9] and re.search(r"t-1: b\d leads in epoch", told[9])
    assert f"pause b{other}" in told[10] and f"-> b{other} InitProducerId transaction=app" in told[11]
    assert "late InitProducerId" in told[13]


def test_lifelines_are_clients_then_brokers_and_odd_names_do_not_confuse(tmp_path: Path) -> None:
    """A client may be called as a broker, as nothing, or by several words."""
    session = Recorded()
    for name in ("b1", "", "my shop", "environment"):
        connection = session.connect()
        session.ids[connection] = name
        session.one(connection, offer.INIT_PRODUCER_ID, 4, initializing("app"))
    session.recording.write(tmp_path / "s.trail.jsonl")
    lanes = next(line.split() for line in story(tmp_path / "s.trail.jsonl").splitlines() if "client-b1" in line)
    assert lanes == ["client-b1", "client", "my-shop", "client-environment", "b1", "environment"]


@pytest.mark.parametrize("form", ["mermaid", "svg", "shiviz", "log"])
def test_every_form_tells_it(form: str) -> None:
    """The others have the same arrows; ShiViz' clocks let a request come before its answer."""
    text = story(LATE, "--as", form)
    assert re.search(r"Produce (test->b1 )?t-0=\[a\]", text) and "late EndTxn commit" in text
    if form == "svg":
        ET.fromstring(text)
    if form == "shiviz":
        lines = text.splitlines()[2:]
        hosts = [host.split()[0] for event, host in zip(lines[::2], lines[1::2], strict=True) if event.startswith("8 ")]
        assert hosts == ["test", "b1", "test"]
    if form == "mermaid":
        assert "b1->> test: 8<br/>Produce: ok t-0=offset 0" in text


def test_a_history_in_a_file_tells_the_same(tmp_path: Path) -> None:
    """`show` of a history gives each input to the brokers once more."""
    trail, recorder = read_trail(LATE), Recorder()
    run = replay_plain(trail, recorder)
    path = write_history_of(attrs.evolve(run, recorder=recorder), tmp_path / "late.history.jsonl")
    assert story(path) == story(LATE)


def test_what_a_reader_of_transactions_gets_is_told(session: Session, tmp_path: Path) -> None:
    """A fetch that waits is answered by the commit of another client, in that client's step."""
    owner = owner_in(session.one(_coordinator(session), offer.INIT_PRODUCER_ID, 4, initializing("app")))
    session.ids[4] = "reader"
    connection = session.connect(session.leader[0] + 1)
    session.ask(connection, offer.FETCH, 11, fetched(0, wait=5000, level=1))
    session.one(_coordinator(session), offer.ADD_PARTITIONS_TO_TXN, 0, adding("app", owner, 0))
    session.one(session.leader[0], offer.PRODUCE, 9,
                produced((0, transactional_batch(b"order", 0, owner)), tid="app"))
    session.ask(_coordinator(session), offer.END_TXN, 1, {"transactional_id": "app", "committed": True, **owner})
    told = steps(story(session.saved(tmp_path / "s.trail.jsonl")))
    last = told[max(told)]
    assert "EndTxn commit" in last and "->reader Fetch: ok t-0=[@0 order; COMMIT]" in last


def _coordinator(session: Session) -> int:
    """Return the connection of `shop` to the coordinator of `app`."""
    found = session.one(0, offer.FIND_COORDINATOR, 3, {"key": "app", "key_type": 1})["node_id"]
    return int(found) - 1
