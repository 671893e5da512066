"""What a version of a broker is: the decisions of each of its roles."""

from __future__ import annotations

import attrs

from kafka_proto.coordinator.role import CoordinatorDecisions
from kafka_proto.group.role import GroupDecisions
from kafka_proto.leader.role import LeaderDecisions


@attrs.frozen
class BrokerVersion:
    name: str
    title: str
    coordinator: CoordinatorDecisions
    leader: LeaderDecisions
    group: GroupDecisions
