"""The modules of the harness that runs spend their time in, compiled by mypyc from the source as it stands.

`python -m harness.compiled` makes a build, into the environment's own folder. Importing `harness` takes these modules
from the build of just this source, Python and machine where there is one. Where there is none (no C compiler, no mypyc,
edited source) the same source runs as Python, with the same results. So it does with KAFKA_PROTO_COMPILED=0.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

MODULES = (
    "model.view", "model.values", "model.local_state",
    "memo.interning", "memo.read_memo", "memo.memo_group", "memo.field_view", "memo.union_memo",
    "simulate.states.nodes", "simulate.states.tables", "simulate.states.abstraction",
    "simulate.runs.session", "simulate.runs.timing", "simulate.trails.replay",
    "explore.model_memo", "explore.packed.layout", "explore.packed.footprints",
)
"""What is compiled together. A class in it is subclassed in it only."""
HARNESS = Path(__file__).parent.parent
FOLDER = Path(sys.prefix) / "share" / "kafka-proto"
"""The environment's own folder for what is compiled."""
SUFFIX = EXTENSION_SUFFIXES[0]


def build_folder() -> Path:
    """Return where the build of this source for this Python and machine is, or would be."""
    digest = hashlib.sha256(SUFFIX.encode())
    for name in MODULES:
        digest.update(source(name).read_bytes())
    return FOLDER / f"compiled-{digest.hexdigest()[:16]}"


def source(name: str) -> Path:
    """Return the file of a module."""
    return HARNESS.joinpath(*name.split(".")).with_suffix(".py")


class _Build:
    """Finds modules in a build, by their names, for `sys.meta_path`."""

    def __init__(self, folder: Path) -> None:
        self._files: Mapping[str, Path] = {
            ".".join(path.relative_to(folder).parts).removesuffix(SUFFIX): path
            for path in sorted(folder.rglob("*" + SUFFIX))
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of the build is, None for any other."""
        found = self._files.get(fullname)
        if found is None:
            return None
        return spec_from_file_location(fullname, found, loader=ExtensionFileLoader(fullname, str(found)))


def use_build() -> None:
    """Have the compiled modules imported, where there is a build of this source."""
    if os.environ.get("KAFKA_PROTO_COMPILED") != "0" and FOLDER.is_dir() and (folder := build_folder()).is_dir():
        sys.meta_path.insert(0, _Build(folder))
