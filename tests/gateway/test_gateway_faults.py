"""Faults behind the wire without sockets: which request they hit, what is late, who leads, what is violated."""

from __future__ import annotations

from functools import partial

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import (
    Producer,
    Talk,
    fetched,
    initializing,
    inject,
    produced,
    request_bytes,
    responses,
    talk,
)

from harness.model import Refusal
from kafka_proto.gateway import offer
from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.inputs import Arrived, Close, Ended, Opened, Passed, Settings, Write
from kafka_proto.gateway.plans import read_plan, written
from kafka_proto.gateway.records import WireRecord, write_batch


def test_tx_01_a_late_end_of_an_abandoned_connection_commits_part_of_a_later_transaction() -> None:
    """KAFKA-17754 on the newest release with old requests: P1 to P4 say so, as a held frame shows on a real 4.4.0."""
    clients = talk()
    inject(clients, 1, "delay", request="EndTxn")
    producer = Producer(clients)
    assert producer.write(0, b"a") == 0
    assert producer.end(True) == {}, "held back"
    producer.reconnect()
    assert producer.end(True)[producer.me][0]["error_code"] == 0
    assert producer.write(1, b"b") == 0
    producer.end(False)
    assert producer.write(0, b"x") == 0
    assert clients.host.problems() == {}
    clients.give(Ended(1, clients.now))
    assert clients.host.said == ["late EndTxn commit app#1"]
    assert clients.host.problems() == {"MarkerAttribution": (
        "the COMMIT of t-0 at offset 3 was caused by app#1, but ends offset 2 of app#3")}
    assert producer.write(1, b"y") == 0
    assert producer.end(False)[producer.me][0]["error_code"] == 0
    clients.one(producer.me, offer.FETCH, 12, fetched(0, level=1))
    found = clients.host.problems()
    assert list(found) == ["MarkerAttribution", "Atomicity", "AcknowledgedOutcome", "NoIntermediateRead"]
    assert found["Atomicity"] == (
        "of app#3, offset 2 of t-0 is committed at offset 3, but offset 2 of t-1 is aborted at offset 3")


def test_requests_are_dropped_lost_doubled_and_delayed_for_a_time() -> None:
    """`drop` closes before, `lose` after the request is taken, `duplicate` is taken twice, `delay` ends by itself."""
    clients = talk()
    for number, (kind, what) in enumerate((("drop", {"nth": 1}), ("lose", {"nth": 2}), ("duplicate", {"nth": 4}),
                                           ("delay", {"nth": 5, "for_ms": 700})), 1):
        inject(clients, number, kind, request="Produce", **what)
    plain = produced((0, write_batch([WireRecord(None, b"v")])))
    ends = []
    for _ in range(2):
        me = clients.connect()
        with pytest.raises(AssertionError):
            clients.ask(me, offer.PRODUCE, 9, plain)
        (closed,) = clients.outputs[-1]
        assert isinstance(closed, Close)
        ends.append(clients.host.cluster.log("t-0").log_end_offset)
    me = clients.connect()
    for _ in range(2):
        clients.one(me, offer.PRODUCE, 9, plain)
        ends.append(clients.host.cluster.log("t-0").log_end_offset)
    assert ends == [0, 1, 2, 4]
    assert clients.ask(me, offer.PRODUCE, 9, plain) == {}
    assert clients.host.deadline == clients.now + 700
    assert len(clients.wait(700)[me]) == 1


def leaders(clients: Talk, connection: int) -> tuple[list[int], list[int], int]:
    """Return the brokers that metadata has, the leaders of the topic, and their epoch."""
    found = clients.one(connection, offer.METADATA, 9, {"topics": None})
    (topic,) = found["topics"]
    rows = topic["partitions"]
    return [row["node_id"] for row in found["brokers"]], [row["leader_id"] for row in rows], rows[0]["leader_epoch"]


def test_a_write_needs_so_many_replicas_in_sync() -> None:
    """With two of two, a write is refused while one is down (NOT_ENOUGH_REPLICAS), and taken once it is back."""
    clients = talk(ports=(9001, 9002, 9003), replication_factor=2, min_insync_replicas=2)
    asked = clients.connect()
    described = clients.one(asked, offer.METADATA, 9, {"topics": ({"name": "t"},)})["topics"][0]["partitions"][0]
    leader, follower = described["replica_nodes"]
    assert (described["leader_id"], sorted(described["isr_nodes"])) == (leader, sorted((leader, follower)))
    clients.host.clients[asked].broker = leader

    def produce() -> int:
        answer = clients.one(asked, offer.PRODUCE, 9, produced((0, write_batch([WireRecord(None, b"a")]))))
        return int(answer["responses"][0]["partition_responses"][0]["error_code"])

    assert produce() == 0
    inject(clients, 1, "crash", broker=follower)
    assert produce() == 19
    clients.give(Ended(1, clients.now))
    assert produce() == 0


def test_brokers_crash_are_cut_off_and_elected() -> None:
    """Leaders are spread; a crash closes connections and moves them on, a restart gives them back."""
    clients = talk(ports=(9001, 9002, 9003))

    one, two = clients.connect(1), clients.connect(2)
    before = leaders(clients, one)
    assert before == ([1, 2, 3], before[1], 0) and len({*before[1]}) == 2
    down = before[1][0]
    third = next(number for number in (1, 2, 3) if number not in before[1])
    asked, lost = clients.connect(third), clients.connect(down)
    there = {number for number, broker in ((one, 1), (two, 2), (lost, down)) if broker == down}
    closed = inject(clients, 1, "crash", broker=down)
    assert {output.connection for output in closed if isinstance(output, Close)} == there
    brokers, now, epoch = leaders(clients, asked)
    assert (down in brokers, down in now) == (False, False) and epoch > before[2]
    assert [type(each) for each in clients.give(Opened(99, clients.now, down))] == [Close]
    clients.give(Ended(1, clients.now))
    again = leaders(clients, asked)
    assert again[:2] == before[:2] and again[2] > epoch
    inject(clients, 2, "elect", partition="t-0")
    assert leaders(clients, asked)[1][0] != down
    wrong = {"topics": ({"name": "t", "partitions": ({"partition_index": 0, "timestamp": -1},)},)}
    ((answer,),) = ((clients.one(asked if leaders(clients, asked)[1][0] != third else two,
                                 offer.LIST_OFFSETS, 5, wrong)["topics"]),)
    assert answer["partitions"][0]["error_code"] == 6


def test_a_paused_broker_answers_later_and_a_partitioned_one_is_no_leader() -> None:
    """What comes to a paused broker is answered when the pause is over, in order; who is cut off leads nothing."""
    clients = talk(ports=(9001, 9002))
    me = clients.connect()
    inject(clients, 1, "pause", broker=1, for_ms=400)
    assert clients.ask(me, offer.METADATA, 9, {"topics": None}) == {}
    clients.now += 400
    (answer,) = clients.give(Passed(clients.now))
    assert isinstance(answer, Write)
    clients._asked[me].clear()
    inject(clients, 2, "partition", broker=1)
    other = clients.connect(2)
    assert leaders(clients, other)[:2] == ([2], [2, 2])
    assert clients.ask(me, offer.METADATA, 9, {"topics": None}) == {}
    assert len(clients.written(clients.give(Ended(2, clients.now)))[me]) == 1
    assert len({*leaders(clients, other)[1]}) == 2


def test_a_request_is_answered_with_an_error() -> None:
    """Of one client, as often as it is asked for; the broker does nothing, and no property says anything of it."""
    clients = talk()
    me, other = clients.connect(), clients.connect()
    inject(clients, 1, "answer", request="InitProducerId", error="NOT_COORDINATOR", client="shop")
    inject(clients, 2, "answer", request="Metadata", error="LEADER_NOT_AVAILABLE", nth=0)
    ask = partial(clients.one, other, offer.INIT_PRODUCER_ID, 4, initializing("app"))
    assert ask()["error_code"] == 0
    data = request_bytes(offer.INIT_PRODUCER_ID, 4, initializing("app"), client_id="shop")
    for error in (16, 0):
        (output,) = clients.give(Arrived(me, data, clients.now))
        ((_, found),) = responses(output.data, (offer.INIT_PRODUCER_ID, 4))
        assert found["error_code"] == error
    found = clients.one(me, offer.METADATA, 9, {"topics": ({"name": "t"},)})["topics"][0]
    assert {found["error_code"], *(row["error_code"] for row in found["partitions"])} == {5}
    clients.give(Ended(2, clients.now))
    assert clients.one(me, offer.METADATA, 9, {"topics": ({"name": "t"},)})["topics"][0]["error_code"] == 0
    inject(clients, 3, "answer", request="Produce", error="NOT_ENOUGH_REPLICAS")
    batch = write_batch([WireRecord(None, b"one")])
    (row,) = clients.one(me, offer.PRODUCE, 9, produced((0, batch)))["responses"][0]["partition_responses"]
    assert (row["error_code"], row["base_offset"]) == (19, -1)
    assert clients.host.cluster.log("t-0").log_end_offset == 0 and not clients.host.problems()
    inject(clients, 4, "answer", request="Produce", error="NOT_ENOUGH_REPLICAS")
    (closed,) = clients.give(Arrived(me, request_bytes(offer.PRODUCE, 9, produced((0, batch), acks=0)), clients.now))
    assert isinstance(closed, Close) and "acks of 0" in closed.reason


def test_answers_with_errors_are_planned() -> None:
    """By words; what is no error, or cannot be answered so, is refused in one sentence."""
    settings = Settings()
    text = "answer EndTxn error=NOT_COORDINATOR client=shop nth=2 at_ms=5"
    (timed,) = read_plan(text, 0, settings)
    assert (timed.kind, timed.request, timed.error, timed.client, timed.nth) == (
        "answer", "EndTxn", "NOT_COORDINATOR", "shop", 2) and written(timed) == text
    for wrong, said in (("answer EndTxn", "takes the name of one request and an error code"),
                        ("answer EndTxn error=NONE", "'NONE' is no error code"),
                        ("answer CreateTopics error=INVALID_REQUEST", "cannot be answered with an error here"),
                        ("delay EndTxn error=NOT_COORDINATOR", "'error'")):
        with pytest.raises(Refusal, match=said):
            read_plan(wrong, 0, settings)
    with KafkaCluster({"t": 1}) as cluster, pytest.raises(ValueError, match="cannot be answered"):
        cluster.answer("CreateTopics", "INVALID_REQUEST")


def test_what_a_paused_broker_owes_is_not_due() -> None:
    """A fetch whose time is over waits for the broker: time need not pass for it again and again."""
    clients = talk()
    me = clients.connect()
    clients.ask(me, offer.FETCH, 12, fetched(0, wait=100))
    assert clients.host.deadline == clients.now + 100
    inject(clients, 1, "pause", broker=1)
    assert clients.wait(200) == {} and clients.host.deadline is None
    assert clients.written(clients.give(Ended(1, clients.now)))[me]


def test_no_controller_is_named_where_the_controller_hears_nobody() -> None:
    """A broker that was paused answers what waits in its sockets before it is heard again; the other one is paused."""
    clients = talk(ports=(1, 2))
    me = clients.connect(1)
    for broker in (1, 2):
        inject(clients, broker, "pause", broker=broker)
    assert clients.ask(me, offer.METADATA, 9, {"topics": None}) == {}
    clients.wait(60_000)
    (answer,) = clients.written(clients.give(Ended(1, clients.now)))[me]
    assert (answer["brokers"], answer["controller_id"]) == ((), -1)
