"""Models of the compactor as actors, and runs of them."""

from __future__ import annotations

MODELS = ("compaction/pulsar/actors", "compaction/pulsar-trimming/actors")
