"""Where the project's files are, seen from its tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
DATA = TESTS / "data"
TRAILS = TESTS / "trails"
SUPPORT = TESTS / "support"
