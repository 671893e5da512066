"""Where the project's files are, seen from its tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
DATA = TESTS / "data"
TRAILS = TESTS / "trails"
SUPPORT = TESTS / "support"
RECORDED = ROOT / "kafka_proto" / "conformance" / "recorded"
"""The situations that were recorded on real brokers."""
