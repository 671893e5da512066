"""Checkpoints: a search on disk, so that another process can go on where it stopped.

A folder with one file per level (packed states as 64-bit words, little-endian) and `checkpoint.json`, which is replaced
last and at once: a checkpoint is whole or the one before. It holds the values of every field, which give the packed
states their meaning, and what was counted and found so far.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from harness.explore.layout import Layout
from harness.explore.spool import from_words, little_endian, to_words
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
    witnessed: Mapping[str, tuple[int, str]]
    together: Sequence[Sequence[str]]
    fields: list[Mapping[str, Any]]
    levels: Sequence[Mapping[str, Any]]
    width: int


def asked_of(model: Model, invariants: Iterable[str], flags: Mapping[str, bool]) -> dict[str, Any]:
    """Return what makes two searches the same."""
    return {
        "model": model.name, "sizes": dict(model.sizes), "settings": dict(model.settings),
        "history_variables": model.history_variables, "invariants": list(invariants), **flags,
    }


class Checkpoint:
    """A folder for the checkpoints of one search."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[dict[str, Any]] = []
        self.packing: list[int] = []

    def read(self, asked: Mapping[str, Any]) -> Saved | None:
        """Return what is saved, None where nothing is yet. Raises Refusal for another search's, or a damaged one."""
        path = self.folder / MANIFEST
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise Refusal(f"cannot read the checkpoint {path}: {reason_of(error)}; give another folder") from None
        try:
            data = json.loads(text)
            if data.pop("format") != FORMAT or data.pop("version") != VERSION:
                raise ValueError
            saved = Saved(**data)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Refusal(f"{path} is no checkpoint that this program can read; give another folder") from None
        for name, value in saved.asked.items():
            if asked.get(name) != value:
                raise Refusal(
                    f"the checkpoint in {self.folder} is of another search: its {name.replace('_', ' ')} is "
                    f"{_told(value)}, here it is {_told(asked.get(name))}; give another folder, or ask for the same"
                )
        return saved

    def restore_layout(self, saved: Saved, layout: Layout, types: Mapping[str, type]) -> None:
        """Give a layout the values and widths of a checkpoint. Raises Refusal where it does not fit the model."""
        try:
            for field, told in zip(layout.fields, saved.fields, strict=True):
                if list(field.slots) != told["slots"]:
                    raise ValueError
                field.restore([tuple(decode(value, types) for value in values) for values in told["values"]],
                              told["bits"], told["shift"])
        except (ValueError, KeyError, TypeError):
            raise Refusal(f"the checkpoint in {self.folder} is of another version of the model; start anew") from None
        layout.bits = sum(field.bits for field in layout.fields)
        self.packing = _packing(layout)
        self.written = [dict(level) for level in saved.levels]

    def levels(self, saved: Saved) -> Iterable[list[int]]:
        """Yield the states of each level. Raises Refusal for a file that is missing or cut off."""
        for told in saved.levels:
            path = self.folder / told["file"]
            words = array("Q")
            try:
                with path.open("rb") as file:
                    words.fromfile(file, told["states"] * saved.width)
            except (OSError, EOFError):
                raise Refusal(
                    f"{path} of the checkpoint is missing or cut off; remove {self.folder} and start anew"
                ) from None
            yield from_words(little_endian(words), saved.width)

    def write(self, saved: Saved, layout: Layout, sizes: list[int], level: Callable[[int], Sequence[int]]) -> None:
        """Write a checkpoint: levels that are not there yet, then the manifest. Raises Refusal."""
        if self.packing != _packing(layout):
            self.written = []
            self.packing = _packing(layout)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for number, states in enumerate(sizes):
                if number < len(self.written) and self.written[number]["states"] == states:
                    continue
                name = f"level-{number:04}-{states}-{abs(sum(self.packing)) % 100_000}.bin"
                part = self.folder / f".{name}.part"
                with part.open("wb") as file:
                    little_endian(to_words(level(number), saved.width)).tofile(file)
                part.replace(self.folder / name)
                self.written[number:] = [{"file": name, "states": states}]
        except OSError as error:
            raise Refusal(
                f"cannot write the checkpoint in {self.folder}: {reason_of(error)}; give another folder"
            ) from None
        manifest = {"format": FORMAT, "version": VERSION, **attrs.asdict(attrs.evolve(saved, levels=self.written))}
        write_atomically(self.folder / MANIFEST, [compact(manifest)])
        kept = {entry["file"] for entry in self.written}
        for path in self.folder.glob("level-*.bin"):
            if path.name not in kept:
                path.unlink(missing_ok=True)


def fields_of(layout: Layout) -> list[Mapping[str, Any]]:
    """Return the fields of a layout with their values, as JSON."""
    return [
        {"slots": list(field.slots), "bits": field.bits, "shift": field.shift,
         "values": [[encode(value) for value in values] for values in field.values]}
        for field in layout.fields
    ]


def _packing(layout: Layout) -> list[int]:
    return [number for field in layout.fields for number in (field.shift, field.bits)]


def _told(value: Any) -> str:
    return ", ".join(f"{name}={n}" for name, n in value.items()) if isinstance(value, dict) else json.dumps(value)
