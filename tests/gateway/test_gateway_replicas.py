"""R1 to R6 of served brokers: silent while replicas agree, and heard where one does not, or a reader loses records."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, fetched, inject, produced, talk

from kafka_proto.broker.controller import PARTITION
from kafka_proto.broker.parts import REPLICA
from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.inputs import Ended, Passed
from kafka_proto.gateway.records import WireRecord, write_batch
from kafka_proto.replication.controller import CONTROLLER

P = "t-0"


class Session(Talk):
    """Three brokers; records are written to the leader of `t-0`, with any number of acks."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(talk({"t": 1}, ports=(0, 0, 0), **settings).host)
        self.faults = 0

    @property
    def leader(self) -> int:
        return int(self.host.cluster.leader(P)[1:])

    def write(self, value: bytes, acks: int = -1) -> None:
        batch = write_batch((WireRecord(None, value),), base_timestamp=5)
        answer = self.one(self.connect(self.leader), offer.PRODUCE, 9, produced((0, batch), acks=acks))
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0

    def read(self) -> None:
        self.one(self.connect(self.leader), offer.FETCH, 12, fetched(0))

    def begin(self, kind: str, broker: int) -> None:
        self.faults += 1
        inject(self, self.faults, kind, broker=broker)

    def end(self, number: int) -> None:
        self.give(Ended(number, self.now))

    def change(self, broker: int, **fields: Any) -> None:
        """Let a broker's replica be another one, and look."""
        cluster, name = self.host.cluster, f"b{broker}"
        state = cluster.state(name)[REPLICA[P]]
        cluster._states[name] = cluster.state(name).put(REPLICA[P], attrs.evolve(state, **fields))
        self.give(Passed(self.now))

    @property
    def problems(self) -> dict[str, str]:
        return self.host.problems()


def test_each_write_waits_for_replicas_as_long_as_it_says() -> None:
    """Two with `acks=all` while a follower is paused: the one with the shorter time-out is answered first."""
    session = Session()
    session.begin("pause", session.leader % 3 + 1)
    waiting = {timeout: session.connect(session.leader) for timeout in (300, 100)}
    for timeout, connection in waiting.items():
        batch = write_batch((WireRecord(None, b"v"),), base_timestamp=5)
        assert session.ask(connection, offer.PRODUCE, 9, {**produced((0, batch)), "timeout": timeout}) == {}
    for passed, timeout in ((100, 100), (200, 300)):
        (answer,) = session.wait(passed)[waiting[timeout]]
        assert NAMES[answer["responses"][0]["partition_responses"][0]["error_code"]] == "REQUEST_TIMED_OUT"


def test_replicas_that_fail_and_come_back_are_silent() -> None:
    """Crashes, pauses, shut-downs and elections, with records and readers between them."""
    session = Session()
    for number, kind in enumerate(("crash", "pause", "shut_down", "partition"), 1):
        session.write(kind.encode())
        session.read()
        session.begin(kind, session.leader)
        session.wait(1500)
        session.write(b"more")
        session.end(number)
        session.wait(1500)
    assert session.problems == {}


@pytest.mark.parametrize("starts", list(itertools.permutations((1, 2, 3))))
@pytest.mark.parametrize(("release", "level"), [("3.9.2", 1), ("4.2.0", 2)])
def test_all_replicas_crash_and_come_back_as_what_they_are_now(
    release: str, level: int, starts: tuple[int, ...]
) -> None:
    """R6 is silent about the one that the controller lets lead again: the last of the ISR, or the last that led."""
    session = Session(release=release, transaction_version=level, min_insync_replicas=2)
    crashes: dict[int, int] = {}

    def crash(broker: int) -> None:
        session.begin("crash", broker)
        crashes[broker] = session.faults
        session.wait(1500)

    def start(broker: int) -> None:
        session.end(crashes[broker])
        session.wait(1500)

    for broker in (1, 2, 3):
        crash(broker)
        start(broker)
    session.write(b"one")
    for broker in (2, 3, 1):
        crash(broker)
    inject(session, session.faults + 1, "elect")
    assert session.host.cluster.told(P).leader is None
    for broker in starts:
        start(broker)
    session.write(b"two")
    assert session.problems == {}


def test_a_follower_with_another_record_is_found() -> None:
    """R1 to R3 say which replica, and at which offset; what is found stays."""
    session = Session()
    session.write(b"one")
    follower = session.leader % 3 + 1
    state = session.host.cluster.state(f"b{follower}")[REPLICA[P]]
    (entry,) = state.log
    session.change(follower, log=(attrs.evolve(entry, value=attrs.evolve(entry.value, timestamp=9)),))
    assert {"StrongIsr", "WeakIsr", "LogMatching", "FollowerLogMatches"} <= {*session.problems}
    assert session.problems["StrongIsr"].startswith(f"t-0: b{follower} is in the quorum's ISR but does not hold b")
    session.change(follower, log=(entry,))
    assert "StrongIsr" in session.problems


def test_a_member_of_an_earlier_broker_epoch_is_found() -> None:
    """R6: it registered again, and was not let in since."""
    session = Session()
    states = session.host.cluster._states
    found = states[CONTROLLER][PARTITION[P]]
    quorum = attrs.evolve(found.quorum, broker_epochs=found.quorum.broker_epochs.set("b2", 7),
                          entered=found.quorum.entered.set("b2", 0))
    states[CONTROLLER] = states[CONTROLLER].put(PARTITION[P], attrs.evolve(found, quorum=quorum))
    session.give(Passed(session.now))
    assert session.problems["IsrEligibility"] == (
        "t-0: b2 is in the ISR as of broker epoch 0, but has registered 7")


def test_what_a_consumer_was_sent_is_kept() -> None:
    """R5: where all disks lose it, it is missing, or another record has its offset; R1 to R3 are not claimed then."""
    session = Session()
    session.write(b"one")
    for broker in (1, 2, 3):
        session.begin("slow_disk", broker)
    session.write(b"two")
    session.read()
    assert session.problems == {}
    for broker in (1, 2, 3):
        session.begin("crash", broker)
    for number in (4, 5, 6):
        session.end(number)
    lost = "a consumer was sent offset 1 of t-0, which its leader does not have, or as another one"
    assert session.problems["StableReads"] == lost
    session.write(b"other")
    assert session.problems["StableReads"] == lost and "StrongIsr" not in session.problems
