"""Brokers of this project with their clients.

Each input has its time with it; brokers come to rest before the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.messages import Request
from kafka_proto.broker.versions import BrokerVersion, version_of
from kafka_proto.cluster import retention
from kafka_proto.cluster.failures import Leadership
from kafka_proto.cluster.running import RunningCluster
from kafka_proto.gateway import offer as apis
from kafka_proto.gateway.answers import answered
from kafka_proto.gateway.apis import TABLE
from kafka_proto.gateway.apis.records import FORM, record_times
from kafka_proto.gateway.applications import deleted, watched
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.configs import groups_of, internal_topics, replication_of
from kafka_proto.gateway.connection import Connection, WireRequest
from kafka_proto.gateway.context import AskedBroker, Closing, Handling, Waits
from kafka_proto.gateway.faults import FOREVER, LOST, Exchanged, Token
from kafka_proto.gateway.front import Front
from kafka_proto.gateway.injected_errors import with_error
from kafka_proto.gateway.inputs import (
    LASTING,
    Injected,
    Input,
    Output,
    Settings,
)
from kafka_proto.gateway.observed import Observed, Shortened, logged, shortened, without
from kafka_proto.gateway.offer import offer_of
from kafka_proto.gateway.properties import Brokers, judged, looked_at
from kafka_proto.log import PartitionLog
from kafka_proto.requests import Error


@attrs.define(eq=False)
class UnderWay:
    """A request that a broker has taken and not answered: what it asked and waits for, or until when it looks again."""

    token: Token
    here: AskedBroker
    request: WireRequest
    handling: Handling
    asked: tuple[int, ...] = ()
    """Correlation ids."""
    until: int = FOREVER
    watched: frozenset[str] = frozenset()
    """The partitions for which it looks again when something happens to them."""
    is_stirred: bool = False
    """Whether something has happened to them since it looked."""


class Host(Front):
    """Brokers with their clients."""

    def __init__(
        self, settings: Settings, topics: Mapping[str, int], now: int = 0, version: BrokerVersion | None = None
    ) -> None:
        super().__init__(settings, offer_of(settings.release, settings.transaction_version, TABLE))
        self.cluster = RunningCluster(
            version or version_of(settings.release, settings.transaction_version), (), len(settings.ports), now=now,
            replication=replication_of(settings),
            record_times=record_times, group_config=groups_of(settings), internal=internal_topics(settings),
        )
        for name, partitions in topics.items():
            self.cluster.create_topic(name, partitions)
        self.observed = Observed(watched=watched(settings.applications))
        self.check_interval_ms = settings.log_retention_check_interval_ms or retention.CHECK_INTERVAL_MS
        self.backoff_ms = settings.log_cleaner_backoff_ms or retention.CLEANER_BACKOFF_MS
        self._sizes = retention.Sizes(FORM)
        self._logs: dict[str, PartitionLog] = {}
        """Logs as they were before records were deleted in the last input."""
        self.under_way: list[UnderWay] = []
        """Requests that brokers have taken and not answered."""

    @property
    def now(self) -> int:
        return self.cluster.now

    @property
    def deadline(self) -> int | None:
        going = (each for each in self.under_way if not self.faults.of_broker(each.here.asked))
        waits = (each.until for each in going if each.until != FOREVER)
        return min((at for at in (self.cluster.deadline, self.faults.deadline, *waits) if at is not None), default=None)

    @property
    def brokers(self) -> Brokers:
        return Brokers(FrozenMap(self.cluster.served), FrozenMap(self.cluster.entries), self.cluster.marking,
                       self.cluster.offsets, self.cluster.led)

    @property
    def led(self) -> FrozenMap[str, Leadership]:
        return self.cluster.led

    @property
    def marked(self) -> Sequence[Request]:
        return self.cluster.marked

    def take(self, given: Input) -> list[Output]:
        self.cluster.marked = []
        outputs = super().take(given)
        self._logs = {}
        self.observed = looked_at(self.observed, self.cluster, given)
        return outputs

    def _connection(self) -> Connection:
        return Connection(self.offer, ids=self.cluster.topic_ids, names=self.cluster.topic_names)

    def _pass_time(self, now: int) -> None:
        cluster, since = self.cluster, self.cluster.now
        cluster.pass_time(now)
        at = retention.last_check(cluster, since, self.check_interval_ms)
        starts = {} if at is None else retention.old(cluster, FORM, at)
        if starts:
            self._judge()
        for name, start in starts.items():
            cluster.delete_before(name, start)
        at = retention.last_check(cluster, since, self.backoff_ms)
        done = [] if at is None else list(retention.dirty(cluster, FORM, at, self._sizes))
        if done:
            self._judge()
        for name, broker, compaction in done:
            cluster.compact(name, broker, compaction)
        self._forget_what_is_gone({name: each.end for name, broker, each in done if cluster.leads(broker, name)})

    def _judge(self) -> None:
        """Judge the session before records are deleted."""
        self._look()
        self.observed, self._logs = judged(self.observed, self.brokers), self.cluster.served

    def _forget_what_is_gone(self, ends: Mapping[str, int]) -> None:
        """Let observers forget what is gone of partitions, up to an offset of each."""
        found = {name: Shortened(self._logs[name], log, end) for name, end in ends.items()
                 if name in self._logs and (log := self.cluster.served_log(name)) is not None}
        if not found:
            return
        self.observed = shortened(self.observed, found)
        if self.observed.watched is not None:
            before = {name: each.before for name, each in found.items()}
            watched = deleted(self.observed.watched, before, self.cluster.served)
            self.observed = attrs.evolve(self.observed, watched=watched)
        self._logs.update({name: each.after for name, each in found.items()})

    def _ask(self, broker: int, request: WireRequest, transaction: str, token: Token, outputs: list[Output]) -> None:
        if request.api_key == apis.DELETE_RECORDS:
            self._judge()
        here = self._asked(broker, transaction)
        each = UnderWay(token, here, request, TABLE[request.api_key](here, request))
        self.under_way.append(each)
        self._work(each, None, outputs)

    def _asked(self, broker: int, transaction: str) -> AskedBroker:
        return AskedBroker(self.settings, self.cluster, broker, transaction)

    def _refused(self, broker: int, request: WireRequest, transaction: str, error: Error) -> Fields | None:
        return with_error(self._asked(broker, transaction), request, error)

    def _work(self, each: UnderWay, answers: tuple[object, ...] | None, outputs: list[Output]) -> None:
        """Go on with a request until it is answered, or waits."""
        each.asked, each.until = (), FOREVER
        while True:
            try:
                wanted = next(each.handling) if answers is None else each.handling.send(answers)
            except (StopIteration, Closing) as done:
                self.under_way.remove(each)
                self._answer(each, done, outputs)
                return
            if isinstance(wanted, Waits):
                each.asked, each.until, each.watched, each.is_stirred = (), wanted.until, wanted.partitions, False
                return
            each.asked = tuple(
                self.cluster.send(one, each.here.name, f"c{each.token[0]}", each.here.transaction) for one in wanted)
            self._look()
            if not all(number in self.cluster.answers for number in each.asked):
                return
            answers = self._taken(each)

    def _taken(self, each: UnderWay) -> tuple[Any, ...]:
        """Take the answers; a coordinator of groups that has not read their log says that it loads."""
        answers: tuple[Any, ...] = tuple(self.cluster.answers.pop(number) for number in each.asked)
        if each.request.api_key not in apis.OF_GROUPS or not each.here.loads_groups:
            return answers
        return tuple(attrs.evolve(answer, error=Error.COORDINATOR_LOAD_IN_PROGRESS)
                     if answer.error is Error.NOT_COORDINATOR else answer for answer in answers)

    def _look(self) -> None:
        """Note new committed records, and deleted partitions."""
        if not self.cluster.stirred:
            return
        starts, stirred, self.cluster.stirred = dict[str, int](), self.cluster.stirred, set()
        for each in self.under_way:
            each.is_stirred = each.is_stirred or not each.watched.isdisjoint(stirred)
        if self.cluster.deleted:
            gone, self.cluster.deleted = frozenset(self.cluster.deleted), []
            self.observed = without(self.observed, gone)
        for name in filter(self.cluster.is_read, sorted(stirred)):
            if (log := self.cluster.served_log(name)) is not None:
                self.observed = logged(self.observed, name, log)
                if name in self._logs and self._logs[name].log_start_offset < log.log_start_offset:
                    starts[name] = log.log_start_offset
        self._forget_what_is_gone(starts)

    def _answer(self, each: UnderWay, done: StopIteration | Closing, outputs: list[Output]) -> None:
        self._look()
        number, place = each.token
        client = self.clients.get(number)
        if client is None or client.asked is None or client.asked.number != place:
            return
        if client.loses or isinstance(done, Closing):
            self.exchanged.append(Exchanged(number, client.broker, each.request, each.here.transaction, LOST,
                                            None if isinstance(done, Closing) else done.value))
            self._close(number, str(done) if isinstance(done, Closing) else "a fault lost the answer", outputs)
            return
        if done.value is not None:
            self.observed = answered(
                self.observed, client.asked, each.here.transaction, done.value, self.cluster.entry)
        self.exchanged.append(Exchanged(number, client.broker, client.asked, each.here.transaction, answer=done.value))
        self._write(number, client.connection.send(place, done.value), outputs)
        self._is_answered(number, client, place)

    def _go_on_everywhere(self, outputs: list[Output]) -> None:
        while True:
            self._look()
            while self._resumed:
                self._go_on(self._resumed.popleft(), outputs)
            ready = next((each for each in self.under_way if self._may_go_on(each)), None)
            if ready is None:
                return
            self._work(ready, self._taken(ready), outputs)

    def _may_go_on(self, each: UnderWay) -> bool:
        """Say whether what a request waits for has come. One that looks again does so where something happened."""
        if each.asked:
            return all(number in self.cluster.answers for number in each.asked)
        if self.faults.of_broker(each.here.asked):
            return False
        return each.until <= self.cluster.now or each.is_stirred

    def _take_else(self, given: Input, outputs: list[Output]) -> None:
        return

    def _silence(self, changed: Injected) -> None:
        if changed.kind == "elect":
            for p in (changed.partition,) if changed.partition else self.cluster.placement.all_partitions:
                if p in self.cluster.placement.all_partitions:
                    self.cluster.elect(p)
            return
        self.under_way = [each for each in self.under_way if not self.faults.is_down(each.here.asked)]
        if changed.other:
            self.cluster.cut_link(frozenset(
                frozenset((f"b{fault.broker}", f"b{fault.other}")) for fault in self.faults.lasting if fault.other))
            return
        of = {kind: frozenset(f"b{fault.broker}" for fault in self.faults.lasting
                              if fault.kind == kind and not fault.other) for kind in LASTING}
        for stopped, stop in ((of["crash"], self.cluster.crash), (of["shut_down"], self.cluster.shut_down)):
            for broker in sorted(stopped - self.cluster.down):
                stop(broker)
        self.cluster.slow_disks(of["slow_disk"])
        self.cluster.isolate(of["partition"])
        self.cluster.pause(of["pause"])
        for broker in sorted(self.cluster.down - of["crash"] - of["shut_down"]):
            self.cluster.start(broker)

    def _forget(self, number: int, outputs: list[Output]) -> None:
        super()._forget(number, outputs)
        for each in [each for each in self.under_way if each.token[0] == number and each.until != FOREVER]:
            self.under_way.remove(each)
