"""One Spark session for all tests of a process, started by the first that asks for it."""

from __future__ import annotations

import atexit
from functools import cache
from typing import TYPE_CHECKING

from harness.pipeline.session import start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2


@cache
def spark() -> SparkSession:
    """Return the session of this process, on two cores of this machine."""
    session = start(f"local[{CORES}]")
    atexit.register(session.stop)
    return session
