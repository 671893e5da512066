"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup: the classic group protocol."""

from __future__ import annotations

from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import AskedBroker, Handling, answering, ask, asking, told
from kafka_proto.requests import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)

heartbeat = answering(HeartbeatRequest)


def join_group(here: AskedBroker, request: WireRequest) -> Handling:
    """Let a member join; its answer comes with the new generation."""
    message = request.message
    found = yield from ask(asking(
        JoinGroupRequest, request, rebalance_timeout_ms=message.get("rebalance_timeout", message["session_timeout"]),
        group_instance_id=message.get("group_instance_id"), client_id=request.client_id or "",
        protocols=tuple((protocol["name"], protocol["metadata"]) for protocol in message["protocols"])))
    return told(found, members=tuple(
        {"member_id": known, "group_instance_id": instance, "metadata": said}
        for known, instance, said in found.members))


def sync_group(here: AskedBroker, request: WireRequest) -> Handling:
    """Take the leader's assignments, and tell a member its own."""
    assignments = tuple((given["member_id"], given["assignment"]) for given in request.message["assignments"])
    return told((yield from ask(asking(SyncGroupRequest, request, assignments=assignments))))


def leave_group(here: AskedBroker, request: WireRequest) -> Handling:
    """Let members go, from version 3 on several of them, each with its own error."""
    message = request.message
    leaving = message["members"] if request.version >= 3 else (message,)
    found = yield from ask(asking(LeaveGroupRequest, request, members=tuple(
        MemberIdentity(member["member_id"], member.get("group_instance_id")) for member in leaving)))
    return told(found, members=tuple(map(told, found.members)))
