"""The folder of a search: what is searched, and its levels, each a folder that is renamed into place when complete.

A level holds its states in one file per part, by key, and `level.json` with the digests of its files and all counts up
to there. It is made under a hidden name and renamed last, so that a level is there as a whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from harness.campaign.durable_files import DIGEST, damage, make_folder, place, to_disk
from harness.model import Refusal
from harness.record.files import compact, reason_of

FORMAT = "kafka-proto/spark-search"
VERSION = 1
MANIFEST, MARKER, HITS, LOG = "search.json", "level.json", "hits.parquet", "spark.log"
CODE = "code"
"""The field of `search.json` with the version of the code."""
NAME = re.compile(r"level-(\d{4,})")


@attrs.frozen
class Level:
    """A committed level, and what was counted and found up to its being made."""

    number: int
    """From 1, the initial states."""
    states: int
    files: Sequence[Mapping[str, Any]]
    """Its parts that have states: file, part, how many states, bytes, digest."""
    generated: int
    actions: Mapping[str, int]
    hits: Sequence[Mapping[str, Any]]
    """Properties that answered: name, kind, the depth of the states, and the level that keeps their keys."""
    keys: Mapping[str, Any] | None
    """The file with the keys of the states in which something answered when this level was made."""
    parts: int
    cpu: float
    """Seconds of workers."""

    @property
    def folder(self) -> str:
        return f"level-{self.number:04}"

    def paths(self) -> list[str]:
        """Return the files of states, inside the search's folder."""
        return [f"{self.folder}/{file['file']}" for file in self.files]

    def of_part(self, part: int) -> list[str]:
        """Return the file of a part, if it has states."""
        return [f"{self.folder}/{file['file']}" for file in self.files if file["part"] == part]


class Levels:
    """The folder of one search."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, asked: Mapping[str, Any]) -> list[Level]:
        """Make the folder that of a search, or make sure that it is; return the levels that it has. Raises Refusal.

        What killed writers left is removed, so no other process may work on the folder.
        """
        if not self.look(asked):
            self._write(self.folder / MANIFEST, {"format": FORMAT, "version": VERSION, "asked": asked})
        for part in self.folder.glob(".level-*"):
            shutil.rmtree(part, ignore_errors=True)
        return self.committed()

    def look(self, asked: Mapping[str, Any]) -> bool:
        """Say whether the folder, which is made, is that of the search already. Raises Refusal: it is another's."""
        path = self.folder / MANIFEST
        try:
            make_folder(self.folder)
            others = sorted(entry.name for entry in self.folder.iterdir()
                            if not entry.name.startswith(".") and entry.name != LOG)
        except OSError as error:
            raise self._unwritable(error) from None
        if path.name not in others:
            if others:
                raise Refusal(f"{self.folder} holds something else than a search of --engine spark ({others[0]}); give "
                              "another folder with --checkpoint")
            return False
        known = self._manifest(path)
        for name, value in sorted(asked.items(), key=lambda item: item[0] == CODE):
            if known.get(name) != value:
                if name == CODE:
                    raise Refusal(f"the search in {self.folder} was begun with another version of the code; give "
                                  "another folder, or remove this one to start anew")
                raise Refusal(f"the search in {self.folder} is another: its {name.replace('_', ' ')} is "
                              f"{_in_words(known.get(name))}, here it is {_in_words(value)}; give another folder, or "
                              "ask for the same")
        return True

    def _manifest(self, path: Path) -> dict[str, Any]:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise Refusal(f"cannot read {path}: {reason_of(error)}; give another folder with --checkpoint") from None
        except ValueError:
            data = {}
        if (not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION
                or not isinstance(data.get("asked"), dict)):
            raise Refusal(f"{path} is damaged, or of another version; give another folder with --checkpoint")
        asked: dict[str, Any] = data["asked"]
        return asked

    def committed(self) -> list[Level]:
        """Return the levels that there are. Raises Refusal if one is missing, or not as it was written."""
        numbers = sorted(int(match.group(1)) for path in self.folder.iterdir() if (match := NAME.fullmatch(path.name)))
        levels = []
        for expected, number in enumerate(numbers, 1):
            if expected != number:
                raise self._damaged(self.folder / f"level-{expected:04}", "missing", expected)
            levels.append(self._level(number))
        return levels

    def _level(self, number: int) -> Level:
        path = self.folder / f"level-{number:04}" / MARKER
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            digest = data.pop("digest")
            level = Level(**data)
            if digest != _digest(data) or level.number != number:
                raise ValueError
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            raise self._damaged(path, "damaged", number) from None
        for file in [*level.files, *([level.keys] if level.keys else [])]:
            inside = path.parent / file["file"]
            if how := damage(inside, file):
                raise self._damaged(inside, how, number)
        return level

    def _damaged(self, path: Path, how: str, number: int) -> Refusal:
        return Refusal(f"{path} is {how}; remove level-{number:04} and all later ones from {self.folder}, and the "
                       "same command goes on from the level before")

    def scratch(self, number: int) -> str:
        """Make a hidden folder for a level, and return its name. Raises Refusal."""
        try:
            made = Path(tempfile.mkdtemp(dir=self.folder, prefix=f".level-{number:04}-"))
            made.chmod(0o755)
        except OSError as error:
            raise self._unwritable(error) from None
        return made.name

    def commit(self, scratch: str, level: Level) -> None:
        """Let a hidden folder be that level. Raises Refusal."""
        data = attrs.asdict(level)
        path = self.folder / scratch
        self._write(path / MARKER, {**data, "digest": _digest(data)})
        named = {file["file"] for file in [*level.files, *([level.keys] if level.keys else [])]} | {MARKER}
        try:
            for entry in path.iterdir():
                if entry.name not in named:
                    entry.unlink()
            to_disk(path)
            path.rename(self.folder / level.folder)
            to_disk(self.folder)
        except OSError as error:
            raise self._unwritable(error) from None

    def _write(self, path: Path, data: Mapping[str, Any]) -> None:
        text = compact(data) + "\n"
        try:
            place(path, lambda hidden: hidden.write_bytes(text.encode("utf-8", "backslashreplace")))
        except OSError as error:
            raise self._unwritable(error) from None

    def discard(self, scratch: str) -> None:
        """Remove a level that is not finished."""
        shutil.rmtree(self.folder / scratch, ignore_errors=True)

    def _unwritable(self, error: OSError) -> Refusal:
        return Refusal(f"cannot write the search in {self.folder}: {reason_of(error)}; give another folder with "
                       "--checkpoint")


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.blake2b(compact(data).encode("utf-8", "backslashreplace"), digest_size=DIGEST).hexdigest()


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={n}" for name, n in value.items()) or "nothing"
    return json.dumps(value)
