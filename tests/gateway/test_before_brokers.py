"""A proxy before brokers, from inputs alone: faults, names of brokers, and what is judged from the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.before_brokers import OURS, BeforeBrokers, before_brokers
from support.gateway.wire import Producer, Talk, fetched, inject, produced, request_bytes

from harness.model import Refusal
from harness.record import Recorder
from harness.simulate.trails.replay import replay_plain
from kafka_proto.errors import BY_NAME
from kafka_proto.gateway import offer
from kafka_proto.gateway.inputs import Arrived, Close, Ended, Gone, Opened
from kafka_proto.gateway.plans import read_plan
from kafka_proto.gateway.records import WireRecord, write_batch, write_marker


def code(name: str) -> int:
    number = BY_NAME[name].number
    assert number is not None
    return number


def test_a_plain_session_is_silent_and_replays_without_brokers() -> None:
    """Commit and abort on two partitions; the replay has the answers of the brokers among its inputs."""
    proxy, clients = before_brokers()
    app = Producer(clients)
    for committed in (True, False, True):
        assert (app.write(0, b"a"), app.end(committed)[app.me][0]["error_code"]) == (0, 0)
    read = clients.one(app.me, offer.FETCH, 12, fetched(0, level=1))["responses"][0]["partitions"][0]
    assert (read["last_stable_offset"], len(read["aborted_transactions"])) == (6, 1)
    assert (proxy.over(), len(proxy.proxy.observed.ledgers["t-0"].ended)) == ({}, 3)
    assert proxy.proxy.unjudged() == ()
    trail = proxy.recording.trail()
    runs = [replay_plain(trail, Recorder()) for _ in range(2)]
    assert runs[0].verdict.ok and runs[0].digest == runs[1].digest


def test_a_late_end_is_found_from_the_wire_alone() -> None:
    """KAFKA-17754: an EndTxn that was given up ends a later transaction; its brokers have no ghosts to say so."""
    proxy, clients = before_brokers()
    app = Producer(clients)
    inject(clients, 1, "delay", request="EndTxn")
    assert (app.write(0, b"a"), app.end(True)) == (0, {})
    app.reconnect()
    assert app.end(True)[app.me][0]["error_code"] == 0
    assert (app.write(1, b"b"), app.end(False)[app.me][0]["error_code"], app.write(0, b"x")) == (0, 0, 0)
    clients.give(Ended(1, clients.now))
    assert proxy.brokers.problems() == {}, "for them, it came from whoever has the transaction open"
    assert proxy.over() == {"MarkerAttribution": "the COMMIT of t-0 at offset 3 was caused by app#1, but ends offset 2 "
                                                 "of app#3"}
    assert replay_plain(proxy.recording.trail()).verdict.violated == "MarkerAttribution"


def test_an_offset_that_its_coordinator_tells_otherwise_violates_p10() -> None:
    """Commits with and without a transaction are judged, those of groups that others used are not."""
    proxy, clients = before_brokers()
    app, topics = Producer(clients), ({"name": "t", "partitions": ({
        "partition_index": 0, "committed_offset": 7, "committed_leader_epoch": -1, "committed_metadata": "x"},)},)
    mine, others = clients.connect(), Talk(proxy.brokers)
    commit = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None,
              "retention_time": -1, "topics": topics}
    clients.one(mine, offer.OFFSET_COMMIT, 8, commit)
    others.one(others.connect(), offer.OFFSET_COMMIT, 8, {**commit, "group_id": "others"})
    for committed in (True, False):
        clients.one(app.me, offer.TXN_OFFSET_COMMIT, 5, {
            "transactional_id": "app", "group_id": "g", **app.owner, "generation_id": -1, "member_id": "",
            "group_instance_id": None, "topics": ({"name": "t", "partitions": (
                {"partition_index": 1, "committed_offset": 3 + committed, "committed_leader_epoch": -1,
                 "committed_metadata": ""},)},)})
        app.end(committed)
    assert (proxy.over(), proxy.proxy.unjudged()) == ({}, ())
    told = proxy.proxy.outside.offsets["g"]
    assert {key[1]: at.offset for key, at in told.items()} == {"t-0": 7, "t-1": 4}

    def older(api: int, fields: dict[str, Any]) -> None:
        for group in fields.get("groups", ()) if api == offer.OFFSET_FETCH else ():
            group["topics"][0]["partitions"][0]["committed_offset"] -= 1

    proxy, clients = before_brokers()
    clients.one(clients.connect(), offer.OFFSET_COMMIT, 8, commit)
    proxy.change = older
    assert proxy.over() == {"OffsetsOfTheLog": "the offset of g in t-0 is 6, the last committed one is 7"}
    assert replay_plain(proxy.recording.trail()).verdict.violated == "OffsetsOfTheLog"


def test_what_is_given_up_is_taken_late_and_what_comes_twice_is_answered_once() -> None:
    """Both go to the broker on a connection that is of no client; it lasts for the next one."""
    proxy, clients = before_brokers()
    app = Producer(clients)
    inject(clients, 1, "duplicate", request="InitProducerId")
    again = Producer(clients)
    assert again.owner["producer_epoch"] == app.owner["producer_epoch"] + 1
    assert Producer(clients).owner["producer_epoch"] == again.owner["producer_epoch"] + 2, "it was taken twice"
    inject(clients, 2, "delay", request="InitProducerId", for_ms=500)
    with pytest.raises(AssertionError):
        Producer(clients)
    clients.give(Gone(3, clients.now))
    clients.wait(500)
    assert Producer(clients).owner["producer_epoch"] == again.owner["producer_epoch"] + 4
    assert [number for number in proxy.brokers.clients if number < 0] == [-2]


def test_a_topic_id_that_nobody_knows_is_for_the_broker_to_refuse() -> None:
    """A request by an id that no answer has told goes on as it came."""
    proxy, clients = before_brokers()
    message = produced((0, write_batch([WireRecord(None, b"v")])))
    rows = tuple({**row, "topic_id": UUID(int=7)} for row in message["topic_data"])
    answer = clients.one(clients.connect(), offer.PRODUCE, 13, {**message, "topic_data": rows})
    (row,) = answer["responses"]
    assert row["topic_id"] == UUID(int=7)
    assert row["partition_responses"][0]["error_code"] == code("UNKNOWN_TOPIC_ID")
    assert proxy.over() == {}


def test_drop_and_lose_close_the_connection_before_and_after_the_broker() -> None:
    for kind, state in (("drop", "Ongoing"), ("lose", "CompleteCommit")):
        proxy, clients = before_brokers()
        app = Producer(clients)
        inject(clients, 1, kind, request="EndTxn")
        assert app.write(0, b"a") == 0
        end = {"transactional_id": "app", "committed": True, **app.owner}
        (closed,) = clients.host.take(asking(clients, app.me, offer.END_TXN, end))
        assert isinstance(closed, Close) and kind[:3] in closed.reason
        assert app.me not in proxy.brokers.clients, "the connection behind has ended with it"
        assert proxy.brokers.cluster.entries["app"].state == state


def asking(clients: Talk, connection: int, api: int, message: dict[str, Any]) -> Any:


    return Arrived(connection, request_bytes(api, 1, message), clients.now)


@pytest.mark.parametrize(("request_name", "ask"), [
    ("EndTxn", lambda app: app.end(True)[app.me][0]["error_code"]),
    ("Produce", lambda app: app.write(1, b"b")),
    ("Metadata", lambda app: app.clients.one(app.me, offer.METADATA, 9, {"topics": ({"name": "t"},)})["topics"][0][
        "error_code"]),
    ("Fetch", lambda app: app.clients.one(app.me, offer.FETCH, 12, fetched(0))["responses"][0]["partitions"][0][
        "error_code"]),
])
def test_an_error_is_answered_in_place_of_the_broker(request_name: str, ask: Callable[[Producer], int]) -> None:
    """For a request to each partition, and for one that only looks up; the next one goes through."""
    proxy, clients = before_brokers()
    app = Producer(clients)
    assert app.write(0, b"a") == 0
    inject(clients, 1, "answer", request=request_name, error="NOT_LEADER_OR_FOLLOWER")
    before = proxy.brokers.cluster.changes
    wanted = code("NOT_LEADER_OR_FOLLOWER")
    assert ask(app) == wanted
    assert request_name == "Produce" or proxy.brokers.cluster.changes == before
    assert ask(app) != wanted


def test_a_broker_that_crashes_or_is_paused_is_so_for_clients() -> None:
    """The broker behind goes on; a paused one is asked when the pause ends."""
    proxy, clients = before_brokers(brokers=2)
    one, other = clients.connect(1), clients.connect(2)
    asked = (offer.METADATA, 9, {"topics": None})
    (closed,) = inject(clients, 1, "crash", broker=1, for_ms=1000)
    assert (closed.connection, closed.reason) == (one, "b1 crashed")
    (refused,) = clients.give(Opened(7, clients.now, 1))
    assert refused == Close(7, "b1 is down")
    assert [row["port"] for row in clients.one(other, *asked)["brokers"]] == [OURS + 1, OURS + 2]
    clients.wait(1000)
    for kind in ("pause", "partition"):
        inject(clients, 2, kind, broker=1)
        again = clients.connect(1)
        assert clients.ask(again, *asked) == {}
        (answer,) = clients.written(clients.give(Ended(2, clients.now)))[again]
        assert len(answer["brokers"]) == 2
    assert proxy.over() == {}


def test_a_broker_that_joins_has_a_port_and_one_too_many_ends_the_connection() -> None:
    proxy, clients = before_brokers()
    me = clients.connect()
    joined = [{"node_id": node, "host": "elsewhere", "port": 9092, "rack": None} for node in (7, 8, 9)]

    def joins(count: int) -> Callable[[int, dict[str, Any]], None]:
        return lambda api, fields: fields.update(brokers=(*fields["brokers"], *joined[:count]))

    proxy.change = joins(2)
    brokers = clients.one(me, offer.METADATA, 9, {"topics": None})["brokers"]
    assert [(row["node_id"], row["port"]) for row in brokers] == [(1, OURS + 1), (7, OURS + 2), (8, OURS + 3)]
    assert proxy.proxy.names()[1] == ("b2", ("elsewhere", 9092), 7)
    proxy.change = joins(3)
    asked = asking(clients, me, offer.METADATA, {"topics": None})
    (closed,) = clients.host.take(asked)
    assert closed == Close(me, "upstream: node 9 is one more than the 3 brokers that there are ports for")


def changed_logs(change: Callable[[dict[str, Any]], object]) -> Callable[[int, dict[str, Any]], None]:
    """Return what changes partition 0 as the proxy reads it in the end."""

    def changes(api: int, fields: dict[str, Any]) -> None:
        if api == offer.FETCH:
            for topic in fields["responses"]:
                for partition in topic["partitions"]:
                    if partition["partition_index"] == 0:
                        change(partition)

    return changes


def marked(partition: dict[str, Any], committed: bool, epoch: int) -> None:
    """Put another marker in place of the last one, at offset 1."""
    end = partition["records"][8:12]
    data = partition["records"][: 12 + int.from_bytes(end, "big")]
    producer_id = int.from_bytes(data[43:51], "big")
    partition["records"] = data + write_marker(committed, producer_id, epoch, 0, 1, 0, 0)


def twice(partition: dict[str, Any]) -> None:
    """Let the first batch be there again, at offset 2."""
    first = partition["records"][: 12 + int.from_bytes(partition["records"][8:12], "big")]
    partition["records"] += (2).to_bytes(8, "big") + first[8:]
    partition["high_watermark"] = 3


def states(state: str) -> Callable[[int, dict[str, Any]], None]:
    def changes(api: int, fields: dict[str, Any]) -> None:
        for row in fields["transaction_states"] if api == offer.DESCRIBE_TRANSACTIONS else ():
            row["transaction_state"] = state

    return changes


@pytest.mark.parametrize(("change", "violated"), [
    (changed_logs(lambda partition: marked(partition, False, 0)), ["AcknowledgedOutcome", "Atomicity"]),
    (changed_logs(lambda partition: partition.update(records=b"", high_watermark=0)), ["AcknowledgedOnce"]),
    (changed_logs(twice), ["AcknowledgedOnce", "NoHangingTransaction"]),
    (changed_logs(lambda partition: marked(partition, True, -1)), ["ProducerStateGrows"]),
    (states("PrepareCommit"), ["PreparedIsCompleted"]),
], ids=["another marker", "a lost batch", "a batch twice", "an older epoch", "prepared for ever"])
def test_what_brokers_have_in_the_end_is_judged(
    change: Callable[[int, dict[str, Any]], None], violated: list[str]
) -> None:
    proxy, clients = before_brokers()
    app = Producer(clients)
    assert (app.write(0, b"a"), app.write(1, b"b"), app.end(True)[app.me][0]["error_code"]) == (0, 0, 0)
    proxy.change = change
    assert sorted(proxy.over()) == violated
    assert replay_plain(proxy.recording.trail()).verdict.violated in violated


def test_an_open_transaction_that_no_coordinator_has_hangs() -> None:
    proxy, clients = before_brokers()
    assert Producer(clients).write(0, b"a") == 0
    assert "under way" not in str(proxy.over())
    proxy.change = states("CompleteAbort")
    assert list(proxy.over()) == ["NoHangingTransaction"]


def test_what_clients_are_answered_is_judged_when_the_logs_are_known() -> None:
    """A fence for no reason; a reader of committed records that is told of no abort, and one that gets too much."""
    proxy, clients = before_brokers()
    app = Producer(clients)
    assert (app.write(0, b"a"), app.end(False)[app.me][0]["error_code"], app.write(0, b"b")) == (0, 0, 0)

    def fences(api: int, fields: dict[str, Any]) -> None:
        fields["responses"][0]["partition_responses"][0]["error_code"] = code("INVALID_PRODUCER_EPOCH")

    def hides(api: int, fields: dict[str, Any]) -> None:
        fields["responses"][0]["partitions"][0]["aborted_transactions"] = ()

    proxy.change = fences
    clients.one(app.me, offer.PRODUCE, 9, app.batch(0, b"c"))
    proxy.change = hides
    clients.one(app.me, offer.FETCH, 12, fetched(0, level=1))
    proxy.change = changed_logs(lambda partition: partition.update(last_stable_offset=9))
    clients.one(app.me, offer.FETCH, 12, fetched(2, level=0))
    proxy.change = lambda api, fields: None
    assert sorted(proxy.over()) == ["FencedForAReason", "ReadBound"]


def test_partitions_and_coordinators_that_do_not_answer_are_said() -> None:
    """What cannot be judged is not judged: neither is a hanging transaction."""
    proxy, clients = before_brokers()
    assert Producer(clients).write(0, b"a") == 0

    def nobody(api: int, fields: dict[str, Any]) -> None:
        for row in fields.get("coordinators", ()):
            row["error_code"] = code("COORDINATOR_NOT_AVAILABLE")
        for row in fields["topics"] if api == offer.METADATA else ():
            for partition in row["partitions"]:
                partition["leader_id"] = -1

    proxy.change = nobody
    assert proxy.over() == {}
    assert proxy.proxy.unjudged()[:2] == (
        "t-0 could not be read to its end (no leader answered): P1 to P6, P9 and P11 are not judged there",
        "the coordinator of app did not describe it: P5, P7 and P8 are not judged of it")


def test_batches_of_an_old_format_are_said_not_to_be_judged() -> None:
    proxy, clients = before_brokers()
    assert Producer(clients).write(0, b"a") == 0
    proxy.change = changed_logs(lambda partition: partition.update(
        records=partition["records"][:16] + b"\x01" + partition["records"][17:]))
    assert proxy.over() == {}
    assert proxy.proxy.unjudged()[0].startswith("t-0 could not be read to its end (a batch of message format 1")


@pytest.mark.parametrize(("plan", "said"), [
    ("elect t-0", "elect is not possible in front of another cluster, whose brokers do not hear the proxy"),
    ("shut_down b1", "shut_down is not possible in front of another cluster"),
    ("partition b1 b2", "partition of two brokers is not possible in front of another cluster"),
    ("delay EndTxm", "clients send no request 'EndTxm'; did you mean EndTxn?"),
    ("crash b3", "there is no broker 'b3'; there are b1, b2"),
])
def test_what_a_proxy_cannot_do_is_refused(plan: str, said: str) -> None:
    proxy = BeforeBrokers(brokers=2).proxy
    with pytest.raises(Refusal) as refused:
        read_plan(plan, 0, proxy.settings, proxy.offer)
    assert said in str(refused.value)
