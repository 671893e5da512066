"""The folder of a campaign: what it is, which blocks of runs are committed, and the Parquet files of these.

A block is committed by its marker in `blocks/`, which is written last and names the block's files with their digests.
Files come to their place complete, by renaming; readers take those that a marker names, and no others.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from harness.model import Refusal
from harness.pipeline.cells import Cell
from harness.pipeline.places import place, stamp
from harness.pipeline.schemas import SCHEMAS, write
from harness.record.files import compact, reason_of, write_atomically

FORMAT = "kafka-proto/campaign"
VERSION = 1
MANIFEST, MARKERS, PARTS = "campaign.json", "blocks", ".parts"


@attrs.frozen
class Block:
    """A committed block: the seeds from `first` up to `last`, which is not one of them, of a cell."""

    cell: str
    first: int
    last: int
    runs: int
    """Fewer than there are seeds where a systematic search came to its end."""
    failing: int
    errors: int
    steps: int
    files: Mapping[str, Mapping[str, Any]]
    """For each table that the block has rows of: the path in the campaign's folder, rows, bytes and digest."""
    day: str

    @property
    def name(self) -> str:
        return f"{self.cell}-{self.first}-{self.last}"


@attrs.frozen
class Manifest:
    """What makes a campaign this one and no other."""

    cells: tuple[Cell, ...]
    keep: str
    """`all`, `failing` or `sample=F`: of which runs events are kept."""
    coverage: float
    """The part of the blocks whose coverage is measured."""
    block: int
    """Seeds of a block."""

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as a JSON object."""
        return {"format": FORMAT, "version": VERSION, "keep": self.keep, "coverage": self.coverage,
                "block": self.block, "cells": {cell.key: cell.to_json() for cell in self.cells}}


class Store:
    """The folder of one campaign."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, manifest: Manifest) -> None:
        """Make the folder that of a campaign, or make sure that it is. Raises Refusal where it is another's."""
        path = self.folder / MANIFEST
        if not path.exists():
            if any((self.folder / name).exists() for name in (MARKERS, *SCHEMAS)):
                raise Refusal(f"{self.folder} holds tables but no {MANIFEST}; give another place with --out")
            self.describe(manifest)
        told, mine = compact(self._read_manifest()), compact(manifest.to_json())
        if told != mine:
            raise Refusal(f"{self.folder} holds another campaign: {_difference(json.loads(told), json.loads(mine))}; "
                          "give another place with --out")
        for name in (MARKERS, PARTS):
            (self.folder / name).mkdir(exist_ok=True)

    def describe(self, manifest: Manifest) -> None:
        """Write down what the tables in the folder are. Raises Refusal."""
        data = json.dumps(manifest.to_json(), ensure_ascii=False, sort_keys=True, indent=1)
        write_atomically(self.folder / MANIFEST, [data])

    def manifest(self) -> Manifest:
        """Return what the campaign is. Raises Refusal where the folder is none of a campaign."""
        data = self._read_manifest()
        return Manifest(tuple(Cell.from_json(cell) for cell in data["cells"].values()), data["keep"],
                        data["coverage"], data["block"])

    def _read_manifest(self) -> dict[str, Any]:
        path = self.folder / MANIFEST
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise Refusal(f"{self.folder} holds no campaign: there is no {MANIFEST}; give the --out of one") from None
        except OSError as error:
            raise Refusal(f"cannot read {path}: {reason_of(error)}; give the folder of a campaign") from None
        except ValueError:
            data = {}
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
            raise Refusal(f"{path} is damaged, or of another version; restore it, or give another place with --out")
        return data

    def committed(self, known: Mapping[str, Block] | None = None) -> dict[str, Block]:
        """Return the committed blocks by name, in order; those `known` from before are not read again. Refusal."""
        known = known or {}
        names = sorted(path.name.removesuffix(".json") for path in (self.folder / MARKERS).glob("*.json")
                       if not path.name.startswith("."))
        return {name: known.get(name) or self._marker(name) for name in names}

    def _marker(self, name: str) -> Block:
        path = self.folder / MARKERS / f"{name}.json"
        try:
            block = Block(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise Refusal(f"{path} is damaged; remove it and start the campaign again, which makes its runs anew"
                          ) from None
        return block

    def is_committed(self, name: str) -> bool:
        """Say whether a block of this name is committed."""
        return (self.folder / MARKERS / f"{name}.json").is_file()

    def commit(self, cell: Cell, first: int, last: int, day: str, tables: Mapping[str, pa.Table],
               counts: Mapping[str, int]) -> Block:
        """Write the tables of a block, and then its marker. Raises OSError, and leaves nothing half-written."""
        name = f"{cell.key}-{first}-{last}"
        files = {table: self._put(table, cell.what, day, name, rows) for table, rows in tables.items() if len(rows)}
        block = Block(cell.key, first, last, files=files, day=day, **counts)
        self._place(self.folder / MARKERS / f"{name}.json",
                    lambda path: path.write_text(compact(attrs.asdict(block)) + "\n", encoding="utf-8"))
        return block

    def _put(self, table: str, what: str, day: str, name: str, rows: pa.Table) -> dict[str, Any]:
        inside = f"{table}/what={quote(what, safe='')}/day={day}/{name}.parquet"
        path = self.folder / inside
        self._place(path, lambda part: write(part, rows))
        return {"path": inside, "rows": len(rows), **stamp(path)}

    def _place(self, path: Path, put: Any) -> None:
        """Let a file be written to a hidden place, and rename it to its own."""
        parts = self.folder / PARTS
        parts.mkdir(exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        place(path, put, parts)

    def clear_parts(self) -> None:
        """Remove what was being written when somebody was killed."""
        shutil.rmtree(self.folder / PARTS, ignore_errors=True)

    def files(self, table: str, blocks: Iterable[Block]) -> list[Path]:
        """Return the files of a table in these blocks."""
        return [self.folder / block.files[table]["path"] for block in blocks if table in block.files]

    def verify(self, blocks: Iterable[Block]) -> None:
        """Raise Refusal unless every file of these blocks is as it was written."""
        for block in blocks:
            for file in block.files.values():
                path = self.folder / file["path"]
                try:
                    found = stamp(path)
                except OSError as error:
                    found = {"why": reason_of(error)}
                if any(found.get(name) != file[name] for name in ("bytes", "digest")):
                    marker = self.folder / MARKERS / f"{block.name}.json"
                    raise Refusal(f"{path} is {'damaged' if 'bytes' in found else 'not readable'}; remove {marker} and "
                                  "start the campaign again, which makes the runs of this block anew")


def read(path: Path, table: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows in batches, with repeated texts as dictionaries. Raises Refusal for a damaged file."""
    repeated = ["cell", "process", "kind", "action", "turn", "violated"] if table == "events" else []
    try:
        with pq.ParquetFile(path, read_dictionary=repeated, page_checksum_verification=True) as file:
            yield from file.iter_batches(1 << 16, columns=columns)
    except (OSError, pa.ArrowException) as error:
        said = str(error).splitlines()[0]
        raise Refusal(f"{path} is damaged ({said}); remove its block's marker and start the campaign again") from None


def _difference(told: dict[str, Any], mine: dict[str, Any]) -> str:
    """Return in words how two manifests differ."""
    before, now = (sorted({cell["what"] for cell in data["cells"].values()}) for data in (told, mine))
    if before != now:
        return f"its scenarios and models are {', '.join(before)}"
    codes = [{cell["code"] for cell in data["cells"].values()} for data in (told, mine)]
    if codes[0] != codes[1]:
        return "its runs were made by another version of the code"
    for name in ("keep", "coverage", "block"):
        if told[name] != mine[name]:
            return f"its {name} is {told[name]}, not {mine[name]}"
    return "its strategies, settings, sizes or steps differ"
