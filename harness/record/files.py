"""Writing files so that nothing is ever half-written, and reading JSON Lines with errors that a person can act on."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from harness.model import Refusal
from harness.record.parts import part_of

COMPRESSION = 6


def write_atomically(path: Path, lines: Iterable[str], compress: bool = False) -> None:
    """Write lines to a file as `writing` does. Raises Refusal if that is not possible."""
    with writing(path, compress) as file:
        for line in lines:
            file.write(line + "\n")


@contextmanager
def writing(path: Path, compress: bool = False) -> Iterator[TextIO]:
    """Give a file to write to: it lies hidden beside the target, and is renamed over it when the block ends well.

    A link keeps pointing where it does; a device or pipe is written to as it is. With `compress` the file is gzip, with
    neither time nor name in it, so that equal lines give equal files. Raises Refusal if writing is not possible.
    """
    try:
        target = _target(path)
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as file, _as_text(file, compress) as text:
                yield text
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with part_of(target) as (handle, name):
            with os.fdopen(handle, "wb") as file, _as_text(file, compress) as text:
                yield text
            os.chmod(name, 0o644)
            os.replace(name, target)
    except OSError as error:
        raise Refusal(f"cannot write {path}: {reason_of(error)}; give another place with --out") from None


def _target(path: Path) -> Path:
    """Return the path that links lead to. Raises OSError, also for links in a circle."""
    try:
        target = path.resolve()
    except RuntimeError as error:  # pathlib raises it for links in a circle, before Python 3.13
        raise OSError(str(error)) from None
    if target.is_symlink():  # and from 3.13 on it leaves such a link as it is
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return target


@contextmanager
def _as_text(file: BinaryIO, compress: bool) -> Iterator[TextIO]:
    if compress:
        with gzip.GzipFile("", "wb", COMPRESSION, file, mtime=0) as packed, _as_text(packed, False) as text:  # type: ignore[arg-type]
            yield text
        return
    with io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace") as text:
        yield text


def reason_of(error: Exception) -> str:
    """Return why a file operation failed, without numbers and paths."""
    return getattr(error, "strerror", None) or str(error)


def each_text(path: Path, what: str, begins: str = "a header line, record the run again") -> Iterator[str]:
    """Yield the lines of a file, without keeping them; there is at least one line. Raises Refusal.

    `begins` says of an empty file what should be there, and what to do.
    """
    empty = True
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                empty = False
                yield line.removesuffix("\n")
    except FileNotFoundError:
        raise Refusal(f"there is no {what} at {path}; give the path of one") from None
    except UnicodeDecodeError:
        raise Refusal(f"{path} is not a {what}: {_not_utf8(path)} is not UTF-8 text; give another file") from None
    except (OSError, RuntimeError) as error:
        raise Refusal(f"cannot read the {what} {path}: {reason_of(error)}; give the path of a file") from None
    if empty:
        raise Refusal(f"{path} is empty; a {what} starts with {begins}")


def _not_utf8(path: Path) -> str:
    """Return the position where a file stops being text: the decoder of a stream counts from its last block only."""
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start}"
    return "some of it"


def parse_line(path: Path, what: str, number: int, line: str) -> dict[str, Any]:
    """Return the JSON object of a file's line. Raises Refusal naming the line if it is no object."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise Refusal(
            f"{path}, line {number}: not JSON, the {what} is cut off or damaged there; record the run again"
        ) from None
    if not isinstance(data, dict):
        raise Refusal(f"{path}, line {number}: a {what} has one JSON object per line, this is not one")
    return data


def compact(data: Any) -> str:
    """Return compact JSON with sorted keys."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
