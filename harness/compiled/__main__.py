"""Makes the build of the compiled modules: `python -m harness.compiled`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

from harness.compiled import FOLDER, HARNESS, MODULES, build_folder, source
from harness.compiled.compiler import compiler

KEPT = 4
"""Builds that are kept, the newest: an environment may serve several sources."""


def build() -> str:
    """Make the build of this source unless it is there; return why it cannot be made, or nothing."""
    folder = build_folder()
    if folder.is_dir():
        return ""
    if find_spec("mypyc") is None or find_spec("setuptools") is None:
        return "mypyc or setuptools is missing; install the extra test"
    command = compiler()
    if command is None:
        return "no C compiler was found; install one, or the package ziglang"
    if shutil.which(command[0]) is None:
        return f"the C compiler {command[0]} cannot be run"
    os.environ["CC"] = " ".join(command)
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"{FOLDER} cannot be made ({error.strerror})"
    said = StringIO()
    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch, redirect_stdout(said), redirect_stderr(said):
        shutil.copytree(HARNESS, Path(scratch) / "harness", ignore=shutil.ignore_patterns("__pycache__"))
        before = Path.cwd()
        os.chdir(scratch)
        try:
            made = _compile(Path(scratch))
        except SystemExit as error:
            if isinstance(error.code, str):  # of setuptools: the compiler's whole command
                return f"{command[0]} could not compile the harness; it needs Python's headers"
            return f"mypyc refused the harness ({(said.getvalue().splitlines() or ['no reason given'])[-1]})"
        finally:
            os.chdir(before)
        try:
            made.replace(folder)
        except OSError:
            if not folder.is_dir():  # another process may have made it at the same time
                raise
    builds = sorted(FOLDER.glob("compiled-*"), key=lambda path: path.stat().st_mtime)
    for old in builds[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return ""


def _compile(scratch: Path) -> Path:
    """Compile the copy of the harness in a folder, which is the current one, and return the folder of the build."""
    from mypyc.build import mypycify
    from setuptools import setup  # type: ignore[import-untyped]

    paths = [str(source(name).relative_to(HARNESS.parent)) for name in MODULES]
    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent", "--python-version",
               f"{sys.version_info[0]}.{sys.version_info[1]}"]
    extensions = mypycify([*options, *paths], opt_level="2", group_name="harness", multi_file=True)
    made = scratch / "made"
    setup(name="harness", packages=[], py_modules=[], ext_modules=extensions,
          script_args=["--quiet", "build_ext", "--build-lib", str(made), "--parallel", str(os.cpu_count() or 1)])
    return made


def main() -> int:
    """Make the build, if need be, and print where it is, or why it cannot be made."""
    why = build()
    print(why or build_folder())
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(main())
