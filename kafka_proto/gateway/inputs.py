"""Inputs of a host from outside, with their time in milliseconds, and its outputs: together the whole of a run.

Inputs are protocol values, so that a trail can hold them.
"""

from __future__ import annotations

from typing import Literal

import attrs

from harness.model import FrozenMap, absent_if_none

FaultKind = Literal[
    "delay", "drop", "lose", "duplicate", "answer", "crash", "shut_down", "partition", "pause", "slow_disk", "elect"]
BY_CHANCE: tuple[FaultKind, ...] = ("delay", "drop", "lose", "duplicate")
OF_REQUESTS: tuple[FaultKind, ...] = (*BY_CHANCE, "answer")
OF_BROKERS: tuple[FaultKind, ...] = ("crash", "shut_down", "partition", "pause")
"""Those that keep a broker from taking requests."""
SLOW_DISK: FaultKind = "slow_disk"
LASTING: tuple[FaultKind, ...] = (*OF_BROKERS, SLOW_DISK)
STOPPING: tuple[FaultKind, ...] = ("crash", "shut_down")
"""Of brokers, those that end their connections."""
MOST_BROKERS = 9
MOST_OF_A_TOPIC = 9_999
"""Partitions of one topic."""


@attrs.frozen
class DeclaredApplication:
    """What an application reads and writes (`applications`).

    `by` is what an output has of its input: `key`, `value`, or `header:NAME`, which says `orders-0@5`.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    group: str
    by: str = "key"


@attrs.frozen
class Settings:
    """The settings of a cluster: a port for each broker, where clients find it, and settings by Kafka's names."""

    release: str = "4.4.0"
    transaction_version: int = 2
    host: str = "127.0.0.1"
    ports: tuple[int, ...] = (0,)
    cluster_id: str = "kafka-proto"
    num_partitions: int = 1
    """Of topics that are made without a number: by name, on first use, or with -1."""
    auto_create_topics_enable: bool = True
    max_message_bytes: int = 1_048_588
    replication_factor: int = 3
    """Of each partition, as far as there are brokers."""
    min_insync_replicas: int = 1
    session_timeout_ms: int | None = attrs.field(default=None, metadata=absent_if_none())
    """Of brokers: after which one that does not answer loses its offices. This and the next are as `Replication` says
    if they are None."""
    replica_lag_time_max_ms: int | None = attrs.field(default=None, metadata=absent_if_none())
    auto_leader_rebalance_enable: bool | None = attrs.field(default=None, metadata=absent_if_none())
    log_retention_check_interval_ms: int | None = attrs.field(default=None, metadata=absent_if_none())
    """How often old records are looked for; None: each five minutes."""
    log_cleaner_backoff_ms: int | None = attrs.field(default=None, metadata=absent_if_none())
    """How often logs are looked for that are to be compacted; None: each 15 seconds."""
    applications: tuple[DeclaredApplication, ...] | None = attrs.field(default=None, metadata=absent_if_none())
    """Those that are to process each input exactly once."""
    group_min_session_timeout_ms: int | None = attrs.field(default=None, metadata=absent_if_none())
    """This and the next two are as `GroupConfig` says if they are None."""
    group_max_session_timeout_ms: int | None = attrs.field(default=None, metadata=absent_if_none())
    group_consumer_migration_policy: str | None = attrs.field(default=None, metadata=absent_if_none())

    @property
    def brokers(self) -> tuple[int, ...]:
        """Return the ids of the brokers, from 1."""
        return tuple(range(1, len(self.ports) + 1))


@attrs.frozen
class Started:
    """The cluster starts; the first input of a run. Topics have their numbers of partitions."""

    settings: Settings
    topics: FrozenMap[str, int]
    now: int


@attrs.frozen
class Opened:
    """A client connected to a broker; connections are numbered from 0."""

    connection: int
    now: int
    broker: int = 1


@attrs.frozen
class Arrived:
    """Bytes of a client; none if it will send no more."""

    connection: int
    data: bytes
    now: int


@attrs.frozen
class Gone:
    """A connection is no more."""

    connection: int
    now: int


@attrs.frozen
class Passed:
    """Time passed, in milliseconds since the epoch."""

    now: int


@attrs.frozen
class Injected:
    """A fault begins. Of requests: the `nth` one of a name from now on (0: each), `delay` for a time or until it ends.

    `lose` lets a request be processed and closes the connection in place of the answer; `drop` closes it before;
    `answer` gives an error in place of what the broker would do. A `client` is the id of the only one that is hit. Of
    brokers: for a time or until it ends; one that is `shut_down` leaves its offices first; a
    `slow_disk` writes no record of a log meanwhile, so that a crash loses it. `elect` lets the next broker
    lead a partition, or without a name all. `partition` cuts a broker off from all others, or with an `other` one these
    two from each other.
    """

    number: int
    kind: str
    now: int
    request: str = ""
    nth: int = 1
    broker: int = 0
    partition: str = ""
    for_ms: int | None = None
    other: int = 0
    error: str | None = attrs.field(default=None, metadata=absent_if_none())
    client: str | None = attrs.field(default=None, metadata=absent_if_none())


@attrs.frozen
class TimedFault:
    """A fault that is to begin some milliseconds after the start; fields are those of `Injected`."""

    at_ms: int
    kind: FaultKind
    request: str = ""
    nth: int = 1
    broker: int = 0
    for_ms: int | None = None
    partition: str = ""
    other: int = 0
    error: str | None = None
    client: str | None = None


@attrs.frozen
class Ended:
    """A fault ends: what it held goes on, a broker that was down starts."""

    number: int
    now: int


@attrs.frozen
class Fronted:
    """A proxy starts before brokers of another cluster, which are found at an address; the first input of a run.

    `spare` are ports for brokers that it hears of later.
    """

    settings: Settings
    host: str
    port: int
    spare: tuple[int, ...]
    now: int


@attrs.frozen
class Replied:
    """Bytes of another cluster's broker on a connection; none if it has ended."""

    connection: int
    data: bytes
    now: int


@attrs.frozen
class Learned:
    """What another cluster answered to the proxy itself: a response, as a frame without its length."""

    api_key: int
    version: int
    data: bytes
    now: int


Input = Started | Opened | Arrived | Gone | Passed | Injected | Ended | Fronted | Replied | Learned


@attrs.frozen
class Write:
    """Bytes for a client."""

    connection: int
    data: bytes


@attrs.frozen
class Close:
    """A connection is to be closed, after what was to be written."""

    connection: int
    reason: str


@attrs.frozen
class Dial:
    """A connection to another cluster's broker is to be made; a number below 0 is of no client."""

    connection: int
    host: str
    port: int


@attrs.frozen
class Forward:
    """Bytes for another cluster's broker."""

    connection: int
    data: bytes


@attrs.frozen
class HangUp:
    """The connection to another cluster's broker is to be closed."""

    connection: int


Output = Write | Close | Dial | Forward | HangUp
