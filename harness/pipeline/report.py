"""The report of a campaign: its page, and the witnesses beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from harness.pipeline import page
from harness.pipeline.compare import Comparison, compare
from harness.pipeline.store import Store
from harness.pipeline.summary import SHRUNK, Summary, summarize
from harness.pipeline.witnesses import Witness, write_witnesses
from harness.record.files import write_atomically

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@attrs.frozen
class Report:
    """A report that was written."""

    page: Path
    summary: Summary
    witnesses: tuple[Witness, ...]
    """Of the clusters, in their order."""
    since: Comparison | None


def write_report(
    spark: SparkSession, store: Store, out: Path, since: Store | None = None, most: int = SHRUNK
) -> Report:
    """Write the page of a campaign, with what changed since another one; equal tables give equal bytes. Refusal."""
    summary = summarize(spark, store, most)
    compared = compare(summarize(spark, since, most), summary) if since is not None else None
    clusters, errors = write_witnesses(summary, out)
    write_atomically(out, page.write(summary, clusters, errors, compared).splitlines())
    return Report(out, summary, tuple(clusters), compared)
