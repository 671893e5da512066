"""A cluster for tests: brokers on loopback in a thread of their own, faults as verbs, and what happened judged.

The thread runs until the block ends. Verbs may be called from any other thread, and return when the fault has begun.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import attrs
import trio

from harness.model import FrozenMap, Refusal
from kafka_proto.addresses import address_of
from kafka_proto.cluster.running import RunningCluster
from kafka_proto.gateway import inputs
from kafka_proto.gateway.apis.topics import LEGAL_NAME
from kafka_proto.gateway.applications import declared
from kafka_proto.gateway.configs import with_configs
from kafka_proto.gateway.front import Front
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.injected_errors import no_answer
from kafka_proto.gateway.known_bugs import check, explained
from kafka_proto.gateway.offer import LEVELS
from kafka_proto.gateway.plans import no_request, not_before_others, read_plan
from kafka_proto.gateway.proxy import ProxyHost
from kafka_proto.gateway.proxying import proxying
from kafka_proto.gateway.recording import Recording, WatchedClients
from kafka_proto.gateway.server import Seen, Server, Serving, serving

T = TypeVar("T")
NEWEST = "4.4.0"


def _check(what: str, number: Any, highest: int) -> None:
    """Raise Refusal for anything but a number from 1 to the highest."""
    if type(number) is not int or not 1 <= number <= highest:
        raise Refusal(f"{what} should be a number from 1 to {highest}, not {number!r}")


def _topics(given: Any) -> FrozenMap[str, int]:
    """Return topics with their numbers of partitions. Raises Refusal."""
    if not isinstance(given, Mapping):
        raise Refusal(f"topics should be names with numbers of partitions, as {{'orders': 2}}, not {given!r}")
    for name, partitions in given.items():
        if not isinstance(name, str) or not LEGAL_NAME.fullmatch(name):
            raise Refusal(f"a topic should be named by up to 249 letters, digits, '.', '_' and '-', not {name!r}")
        _check(f"partitions of the topic {name!r}", partitions, inputs.MOST_OF_A_TOPIC)
    return FrozenMap(given)


@attrs.define
class Fault:
    """A fault that has begun. `end` ends it: what it holds back goes on, a broker that is down starts."""

    number: int
    _cluster: KafkaCluster
    _holds: threading.Event

    def end(self) -> None:
        """End the fault."""
        self._cluster.on_server(lambda server: server.end(self.number))

    def wait(self, seconds: float = 10.0) -> None:
        """Wait until the fault holds a request back. Raises TimeoutError."""
        if not self._holds.wait(seconds):
            raise TimeoutError(f"nothing was held back within {seconds} s; does the client send such a request?")


class KafkaCluster:
    """Brokers of a release of Kafka: `with KafkaCluster({"orders": 2}) as cluster: ...`.

    `num_partitions` is for topics that clients make without saying how many; `replication_factor` is by default three,
    or as many as there are brokers. `config` are settings of brokers by Kafka's names, as
    `{"broker.session.timeout.ms": "3000"}`. `faults` are a plan: verbs, as `delay EndTxn for_ms=2500; crash b1
    at_ms=500`, faults that are drawn from `seed`, as `delay=2,crash=1`, or those of a scenario, as `late-end`.
    `exactly_once` declares applications, as `orders to payments group=billing by=key`; `allow` names known bugs of
    clients that fail no test, as `KAFKA-17754`. Raises
    OSError if no port is free, ValueError for an unknown release, level or setting, Refusal for impossible topics,
    numbers of brokers or of partitions, or plans.
    """

    def __init__(
        self, topics: Mapping[str, int] | None = None, *, release: str = NEWEST, transaction_version: int | None = None,
        brokers: int = 1, num_partitions: int = 1, replication_factor: int | None = None, min_insync_replicas: int = 1,
        config: Mapping[str, str] = FrozenMap(), faults: str = "", seed: int = 0, exactly_once: str = "",
        allow: str | Iterable[str] = (),
    ) -> None:
        level = LEVELS.get(release, (0,))[-1] if transaction_version is None else transaction_version
        _check("brokers", brokers, inputs.MOST_BROKERS)
        _check("num_partitions", num_partitions, inputs.MOST_OF_A_TOPIC)
        factor = min(3, brokers) if replication_factor is None else replication_factor
        _check("replication_factor", factor, brokers)
        _check("min_insync_replicas", min_insync_replicas, factor)
        self._settings = with_configs(inputs.Settings(
            release, level, ports=(0,) * brokers, num_partitions=num_partitions, replication_factor=factor,
            min_insync_replicas=min_insync_replicas, applications=declared(exactly_once) if exactly_once else None),
            config)
        self._topics = _topics({} if topics is None else topics)
        Host(self._settings, {})  # refuses an unknown release or level, before anything is started
        self.seed = seed
        self._plan: Iterable[inputs.TimedFault] = read_plan(faults, seed, self._settings) if faults else ()
        self._thread = threading.Thread(target=self._run, name="kafka-cluster", daemon=True)
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._holds: dict[int, threading.Event] = {}
        self._host: Front
        self._recording: Recording
        self._clients: WatchedClients
        self._server: Server
        self._token: trio.lowlevel.TrioToken
        self._stop: trio.Event
        self._tasks: trio.Nursery
        self._is_over = False
        self._expected: tuple[str, ...] = ()
        self.allow = check(allow)
        """Issues of known bugs."""
        self.bootstrap_servers = ""
        """The address of the brokers in the form that clients want."""

    def __enter__(self) -> KafkaCluster:
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End all connections and the brokers; the session can still be asked for."""
        self._end()
        if self._failed is not None:
            raise self._failed

    def _end(self) -> None:
        if not self._is_over:
            with suppress(trio.RunFinishedError):  # the thread failed
                self._token.run_sync_soon(self._stop.set)
            self._thread.join()
            self._is_over = True

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:
            self._failed = error
        self._ready.set()

    async def _serve(self) -> None:
        self._token, self._stop = trio.lowlevel.current_trio_token(), trio.Event()
        async with self._serving() as (self._server, self._tasks, self.bootstrap_servers):
            self._ready.set()
            await self._stop.wait()

    def _serving(self) -> AbstractAsyncContextManager[Serving]:
        return serving(self._settings, self._topics, self._watch, self._plan)

    def _watch(self, host: Front, started: inputs.Started | inputs.Fronted) -> Seen:
        self._host, self._recording, self._clients = host, Recording(host, started), WatchedClients(host)
        return self._see

    def _see(self, given: inputs.Input, outputs: list[inputs.Output]) -> None:
        self._recording.see(given, outputs)
        self._clients.see()
        for number, event in self._holds.items():
            if not event.is_set() and self._host.faults.holds(number):
                event.set()

    def on_server(self, action: Callable[[Server], T]) -> T:
        """Call a function with the server in its thread."""
        if self._is_over:
            raise RuntimeError("the cluster has ended; begin faults while it runs")
        return trio.from_thread.run_sync(action, self._server, trio_token=self._token)

    def _begin(self, kind: inputs.FaultKind, **what: Any) -> Fault:
        offer = self._host.offer
        if kind in inputs.OF_REQUESTS and (wrong := no_request(what["request"], offer)) is not None:
            raise ValueError(wrong)
        if offer.is_of_others and (wrong := not_before_others(kind, what.get("other", 0))) is not None:
            raise ValueError(wrong)
        if kind == "answer" and (wrong := no_answer(what["request"], what["error"])) is not None:
            raise ValueError(wrong)
        event = threading.Event()

        def begin(server: Server) -> int:
            number = server.inject(kind, **what)
            self._holds[number] = event
            return number

        return Fault(self.on_server(begin), self, event)

    def delay(self, request: str, nth: int = 1, for_ms: int | None = None) -> Fault:
        """Hold the nth request of a name back, as `EndTxn`, for a time or until the fault ends.

        Its connection waits with it. A client that gives the connection up does not take it back: it is taken later.
        """
        return self._begin("delay", request=request, nth=nth, for_ms=for_ms)

    def drop(self, request: str, nth: int = 1) -> Fault:
        """Close the connection before the nth request of a name is taken."""
        return self._begin("drop", request=request, nth=nth)

    def lose(self, request: str, nth: int = 1) -> Fault:
        """Take the nth request of a name, and close the connection in place of the answer."""
        return self._begin("lose", request=request, nth=nth)

    def duplicate(self, request: str, nth: int = 1) -> Fault:
        """Take the nth request of a name twice; the second answer is not delivered."""
        return self._begin("duplicate", request=request, nth=nth)

    def answer(self, request: str, error: str, nth: int = 1, client: str | None = None) -> Fault:
        """Answer the nth request of a name with an error code in place of doing it; 0: each, until the fault ends.

        `client` is the id of the only client whose requests count.
        """
        return self._begin("answer", request=request, error=error, nth=nth, client=client)

    def crash(self, broker: str, for_ms: int | None = None) -> Fault:
        """Let a broker, as `b1`, crash: its connections end, others lead, until the fault ends."""
        return self._begin("crash", broker=self._broker(broker), for_ms=for_ms)

    def shut_down(self, broker: str, for_ms: int | None = None) -> Fault:
        """Let a broker shut down as SIGTERM makes it: it leaves its offices first, others lead, until the fault ends.
        """
        return self._begin("shut_down", broker=self._broker(broker), for_ms=for_ms)

    def partition(self, broker: str, other: str | None = None, for_ms: int | None = None) -> Fault:
        """Cut a broker off from clients and the others, and let others lead; or cut two from each other.

        Of two brokers clients reach both, and both lead what they led, but neither hears the other: a marker waits,
        and a leader cannot ask the coordinator about a transaction.
        """
        one = self._broker(broker)
        if other is None:
            return self._begin("partition", broker=one, for_ms=for_ms)
        if other == broker:
            raise ValueError(f"{broker} cannot be cut off from itself; name another broker, or this one alone")
        return self._begin("partition", broker=one, other=self._broker(other), for_ms=for_ms)

    def pause(self, broker: str, for_ms: int | None = None) -> Fault:
        """Let a broker take nothing, until the fault ends. After a while others lead, of which it hears last."""
        return self._begin("pause", broker=self._broker(broker), for_ms=for_ms)

    def slow_disk(self, broker: str, for_ms: int | None = None) -> Fault:
        """Let a broker's disk write no record until the fault ends; if the broker crashes before, they are lost."""
        return self._begin("slow_disk", broker=self._broker(broker), for_ms=for_ms)

    def elect(self, partition: str = "") -> Fault:
        """Let the next broker lead a partition, as `orders-0`; without a name, each partition."""
        return self._begin("elect", partition=partition)

    def leader(self, partition: str) -> str:
        """Return the broker that leads a partition, as `orders-0`."""
        return self.on_server(lambda server: self._ours().leader(partition))

    def coordinator(self, transactional_id: str) -> str:
        """Return the broker that coordinates a transactional id."""
        return self.on_server(lambda server: self._ours().leader(
            self._ours().placement.transaction_partition(transactional_id)))

    def _ours(self) -> RunningCluster:
        if not isinstance(self._host, Host):
            raise ValueError("who leads is not known in front of another cluster; ask its Admin")
        return self._host.cluster

    def inject(self, plan: Iterable[inputs.TimedFault]) -> None:
        """Begin the faults of a plan at their times from now on, as those that are drawn by chance."""
        self.on_server(lambda server: self._tasks.start_soon(server.inject_later, tuple(plan)))

    def _broker(self, name: str) -> int:
        known = {f"b{number}": number for number in self._host.settings.brokers}
        if name not in known:
            raise ValueError(f"there is no broker {name!r}; there are {', '.join(known)}")
        return known[name]

    def problems(self) -> dict[str, str]:
        """Return the properties, of P1 to P12 and R1 to R6, that the session so far violates, with reasons."""
        return self._host.problems() if self._is_over else self.on_server(lambda server: server.problems())

    def explained(self) -> dict[str, str]:
        """Return the violated properties that known bugs explain which the test allows, each with the issue."""
        return self._explained(self.problems()) if self.allow else {}

    def _explained(self, problems: Mapping[str, str]) -> dict[str, str]:
        return explained(self.allow, self._host.software, problems)

    def expect(self, *properties: str) -> None:
        """Say which properties a test is about to see violated: these must be, when it ends, and no others."""
        self._expected = properties

    def _anomalies(self) -> dict[str, str]:
        """Return what clients saw and should not have, where no property of the session is violated."""
        return self._clients.anomalies() if self._is_over else self.on_server(lambda _: self._clients.anomalies())

    def verdict(self) -> str | None:
        """Return what is wrong with the session, or None; what was expected or allowed is not.

        Where no property is violated, it is judged by what its clients saw, too.
        """
        problems = self.problems() or self._anomalies()
        fine = {*self._expected, *self._explained(problems)}
        lines = [f"{name} is violated: {why}" for name, why in problems.items() if name not in fine]
        lines += [f"{name} was expected to be violated, but holds" for name in self._expected if name not in problems]
        return "\n".join(lines) or None

    def write_trail(self, path: Path) -> str:
        """End the cluster and write its session's trail, whatever ended it; return the command that replays it."""
        self._end()
        self._recording.write(path)
        return f"kafka-proto replay {shlex.quote(str(path))}"

    def report(self, path: Path) -> str:
        """End the cluster and write its session's trail; return its last steps, and the commands that open it.

        If it violates what the test did not expect, a shorter trail that does so is written beside it.
        """
        from kafka_proto.gateway import report  # with what replays and draws, only for a test that fails

        self._end()
        problems = self._host.problems()
        fine = {*self._expected, *self._explained(problems)}
        violated = next((name for name in problems if name not in fine), None)
        said = report.left(self._recording, path, violated)
        return said if problems or not self._anomalies() else f"{said}\n{report.proof(path)}"


class KafkaProxy(KafkaCluster):
    """A proxy in front of another cluster: `with KafkaProxy("127.0.0.1:9092") as proxy: ...`.

    Verbs and plans are those of `KafkaCluster`, but for what its brokers would have to do: `elect`, `shut_down`, and
    to cut two from each other. What the session violates is known once it is stopped: then the logs are read. `port` is
    that of the first broker, 0 for free ones. Raises Refusal if no broker answers.
    """

    def __init__(self, upstream: str, *, port: int = 0, faults: str = "", seed: int = 0) -> None:
        super().__init__(seed=seed)
        self._settings = inputs.Settings(ports=(port,))
        self._upstream, self._text = address_of(upstream, "upstream"), faults

    def _serving(self) -> AbstractAsyncContextManager[Serving]:
        return proxying(self._upstream, self._settings, self._watch, self._read)

    def _read(self, proxy: ProxyHost) -> list[inputs.TimedFault]:
        return read_plan(self._text, self.seed, proxy.settings, proxy.offer) if self._text else []

    def unjudged(self) -> tuple[str, ...]:
        """Say what could not be judged from outside."""
        assert isinstance(self._host, ProxyHost)
        return self._host.unjudged()
