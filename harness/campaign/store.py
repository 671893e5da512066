"""The folder of a campaign: what it is, which blocks of runs are committed, and the Parquet files of these.

A block is committed by its marker in `blocks/`, which comes last and names the block's files with their digests.
Files are renamed into place complete, once they are on the disk; readers take those that a marker names, and
no others.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from harness.campaign.cells import Cell
from harness.campaign.durable_files import MISSING, damage, hidden, make_folder, show, stamp, to_disk
from harness.campaign.locks import alone, committing, shut_out
from harness.campaign.schemas import SCHEMAS, write
from harness.model import Refusal
from harness.record.files import compact, reason_of, write_atomically

FORMAT = "kafka-proto/campaign"
VERSION = 1
MANIFEST, MARKERS, PARTS, LOG = "campaign.json", "blocks", ".parts", "spark.log"
NAME = re.compile(r"[0-9a-f]{16}-\d+-\d+\.parquet")
"""The name of a block's file."""


@attrs.frozen
class CommittedBlock:
    """A committed block: the seeds from `first` up to `last`, which is not one of them, of a cell."""

    cell: str
    first: int
    last: int
    runs: int
    """Fewer than there are seeds where a systematic search has ended."""
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
    """`all`, `failing` or `sample=F`: the runs to keep events of."""
    coverage: float
    """The part of the runs whose coverage is measured."""
    block: int
    """Seeds of a block."""

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as a JSON object."""
        return {"format": FORMAT, "version": VERSION, "keep": self.keep, "coverage": self.coverage,
                "block": self.block, "cells": {cell.key: cell.to_json() for cell in self.cells}}


class CampaignStore:
    """The folder of one campaign; with a driver's token, blocks are committed as long as it has the folder."""

    def __init__(self, folder: Path, token: str = "") -> None:
        self.folder = folder
        self.token = token

    @contextmanager
    def alone(self, manifest: Manifest) -> Iterator[None]:
        """Have the folder as that of a campaign until the block ends, as the only driver. Raises Refusal.

        What others left that were killed is cleared away. Within such a block, another one changes nothing.
        """
        if self.token:
            yield
            return
        self._look(manifest)
        with alone(self.folder, "--out") as token:
            self.token = token
            try:
                self.begin(manifest)
                self._tidy()
                yield
            finally:
                self.token = ""

    def begin(self, manifest: Manifest) -> None:
        """Make the folder that of a campaign, or make sure that it is. Raises Refusal if it is another's."""
        if not self._look(manifest):
            self.describe(manifest)
        for name in (MARKERS, PARTS):
            (self.folder / name).mkdir(exist_ok=True)

    def _look(self, manifest: Manifest) -> bool:
        """Say whether the folder is that of a campaign already. Raises Refusal if it is something else's."""
        if not (self.folder / MANIFEST).exists():
            try:
                others = sorted(path.name for path in self.folder.iterdir() if path.name[0] != "." and path.name != LOG)
            except FileNotFoundError:
                others = []
            except OSError as error:
                raise Refusal(f"cannot read {self.folder}: {reason_of(error)}; give another place with --out") from None
            if others:
                raise Refusal(f"{self.folder} holds {others[0]}, but no {MANIFEST}; give a new folder with --out")
            return False
        kept, mine = compact(self._read_manifest()), compact(manifest.to_json())
        if kept != mine:
            raise Refusal(f"{self.folder} holds another campaign: {_difference(json.loads(kept), json.loads(mine))}; "
                          "give another place with --out")
        return True

    def _tidy(self) -> None:
        """Remove what killed processes had written but not committed. Raises Refusal."""
        self.clear_parts()
        named = {file["path"] for block in self.committed().values() for file in block.files.values()}
        with suppress(OSError), self._turn():
            for path in (path for table in SCHEMAS for path in (self.folder / table).glob("what=*/day=*/*.parquet")):
                if NAME.fullmatch(path.name) and path.relative_to(self.folder).as_posix() not in named:
                    path.unlink()

    def describe(self, manifest: Manifest) -> None:
        """Write down what the tables in the folder are. Raises Refusal."""
        data = json.dumps(manifest.to_json(), ensure_ascii=False, sort_keys=True, indent=1)
        write_atomically(self.folder / MANIFEST, [data])
        for path in (self.folder / MANIFEST, self.folder):
            to_disk(path)

    def manifest(self) -> Manifest:
        """Return what the campaign is. Raises Refusal if the folder is none of a campaign."""
        return _manifest(self._read_manifest())

    def found(self) -> Manifest | None:
        """Return what the campaign is, or None where the folder is none of a campaign yet. Raises Refusal."""
        return self.manifest() if (self.folder / MANIFEST).exists() else None

    def _read_manifest(self) -> dict[str, Any]:
        path = self.folder / MANIFEST
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise Refusal(f"{self.folder} holds no campaign: there is no {MANIFEST}; give another folder") from None
        except OSError as error:
            raise Refusal(f"cannot read {path}: {reason_of(error)}; give the folder of a campaign") from None
        except ValueError:
            data = {}
        try:
            if data["format"] != FORMAT or data["version"] != VERSION:
                raise ValueError
            _manifest(data)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise Refusal(f"{path} is damaged, or of another version; restore it, or give another place with --out"
                          ) from None
        return dict(data)

    def committed(self, known: Mapping[str, CommittedBlock] | None = None) -> dict[str, CommittedBlock]:
        """Return the committed blocks by name, in order; those `known` from before are not read again. Refusal."""
        known = known or {}
        names = sorted(path.name.removesuffix(".json") for path in (self.folder / MARKERS).glob("*.json")
                       if not path.name.startswith("."))
        return {name: known.get(name) or self._marker(name) for name in names}

    def _marker(self, name: str) -> CommittedBlock:
        path = self.folder / MARKERS / f"{name}.json"
        try:
            block = CommittedBlock(**json.loads(path.read_text(encoding="utf-8")))
            if block.name != name or not all({"path", "bytes", "digest"} <= set(file) for file in block.files.values()):
                raise ValueError
        except (OSError, ValueError, TypeError, AttributeError):
            raise Refusal(f"{path} is damaged; remove it and start the campaign again, which makes its runs anew"
                          ) from None
        return block

    def is_committed(self, name: str) -> bool:
        """Say whether a block of this name is committed."""
        return (self.folder / MARKERS / f"{name}.json").is_file()

    def commit(self, cell: Cell, first: int, last: int, day: str, tables: Mapping[str, pa.Table],
               counts: Mapping[str, int]) -> CommittedBlock:
        """Write the tables of a block, and then its marker, unless another process did meanwhile; return the block.

        Raises OSError, and leaves nothing half-written; Refusal if the folder has another driver by now.
        """
        name = f"{cell.key}-{first}-{last}"
        parts = self.folder / PARTS
        parts.mkdir(exist_ok=True)
        made: list[tuple[Path, Path]] = []

        def part_of(inside: str) -> Path:
            made.append((hidden(Path(inside), parts), self.folder / inside))
            return made[-1][0]

        try:
            files = {}
            for table, rows in ((table, rows) for table, rows in tables.items() if len(rows)):
                inside = f"{table}/what={quote(cell.what, safe='')}/day={day}/{name}.parquet"
                part = part_of(inside)
                write(part, rows)
                files[table] = {"path": inside, "rows": len(rows), **stamp(part)}
            block = CommittedBlock(cell.key, first, last, files=files, day=day, **counts)
            part_of(f"{MARKERS}/{name}.json").write_text(compact(attrs.asdict(block)) + "\n", encoding="utf-8")
            for part, _ in made:
                to_disk(part)
            with self._turn():
                for part, path in () if self.is_committed(name) else made:
                    make_folder(path.parent)
                    show(part, path)
            return block
        finally:
            for part, _ in made:
                with suppress(OSError):
                    part.unlink()

    def _turn(self) -> AbstractContextManager[None]:
        """Be the only one to commit something, where the folder has a driver."""
        return committing(self.folder, self.token) if self.token else nullcontext()

    def end_commits(self) -> None:
        """Let no worker commit anything any more, so that what is committed can be counted. Raises Refusal."""
        try:
            shut_out(self.folder)
        except OSError as error:
            raise Refusal(f"{self.folder} cannot be written to: {reason_of(error)}; make room there and start the "
                          "campaign again") from None

    def clear_parts(self) -> None:
        """Remove what killed processes were writing."""
        shutil.rmtree(self.folder / PARTS, ignore_errors=True)

    def files(self, table: str, blocks: Iterable[CommittedBlock]) -> list[Path]:
        """Return the files of a table in these blocks."""
        return [self.folder / block.files[table]["path"] for block in blocks if table in block.files]

    def verify(self, blocks: Iterable[CommittedBlock]) -> None:
        """Raise Refusal unless every file of these blocks is as it was written."""
        for block in blocks:
            for file in block.files.values():
                path = self.folder / file["path"]
                if how := damage(path, file):
                    marker = self.folder / MARKERS / f"{block.name}.json"
                    raise Refusal(f"{path} is {'not readable' if how == MISSING else how}; remove {marker} and start "
                                  "the campaign again, which makes the runs of this block anew")


def read(path: Path, table: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows in batches, with repeated texts as dictionaries. Raises Refusal for a damaged file."""
    repeated = ["cell", "process", "kind", "action", "turn", "violated"] if table == "events" else []
    try:
        with pq.ParquetFile(path, read_dictionary=repeated, page_checksum_verification=True) as file:
            yield from file.iter_batches(1 << 16, columns=columns)
    except (OSError, pa.ArrowException) as error:
        said = str(error).splitlines()[0]
        raise Refusal(f"{path} is damaged ({said}); remove its block's marker and start the campaign again") from None


def _manifest(data: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a JSON object. Raises AttributeError, KeyError or TypeError where it is none."""
    return Manifest(tuple(Cell.from_json(cell) for cell in data["cells"].values()), data["keep"], data["coverage"],
                    data["block"])


def _difference(kept: dict[str, Any], mine: dict[str, Any]) -> str:
    """Return in words how two manifests differ."""
    before, now = (sorted({cell["what"] for cell in data["cells"].values()}) for data in (kept, mine))
    if before != now:
        return f"its scenarios and models are {', '.join(before)}"
    codes = [{cell["code"] for cell in data["cells"].values()} for data in (kept, mine)]
    if codes[0] != codes[1]:
        return "its runs were made by another version of the code"
    for name in ("keep", "coverage", "block"):
        if kept[name] != mine[name]:
            return f"its {name} is {kept[name]}, not {mine[name]}"
    return "its strategies, settings, sizes or steps differ"
