"""Settings of topics and brokers: DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources.

Those of topics may be changed; those of brokers are as they were at the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kafka_proto.gateway import configs
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import NO_ERROR, AskedBroker, at_once, code

TOPIC, BROKER, CLIENT_METRICS = 2, 4, 16
"""Types of resources that have settings."""
TOPIC_CONFIG, DEFAULT_BROKER_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG = 1, 3, 4, 5
"""Where a setting has its value from."""
SET, DELETE, APPEND, SUBTRACT = range(4)
"""What is done to a setting."""
DEFAULT_BROKER = ""
"""The name of the settings that all brokers have until they have others."""


def described(here: AskedBroker, own: Mapping[str, str], synonyms: bool = False) -> Iterator[Fields]:
    """Yield the settings of a topic, as responses have them; with their synonyms, if they are asked for."""
    everybodys = configs.of_topic(here.settings, {})
    for name, value in configs.of_topic(here.settings, own).items():
        broker_name, source = configs.broker_name(name), DEFAULT_CONFIG
        if name == configs.MIN_INSYNC and here.cluster.version.keeps_eligible_leaders:
            source = DEFAULT_BROKER_CONFIG  # the controller has it for all of them, where eligible leaders are kept
        found = [(broker_name, everybodys[name], source)] if broker_name else []
        if name in own:
            source = TOPIC_CONFIG
            found.insert(0, (name, value, source))
        yield {
            "name": name, "value": value, "read_only": False, "is_sensitive": False, "documentation": None,
            "config_source": source, "config_type": configs.OF_TOPICS[name][1].type,
            "synonyms": _synonyms(found) if synonyms else ()}


def _of_broker(here: AskedBroker, number: int, synonyms: bool) -> Iterator[Fields]:
    for name, (value, kind, is_set) in configs.of_broker(here.settings, number).items():
        source = STATIC_BROKER_CONFIG if is_set else DEFAULT_CONFIG
        yield {"name": name, "value": value, "read_only": True, "is_sensitive": False, "documentation": None,
               "config_source": source, "config_type": kind,
               "synonyms": _synonyms([(name, value, source)]) if synonyms else ()}


def _synonyms(found: Iterable[tuple[str, str, int]]) -> tuple[Fields, ...]:
    return tuple({"name": name, "value": value, "source": source} for name, value, source in found)


@at_once
def describe_configs(here: AskedBroker, request: WireRequest) -> Fields:
    """Return the settings of topics, and those of brokers that have a meaning here."""
    results, synonyms = [], request.message.get("include_synonyms", False)
    for resource in request.message["resources"]:
        kind, name = resource["resource_type"], resource["resource_name"]
        rows: Iterable[Fields] = ()
        error = "NONE"
        if kind == TOPIC:
            error = "NONE" if here.partitions(name) else "UNKNOWN_TOPIC_OR_PARTITION"
            rows = described(here, here.cluster.configs.get(name, {}), synonyms)
        elif kind == BROKER and name in map(str, here.settings.brokers):
            rows = _of_broker(here, int(name), synonyms)
        elif (kind, name) != (BROKER, DEFAULT_BROKER):
            error = "INVALID_REQUEST"
        keys = resource["configuration_keys"]
        chosen = tuple(row for row in rows if error == "NONE" and (keys is None or row["name"] in keys))
        results.append({"error_code": code(error), "resource_type": kind, "resource_name": name, "configs": chosen})
    return {"results": tuple(results)}


@at_once
def list_config_resources(here: AskedBroker, request: WireRequest) -> Fields:
    """List what has settings, of some types or of all (KIP-1142); before version 1 that is metrics of clients only."""
    topics = (*here.cluster.topics, *here.cluster.internal)
    known = {TOPIC: topics, BROKER: tuple(map(str, here.settings.brokers)), CLIENT_METRICS: ()}
    wanted = request.message.get("resource_types", (CLIENT_METRICS,)) or tuple(known)
    rows = tuple({"resource_name": name, "resource_type": kind} for kind in known if kind in wanted
                 for name in known[kind])
    return {"error_code": NO_ERROR, "config_resources": rows}


@at_once
def alter_configs(here: AskedBroker, request: WireRequest) -> Fields:
    """Give topics these settings in place of those that they had."""
    return _alter(here, request, keeps=False)


@at_once
def incremental_alter_configs(here: AskedBroker, request: WireRequest) -> Fields:
    """Change settings of topics one by one (KIP-339); those of brokers cannot be changed here."""
    return _alter(here, request, keeps=True)


def _alter(here: AskedBroker, request: WireRequest, keeps: bool) -> Fields:
    """Change settings of topics that keep those which are not named, or have only these from now on."""
    results = []
    for resource in request.message["resources"]:
        kind, name = resource["resource_type"], resource["resource_name"]
        before: Mapping[str, str] = here.cluster.configs.get(name, {}) if keeps else {}
        own, error, reason = _altered(here, kind, name, resource["configs"], before)
        if error == "NONE" and not request.message["validate_only"]:
            here.cluster.configure(name, own, configs.rules_of(here.settings, own))
        results.append({"error_code": code(error), "error_message": reason, "resource_type": kind,
                        "resource_name": name})
    return {"responses": tuple(results)}


def _altered(
    here: AskedBroker, kind: int, name: str, changes: Iterable[Fields], before: Mapping[str, str]
) -> tuple[dict[str, str], str, str | None]:
    """Return the settings of a topic after changes, the error, and its reason."""
    if kind != TOPIC:
        return {}, "INVALID_REQUEST", "settings of brokers cannot be changed here"
    if not here.partitions(name):
        return {}, "UNKNOWN_TOPIC_OR_PARTITION", f"The topic '{name}' does not exist."
    own = dict(before)
    for change in changes:
        key, value, kept = change["name"], change["value"], change.get("config_operation", SET)
        if kept in (APPEND, SUBTRACT):
            others = [part for part in configs.of_topic(here.settings, own).get(key, "").split(",") if part != value]
            value, kept = ",".join([*others, value] if kept == APPEND else others), SET
        if kept == DELETE and key in configs.OF_TOPICS:
            own.pop(key, None)
        elif (reason := configs.wrong(key, value)) is not None:
            return {}, "INVALID_CONFIG", reason
        else:
            own[key] = value
    return own, "NONE", None
