"""What administrators ask: groups, partitions of topics, elections.

ListGroups, DescribeGroups, ConsumerGroupDescribe, DeleteGroups, OffsetDelete, CreatePartitions, DescribeLogDirs,
ElectLeaders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from kafka_proto import requests
from kafka_proto.broker.group.consumer_group import ConsumerGroup
from kafka_proto.broker.group.coordinator import AnyGroup
from kafka_proto.broker.group.deletion import CONSUMER
from kafka_proto.broker.group.rebalance import ClassicGroup, Group, GroupState
from kafka_proto.gateway import configs
from kafka_proto.gateway.apis.groups import rows
from kafka_proto.gateway.apis.records import size_of
from kafka_proto.gateway.apis.topics import misassigned, room
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import NO_ERROR, AskedBroker, Handling, at_once, code, each, named, number
from kafka_proto.requests import OFFSETS_PARTITION, Error, partition_name

DEAD = "Dead"
PREFERRED, UNCLEAN = 0, 1
CLIENT_HOST = "/127.0.0.1"
CONSUMER_MEMBER = 1
"""A member that speaks the protocol of consumer groups, not the classic one."""
UNKNOWN_SIZE = -1
FROM_NOT_FOUND = 6
"""The first version of DescribeGroups that has an error for a group that is not there (KIP-1043)."""


def _groups_error(here: AskedBroker) -> Error:
    """Say why a broker does not answer for groups."""
    if here.cluster.leads(here.name, OFFSETS_PARTITION):
        return Error.NONE
    return Error.COORDINATOR_LOAD_IN_PROGRESS if here.loads_groups else Error.NOT_COORDINATOR


def _state(group: AnyGroup) -> str:
    return GroupState.EMPTY.value if isinstance(group, Group) else str(group.state)


def _type(group: AnyGroup) -> str:
    """Return the type of a group's protocol; a classic group without members has none any more."""
    if isinstance(group, ConsumerGroup):
        return CONSUMER
    return (group.protocol_type or "") if isinstance(group, ClassicGroup) else ""


def _kind(group: AnyGroup) -> str:
    """Return the type of a group, by Kafka's name."""
    return "consumer" if isinstance(group, ConsumerGroup) else "classic"


@at_once
def list_groups(here: AskedBroker, request: WireRequest) -> Fields:
    """List the groups of which the broker is the coordinator; one that is none lists none."""
    error = _groups_error(here)
    states = {state.lower() for state in request.message.get("states_filter", ())}
    types = {kind.lower() for kind in request.message.get("types_filter", ())}
    known = here.cluster.groups(here.name).groups if error is Error.NONE else {}
    return {
        "error_code": number(error if error is Error.COORDINATOR_LOAD_IN_PROGRESS else Error.NONE),
        "groups": tuple(
            {"group_id": name, "protocol_type": _type(group), "group_state": _state(group), "group_type": _kind(group)}
            for name, group in known.items()
            if (not states or _state(group).lower() in states) and (not types or _kind(group) in types)),
    }


@at_once
def describe_groups(here: AskedBroker, request: WireRequest) -> Fields:
    """Describe classic groups, each with its members; of one that rebalances what they said is not told yet."""
    error = _groups_error(here)
    found = []
    for name in request.message["groups"]:
        group = here.cluster.groups(here.name).groups.get(name) if error is Error.NONE else None
        row: dict[str, Any] = {"group_id": name, "error_code": number(error), "group_state": "", "protocol_type": "",
                       "protocol_data": "", "members": ()}
        if group is not None and not isinstance(group, ConsumerGroup):
            row |= {"group_state": _state(group), "protocol_type": _type(group)}
        elif error is Error.NONE:
            missing = Error.GROUP_ID_NOT_FOUND if request.version >= FROM_NOT_FOUND else Error.NONE
            row |= {"group_state": DEAD, "error_code": number(missing)}
        if isinstance(group, ClassicGroup):
            row |= {"members": tuple(_members(group)),
                    "protocol_data": (group.protocol_name or "") if group.state is GroupState.STABLE else ""}
        found.append(row)
    return {"groups": tuple(found)}


def _members(group: ClassicGroup) -> Iterator[Fields]:
    is_stable = group.state is GroupState.STABLE
    for name, member in group.members.items():
        said = dict(member.join.protocols).get(group.protocol_name or "", b"")
        yield {
            "member_id": name, "group_instance_id": member.join.group_instance_id, "client_id": member.join.client_id,
            "client_host": CLIENT_HOST, "member_metadata": said if is_stable else b"",
            "member_assignment": member.assignment if is_stable else b"",
        }


@at_once
def consumer_group_describe(here: AskedBroker, request: WireRequest) -> Fields:
    """Describe consumer groups: what each member has, and what it is to have (KIP-848)."""
    error = _groups_error(here)
    found = []
    for name in request.message["group_ids"]:
        group = here.cluster.groups(here.name).consumer(name) if error is Error.NONE else None
        if group is None:
            missing = Error.GROUP_ID_NOT_FOUND if error is Error.NONE else error
            found.append({"group_id": name, "error_code": number(missing), "group_state": "",
                          "error_message": f"Group {name} is not a consumer group."})
            continue
        members = tuple({
            "member_id": known, "instance_id": member.instance_id, "member_epoch": member.epoch,
            "client_id": member.client_id, "client_host": CLIENT_HOST, "subscribed_topic_names": member.names,
            "subscribed_topic_regex": member.regex, "member_type": CONSUMER_MEMBER if member.classic is None else 0,
            "assignment": {"topic_partitions": rows(here, member.assigned)},
            "target_assignment": {"topic_partitions": rows(here, group.targets.get(known, ()))},
        } for known, member in group.members.items())
        found.append({"group_id": name, "group_state": group.state, "group_epoch": group.epoch,
                      "assignment_epoch": group.assignment_epoch, "assignor_name": group.assignor, "members": members})
    return {"groups": tuple(found)}


def delete_groups(here: AskedBroker, request: WireRequest) -> Handling:
    """Delete groups that have no members, with their offsets."""
    names = tuple(dict.fromkeys(request.message["groups_names"]))
    answers = (yield tuple(requests.DeleteGroupRequest(request.version, name) for name in names)) if names else ()
    return {"results": tuple({"group_id": name, "error_code": number(answer.error)}
                             for name, answer in zip(names, answers, strict=True))}


WHOLE = (Error.GROUP_ID_NOT_FOUND, Error.NON_EMPTY_GROUP, Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS,
         Error.INVALID_GROUP_ID)
"""Errors of OffsetDelete that are told of the group, not of a partition."""


def offset_delete(here: AskedBroker, request: WireRequest) -> Handling:
    """Delete offsets of a group, of topics that its members are not subscribed to."""
    message, errors = request.message, list[Error]()

    def fields(topic: str, index: int, answer: requests.OffsetDeleteResponse) -> Fields:
        errors.append(answer.error)
        return {"error_code": number(answer.error)}

    found = yield from each(message["topics"], "partitions", lambda topic, index, partition:
                            requests.OffsetDeleteRequest(request.version, message["group_id"], named(topic, index)),
                            fields)
    whole = next((error for error in errors if error in WHOLE), None)
    return {"error_code": NO_ERROR, "topics": found} if whole is None else {
        "error_code": number(whole), "topics": ()}


@at_once
def create_partitions(here: AskedBroker, request: WireRequest) -> Fields:
    """Give topics more partitions."""
    results = []
    times = Counter(topic["name"] for topic in request.message["topics"])
    for topic in {topic["name"]: topic for topic in request.message["topics"]}.values():
        error, reason = _refused(here, topic) if times[topic["name"]] == 1 else (
            "INVALID_REQUEST", "Duplicate topic in request.")
        if error == "NONE" and not request.message["validate_only"]:
            given = topic["assignments"] or ()
            here.cluster.add_partitions(topic["name"], topic["count"], [
                tuple(f"b{id_}" for id_ in row["broker_ids"]) for row in given])
        results.append({"name": topic["name"], "error_code": code(error), "error_message": reason})
    return {"results": tuple(results)}


def _refused(here: AskedBroker, topic: Fields) -> tuple[str, str | None]:
    """Say why a topic gets no more partitions (`ReplicationControlManager.createPartitions`)."""
    name, count, given = topic["name"], topic["count"], topic["assignments"]
    before = here.partitions(name)
    if before == 0:
        return "UNKNOWN_TOPIC_OR_PARTITION", None
    if count == before:
        return "INVALID_PARTITIONS", f"Topic already has {before} partition(s)."
    if count < before:
        return "INVALID_PARTITIONS", (
            f"The topic {name} currently has {before} partition(s); {count} would not be an increase.")
    if count - before > room(here):
        return "INVALID_PARTITIONS", f"there is room for {room(here)} more partitions in all"
    if given is not None:
        if len(given) != count - before:
            return "INVALID_REPLICA_ASSIGNMENT", (
                f"Attempted to add {count - before} additional partition(s), but only {len(given)} assignment(s) "
                "were specified.")
        rows = [{"partition_index": n, "broker_ids": row["broker_ids"]} for n, row in enumerate(given)]
        if (reason := misassigned(rows, here.settings.brokers)) is not None:
            return "INVALID_REPLICA_ASSIGNMENT", reason
    return "NONE", None


@at_once
def describe_log_dirs(here: AskedBroker, request: WireRequest) -> Fields:
    """Return the sizes of the logs that the broker has, of all topics or of some."""
    asked = request.message["topics"]
    wanted = None if asked is None else {(row["topic"], index) for row in asked for index in row["partitions"]}
    topics = []
    for topic, count in here.cluster.topics.items():
        rows = [
            {"partition_index": index, "partition_size": _size(here, partition_name(topic, index)), "offset_lag": 0,
             "is_future_key": False} for index in range(count)
            if (wanted is None or (topic, index) in wanted)
            and here.name in here.cluster.replicas(partition_name(topic, index))]
        if rows:
            topics.append({"name": topic, "partitions": tuple(rows)})
    return {"error_code": NO_ERROR, "results": ({
        "error_code": NO_ERROR, "log_dir": configs.LOG_DIR, "topics": tuple(topics), "total_bytes": UNKNOWN_SIZE,
        "usable_bytes": UNKNOWN_SIZE},)}


def _size(here: AskedBroker, p: str) -> int:
    return sum(size_of(batch) for batch in here.cluster.log_on(p, here.name).batches)


@at_once
def elect_leaders(here: AskedBroker, request: WireRequest) -> Fields:
    """Let preferred replicas lead, or any replica where nobody leads and an unclean election is asked for (KIP-460)."""
    unclean = request.message.get("election_type", PREFERRED) == UNCLEAN
    asked = request.message["topic_partitions"]
    wanted: list[tuple[str, Iterable[int]]] = [(row["topic"], row["partitions"]) for row in asked or ()]
    if asked is None:
        wanted = [(topic, range(count)) for topic, count in here.cluster.topics.items()]
    rows = []
    for topic, indexes in wanted:
        results = []
        for index in indexes:
            error = (here.cluster.elect_preferred(named(topic, index), unclean)
                     if 0 <= index < here.partitions(topic) else Error.UNKNOWN_TOPIC_OR_PARTITION)
            if asked is not None or error is not Error.ELECTION_NOT_NEEDED:
                results.append({"partition_id": index, "error_code": number(error), "error_message": None})
        if results:
            rows.append({"topic": topic, "partition_result": tuple(results)})
    return {"error_code": NO_ERROR, "replica_election_results": tuple(rows)}
