"""What a version of a broker is: the decisions of each of its roles."""

from __future__ import annotations

import attrs

from kafka_proto.broker.coordinator.coordinator import CoordinatorDecisions
from kafka_proto.broker.group.coordinator import GroupDecisions
from kafka_proto.broker.leader.admission import LeaderDecisions


@attrs.frozen
class BrokerVersion:
    name: str
    title: str
    coordinator: CoordinatorDecisions
    leader: LeaderDecisions
    group: GroupDecisions
