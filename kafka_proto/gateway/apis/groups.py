"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup: the classic group protocol."""

from __future__ import annotations

from functools import wraps

import attrs

from kafka_proto.broker.group import rebalance
from kafka_proto.broker.group.rebalance import ClassicGroup, Join, Sync
from kafka_proto.gateway.apis.asking import answered, not_coordinator
from kafka_proto.gateway.broker import MOST_GROUPS, Answer, Api, Broker, Token, Turn, code, with_group
from kafka_proto.gateway.connection import Request


def _group(broker: Broker, group_id: str) -> ClassicGroup:
    return broker.groups.get(group_id, ClassicGroup())


def coordinated(api: Api) -> Api:
    """Return an API of groups that refuses those of another broker."""

    @wraps(api)
    def refusing(broker: Broker, request: Request, token: Token) -> Turn:
        wrong = not_coordinator(broker, request.message["group_id"])
        return answered(broker, token, {"error_code": wrong}) if wrong else api(broker, request, token)

    return refusing


@coordinated
def join_group(broker: Broker, request: Request, token: Token) -> Turn:
    """Let a member join; its answer comes with the new generation."""
    message = request.message
    group_id = message["group_id"]
    if not group_id or (group_id not in broker.groups and len(broker.groups) >= MOST_GROUPS):
        return answered(broker, token, {"error_code": code("INVALID_GROUP_ID"), "member_id": message["member_id"]})
    instance = message.get("group_instance_id")
    client = request.client_id or ""
    fresh = f"{instance or client}-{broker.member_ids + 1:08d}"
    asked = Join(
        request.version, message["member_id"], instance, client, message["protocol_type"],
        tuple((protocol["name"], protocol["metadata"]) for protocol in message["protocols"]),
        message["session_timeout"], message.get("rebalance_timeout", message["session_timeout"]),
    )
    group, answers = rebalance.join(_group(broker, group_id), asked, fresh, token, broker.now)
    made = broker.member_ids + (not message["member_id"])
    joined, answered_with = with_group(attrs.evolve(broker, member_ids=made), group_id, group, answers)
    is_made = group_id in broker.groups or not message["member_id"]  # whom nobody knows does not make a group
    return joined if is_made else broker, answered_with


@coordinated
def sync_group(broker: Broker, request: Request, token: Token) -> Turn:
    """Take the leader's assignments, and tell a member its own."""
    message = request.message
    if request.version >= 5 and None in (message["protocol_type"], message["protocol_name"]):
        return answered(broker, token, {"error_code": code("INCONSISTENT_GROUP_PROTOCOL")})
    asked = Sync(
        message["generation_id"], message["member_id"], message.get("group_instance_id"),
        message.get("protocol_type"), message.get("protocol_name"),
        tuple((given["member_id"], given["assignment"]) for given in message["assignments"]),
    )
    group_id = message["group_id"]
    if group_id not in broker.groups:
        return answered(broker, token, {"error_code": code("UNKNOWN_MEMBER_ID" if group_id else "INVALID_GROUP_ID")})
    return with_group(broker, group_id, *rebalance.sync(_group(broker, group_id), asked, token, broker.now))


@coordinated
def heartbeat(broker: Broker, request: Request, token: Token) -> Turn:
    """Hear of a member, and say whether it has to join again."""
    message = request.message
    group_id = message["group_id"]
    if group_id not in broker.groups:
        return answered(broker, token, {"error_code": code("UNKNOWN_MEMBER_ID" if group_id else "INVALID_GROUP_ID")})
    group, error = rebalance.heartbeat(_group(broker, group_id), message["member_id"],
                                       message.get("group_instance_id"), message["generation_id"], broker.now)
    return answered(with_group(broker, group_id, group, ())[0], token, {"error_code": code(error)})


@coordinated
def leave_group(broker: Broker, request: Request, token: Token) -> Turn:
    """Let members go, from version 3 on several of them, each with its own error."""
    message = request.message
    group_id = message["group_id"]
    leaving = message["members"] if request.version >= 3 else ({"member_id": message["member_id"]},)
    if not group_id:
        return answered(broker, token, {"error_code": code("INVALID_GROUP_ID")})
    if group_id not in broker.groups:
        return answered(broker, token, _left(request, leaving, ["UNKNOWN_MEMBER_ID"] * len(leaving)))
    errors, others = [], list[Answer]()
    for member in leaving:
        group, error, answers = rebalance.leave(
            _group(broker, group_id), member["member_id"], member.get("group_instance_id"), broker.now)
        broker, more = with_group(broker, group_id, group, answers)
        errors.append(error)
        others += more
    return broker, (*others, Answer(token, _left(request, leaving, errors)))


def _left(request: Request, leaving: tuple[dict[str, str], ...], errors: list[str]) -> dict[str, object]:
    if request.version < 3:
        return {"error_code": code(errors[0])}
    return {"error_code": code("NONE"), "members": tuple(
        {"member_id": member["member_id"], "group_instance_id": member.get("group_instance_id"),
         "error_code": code(error)}
        for member, error in zip(leaving, errors, strict=True))}
