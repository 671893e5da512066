"""Settings of topics and brokers by Kafka's names: what they are without being set, what they may be, what they change.

Of a topic those change something here that are named below, and those of `LogConfig`; of brokers, those of
`OF_BROKERS`. `TopicConfig` and `AbstractKafkaConfig` have the names and defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kafka_proto.broker.coordinator.coordinator import KAFKAS_DEFAULTS
from kafka_proto.broker.failover import PartitionRules
from kafka_proto.broker.group.settings import GroupConfig, MigrationPolicy
from kafka_proto.cluster.failures import Replication
from kafka_proto.gateway.inputs import Settings
from kafka_proto.log.segments import COMPACT, LogConfig
from kafka_proto.requests import GROUP_TOPIC, TRANSACTION_TOPIC

BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7
"""Types of settings, as DescribeConfigs has them."""
LOG_DIR = "/kafka-proto"
LARGEST = 2**63 - 1
LARGEST_INT = 2**31 - 1
MIN_INSYNC, UNCLEAN, MAX_MESSAGE = "min.insync.replicas", "unclean.leader.election.enable", "max.message.bytes"
CLEANUP = "cleanup.policy"
TIMESTAMP_AFTER, TIMESTAMP_BEFORE = "message.timestamp.after.max.ms", "message.timestamp.before.max.ms"
TIMESTAMP_TYPE, LOG_APPEND_TIME = "message.timestamp.type", "LogAppendTime"


@attrs.frozen(eq=False)
class SettingType:
    """A type of settings, and which texts are values of it."""

    type: int
    takes: Callable[[str], bool]


def number(lowest: int, highest: int = LARGEST) -> SettingType:
    """Return the check for a whole number from one to another."""
    return SettingType(LONG if highest > LARGEST_INT else INT, lambda text: (
        re.fullmatch(r"-?[0-9]{1,19}", text) is not None and lowest <= int(text) <= highest))


def one_of(*values: str) -> SettingType:
    return SettingType(STRING, lambda text: text in values)


def listed(*values: str) -> SettingType:
    """Return the check for some of the values, or none, with commas between them."""
    return SettingType(LIST, lambda text: not text or all(part.strip() in values for part in text.split(",")))


ANY_LIST = SettingType(LIST, lambda text: True)
RATIO = SettingType(DOUBLE, lambda text: re.fullmatch(r"0(\.[0-9]+)?|1(\.0+)?", text) is not None)
TRUTH = SettingType(BOOLEAN, lambda text: text in ("true", "false"))
POLICY = SettingType(STRING, lambda text: text.lower() in [*MigrationPolicy])
OF_TOPICS: Mapping[str, tuple[str, SettingType]] = {
    CLEANUP: ("delete", listed("delete", "compact")),
    "compression.gzip.level": ("-1", number(-1, 9)),
    "compression.lz4.level": ("9", number(1, 17)),
    "compression.type": ("producer", one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")),
    "compression.zstd.level": ("3", number(-131_072, 22)),
    "delete.retention.ms": ("86400000", number(0)),
    "file.delete.delay.ms": ("60000", number(0)),
    "flush.messages": (str(LARGEST), number(1)),
    "flush.ms": (str(LARGEST), number(0)),
    "follower.replication.throttled.replicas": ("", ANY_LIST),
    "index.interval.bytes": ("4096", number(0, LARGEST_INT)),
    "leader.replication.throttled.replicas": ("", ANY_LIST),
    "local.retention.bytes": ("-2", number(-2)),
    "local.retention.ms": ("-2", number(-2)),
    "max.compaction.lag.ms": (str(LARGEST), number(1)),
    MAX_MESSAGE: ("1048588", number(0, LARGEST_INT)),
    TIMESTAMP_AFTER: ("3600000", number(0)),
    TIMESTAMP_BEFORE: (str(LARGEST), number(0)),
    TIMESTAMP_TYPE: ("CreateTime", one_of("CreateTime", LOG_APPEND_TIME)),
    "min.cleanable.dirty.ratio": ("0.5", RATIO),
    "min.compaction.lag.ms": ("0", number(0)),
    MIN_INSYNC: ("1", number(1, LARGEST_INT)),
    "preallocate": ("false", TRUTH),
    "remote.storage.enable": ("false", SettingType(BOOLEAN, lambda text: text == "false")),
    "retention.bytes": ("-1", number(-1)),
    "retention.ms": ("604800000", number(-1)),
    "segment.bytes": ("1073741824", number(14, LARGEST_INT)),
    "segment.index.bytes": ("10485760", number(4, LARGEST_INT)),
    "segment.jitter.ms": ("0", number(0)),
    "segment.ms": ("604800000", number(1)),
    UNCLEAN: ("false", TRUTH),
}
"""By name: the default, and which values a topic may have."""
OF_TOPICS_OF_BROKERS: Mapping[str, str] = {
    "compression.gzip.level": "compression.gzip.level", "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type", "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms", "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages", "flush.ms": "log.flush.interval.ms",
    "follower.replication.throttled.replicas": "", "index.interval.bytes": "log.index.interval.bytes",
    "leader.replication.throttled.replicas": "", "local.retention.bytes": "log.local.retention.bytes",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms", MAX_MESSAGE: "message.max.bytes",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio", MIN_INSYNC: MIN_INSYNC,
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms", "remote.storage.enable": "",
    "segment.index.bytes": "log.index.size.max.bytes", "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms", UNCLEAN: UNCLEAN,
}
"""What brokers call settings of topics, where it is not the same after `log.` (`ServerTopicConfigSynonyms`)."""
OF_BROKERS: Mapping[str, tuple[str, SettingType]] = {
    "auto.create.topics.enable": ("auto_create_topics_enable", TRUTH),
    "auto.leader.rebalance.enable": ("auto_leader_rebalance_enable", TRUTH),
    "broker.session.timeout.ms": ("session_timeout_ms", number(1, 86_400_000)),
    "group.consumer.migration.policy": ("group_consumer_migration_policy", POLICY),
    "group.max.session.timeout.ms": ("group_max_session_timeout_ms", number(1, LARGEST_INT)),
    "group.min.session.timeout.ms": ("group_min_session_timeout_ms", number(1, LARGEST_INT)),
    "log.cleaner.backoff.ms": ("log_cleaner_backoff_ms", number(1)),
    "log.retention.check.interval.ms": ("log_retention_check_interval_ms", number(1)),
    "message.max.bytes": ("max_message_bytes", number(0, LARGEST_INT)),
    "replica.lag.time.max.ms": ("replica_lag_time_max_ms", number(1, 86_400_000)),
}
"""By name: the field of `Settings`, and which values there may be."""
READ: Mapping[SettingType, tuple[str, Callable[[str], Any]]] = {
    TRUTH: ("true or false", lambda text: text == "true"), POLICY: (", ".join(MigrationPolicy), str.lower)}
"""What is expected where it is not a number, and how it is read."""


def wrong(name: str, value: str | None) -> str | None:
    """Return what is wrong with a setting of a topic; None if there is such a one."""
    if name not in OF_TOPICS:
        return f"Unknown topic config name: {name}"
    if value is None:
        return f"Null value not supported for topic configs: {name}"
    if not OF_TOPICS[name][1].takes(value):
        return f"Invalid value {value} for configuration {name}"
    return None


def of_topic(settings: Settings, own: Mapping[str, str]) -> dict[str, str]:
    """Return all settings of a topic, its own before those of the cluster."""
    found = {name: default for name, (default, _) in OF_TOPICS.items()}
    found |= {MIN_INSYNC: str(settings.min_insync_replicas), MAX_MESSAGE: str(settings.max_message_bytes)}
    return {**found, **own}


def rules_of(settings: Settings, own: Mapping[str, str]) -> PartitionRules:
    """Return what elections and writes of a topic's partitions depend on."""
    known = of_topic(settings, own)
    texts = {field.name: known[name] for field in attrs.fields(LogConfig)
             if (name := field.name.replace("_", ".")) in known and name != CLEANUP}
    ratio = float(texts.pop("min_cleanable_dirty_ratio"))
    log = LogConfig(frozenset(filter(None, map(str.strip, known[CLEANUP].split(",")))), min_cleanable_dirty_ratio=ratio,
                    **{name: int(text) for name, text in texts.items()})
    return PartitionRules(int(known[MIN_INSYNC]), known[UNCLEAN] == "true", log)


def internal_topics(settings: Settings) -> dict[str, tuple[dict[str, str], PartitionRules]]:
    """Return the settings that the brokers' own topics are made with, and what follows from them.

    `GroupCoordinatorService.groupMetadataTopicConfigs`, `TransactionStateManager.transactionTopicConfigs`.
    """
    both = {CLEANUP: COMPACT, "segment.bytes": "104857600"}
    of_transactions = {"compression.type": "uncompressed", MIN_INSYNC: str(settings.min_insync_replicas),
                       UNCLEAN: "false"}
    made = {GROUP_TOPIC: {**both, "compression.type": "producer"}, TRANSACTION_TOPIC: {**both, **of_transactions}}
    return {name: (own, rules_of(settings, own)) for name, own in made.items()}


def with_configs(settings: Settings, configs: Mapping[str, str]) -> Settings:
    """Return settings of a cluster with some of its brokers' settings. Raises ValueError, with one sentence."""
    given: dict[str, Any] = {}
    for name, value in configs.items():
        if name not in OF_BROKERS:
            raise ValueError(f"there is no setting {name!r} here; there are {', '.join(OF_BROKERS)}")
        field, check = OF_BROKERS[name]
        expected, read = READ.get(check, ("a number of at least 1", int))
        if not check.takes(value):
            raise ValueError(f"{name} cannot be {value!r}; expected {expected}")
        given[field] = read(value)
    return attrs.evolve(settings, **given)


def broker_name(name: str) -> str:
    """Return what brokers call a setting that topics have from them, empty if they have none of it."""
    return OF_TOPICS_OF_BROKERS.get(name, f"log.{name}")


def of_broker(settings: Settings, number: int) -> dict[str, tuple[str, int, bool]]:
    """Return by name the value of a broker's setting, its type, and whether it is set, those that mean something here.
    """
    listener = f"PLAINTEXT://{settings.host}:{settings.ports[number - 1]}"
    fixed = {
        "advertised.listeners": (listener, LIST, True), "broker.id": (str(number), INT, True),
        "default.replication.factor": (str(settings.replication_factor), INT, True),
        "group.initial.rebalance.delay.ms": ("0", INT, True), "listeners": (listener, LIST, True),
        "log.dirs": (LOG_DIR, LIST, True), MIN_INSYNC: (str(settings.min_insync_replicas), INT, True),
        "node.id": (str(number), INT, True), "num.partitions": (str(settings.num_partitions), INT, True),
        "process.roles": ("broker", LIST, True),
        "transaction.max.timeout.ms": (str(KAFKAS_DEFAULTS.transaction_max_timeout_ms), INT, False),
        "transactional.id.expiration.ms": (str(KAFKAS_DEFAULTS.transactional_id_expiration_ms), INT, False),
    }
    groups = attrs.asdict(groups_of(settings))
    known = {name: (getattr(settings, field), groups.get(field), check.type)
             for name, (field, check) in OF_BROKERS.items()}
    told = {name: (str(default if value is None else value).lower(), kind, value is not None)
            for name, (value, default, kind) in known.items() if (value, default) != (None, None)}
    return dict(sorted({**fixed, **told}.items()))


def replication_of(settings: Settings) -> Replication:
    """Return replicas and elections as a cluster's settings have them."""
    given = _given(settings, "session_timeout_ms", "replica_lag_time_max_ms", "auto_leader_rebalance_enable")
    return Replication(settings.replication_factor, settings.min_insync_replicas, **given)


def groups_of(settings: Settings) -> GroupConfig:
    """Return what coordinators of groups go by."""
    given = _given(settings, "group_min_session_timeout_ms", "group_max_session_timeout_ms")
    if settings.group_consumer_migration_policy is not None:
        given["group_consumer_migration_policy"] = MigrationPolicy(settings.group_consumer_migration_policy)
    return GroupConfig(**given)


def _given(settings: Settings, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(settings, name)) is not None}
