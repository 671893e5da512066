"""The tables of a campaign: their columns, and how they are written. docs/use/campaigns.md explains each column."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TEXTS = pa.list_(pa.string())
RUNS = pa.schema([
    ("cell", pa.string()), ("seed", pa.int64()), ("model", pa.string()), ("strategy", pa.string()),
    ("sizes", pa.string()), ("settings", pa.string()), ("sweep", pa.string()), ("code", pa.string()),
    ("outcome", pa.string()), ("violated", pa.string()), ("kind", pa.string()), ("reason", pa.string()),
    ("step", pa.int32()), ("steps", pa.int32()), ("fair_from", pa.int32()), ("digest", pa.string()),
    ("faults", TEXTS), ("witnessed", TEXTS), ("anomalies", TEXTS), ("ended", pa.map_(pa.string(), pa.int32())),
    ("kept", pa.bool_()), ("covered", pa.bool_()), ("trail", pa.string()), ("error", pa.string()),
    ("wall_us", pa.int64()),
])
EVENTS = pa.schema([
    ("cell", pa.string()), ("seed", pa.int64()), ("n", pa.int32()), ("at_us", pa.int64()), ("process", pa.string()),
    ("kind", pa.string()), ("action", pa.string()), ("turn", pa.string()), ("values", TEXTS), ("violated", pa.string()),
])
VIOLATIONS = pa.schema([
    ("cell", pa.string()), ("seed", pa.int64()), ("property", pa.string()), ("kind", pa.string()),
    ("step", pa.int32()), ("reason", pa.string()), ("action", pa.string()), ("faults", TEXTS), ("steps", pa.int32()),
])
ANOMALIES = pa.schema([
    ("cell", pa.string()), ("seed", pa.int64()), ("anomaly", pa.string()), ("property", pa.string()),
    ("step", pa.int32()), ("reason", pa.string()), ("faults", TEXTS), ("cases", pa.int32()), ("proof", TEXTS),
])
COVERAGE = pa.schema([
    ("cell", pa.string()), ("first", pa.int64()), ("kind", pa.string()), ("name", pa.string()),
    ("outcome", pa.bool_()), ("state", pa.int64()), ("seed", pa.int64()), ("count", pa.int64()),
])
SCHEMAS: Mapping[str, pa.Schema] = {
    "runs": RUNS, "events": EVENTS, "violations": VIOLATIONS, "anomalies": ANOMALIES, "coverage": COVERAGE,
}
"""The columns in the files; `what` and `day` come from the folders that the files lie in."""
PARTITIONS = ("what", "day")
SORTED = ("seed", "n", "at_us", "first")
"""Columns that are written as differences."""
NESTED = {**{name: f"{name}.list.element" for name in ("values", "faults", "witnessed", "anomalies", "proof")},
          "ended": "ended.key_value.key"}
LEVEL = 15
"""Of zstd: from 17 on it takes longer than making the runs, and gains a few percent."""


def write(path: Path, table: pa.Table) -> None:
    """Write a table to a file so that it is small and can be checked when it is read. Raises OSError."""
    names = table.schema.names
    dictionary = [NESTED.get(name, name) for name in names if name not in (*SORTED, "state", "digest", "wall_us")]
    pq.write_table(
        table, path, compression="zstd", compression_level=LEVEL, use_dictionary=dictionary,
        column_encoding={name: "DELTA_BINARY_PACKED" for name in names if name in SORTED},
        dictionary_pagesize_limit=1 << 28, write_statistics=[n for n in ("cell", "seed") if n in names],
        write_page_checksum=True, row_group_size=1 << 20,
    )
