"""The compiled modules: the same results as the source gives, used only for just that source, or left aside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.compiled import MODULES, build_folder

ROOT = Path(__file__).resolve().parents[2]
WHERE = "import harness.model.values as v, harness.simulate.runs.session as s; print(v.__file__, s.__file__)"
MAIN = "import sys; from kafka_proto.start import main; sys.exit(main())"
SILENT = "import harness.cli.commands as c; c.look_ahead = lambda *_: None"
"""Runs that found nothing are not followed by a short search; the last command is a search."""
built = pytest.mark.skipif(not build_folder().is_dir(), reason="needs a build: python -m harness.compiled")


def ran(*words: str, at: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder whose packages come first."""
    env = {**os.environ, "PYTHONPATH": str(at), **variables}
    return subprocess.run([sys.executable, *words], cwd=at, env=env, capture_output=True, text=True, check=False)


@built
def test_modules_come_from_the_build_unless_it_is_left_aside() -> None:
    """KAFKA_PROTO_COMPILED=0 takes the source."""
    compiled = [Path(place) for place in ran("-c", WHERE, KAFKA_PROTO_COMPILED="1").stdout.split()]
    assert [build_folder() in place.parents for place in compiled] == [True, True]
    assert {Path(place).suffix for place in ran("-c", WHERE, KAFKA_PROTO_COMPILED="0").stdout.split()} == {".py"}


@built
@pytest.mark.parametrize("command", [
    "simulate leaders-move --seeds 2",
    "simulate rp-01-truncate-to-high-watermark --strategy guided --seeds 60",
    "simulate late-end --faults all --mode timed --seeds 30",
    "check rp-01-truncate-to-high-watermark --engine plain",
])
def test_results_are_those_of_the_source(command: str, tmp_path: Path) -> None:
    """Digests of histories, trails, verdicts and counts are the same, compiled or not."""
    said = {}
    for compiled in "01":
        out = tmp_path / compiled
        out.mkdir()
        words = [sys.executable, "-c", f"{SILENT}; {MAIN}", *command.split(), "--out", "."]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "KAFKA_PROTO_COMPILED": compiled}
        done = subprocess.run(words, cwd=out, env=env, capture_output=True, text=True, check=False)
        files = {path.name: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
        lines = [line for line in done.stdout.splitlines() if " s of CPU" not in line]
        said[compiled] = (done.returncode, files, lines)
        assert done.returncode in (0, 1) and files, done.stderr
    assert said["0"] == said["1"]


def test_edited_source_is_what_runs(tmp_path: Path) -> None:
    """A build speaks of its own source only: a copy with one edit is not taken from it."""
    shutil.copytree(ROOT / "harness", tmp_path / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    source = tmp_path.joinpath("harness", *MODULES[0].split(".")).with_suffix(".py")
    source.write_text(source.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert {Path(place).suffix for place in ran("-c", WHERE, at=tmp_path).stdout.split()} == {".py"}


def test_a_build_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    """Without a working compiler the source runs as it is, and the command says why."""
    shutil.copytree(ROOT / "harness", tmp_path / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    source = tmp_path.joinpath("harness", *MODULES[0].split(".")).with_suffix(".py")
    source.write_text(source.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    done = ran("-m", "harness.compiled", at=tmp_path, CC=str(tmp_path / "no-compiler"))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"the C compiler {tmp_path / 'no-compiler'} cannot be run\n"
