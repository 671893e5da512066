"""`kernel.c` as a library: compiled when it is first needed, loaded through ctypes. `kernel_loop` is what drives it.

It is compiled once per source, by `cc` or `CC`, or by the compiler of the package ziglang where it is installed, into
the environment's own folder. Without a compiler the search runs in pure Python, with the same results.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from harness.compiled import FOLDER
from harness.compiled.compiler import compiler
from harness.model import Refusal

SOURCES = tuple(Path(__file__).with_name(name) for name in (
    "kernel.c", "kernel_batch.h", "kernel_threads.h", "kernel_look.h", "kernel_seen.h", "kernel_tables.h",
    "kernel_bits.h"))
FLAGS = ["-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread"]

WORDS = (2, 3, 4)
"""How many 64-bit words a state may have; the kernel is compiled for each of them, when it is first needed."""
MISS = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int, ctypes.c_uint32)
_U32, _U64, _INT, _PTR = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "new": (_PTR, [MISS, _PTR]),
    "free": (None, [_PTR]),
    "options": (_INT, [_PTR, _INT, _INT, _INT, _U32, _U32]),
    "look_up": (ctypes.c_int64, [_PTR, _PTR]),
    "narrow": (None, [_PTR, _U32, _PTR]),
    "orbit": (ctypes.c_int64, [_PTR, _PTR]),
    "image": (ctypes.c_int64, [_PTR, _PTR, _PTR, _U32]),
    "channel": (ctypes.c_int64, [_PTR, _U32, _U64]),
    "difference": (_INT, [_PTR, _U32, _U64, _PTR]),
    "entry": (ctypes.c_int64, [_PTR, _PTR]),
    "mute": (None, [_PTR, _U32]),
    "roots": (_INT, [_PTR, _PTR, _U64, _U32]),
    "hits": (None, [_PTR, _PTR]),
    "seed": (_INT, [_PTR, _PTR, _U64]),
    "expand": (_INT, [_PTR, _PTR, _U64]),
    "sources": (ctypes.c_int64, [_PTR, _PTR, _U64, _PTR, _U64, _PTR]),
    "drop": (None, [_PTR, _U64]),
    "graph": (ctypes.c_int64, [_PTR, _U64, _U64, _PTR, _PTR, _PTR, _U64]),
    "counts": (None, [_PTR, _PTR]),
    "read": (None, [_PTR, _U64, _U64, _PTR]),
    "read_outside": (None, [_PTR, _PTR]),
    "read_events": (None, [_PTR, _PTR]),
    "add_generated": (None, [_PTR, _U64]),
    "repack_dropped": (_INT, [_PTR, _PTR, _U64, _PTR, _PTR, _PTR, _U64]),
    "repack": (_INT, [_PTR, _PTR, _PTR, _PTR, _U64]),
}


class Unavailable(Refusal):
    """The kernel cannot be compiled or loaded here; the text says why."""


def _folders() -> Iterator[Path]:
    yield FOLDER
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-proto"
    yield Path(tempfile.gettempdir()) / f"kafka-proto-{os.getuid() if hasattr(os, 'getuid') else 0}"


@cache
def library(words: int = WORDS[0]) -> Any:
    """Return the loaded kernel for states of so many words, compiled if need be. Raises Unavailable."""
    source = b"".join(path.read_bytes() for path in SOURCES)
    name = f"kernel-{64 * words}-{hashlib.sha256(source + sys.platform.encode()).hexdigest()[:16]}.so"
    found = next((folder / name for folder in _folders() if (folder / name).is_file()), None)
    path = found or _compile(name, words)
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise Unavailable(f"the compiled kernel {path} cannot be loaded ({error}); remove that file") from error
    for function, (result, arguments) in SIGNATURES.items():
        bound = getattr(loaded, f"kernel_{function}")
        bound.restype, bound.argtypes = result, arguments
    return loaded


def _compile(name: str, words: int) -> Path:
    command = compiler()
    if command is None:
        raise Unavailable("no C compiler was found; install one, or the package ziglang, or use --engine python")
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                made = Path(scratch) / name
                try:
                    done = subprocess.run(
                        [*command, *FLAGS, f"-DWORDS={words}", "-o", str(made), str(SOURCES[0])],
                        capture_output=True, text=True, check=False,
                    )
                except OSError as error:
                    why = error.strerror or error
                    raise Unavailable(f"{command[0]} cannot be run ({why}); use --engine python") from None
                if done.returncode or not made.exists():
                    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
                    raise Unavailable(f"{command[0]} could not compile the kernel ({last}); use --engine python")
                made.replace(folder / name)
            return folder / name
        except OSError:
            continue
    raise Unavailable("no folder for the compiled kernel can be written; set XDG_CACHE_HOME, or use --engine python")


def is_available() -> bool:
    """Say whether the kernel can be used here."""
    try:
        library()
    except Unavailable:
        return False
    return True


def main() -> int:
    """Compile the kernel, if need be, and print where it is, a line for each width, or why it cannot be used."""
    try:
        for words in WORDS:
            print(library(words)._name)
    except Unavailable as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
