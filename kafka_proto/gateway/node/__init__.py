"""One broker in process: all roles of a version on logs that are replicated at once, run to rest after each request."""

from kafka_proto.gateway.node.node import deliver_held, elect, handle, new_node, next_deadline, pass_time
from kafka_proto.gateway.node.requests import list_offsets
from kafka_proto.gateway.node.state import Node, NodeState, running, state_of
from kafka_proto.gateway.node.topics import with_topic, without_topic
from kafka_proto.gateway.node.work import carry

__all__ = [
    "Node", "NodeState", "carry", "deliver_held", "elect", "handle", "list_offsets", "new_node", "next_deadline",
    "pass_time", "running", "state_of", "with_topic", "without_topic",
]
