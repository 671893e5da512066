"""One Spark session for all tests of a process, started by the first that asks for it. Without Java it skips."""

from __future__ import annotations

import atexit
from functools import cache
from typing import TYPE_CHECKING

import pytest

from harness.campaign.requirements import require_java
from harness.campaign.spark_session import SETTINGS, start
from harness.model import Refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Tables of tests have some hundred rows: to compile each query first takes Java longer than to interpret it."""


def need_java() -> None:
    """Skip the test that asks, and say why, where there is no Java: neither the machine's nor that of the extra."""
    try:
        require_java()
    except Refusal as error:
        pytest.skip(str(error))


@cache
def spark() -> SparkSession:
    """Return the session of this process, on two cores of this machine."""
    need_java()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in INTERPRETED.items():
            patch.setitem(SETTINGS, name, value)
        session = start(f"local[{CORES}]", is_lean=True)
    atexit.register(session.stop)
    return session
