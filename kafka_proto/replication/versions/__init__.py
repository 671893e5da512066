"""The versions of the replication protocol for actors, a module for each; a new one is a module and a line here."""

from __future__ import annotations

from kafka_proto.replication.versions.async_isr import ASYNC_ISR
from kafka_proto.replication.versions.kip_101 import KIP_101
from kafka_proto.replication.versions.kip_279 import KIP_279
from kafka_proto.replication.versions.kip_320 import KIP_320
from kafka_proto.replication.versions.kip_320_first_try import KIP_320_FIRST_TRY
from kafka_proto.replication.versions.truncate_to_high_watermark import TRUNCATE_TO_HIGH_WATERMARK

ALL = (TRUNCATE_TO_HIGH_WATERMARK, KIP_101, KIP_279, KIP_320_FIRST_TRY, KIP_320, ASYNC_ISR)
VERSIONS = {version.name: version for version in ALL}
