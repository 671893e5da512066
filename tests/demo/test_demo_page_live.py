"""`serve --page` in a browser: what librdkafka does is drawn while it does it, and faults begin from the page."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.demo.browser import Tab
from support.gateway.serve_process import live

pytest.importorskip("kio", reason="needs the extra `gateway`")
confluent_kafka = pytest.importorskip("confluent_kafka", reason="needs the extra `clients`")

pytestmark = pytest.mark.browser
PATIENCE = 20.0
SIZES = ((1280, 800), (900, 700))


class Shop(threading.Thread):
    """A producer that commits transaction after transaction until it is told to end; it aborts what does not work."""

    def __init__(self, servers: str) -> None:
        super().__init__()
        self.servers = servers
        self.over = threading.Event()
        self.commits = 0

    def run(self) -> None:
        producer = confluent_kafka.Producer({
            "bootstrap.servers": self.servers, "transactional.id": "shop", "client.id": "shop", "log_level": 0,
            "socket.timeout.ms": 2000})  # of a broker that is cut off
        producer.init_transactions(PATIENCE)
        while not self.over.wait(0.3):
            producer.begin_transaction()
            for partition in range(2):
                producer.produce("orders", b"order %d" % self.commits, partition=partition)
            try:
                producer.commit_transaction(PATIENCE)
                self.commits += 1
            except confluent_kafka.KafkaException:
                producer.abort_transaction(PATIENCE)

    def goes_on(self) -> None:
        """Wait until a transaction is committed that has begun from now on."""
        least, end = self.commits + 2, time.monotonic() + PATIENCE
        while self.commits < least:
            assert self.is_alive() and time.monotonic() < end, "the producer waits in vain"
            time.sleep(0.02)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Iterator[tuple[Tab, Shop]]:
    """Three brokers with a client, and a tab that shows them; a picture of each size is left beside the trail."""
    folder = tmp_path_factory.mktemp("live")
    with live("orders=2", "--brokers", "3", folder=folder) as (address, servers):
        shop = Shop(servers)
        shop.start()
        context = chromium.new_context(viewport={"width": 1280, "height": 800})
        tab = Tab(context.new_page(), address)
        try:
            tab.until("store.steps.some((one) => one.action === 'EndTxn commit')")
            yield tab, shop
            assert tab.troubles == []
        finally:
            shop.over.set()
            shop.join()
            context.close()


def deed(tab: Tab, label: str) -> None:
    """Click what may be done, in the list of all of it."""
    tab.page.locator("#tab-now").click()
    tab.page.locator("#choose-sort").select_option("")
    tab.page.locator(f'[data-list="enabled"] [data-label="{label}"]').click()


def broker(tab: Tab, name: str, button: str, choice: str = "") -> None:
    """Press a button of a broker, and choose from what it offers."""
    tab.page.locator("#tab-actors").click()
    tab.page.locator(f'.actor:has(.actor-text:text-is("{name}")) [data-deed="{button}"]').click()
    if choice:
        tab.page.locator(".menu").get_by_text(choice, exact=True).click()


def test_what_a_client_does_is_drawn(shown: tuple[Tab, Shop], tmp_path: Path) -> None:
    """Requests and answers are arrows between the lifelines of the client and its brokers, at each size and theme."""
    tab, _ = shown
    heads = tab.page.eval_on_selector_all("#heads [data-lane]", "all => all.map((one) => one.dataset.lane)")
    assert heads == ["shop", "b1", "b2", "b3", "environment"]
    for wide, high in SIZES:
        tab.page.set_viewport_size({"width": wide, "height": high})
        for _ in ("light", "dark"):
            tab.page.keyboard.press("Shift+D")
            tab.page.locator(".named text", has_text="EndTxn commit").first.wait_for()
            assert tab.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
            assert len(tab.page.screenshot(path=str(tmp_path / f"{wide}.png"))) > 10_000
    tab.page.set_viewport_size({"width": 1280, "height": 800})


def test_a_request_is_held_and_released(shown: tuple[Tab, Shop]) -> None:
    """The commit waits in flight, and the client with it, until a click on its button."""
    tab, shop = shown
    deed(tab, "Hold the next EndTxn")
    tab.until("store.present.in_flight.some((one) => one.state === 'held')")
    commits = shop.commits
    time.sleep(0.6)
    assert shop.commits == commits
    tab.page.locator('.message [data-verb="release"]:not(:disabled)').first.click()
    tab.until("store.present.in_flight.every((one) => one.state !== 'held')")
    shop.goes_on()


def test_a_request_is_dropped(shown: tuple[Tab, Shop]) -> None:
    """Its arrow ends in a cross, the client sends the records again, and they are there once."""
    tab, shop = shown
    deed(tab, "Drop the next Produce")
    tab.until("store.steps.some((one) => one.taken.some(({ how }) => how === 'dropped'))")
    shop.goes_on()
    logs = tab.page.request.get(f"{tab.address}api/logs?step={tab.known('store.present.step')}").json()["logs"]
    texts = [entry["text"] for entry in logs[0]["entries"] if entry["text"].startswith("order")]
    assert len(texts) == len(set(texts)) and "order 0" in texts


def test_a_broker_crashes_with_a_slow_disk(shown: tuple[Tab, Shop]) -> None:
    """Its head says so, others lead what it led, and clients go on; the disk's mark goes when it is mended."""
    tab, shop = shown
    broker(tab, "b2", "Slow disk")
    tab.page.wait_for_selector('#heads [data-lane="b2"][aria-label*="disk writes nothing"]')
    shop.goes_on()
    broker(tab, "b2", "Crash", "Crash b2")
    tab.until("store.present.gates.b2?.status === 'down'")
    shop.goes_on()
    broker(tab, "b2", "Restart")
    tab.until("!store.present.gates.b2")
    broker(tab, "b2", "Mend disk")
    tab.page.wait_for_selector('#heads [data-lane="b2"]:not([aria-label*="disk"])')
    sorts = set(tab.known("store.steps.map((one) => one.sort)"))
    assert {"slow_disk", "fast_disk", "crash", "restart"} <= sorts
    shop.goes_on()


def test_another_broker_is_elected_and_one_is_cut_off(shown: tuple[Tab, Shop]) -> None:
    """By a chip below the present; the client finds the new leader."""
    tab, shop = shown
    tab.page.locator('.chip[title="Elect orders-1"]').click()
    tab.until("store.steps.some((one) => one.label === 'elect orders-1')")
    shop.goes_on()
    broker(tab, "b3", "Cut off")
    tab.until("store.present.gates.b3?.partitioned_from.length > 0")
    shop.goes_on()
    broker(tab, "b3", "Heal")
    tab.until("!store.present.gates.b3")
    assert tab.known("Object.values(store.present.properties).every((one) => one.ok)")
