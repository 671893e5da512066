"""The project's wheel, wheels of others, and environments in which they are installed; no package index is asked."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path

from support.paths import ROOT

PACKAGES = ("compaction", "harness", "kafka_proto")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def run(*command: object) -> None:
    """Run a command that must succeed; what it says is shown where it does not."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def built(folder: Path) -> Path:
    """Build the project's wheel in a folder, from a copy so that the project's own stays as it is."""
    copy = folder / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", folder, copy)
    (found,) = folder.glob("*.whl")
    return found


def foreign(folder: Path, name: str, files: Mapping[str, str]) -> Path:
    """Make the wheel of another package."""
    info = f"{name}-0.1.0.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},sha256={digest(text)},{len(text)}" for path, text in content.items()]
    path = folder / f"{name}-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        for inside, text in content.items():
            packed.writestr(inside, text)
        packed.writestr(f"{info}/RECORD", "\n".join((*lines, f"{info}/RECORD,,", "")))
    return path


def digest(text: str) -> str:
    """Return the digest of a file as a wheel's record has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


class Environment:
    """A virtual environment with what its wheels bring, and the project's dependencies as they are installed here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        self.packages = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        (self.packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")

    def install(self, wheel: Path) -> None:
        """Install a wheel, over whatever is there."""
        run(*PIP, "--python", self.folder, "install", "--no-index", "--no-deps", "--quiet", wheel)

    def uninstall(self, name: str) -> None:
        """Remove a package."""
        run(*PIP, "--python", self.folder, "uninstall", "--yes", "--quiet", name)

    def call(self, *words: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the installed command, in the environment's own folder if nothing is said."""
        return subprocess.run([self.folder / "bin" / "kafka-proto", *words], cwd=cwd or self.folder, text=True,
                              capture_output=True, check=False, env={"PATH": "/usr/bin:/bin", **environment})
