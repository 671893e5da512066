"""Which version a release of Kafka at a level of `transaction.version` is: those that were recorded on real brokers."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_proto.broker.versions.broker_version import BrokerVersion
from kafka_proto.broker.versions.kip_360 import KIP_360
from kafka_proto.broker.versions.kip_890 import KIP_890, KIP_890_4_1, KIP_890_4_2, KIP_890_4_4, at_level
from kafka_proto.broker.versions.kip_890_part_1 import KIP_890_PART_1, KIP_890_PART_1_3_6, KIP_890_PART_1_3_7


def _every_level(version: BrokerVersion) -> tuple[BrokerVersion, ...]:
    return at_level(0, version), at_level(1, version), version


RELEASES: Mapping[str, tuple[BrokerVersion, ...]] = {
    "3.5.2": (KIP_360,),
    "3.6.2": (KIP_890_PART_1_3_6,),
    "3.7.2": (KIP_890_PART_1_3_7,),
    "3.8.1": (KIP_890_PART_1,),
    "3.9.2": (KIP_890_PART_1, KIP_890_PART_1),
    "4.0.0": _every_level(KIP_890),
    "4.1.1": _every_level(KIP_890_4_1),
    "4.2.0": _every_level(KIP_890_4_2),
    "4.3.1": _every_level(KIP_890_4_4),
    "4.4.0": _every_level(KIP_890_4_4),
}
"""By release: the version that it is at each level, from 0 on."""


def version_of(release: str, level: int) -> BrokerVersion:
    """Return the version that a release is at a level. Raises ValueError, with those that there are, for another."""
    versions = RELEASES.get(release, ())
    if level not in range(len(versions)):
        there = ", ".join(f"{name} at {_levels(len(versions))}" for name, versions in RELEASES.items())
        raise ValueError(f"no version stands for Kafka {release} at transaction.version {level}; there are {there}")
    return versions[level]


def _levels(count: int) -> str:
    return "0" if count == 1 else f"0 to {count - 1}"
