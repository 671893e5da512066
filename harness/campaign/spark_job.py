"""A Spark job in a thread of its own, so that interrupts are handled and progress is shown meanwhile."""

from __future__ import annotations

import os
import re
import threading
from typing import TYPE_CHECKING, Any

from harness.record.files import reason_of

if TYPE_CHECKING:
    from pyspark import SparkContext


class SparkJob:
    """Collects a distributed data set; `over` is set when that is done, or has failed."""

    def __init__(self, context: SparkContext, data: Any) -> None:
        self.over = threading.Event()
        self.failure: Exception | None = None
        self.found: list[Any] = []
        self._context = context
        self._data = data
        self._first: int | None = None
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        try:
            self.found = self._data.collect()
        except Exception as error:
            self.failure = error
        finally:
            self.over.set()

    def done(self) -> float:
        """Return which part of the first stage's tasks is done."""
        tracker = self._context.statusTracker()
        active = sorted(tracker.getActiveStageIds())
        if self._first is None:
            self._first = min(active, default=None)
        if not active or self._first != active[0]:
            return 0.0 if self._first is None else 1.0
        info = tracker.getStageInfo(active[0])
        return info.numCompletedTasks / max(1, info.numTasks) if info is not None else 0.0

    def cancel(self) -> None:
        """End the job; what its tasks have not put away themselves is lost."""
        self._context.cancelAllJobs()
        self._thread.join(10)


def unwritable(begin: str, folder: str, error: OSError) -> RuntimeError:
    """Return an error of the disk as a worker's own words, which reach the driver."""
    why = os.strerror(error.errno) if error.errno else reason_of(error)  # Arrow has a text of its own
    return RuntimeError(f"{begin}{folder} cannot be written to, {why}; make room there and start it again.")


def last_words(error: Exception, begin: str) -> str:
    """Return in one sentence why a job failed: a worker's own words, which begin so, if it had any."""
    said = str(error)
    found = re.search(f"{begin}(.*?)\\.(?:\n|$)", said)
    if found is not None:
        return f"{begin}{found.group(1)}"
    lacking = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", said)
    if lacking is not None:
        return (f"{begin}a worker cannot import {lacking.group(1)}; install the project on each machine, and let "
                "PYSPARK_PYTHON name the Python that has it")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line) and "Py4J" not in line]
    return f"{begin}Spark gave up, {(errors or lines or ['no reason given'])[-1][:300]}; see its log"
