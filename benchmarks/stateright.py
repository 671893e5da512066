"""stateright beside ours: its built examples, our models of the same protocols, and one measured run of an example.

The examples are not part of this project: clone github.com/stateright/stateright and build them with `cargo build
--release --example 2pc --example paxos`; they are in target/release/examples then. Ours are in docs/examples, which are
made findable here as an install would do it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import attrs
from measure import Cost, fail, run

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"
OURS = {"two-phase-commit": "two_phase_commit", "paxos": "paxos"}
"""Our models, each with the module that it is in."""
DONE = re.compile(r"^Done\. states=(\d+), unique=(\d+), depth=(\d+), sec=\d+", re.MULTILINE)


@attrs.frozen
class Stateright:
    """The folder of its built examples, which is looked at when it is made."""

    folder: Path

    @staticmethod
    def make(folder: Path | None, examples: set[str]) -> Stateright | None:
        """Return what the flag asks for, if anything; end the program where an example is missing."""
        if folder is None:
            return None
        for name in sorted(examples):
            if not os.access(folder / name, os.X_OK):
                fail(f"{folder / name} is missing; build stateright's examples and give target/release/examples, "
                     "see benchmarks/stateright.py")
        return Stateright(folder)

    def check(self, example: tuple[str, ...]) -> tuple[tuple[int, int, int], Cost]:
        """Run an example; return distinct states, generated states and depth, and what the process cost."""
        ended = run([str(self.folder / example[0]), *example[1:]])
        done = DONE.search(ended.output)
        if ended.code != 0 or done is None:
            last = (ended.output + ended.errors).strip()[-500:]
            fail(f"stateright's {' '.join(example)} did not finish, it ended with code {ended.code}: {last}")
        return (int(done[2]), int(done[1]), int(done[3])), ended.cost


@contextmanager
def examples_found() -> Iterator[None]:
    """Let processes that are started find our models of these protocols, as if they were installed."""
    with tempfile.TemporaryDirectory() as folder:
        about = Path(folder) / "examples-0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: examples\nVersion: 0\n", encoding="utf-8")
        rows = "".join(f"{model} = {module}:system\n" for model, module in OURS.items())
        (about / "entry_points.txt").write_text(f"[harness.systems]\n{rows}", encoding="utf-8")
        paths = [folder, str(EXAMPLES), *filter(None, [os.environ.get("PYTHONPATH")])]
        with patch.dict(os.environ, {"PYTHONPATH": os.pathsep.join(paths)}):
            yield
