"""The C compiler of this machine, or of the package ziglang."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from importlib.util import find_spec


def compiler() -> list[str] | None:
    """Return the command of a C compiler, or None."""
    if chosen := os.environ.get("CC"):
        try:
            return shlex.split(chosen)
        except ValueError:
            return [chosen]
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return [found]
    return [sys.executable, "-m", "ziglang", "cc"] if find_spec("ziglang") else None
