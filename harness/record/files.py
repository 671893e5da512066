"""Writing files so that nothing is ever half-written, and reading JSON Lines with errors a person can act on."""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from harness.model import Refusal

COMPRESSION = 6


def write_atomically(path: Path, lines: Iterable[str], compress: bool = False) -> None:
    """Write lines to a file: beside it first, then renamed over it. Raises Refusal where that is not possible.

    A link keeps pointing where it does; a device or pipe is written to as it is. With `compress` the file is gzip, with
    neither time nor name in it, so that equal lines give equal files.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as file:
                _write(file, lines, compress)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                _write(file, lines, compress)
            os.chmod(name, 0o644)
            os.replace(name, target)
        finally:
            if os.path.exists(name):
                os.unlink(name)
    except (OSError, RuntimeError) as error:  # pathlib raises RuntimeError for links in a circle, before Python 3.13
        raise Refusal(f"cannot write {path}: {reason_of(error)}; give another place with --out") from None


def _write(file: BinaryIO, lines: Iterable[str], compress: bool) -> None:
    if compress:
        with gzip.GzipFile("", "wb", COMPRESSION, file, mtime=0) as packed:
            _write(packed, lines, compress=False)  # type: ignore[arg-type]
        return
    with io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace") as text:
        for line in lines:
            text.write(line + "\n")


def reason_of(error: Exception) -> str:
    """Return why a file operation failed, without numbers and paths."""
    return getattr(error, "strerror", None) or str(error)


def read_texts(path: Path, what: str) -> list[str]:
    """Return the lines of a file, of which there is at least one. Raises Refusal."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Refusal(f"there is no {what} at {path}; give the path of a file that this program wrote") from None
    except UnicodeDecodeError as error:
        raise Refusal(f"{path} is no {what}: byte {error.start} is not UTF-8 text; give another file") from None
    except (OSError, RuntimeError) as error:
        raise Refusal(f"cannot read the {what} {path}: {reason_of(error)}; give the path of a file") from None
    if not text:
        raise Refusal(f"{path} is empty; a {what} starts with a header line, record the run again")
    return text.removesuffix("\n").split("\n")


def parse_lines(path: Path, what: str, texts: Iterable[str]) -> list[dict[str, Any]]:
    """Return the JSON objects of a file's lines. Raises Refusal naming the line that is not one."""
    found = []
    for number, line in enumerate(texts, 1):
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            raise Refusal(
                f"{path}, line {number}: not JSON, the {what} is cut off or damaged there; record the run again"
            ) from None
        if not isinstance(data, dict):
            raise Refusal(f"{path}, line {number}: a {what} has one JSON object per line, this is none")
        found.append(data)
    return found


def read_lines(path: Path, what: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a file, one per line. Raises Refusal naming the line that is not one."""
    return parse_lines(path, what, read_texts(path, what))


def compact(data: Any) -> str:
    """Return compact JSON with sorted keys."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
