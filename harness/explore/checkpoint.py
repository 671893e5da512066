"""Checkpoints: a search on disk, so that another process can go on where it stopped.

A folder with one file per level (packed states as 64-bit words, little-endian) and `checkpoint.json`, which is replaced
last and at once: a checkpoint is whole or the one before. It holds the values of every field, which give the packed
states their meaning, and what was counted and found so far. A level's file has the checksum of its content in its name,
so that no file of the checkpoint before is ever written over; the manifest has its own.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from harness.explore.bounded import Bounded
from harness.explore.packed.layout import PackedLayout
from harness.explore.packed.spool import from_words, little_endian
from harness.model import Model, Refusal, decode, encode
from harness.record.files import compact, reason_of, write_atomically

FORMAT = "kafka-proto/checkpoint"
VERSION = 1
MANIFEST = "checkpoint.json"


@attrs.frozen
class Saved:
    """What a checkpoint says: how the search was asked for, how far it came, and where its levels are."""

    asked: Mapping[str, Any]
    engine: str
    generated: int
    position: int
    actions: Mapping[str, int]
    hits: list[Mapping[str, Any]]
    together: Sequence[Sequence[str]]
    fields: list[Mapping[str, Any]]
    levels: Sequence[Mapping[str, Any]]
    width: int
    orbits: Sequence[tuple[list[int], bool]] = ()
    """The order of the orbits, on which it depends which state stands for a class."""


def asked_of(model: Model, invariants: Iterable[str], flags: Mapping[str, bool]) -> dict[str, Any]:
    """Return what makes two searches the same."""
    free = {}
    if model.actors or model.faulty or isinstance(model, Bounded):
        timers = dict(model.timers) if isinstance(model, Bounded) else {}
        free = {"network": model.network.name, "timers": timers,
                "faults": json.loads(json.dumps(attrs.asdict(model.faults)))}
    return {
        "model": model.name, "sizes": dict(model.sizes), "settings": dict(model.settings),
        "history_variables": model.history_variables, "invariants": list(invariants), **free, **flags,
    }


class Checkpoint:
    """A folder for the checkpoints of one search."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[dict[str, Any]] = []
        self.packing: list[object] = []

    def read(self, asked: Mapping[str, Any]) -> Saved | None:
        """Return what is saved, None if nothing is yet.

        Raises Refusal for another search's, a damaged one, and for a folder that could not be written to later on.
        """
        path = self.folder / MANIFEST
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
            data = json.loads(path.read_bytes())
        except FileNotFoundError:
            if self.folder.is_dir():
                return None
            raise self._unwritable("no folder can be made there") from None
        except (OSError, RecursionError, ValueError) as error:
            if isinstance(error, OSError) and not path.exists():
                raise self._unwritable(reason_of(error)) from None
            why = reason_of(error) if isinstance(error, OSError) else "it is not JSON, but cut off or damaged"
            raise Refusal(f"cannot read the checkpoint {path}: {why}; give another folder") from None
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            raise Refusal(f"{path} is not a checkpoint of this program; give another folder")
        if (version := data.pop("version", None)) != VERSION:
            raise Refusal(
                f"the checkpoint {path} is of format version {json.dumps(version)[:40]}, this program reads version "
                f"{VERSION}; give another folder"
            )
        if data.pop("digest", None) != _digest(data):
            raise Refusal(f"the checkpoint {path} is damaged; remove {self.folder} and start anew")
        try:
            saved = Saved(**data)
        except TypeError:
            raise Refusal(f"the checkpoint {path} is of another version of this program; give another folder") from None
        for name, value in saved.asked.items():
            if asked.get(name) != value:
                raise Refusal(
                    f"the checkpoint in {self.folder} is of another search: its {name.replace('_', ' ')} is "
                    f"{_shown(value)}, here it is {_shown(asked.get(name))}; give another folder, or ask for the same"
                )
        return saved

    def restore_layout(self, saved: Saved, layout: PackedLayout, types: Mapping[str, type]) -> None:
        """Give a layout the values and widths of a checkpoint. Raises Refusal if it does not fit the model."""
        try:
            for field, entry in zip(layout.fields, saved.fields, strict=True):
                if list(field.slots) != entry["slots"]:
                    raise ValueError
                field.restore([tuple(decode(value, types) for value in values) for values in entry["values"]],
                              entry["bits"], entry["shift"])
        except (ValueError, KeyError, TypeError):
            raise Refusal(f"the checkpoint in {self.folder} is of another version of the model; start anew") from None
        layout.bits = sum(field.bits for field in layout.fields)
        self.packing = _packing(layout)
        self.written = [dict(level) for level in saved.levels]

    def levels(self, saved: Saved) -> Iterable[list[int]]:
        """Yield the states of each level. Raises Refusal for a file that is missing or cut off."""
        for entry in saved.levels:
            path = self.folder / entry["file"]
            words = array("Q")
            try:
                with path.open("rb") as file:
                    words.fromfile(file, entry["states"] * saved.width)
                    whole = not file.read(1) and zlib.crc32(words) == entry["checksum"]
            except (OSError, EOFError, ValueError):
                whole = False
            if not whole:
                raise Refusal(f"{path} of the checkpoint is missing or damaged; remove {self.folder} and start anew")
            yield from_words(little_endian(words), saved.width)

    def write(self, saved: Saved, layout: PackedLayout, sizes: list[int], level: Callable[[int], array[int]]) -> None:
        """Write a checkpoint: levels (as words) that are not there yet, then the manifest. Raises Refusal."""
        if self.packing != _packing(layout):
            self.written = []
            self.packing = _packing(layout)
        self.written = self.written[: len(sizes)]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for number, states in enumerate(sizes):
                if number < len(self.written) and self.written[number]["states"] == states:
                    continue
                words = little_endian(level(number))
                checksum = zlib.crc32(words)
                name = f"level-{number:04}-{states}-{checksum:08x}.bin"
                part = self.folder / f".{name}.part"
                with part.open("wb") as file:
                    words.tofile(file)
                part.replace(self.folder / name)
                self.written[number:] = [{"file": name, "states": states, "checksum": checksum}]
        except OSError as error:
            raise self._unwritable(reason_of(error)) from None
        data = attrs.asdict(attrs.evolve(saved, levels=self.written))
        manifest = {"format": FORMAT, "version": VERSION, "digest": _digest(data), **data}
        write_atomically(self.folder / MANIFEST, [compact(manifest)])
        kept = {entry["file"] for entry in self.written}
        for path in [*self.folder.glob("level-*.bin"), *self.folder.glob(".level-*.bin.part"),
                     *self.folder.glob(f".{MANIFEST}.*.part")]:
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def _unwritable(self, why: str) -> Refusal:
        return Refusal(f"cannot write the checkpoint in {self.folder}: {why}; give another folder with --checkpoint")


def fields_of(layout: PackedLayout) -> list[Mapping[str, Any]]:
    """Return the fields of a layout with their values, as JSON."""
    return [
        {"slots": list(field.slots), "bits": field.bits, "shift": field.shift,
         "values": [[encode(value) for value in values] for values in field.values]}
        for field in layout.fields
    ]


def _packing(layout: PackedLayout) -> list[object]:
    return [(field.slots, field.shift, field.bits) for field in layout.fields]


def _digest(data: Mapping[str, Any]) -> str:
    """Return what tells a manifest from a damaged one."""
    return hashlib.sha256(compact(data).encode("utf-8", "backslashreplace")).hexdigest()


def _shown(value: Any) -> str:
    return ", ".join(f"{name}={n}" for name, n in value.items()) if isinstance(value, dict) else json.dumps(value)
