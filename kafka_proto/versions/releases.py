"""Which version a release of Kafka at a level of `transaction.version` is."""

from __future__ import annotations

from kafka_proto.versions.broker_version import BrokerVersion
from kafka_proto.versions.kip_360 import KIP_360
from kafka_proto.versions.kip_890 import KIP_890, KIP_890_4_2, KIP_890_4_4, KIP_890_4_4_LEVEL_1
from kafka_proto.versions.kip_890_part_1 import KIP_890_PART_1

RELEASES: dict[tuple[str, int], BrokerVersion] = {
    ("3.5", 0): KIP_360,
    ("3.9", 0): KIP_890_PART_1,
    ("3.9", 1): KIP_890_PART_1,
    ("4.0", 2): KIP_890,
    ("4.2", 2): KIP_890_4_2,
    ("4.4", 1): KIP_890_4_4_LEVEL_1,
    ("4.4", 2): KIP_890_4_4,
}
"""By the first two numbers of a release and the level."""


def version_of(release: str, level: int) -> BrokerVersion:
    """Return the version that a release is at a level: its own, or that of the newest release before it.

    Raises ValueError, with those that there are.
    """
    asked = _minor(release)
    known = sorted((_minor(name), name) for name, at in RELEASES if at == level and _minor(name) <= asked)
    if not known:
        there = ", ".join(f"{name} at level {at}" for name, at in RELEASES)
        raise ValueError(f"no version stands for Kafka {release} at transaction.version {level}; there are {there}")
    return RELEASES[known[-1][1], level]


def _minor(release: str) -> tuple[int, int]:
    major, minor = release.split(".")[:2]
    return int(major), int(minor)
