"""KIP-497: AsyncIsr's module says nothing of truncation, nor of fences; ours are KIP-320's."""

from __future__ import annotations

import attrs

from kafka_proto.replication.versions.kip_320 import KIP_320

ASYNC_ISR = attrs.evolve(KIP_320, name="async-isr", title="ISR changes proposed to the controller")
