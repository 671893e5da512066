"""The versions of Kafka's broker, as far as transactions go: a module each, which lists the decisions it is made of.

What one KIP changed is what two modules differ in. No decision asks which version it is in; what depends on a request's
own version is in the decision.
"""

from kafka_proto.broker.versions.broker_version import BrokerVersion
from kafka_proto.broker.versions.kip_98 import KIP_98, KIP_98_0_11
from kafka_proto.broker.versions.kip_360 import KIP_360
from kafka_proto.broker.versions.kip_890 import KIP_890, KIP_890_4_1, KIP_890_4_2, KIP_890_4_4
from kafka_proto.broker.versions.kip_890_part_1 import KIP_890_PART_1, KIP_890_PART_1_3_6, KIP_890_PART_1_3_7
from kafka_proto.broker.versions.releases import RELEASES, version_of

__all__ = [
    "KIP_98", "KIP_98_0_11", "KIP_360", "KIP_890", "KIP_890_4_1", "KIP_890_4_2", "KIP_890_4_4",
    "KIP_890_PART_1", "KIP_890_PART_1_3_6", "KIP_890_PART_1_3_7", "RELEASES", "BrokerVersion", "version_of",
]
