"""The proxy between a client and brokers over sockets: what is forwarded, renamed, held back and lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

import trio
from support.commands.command_line import PATIENCE_S, wait_until

from kafka_proto.gateway.client import CLIENT_ID, Client
from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.offer import FIND_COORDINATOR, INIT_PRODUCER_ID, METADATA
from kafka_proto.reproduce.proxy import HeldRequest, Proxy, api_of, asked, chooser, renamed
from kafka_proto.reproduce.schedule import Late

INIT = {"transactional_id": "shop", "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
Do = Callable[[Callable[[], Any]], Any]


@contextmanager
def proxied(*lates: Late) -> Iterator[tuple[Any, list[HeldRequest], Do]]:
    """Yield where clients find brokers through a proxy, what it holds back, and what calls something on its thread."""
    helds, ready, over = list[HeldRequest](), threading.Event(), list[trio.Event]()
    place: list[Any] = []

    async def run(broker: tuple[str, int]) -> None:
        helds.extend(HeldRequest(late) for late in lates)
        over.append(trio.Event())
        place.append(trio.lowlevel.current_trio_token())
        async with trio.open_nursery() as nursery:
            place.append(await Proxy(chooser(helds, lambda _: 0)).listen(nursery, broker))
            ready.set()
            await over[0].wait()
            nursery.cancel_scope.cancel()

    with KafkaCluster({"orders": 2}, brokers=2) as cluster:
        host, _, port = cluster.bootstrap_servers.split(",")[0].rpartition(":")
        thread = threading.Thread(target=trio.run, args=(run, (host, int(port))))
        thread.start()
        assert ready.wait(PATIENCE_S)
        try:
            yield place[1], helds, lambda what: trio.from_thread.run_sync(what, trio_token=place[0])
        finally:
            trio.from_thread.run_sync(over[0].set, trio_token=place[0])
            thread.join()


def test_brokers_are_where_the_proxy_listens() -> None:
    """Every broker that an answer names is reached through the proxy, and answers there, too."""
    with proxied() as (address, _, _), Client(*address) as client:
        brokers = client.ask(METADATA, 8, {"topics": None})["brokers"]
        assert len({broker["port"] for broker in brokers}) == 2 and address[1] in {b["port"] for b in brokers}
        found = client.ask(FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": ("shop",)})["coordinators"]
        with Client(found[0]["host"], found[0]["port"]) as other:
            again = other.ask(METADATA, 8, {"topics": None})["brokers"]
        assert again == brokers


def test_what_is_held_back_arrives_after_its_client_has_gone() -> None:
    """Held, asked again on another connection, given up, released: the broker has then been asked twice."""
    with proxied(Late(CLIENT_ID, "InitProducerId", 0, 1)) as (address, (held,), do):
        with pytest.raises(OSError), Client(*address, 0.5) as client:
            client.ask(INIT_PRODUCER_ID, 4, INIT)
        wait_until(lambda: do(held.came.is_set))
        with Client(*address) as client:
            assert client.ask(INIT_PRODUCER_ID, 4, INIT)["producer_epoch"] == 0
            do(held.may_arrive.set)
            wait_until(lambda: do(held.answered.is_set))
            assert client.ask(INIT_PRODUCER_ID, 4, INIT)["producer_epoch"] == 2


def test_what_is_lost_ends_its_connection_and_never_arrives() -> None:
    """The client sees a closed connection; the broker was never asked."""
    with proxied(Late(CLIENT_ID, "InitProducerId", 0, 1, is_lost=True)) as (address, _, _):
        with pytest.raises(OSError), Client(*address) as client:
            client.ask(INIT_PRODUCER_ID, 4, INIT)
        with Client(*address) as client:
            assert client.ask(INIT_PRODUCER_ID, 4, INIT)["producer_epoch"] == 0


def test_other_answers_go_through_as_they_are() -> None:
    """Only what names brokers is read at all."""
    head = asked(b"\x00\x16\x00\x04\x00\x00\x00\x09\x00\x02c1\x00rest")
    assert (api_of(head), head.version, head.correlation_id, head.client_id) == ("InitProducerId", 4, 9, "c1")
    assert renamed(b"anything", head, lambda address: address) == b"\x00\x00\x00\x08anything"
