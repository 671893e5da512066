"""The installed command: a look at whether its packages are its own, then the command line.

An index has other packages that install a `harness` or a `compaction`, and pip writes one over the other without a
word. So nothing of these is imported before `clash` has looked.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

PACKAGES = ("compaction", "harness", "kafka_proto")
OURS = "kafka-proto"
WRONG = 2


def main() -> NoReturn:
    """Run the command line, unless something else is installed in its place: then one sentence, and exit code 2."""
    sentence = clash()
    if sentence is not None:
        print(f"{OURS}: {sentence}", file=sys.stderr)
        sys.exit(WRONG)
    from harness.cli import main as run

    run()


def clash() -> str | None:
    """Return the sentence about what is found in place of our packages, or None if all is ours."""
    folder = Path(__file__).resolve().parents[1]
    mine: list[str] = []
    for one in distributions(path=[str(folder)]):
        record = one.read_text("RECORD") or ""
        claimed = _claimed(record, one.read_text("top_level.txt") or "")
        if claimed and re.sub(r"[-_.]+", "-", str(one.metadata["Name"])).lower() == OURS:
            mine += _files(record)
        elif claimed:
            return (f"the package {one.metadata['Name']} {one.version} has installed a module `{claimed[0]}` over "
                    f"{OURS}'s; install {OURS} into an environment without it")
    for package in PACKAGES:
        place = _place(package)
        if place is not None and place.parent.resolve() != folder:
            return (f"`import {package}` finds {place}, not the package of {OURS} in {folder}; take it from the path "
                    f"(PYTHONPATH), or install {OURS} into an environment without it")
    first, *others = [name for name in sorted(mine) if not os.path.exists(f"{folder}/{name}")] or [""]
    if first:
        return (f"{first} is missing in {folder}{f', with {len(others)} more files' if others else ''}; install {OURS} "
                f"again: pip install --force-reinstall {OURS}")
    return None


def _place(package: str) -> Path | None:
    """Return where a package would be imported from: its folder, or its file; None if it is not found."""
    found = find_spec(package)
    if found is None:
        return None
    if found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations)))
    return Path(found.origin or package)


def _claimed(record: str, tops: str) -> list[str]:
    """Return those of the names of our packages that a distribution has installed something under."""
    listed = f"\n{record}"
    return [name for name in PACKAGES if name in tops.split() or f"\n{name}/" in listed or f"\n{name}." in listed]


def _files(record: str) -> Iterator[str]:
    """Yield the files of our packages that a distribution has installed, but for compiled ones."""
    for line in record.splitlines():
        name = line.partition(",")[0]
        if name.split("/")[0] in PACKAGES and not name.endswith(".pyc"):
            yield name
