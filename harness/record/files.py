"""Writing files so that nothing is ever half-written, and reading JSON Lines with errors a person can act on."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.model import Refusal


def write_atomically(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file: beside it first, then renamed over it. Raises Refusal where that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise Refusal(f"cannot write {path}: {error.strerror or error}; give another place with --out") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            for line in lines:
                file.write(line + "\n")
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as error:
        raise Refusal(f"cannot write {path}: {error.strerror or error}; give another place with --out") from None
    finally:
        if os.path.exists(name):
            os.unlink(name)


def read_lines(path: Path, what: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a file, one per line. Raises Refusal naming the line that is not one."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Refusal(f"there is no {what} at {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"cannot read the {what} {path}: {error}") from None
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            data = json.loads(line)
        except ValueError:
            raise Refusal(f"{path}, line {number}: not JSON; the {what} is cut off or damaged there") from None
        if not isinstance(data, dict):
            raise Refusal(f"{path}, line {number}: a {what} has one JSON object per line, this is none")
        found.append(data)
    if not found:
        raise Refusal(f"{path} is empty; a {what} starts with a header line")
    return found


def compact(data: Any) -> str:
    """Return compact JSON with sorted keys."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
