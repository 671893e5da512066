"""Campaigns that tests make with the command line, and the rows that they come to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from harness.campaign.store import MARKERS, CampaignStore
from support.commands.command_line import Outcome, call
from support.spark.spark_session import spark


def made(out: Path, *arguments: object, runs: int, block: int) -> Outcome:
    """Make a campaign on this process's session."""
    spark()
    outcome = call("campaign", *arguments, "--runs", runs, "--out", out, "--block", block)
    assert outcome.code == 0, outcome.err
    return outcome


def markers(out: Path) -> int:
    """Return how many blocks are committed."""
    return len(list((out / MARKERS).glob("*.json")))


def rows_by_table(out: Path, *tables: str) -> dict[str, list[dict[str, Any]]]:
    """Return the committed rows by table, without the clock's column, blocks in the order of their names."""
    store = CampaignStore(out)
    blocks = store.committed()
    store.verify(blocks.values())
    return {
        table: [
            {name: value for name, value in row.items() if name != "wall_us"}
            for path in store.files(table, (blocks[name] for name in sorted(blocks)))
            for row in pq.ParquetFile(path).read().to_pylist()
        ]
        for table in tables
    }
