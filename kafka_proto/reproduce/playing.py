"""A schedule played: librdkafka makes the calls, a proxy lets requests come late, and the broker's logs are read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import attrs
import trio

from harness.model import Refusal
from kafka_proto.broker.ghosts import Cause
from kafka_proto.conformance.at_broker import await_coordinators, new_run, pauses
from kafka_proto.conformance.player import as_batch
from kafka_proto.conformance.situations import Situation
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.front import Front
from kafka_proto.gateway.inputs import Fronted, Input, Output, Settings, Started
from kafka_proto.gateway.outside import Address
from kafka_proto.gateway.proxying import proxying
from kafka_proto.gateway.server import Seen, Server, wall_clock_ms
from kafka_proto.reproduce import librdkafka
from kafka_proto.reproduce.judging import ApplicationLedger, ObservedLog, named
from kafka_proto.reproduce.schedule import Arrives, Comes, Event, Late, Schedule, ScheduledCall, Settled
from kafka_proto.requests import partition_index, topic_of

LATE_SECONDS = 30.0
"""That a request may take to come, or to be answered."""
QUIET_SECONDS = 1.0
"""After the last event, for the markers that it causes."""
SHORT_MS, LONG_MS = 1_000, 60_000
"""How long librdkafka waits for an answer where the schedule gives a connection up, and where not."""
DELIVERY_MS = 3_000
MOST_CRASHES = 5
"""Of librdkafka, after which it is given up. `rd_kafka_txn_set_state` aborts where it meets an order that it takes for
impossible."""
PROGRAM = (sys.executable, "-m", librdkafka.__name__)


class Crashed(Exception):
    """librdkafka has ended while a schedule was played."""


@attrs.define
class Librdkafka:
    """The program that makes the calls. It is killed in the end: calls that were given up are not waited for."""

    process: trio.Process
    waiting: dict[int, tuple[trio.Event, list[str]]] = attrs.field(factory=dict)
    asked: int = 0

    async def call(self, action: str, **arguments: Any) -> str:
        """Make a call and return what it raised, in words; nothing if it did not. Never where the program ended."""
        self.asked += 1
        number, (event, heard) = self.asked, self.waiting.setdefault(self.asked, (trio.Event(), []))
        assert self.process.stdin is not None
        with suppress(trio.BrokenResourceError):
            await self.process.stdin.send_all(json.dumps([number, action, arguments]).encode() + b"\n")
        await event.wait()
        return heard[0]

    async def listen(self) -> int:
        """Take answers until the program ends, and return its exit code."""
        assert self.process.stdout is not None
        data = b""
        async for piece in self.process.stdout:
            *lines, data = (data + bytes(piece)).split(b"\n")
            for line in lines:
                number, error = json.loads(line)
                event, heard = self.waiting.pop(number)
                heard.append(error)
                event.set()
        return await self.process.wait()


@attrs.define
class HeldRequest:
    """A request that is to come late, or never, by a fault that begins with its producer's call."""

    late: Late
    fault: int = 0
    """Its number, once it has begun."""
    request: WireRequest | None = None
    came: trio.Event = attrs.field(factory=trio.Event)
    answered: trio.Event = attrs.field(factory=trio.Event)

    def look(self, front: Front) -> None:
        """Note what an input made of it: that it came, or that the broker answered it."""
        for rule in front.faults.rules:
            if rule.fault.number == self.fault and rule.seen >= rule.fault.nth:
                self.came.set()
        for held in front.faults.held:
            if held.number == self.fault and self.request is None:
                self.request = held.requests[0][0]
        if any(each.answer is not None and each.request is self.request for each in front.exchanged):
            self.answered.set()


@attrs.define
class Application:
    """The producers and what they did: `call` makes a call, and returns when the next event may come."""

    schedule: Schedule
    servers: str
    prefix: str
    nursery: trio.Nursery
    librdkafka: Librdkafka
    proxy: Server
    helds: list[HeldRequest]
    calls: list[ScheduledCall] = attrs.field(factory=list)
    operations: dict[str, trio.Event] = attrs.field(factory=dict)
    """What each producer waits for."""
    answered: dict[str, str] = attrs.field(factory=dict)
    heard: list[str] = attrs.field(factory=list)
    """What calls raised, in words."""
    failed: str = ""
    """Why the schedule could not be played to its end."""
    ended: str = ""
    """How librdkafka ended, where it did."""

    async def call(self, call: ScheduledCall) -> None:
        """Make a call once the producer's earlier one is over; what asks a broker goes on in a thread."""
        await self.over(call.producer)
        self._expect(call.producer)
        self.calls.append(call)
        if call.action in ("BeginTransaction", "Send"):
            await self._make(call)
        else:
            self.operations[call.producer] = trio.Event()
            self.nursery.start_soon(self._operate, call)

    def _expect(self, producer: str) -> None:
        """Let faults begin that are about a producer's next call, and those end that its last one did not meet."""
        for held in self.helds:
            if held.late.producer == producer and held.fault and not held.came.is_set():
                self.proxy.end(held.fault)
            if held.late.producer == producer and held.late.call == len(self.calls):
                held.fault = self.proxy.inject("drop" if held.late.is_lost else "delay", request=held.late.api,
                                               nth=held.late.nth, client=producer)

    async def settle(self, producer: str) -> None:
        """Wait until what a producer waits for is answered, what it wrote included."""
        if producer in self.operations:
            await self.over(producer)
        else:
            await self.librdkafka.call("Flush", producer=producer)

    async def over(self, producer: str) -> None:
        """Wait until a producer's call has returned."""
        if producer in self.operations:
            await self.operations[producer].wait()

    async def watch(self) -> None:
        """End the play when librdkafka ends, which it does when it crashes."""
        code = await self.librdkafka.listen()
        self.ended = f"librdkafka ended with exit code {code} while the schedule was played"
        self.nursery.cancel_scope.cancel()

    async def _operate(self, call: ScheduledCall) -> None:
        await self._make(call)
        self.operations.pop(call.producer).set()

    async def _make(self, call: ScheduledCall) -> None:
        heard = await self.librdkafka.call(call.action, producer=call.producer, **self._arguments(call))
        if heard:
            self.heard.append(f"{call}: {heard}")
        elif call.ends:
            self.answered[named(call)] = call.ends

    def _arguments(self, call: ScheduledCall) -> dict[str, Any]:
        """Return what a call says besides its producer."""
        if call.action == "InitTransactions":
            return {"settings": self._settings(call.producer)}
        if call.action == "Send":
            topic, index = self.prefix + topic_of(call.partition), partition_index(call.partition)
            return {"topic": topic, "partition": index, "record": call.record}
        return {}

    def _settings(self, producer: str) -> dict[str, Any]:
        gives_up = self.schedule.gives_up
        return {
            "bootstrap.servers": self.servers, "client.id": producer,
            "transactional.id": self.prefix + dict(self.schedule.tids)[producer],
            "socket.timeout.ms": SHORT_MS if gives_up else LONG_MS, "transaction.timeout.ms": LONG_MS,
            "message.timeout.ms": DELIVERY_MS if "DeliveryTimeout" in gives_up else LONG_MS, "linger.ms": 0,
        }


@attrs.frozen
class Played:
    """The result of it."""

    ledger: ApplicationLedger
    logs: Mapping[str, ObservedLog]
    heard: tuple[str, ...]


def play(schedule: Schedule, host: str, port: int, progress: Callable[[str], None]) -> Played:
    """Play a schedule against the broker at an address; `progress` hears of each event. Raises Refusal and OSError.

    Where librdkafka crashes, which its bugs let it do, of late answers among others, it is played again.
    """
    for crashes in count(1):
        try:
            return _played_once(schedule, host, port, progress)
        except Crashed as error:
            if crashes == MOST_CRASHES:
                raise Refusal(f"{error}, {crashes} times; another version of confluent-kafka may do better") from None
            progress(f"{error}; trying again")
    raise AssertionError("counting has no end")


def _played_once(schedule: Schedule, host: str, port: int, progress: Callable[[str], None]) -> Played:
    """Play a schedule in topics of its own."""
    with Client(host, port) as client:
        name = f"{new_run(client)}-0"
        run = Situation(client.ask, pauses(), name, wall_clock_ms())
        await_coordinators(client)
        run.create_topic(1 + max(partition_index(partition) for partition in schedule.partitions))
        application = trio.run(_played, schedule, (host, port), f"{name}.", progress)
        if application.ended:
            raise Crashed(application.ended)
        if application.failed:
            raise Refusal(application.failed)
        logs = {partition: _log(run, partition_index(partition)) for partition in schedule.partitions}
    ledger = ApplicationLedger(tuple(application.calls), application.answered, dict(schedule.tids))
    return Played(ledger, logs, tuple(application.heard))


@asynccontextmanager
async def _librdkafka() -> AsyncIterator[Librdkafka]:
    process = await trio.lowlevel.open_process(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Librdkafka(process)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def _played(
    schedule: Schedule, broker: Address, prefix: str, progress: Callable[[str], None]
) -> Application:
    helds = [HeldRequest(late) for late in schedule.lates]

    def watch(front: Front, started: Started | Fronted) -> Seen:
        def see(given: Input, outputs: list[Output]) -> None:
            for held in helds:
                held.look(front)

        return see

    async with _librdkafka() as program, proxying(broker, Settings(), watch, lambda proxy: []) as (
            server, nursery, servers):
        application = Application(schedule, servers, prefix, nursery, program, server, helds)
        nursery.start_soon(application.watch)
        for event in schedule.events:
            progress(_said(event))
            if isinstance(event, ScheduledCall):
                await application.call(event)
            elif isinstance(event, Settled):
                await application.settle(event.producer)
            elif problem := await _late(next(held for held in helds if held.late == event.late), event, server):
                application.failed = problem
                break
        else:
            await trio.sleep(QUIET_SECONDS)
    return application


async def _late(held: HeldRequest, event: Comes | Arrives, proxy: Server) -> str:
    """Wait for a late request, or let it arrive and be answered; return what was in the way, if anything."""
    if isinstance(event, Arrives):
        proxy.end(held.fault)
    with trio.move_on_after(LATE_SECONDS):
        await (held.came if isinstance(event, Comes) else held.answered).wait()
        return ""
    return (f"the late {held.late.api} of {held.late.producer} was not "
            f"{'sent' if isinstance(event, Comes) else 'answered'} within {LATE_SECONDS:.0f} s; librdkafka differs "
            "from the client of the trail here")


def _log(run: Situation, partition: int) -> ObservedLog:
    """Return a partition as a reader of all records gets it, its ends as one of committed records does."""
    whole, committed = (run.fetch(partition, 0, level) for level in ("read_uncommitted", "read_committed"))
    made = (as_batch(row, run.symbols.producer_id(row[1])) for row in whole["batches"])
    batches = tuple(batch if batch.marker is None else attrs.evolve(batch, records=(Cause(batch.marker, ""),))
                    for batch in made)
    return ObservedLog(batches, whole["high_watermark"], committed["last_stable_offset"])


def _said(event: Event) -> str:
    if isinstance(event, Settled):
        return f"{event.producer} has its answer"
    if isinstance(event, ScheduledCall):
        return str(event)
    return f"the late {event.late.api} {'is sent' if isinstance(event, Comes) else 'arrives'}"
