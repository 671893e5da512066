"""An application's inputs have one committed output each: by what its group and its producer committed together."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, adding, fetched, initializing, owner_in, produced, talk

from harness.model import Refusal
from kafka_proto.gateway import offer
from kafka_proto.gateway.applications import declared
from kafka_proto.gateway.records import WireRecord, write_batch

APPLICATION = "orders to payments group=g"


class Shop:
    """An application that reads `orders`, by its requests; each has its key, a payment that of its order."""

    def __init__(self, by: str = "key", orders: int = 2) -> None:
        self.clients: Talk = talk({"orders": 1, "payments": 1}, applications=declared(f"{APPLICATION} by={by}"))
        self.here = self.clients.connect()
        self.sequence = 0
        self.owner = owner_in(self.ask(offer.INIT_PRODUCER_ID, 4, initializing("shop")))
        for index in range(orders):
            self.write("orders", WireRecord(b"k%d" % index, b"order"))
        self.ask(offer.OFFSET_FETCH, 8, {"groups": ({"group_id": "g", "topics": None},)})
        self.ask(offer.FETCH, 12, {**fetched(0), "topics": ({**fetched(0)["topics"][0], "topic": "orders"},)})

    def ask(self, api: int, version: int, message: dict[str, Any]) -> dict[str, Any]:
        return self.clients.one(self.here, api, version, message)

    def write(self, topic: str, record: WireRecord) -> None:
        """Write outside a transaction."""
        self.ask(offer.PRODUCE, 9, produced((0, write_batch((record,), base_timestamp=5)), topic=topic))

    def pay(self, index: int, header: str | None = None) -> None:
        """Write the payment of an order into the transaction."""
        add = adding("shop", self.owner, 0)
        self.ask(offer.ADD_PARTITIONS_TO_TXN, 3, {**add, "v3_and_below_topics": ({
            "name": "payments", "partitions": (0,)},)})
        headers = () if header is None else (("source", header.encode()),)
        batch = write_batch((WireRecord(b"k%d" % index, b"paid", headers),), base_timestamp=5, is_transactional=True,
                            base_sequence=self.sequence, **self.owner)
        self.sequence += 1
        self.ask(offer.PRODUCE, 9, produced((0, batch), topic="payments", tid="shop"))

    def commit_offset(self, offset: int, inside: bool = True) -> None:
        topics = ({"name": "orders", "partitions": ({"partition_index": 0, "committed_offset": offset},)},)
        if inside:
            self.ask(offer.ADD_OFFSETS_TO_TXN, 3, {"transactional_id": "shop", **self.owner, "group_id": "g"})
            self.ask(offer.TXN_OFFSET_COMMIT, 3, {
                "transactional_id": "shop", **self.owner, "group_id": "g", "generation_id": -1, "member_id": "",
                "topics": topics})
        else:
            self.ask(offer.OFFSET_COMMIT, 8, {
                "group_id": "g", "member_id": "", "generation_id_or_member_epoch": -1, "topics": topics})

    def end(self, committed: bool = True) -> None:
        self.ask(offer.END_TXN, 3, {"transactional_id": "shop", **self.owner, "committed": committed})

    def delete(self, topic: str, offset: int) -> None:
        """Delete the records of a topic that are before an offset."""
        self.ask(offer.DELETE_RECORDS, 2, {"timeout": 1, "topics": ({"name": topic, "partitions": (
            {"partition_index": 0, "offset": offset},)},)})

    @property
    def verdict(self) -> str:
        return self.clients.host.problems().get("ExactlyOnce", "")


def test_outputs_and_offsets_in_one_transaction_are_exactly_once() -> None:
    """Two orders in two transactions, an aborted one between them: nothing is wrong, at any time."""
    shop = Shop()
    for index, committed in ((0, True), (1, False), (1, True)):
        shop.pay(index)
        shop.commit_offset(index + 1)
        assert shop.verdict == ""
        shop.end(committed)
        assert shop.verdict == ""


def test_an_offset_outside_the_transaction_of_its_output_is_found_without_a_crash() -> None:
    """Before the output is committed, the offset alone would skip its order; after it, the two are apart."""
    shop = Shop(orders=1)
    shop.pay(0)
    shop.commit_offset(1, inside=False)
    assert shop.verdict == ("orders-0 offset 0 was skipped: its offset was committed outside a transaction, and it has "
                            "no committed output")
    shop.end()
    assert shop.verdict == (
        "orders-0 offset 0: its output payments-0 offset 0 was committed by shop#1, its offset outside a transaction; "
        "a crash between the two would do it twice, or skip it")


def test_an_output_whose_offset_is_not_committed() -> None:
    """The next one that reads the order does it again, and that is twice."""
    shop = Shop(orders=1)
    shop.pay(0)
    shop.end()
    assert "was committed by shop#1, and its offset is not; a crash" in shop.verdict
    shop.pay(0)
    shop.commit_offset(1)
    shop.end()
    assert shop.verdict == ("orders-0 offset 0 was done twice: payments-0 offset 0 by shop#1, payments-0 offset 2 by "
                            "shop#2; its offset was committed by shop#2")


def test_outputs_and_inputs_that_are_deleted_still_count() -> None:
    """A payment that is gone was made; one that is made again for an order that is there is found, and stays found."""
    shop = Shop(orders=3)
    for index in range(2):
        shop.pay(index)
        shop.commit_offset(index + 1)
        shop.end()
    shop.delete("payments", 4)
    assert shop.verdict == ""
    shop.delete("orders", 1)
    assert shop.verdict == "" and shop.clients.host.observed.watched.gone is not None
    shop.pay(1)
    shop.end()
    found = ("orders-0 offset 1 was done twice: payments-0 offset 2 by shop#2, payments-0 offset 4 by shop#3; its "
             "offset was committed by shop#2")
    assert shop.verdict == found
    shop.delete("orders", 3)
    shop.delete("payments", -1)
    assert shop.verdict == found and shop.clients.host.observed.watched.gone is None


def test_an_output_outside_transactions() -> None:
    """It counts as one."""
    shop = Shop(orders=1)
    shop.write("payments", WireRecord(b"k0", b"paid"))
    shop.commit_offset(1)
    shop.end()
    assert "payments-0 offset 0 was committed outside a transaction, its offset by shop#1" in shop.verdict


def test_an_order_that_nobody_has_read_is_not_missed() -> None:
    """The group begins where its reader does; orders behind its offset are to come."""
    shop = Shop(orders=3)
    shop.pay(0)
    shop.commit_offset(1)
    shop.end()
    assert shop.verdict == ""


def test_an_output_may_name_its_input_in_a_header() -> None:
    """As `orders-0@1`, where keys say nothing."""
    shop = Shop(by="header:source")
    shop.pay(7, "orders-0@0")
    shop.pay(7, "orders-0@1")
    shop.commit_offset(2)
    shop.end()
    assert shop.verdict == ""
    shop.pay(7, "orders-0@0")
    shop.end()
    assert shop.verdict.startswith("orders-0 offset 0 was done twice")


@pytest.mark.parametrize("wrong", ["", "orders", "orders to payments", "a to b group=g by=luck", "a to b group=g; c"])
def test_an_application_is_declared_in_words(wrong: str) -> None:
    """What is no declaration is refused with an example."""
    with pytest.raises(Refusal, match="an application should be declared as 'orders to payments group=billing by=key'"):
        declared(wrong)
