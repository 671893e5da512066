"""The report of a campaign: its page, and the witnesses next to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from harness.campaign.judging import Rejudged, rejudge
from harness.campaign.report import page
from harness.campaign.report.compare import Comparison, compare
from harness.campaign.report.summary import SHRUNK, Summary, summarize
from harness.campaign.report.witnesses import Witness, write_witnesses
from harness.campaign.store import CampaignStore
from harness.campaign.tables import CampaignTables
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
    again: tuple[Rejudged, ...] | None
    """The outcome of judging the stored histories again; None if that was not asked for."""


def write_report(
    spark: SparkSession, store: CampaignStore, out: Path, since: CampaignStore | None = None, most: int = SHRUNK,
    again: Callable[[CampaignTables], list[Rejudged]] | None = rejudge,
) -> Report:
    """Write the page of a campaign, with what changed since another one; equal tables give equal bytes. Refusal.

    `again` judges the stored histories again; with None they are not judged again.
    """
    tables = CampaignTables(spark, store)
    judged = tuple(again(tables)) if again is not None else None
    summary = summarize(tables, most)
    compared = compare(summarize(CampaignTables(spark, since), most), summary) if since is not None else None
    clusters, errors = write_witnesses(summary, out)
    write_atomically(out, page.write(summary, clusters, errors, compared, judged).splitlines())
    return Report(out, summary, tuple(clusters), compared, judged)
