"""A schedule played: librdkafka makes the calls, a proxy lets requests come late, and the broker's logs are read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs
import confluent_kafka
import trio

from harness.model import Refusal
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.conforming import await_coordinators, new_run, pauses
from kafka_proto.gateway.fetched import batches, text
from kafka_proto.gateway.server import wall_clock_ms
from kafka_proto.gateway.situations import Situation
from kafka_proto.reproduce.forwarding import Address
from kafka_proto.reproduce.judging import Batch, Ledger, Log, named
from kafka_proto.reproduce.proxy import Held, Proxy, chooser
from kafka_proto.reproduce.schedule import Arrives, Call, Comes, Event, Schedule, Settled
from kafka_proto.requests import partition_index, topic_of

CALL_SECONDS = 30.0
"""That a call of librdkafka may take at most."""
LATE_SECONDS = 30.0
"""That a request may take to come, or to be answered."""
QUIET_SECONDS = 1.0
"""After the last event, for the markers that it causes."""
SHORT_MS, LONG_MS = 1_000, 60_000
"""How long librdkafka waits for an answer where the schedule gives a connection up, and where not."""
DELIVERY_MS = 3_000
SILENCE = logging.Logger("librdkafka", level=logging.CRITICAL + 1)
"""For librdkafka's own messages, which speak of connections that are given up on purpose."""


@attrs.define
class Application:
    """The producers and what they did: `call` makes a call, and returns when the next event may come."""

    schedule: Schedule
    servers: str
    prefix: str
    nursery: trio.Nursery
    producers: dict[str, Any] = attrs.field(factory=dict)
    calls: list[Call] = attrs.field(factory=list)
    begun: dict[str, int] = attrs.field(factory=dict)
    """Which call of the schedule each producer made last."""
    operations: dict[str, trio.Event] = attrs.field(factory=dict)
    """What each producer waits for."""
    answered: dict[str, str] = attrs.field(factory=dict)
    heard: list[str] = attrs.field(factory=list)
    """What calls raised, in words."""
    failed: str = ""
    """Why the schedule could not be played to its end."""

    async def call(self, call: Call) -> None:
        """Make a call once the producer's earlier one is over; what asks a broker goes on in a thread."""
        await self.over(call.producer)
        self.begun[call.producer] = len(self.calls)
        self.calls.append(call)
        work = self._work(call)
        if call.action in ("BeginTransaction", "Send"):
            self._try(call, work)
        else:
            self.operations[call.producer] = trio.Event()
            self.nursery.start_soon(self._operate, call, work)

    async def settle(self, producer: str) -> None:
        """Wait until what a producer waits for is answered, what it wrote included."""
        if producer in self.operations:
            await self.over(producer)
        else:
            await trio.to_thread.run_sync(self.producers[producer].flush, CALL_SECONDS)

    async def over(self, producer: str) -> None:
        """Wait until a producer's call has returned."""
        if producer in self.operations:
            await self.operations[producer].wait()

    async def _operate(self, call: Call, work: Callable[[], Any]) -> None:
        is_over = self.operations[call.producer]
        await trio.to_thread.run_sync(self._try, call, work, abandon_on_cancel=True)
        del self.operations[call.producer]
        is_over.set()

    def _try(self, call: Call, work: Callable[[], Any]) -> None:
        try:
            work()
        except confluent_kafka.KafkaException as error:
            self.heard.append(f"{call}: {error.args[0].str()}")
        else:
            if call.ends:
                self.answered[named(call)] = call.ends

    def _work(self, call: Call) -> Callable[[], Any]:
        """Return what librdkafka is asked for."""
        if call.action == "InitTransactions":
            self.producers[call.producer] = confluent_kafka.Producer(self._settings(call.producer))
        producer = self.producers[call.producer]
        if call.action == "Send":
            return partial(producer.produce, self.prefix + topic_of(call.partition), call.record.encode(),
                           partition=partition_index(call.partition))
        work: dict[str, Callable[[], Any]] = {
            "InitTransactions": partial(producer.init_transactions, CALL_SECONDS),
            "BeginTransaction": producer.begin_transaction,
            "CommitTransaction": partial(producer.commit_transaction, CALL_SECONDS),
            "AbortTransaction": partial(producer.abort_transaction, CALL_SECONDS),
        }
        return work[call.action]

    def _settings(self, producer: str) -> dict[str, Any]:
        gives_up = self.schedule.gives_up
        return {
            "bootstrap.servers": self.servers, "client.id": producer,
            "transactional.id": self.prefix + dict(self.schedule.tids)[producer],
            "socket.timeout.ms": SHORT_MS if gives_up else LONG_MS, "transaction.timeout.ms": LONG_MS,
            "message.timeout.ms": DELIVERY_MS if "DeliveryTimeout" in gives_up else LONG_MS, "linger.ms": 0,
            "logger": SILENCE,
        }


@attrs.frozen
class Played:
    """What came of it."""

    ledger: Ledger
    logs: Mapping[str, Log]
    heard: tuple[str, ...]


def play(schedule: Schedule, host: str, port: int, progress: Callable[[str], None]) -> Played:
    """Play a schedule against the broker at an address; `progress` hears of each event. Raises Refusal and OSError."""
    with Client(host, port) as client:
        name = f"{new_run(client)}-0"
        run = Situation(client.ask, pauses(), name, wall_clock_ms())
        await_coordinators(client)
        run.create_topic(1 + max(partition_index(partition) for partition in schedule.partitions))
        application = trio.run(_played, schedule, (host, port), f"{name}.", progress)
        if application.failed:
            raise Refusal(application.failed)
        logs = {partition: _log(run, partition_index(partition)) for partition in schedule.partitions}
    ledger = Ledger(tuple(application.calls), application.answered, dict(schedule.tids))
    return Played(ledger, logs, tuple(application.heard))


async def _played(
    schedule: Schedule, broker: Address, prefix: str, progress: Callable[[str], None]
) -> Application:
    helds = [Held(late) for late in schedule.lates]
    async with trio.open_nursery() as nursery:
        application = Application(schedule, "", prefix, nursery)
        proxy = Proxy(chooser(helds, lambda producer: application.begun.get(producer, -1)))
        mine = await proxy.listen(nursery, broker)
        application.servers = f"{mine[0]}:{mine[1]}"
        for event in schedule.events:
            progress(_said(event))
            if isinstance(event, Call):
                await application.call(event)
            elif isinstance(event, Settled):
                await application.settle(event.producer)
            elif problem := await _late(next(held for held in helds if held.late == event.late), event):
                application.failed = problem
                break
        else:
            await trio.sleep(QUIET_SECONDS)
        nursery.cancel_scope.cancel()
    return application


async def _late(held: Held, event: Comes | Arrives) -> str:
    """Wait for a late request, or let it arrive and be answered; return what was in the way, if anything."""
    if isinstance(event, Arrives):
        held.may_arrive.set()
    with trio.move_on_after(LATE_SECONDS):
        await (held.came if isinstance(event, Comes) else held.answered).wait()
        return ""
    return (f"the {held.late.api} of {held.late.producer} that comes late was not "
            f"{'sent' if isinstance(event, Comes) else 'answered'} within {LATE_SECONDS:.0f} s; librdkafka does "
            "otherwise than the client of the trail")


def _log(run: Situation, partition: int) -> Log:
    """Return a partition as a reader of all records gets it, its ends as one of committed records does."""
    found = run.fetch(partition, 0, "read_uncommitted")
    committed = run.fetch(partition, 0, "read_committed")
    return Log(tuple(
        Batch(header.base_offset, header.producer_id, header.is_control, tuple(text(header, one) for one in records))
        for header, records in batches(found)
    ), found["high_watermark"], committed["last_stable_offset"])


def _said(event: Event) -> str:
    if isinstance(event, Settled):
        return f"{event.producer} has its answer"
    if isinstance(event, Call):
        return str(event)
    return f"the {event.late.api} that is late {'is sent' if isinstance(event, Comes) else 'arrives'}"
