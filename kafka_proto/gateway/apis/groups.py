"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup: the classic group protocol."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any

from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import Api, AskedBroker, Handling, Reply, ask, code, not_coordinator, number
from kafka_proto.requests import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)

Asking = Callable[[WireRequest], Generator[tuple[object, ...], tuple[Any, ...], Fields]]


def coordinated(api: Asking) -> Api:
    """Return an API of groups that refuses those of another broker."""

    @wraps(api)
    def refusing(here: AskedBroker, request: WireRequest) -> Handling:
        if wrong := not_coordinator(here, request.message["group_id"], is_group=True):
            return Reply({"error_code": wrong})
        return Reply((yield from api(request)))

    return refusing


@coordinated
def join_group(request: WireRequest) -> Generator[tuple[object, ...], tuple[Any, ...], Fields]:
    """Let a member join; its answer comes with the new generation."""
    message = request.message
    session = message["session_timeout"]
    found = yield from ask(JoinGroupRequest(
        request.version, message["group_id"], session, message.get("rebalance_timeout", session), message["member_id"],
        message.get("group_instance_id"), message["protocol_type"],
        tuple((protocol["name"], protocol["metadata"]) for protocol in message["protocols"]), request.client_id or "",
    ))
    members = tuple({"member_id": known, "group_instance_id": instance, "metadata": said}
                    for known, instance, said in found.members)
    return {**_protocol(found), "generation_id": found.generation_id, "leader": found.leader,
            "member_id": found.member_id, "members": members, "skip_assignment": found.skip_assignment}


@coordinated
def sync_group(request: WireRequest) -> Generator[tuple[object, ...], tuple[Any, ...], Fields]:
    """Take the leader's assignments, and tell a member its own."""
    message = request.message
    if request.version >= 5 and None in (message["protocol_type"], message["protocol_name"]):
        return {"error_code": code("INCONSISTENT_GROUP_PROTOCOL")}
    found = yield from ask(SyncGroupRequest(
        request.version, message["group_id"], message["generation_id"], message["member_id"],
        message.get("group_instance_id"), message.get("protocol_type"), message.get("protocol_name"),
        tuple((given["member_id"], given["assignment"]) for given in message["assignments"]),
    ))
    return {**_protocol(found), "assignment": found.assignment}


def _protocol(found: Any) -> Fields:
    return {"error_code": number(found.error), "protocol_type": found.protocol_type,
            "protocol_name": found.protocol_name}


@coordinated
def heartbeat(request: WireRequest) -> Generator[tuple[object, ...], tuple[Any, ...], Fields]:
    """Hear of a member, and say whether it has to join again."""
    message = request.message
    found = yield from ask(HeartbeatRequest(
        request.version, message["group_id"], message["generation_id"], message["member_id"],
        message.get("group_instance_id")))
    return {"error_code": number(found.error)}


@coordinated
def leave_group(request: WireRequest) -> Generator[tuple[object, ...], tuple[Any, ...], Fields]:
    """Let members go, from version 3 on several of them, each with its own error."""
    message = request.message
    leaving = message["members"] if request.version >= 3 else ({"member_id": message["member_id"]},)
    found = yield from ask(LeaveGroupRequest(request.version, message["group_id"], tuple(
        MemberIdentity(member["member_id"], member.get("group_instance_id")) for member in leaving)))
    members = tuple({"member_id": member.member_id, "group_instance_id": member.group_instance_id,
                     "error_code": number(member.error)} for member in found.members)
    return {"error_code": number(found.error), **({"members": members} if request.version >= 3 else {})}
