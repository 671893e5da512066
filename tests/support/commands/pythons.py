"""Other Pythons of this machine, and what is to be the same in all of them: the digests of runs made and replayed.

Run as a script in another Python (`python pythons.py plain|trio|made FOLDER`, with this one's packages on PYTHONPATH,
which are pure Python as far as a run goes), it replays the trails of the folder, or makes them anew, and prints the
digests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a program, too

from support.paths import ROOT

NAMED = "KAFKA_PROTO_OTHER_PYTHON"
"""The environment variable that names another Python where none is found by itself."""
TRAILS = 200
MINORS = range(11, 30)
Digests = dict[str, list[str | None]]
"""By the name of a trail: the digest of its run, and the property that is violated."""


def made(folder: Path | None = None, every: int = 1) -> Digests:
    """Make a run of every nth scenario, and a second of many, with two strategies; write their trails to a folder."""
    from harness.model import model_of, scenarios
    from harness.record import Recorder
    from harness.simulate.runs.plan import plan_of
    from harness.simulate.runs.session import run_plain
    from harness.simulate.states.tables import Tables
    from harness.simulate.strategies.by_name import NAMES, Strategies

    rows = tuple(scenarios())
    digests: Digests = {}
    each = -(-TRAILS // len(rows))
    for row in rows[::every]:
        tables, plan = Tables(model_of(row)), plan_of(row)
        for seed in range(each):
            if len(digests) == TRAILS:
                break
            strategy = Strategies(NAMES[seed % 2]).run(seed)
            assert strategy is not None
            run = run_plain(tables, plan, strategy, Recorder())
            name = f"{row.name}-{seed}.trail.jsonl"
            if folder is not None:
                run.trail.write(folder / name)
            digests[name] = [run.digest, run.verdict.violated]
    assert len(digests) == TRAILS or every > 1
    return digests


def replayed(runtime: str, folder: Path) -> Digests:
    """Replay the trails of a folder."""
    from harness.record import Recorder, read_trail
    from harness.simulate.runtimes.trio_runtime import replay_on_trio
    from harness.simulate.states.tables import Tables
    from harness.simulate.trails.replay import replay_plain

    replay = replay_on_trio if runtime == "trio" else replay_plain
    tables: dict[str | None, Tables] = {}
    digests: Digests = {}
    for path in sorted(folder.glob("*.trail.jsonl")):
        trail = read_trail(path)
        if trail.scenario not in tables:
            tables[trail.scenario] = Tables(trail.build())
        run = replay(trail, Recorder(), tables[trail.scenario])
        digests[path.name] = [run.digest, run.verdict.violated]
    return digests


def others() -> list[str]:
    """Return one interpreter of each other version from 3.11 on that is found, the newest first, or the named one."""
    if named := os.environ.get(NAMED):
        return [named]
    found: dict[tuple[int, ...], str] = {}
    for path in candidates():
        said = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True,
                              check=False)
        version = tuple(int(part) for part in said.stdout.split()) if said.returncode == 0 else ()
        if version >= (3, 11) and version != sys.version_info[:2]:
            found.setdefault(version, path)
    return [path for _, path in sorted(found.items(), reverse=True)]


def candidates() -> Iterator[str]:
    """Yield what may be a Python: on the PATH, and those of pyenv."""
    for minor in MINORS:
        if (path := shutil.which(f"python3.{minor}")) is not None:
            yield path
    versions = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser() / "versions"
    yield from map(str, sorted(versions.glob("3.*/bin/python")))


def run_in(python: str, what: str, folder: Path, hash_seed: str = "0") -> tuple[Digests, tuple[int, ...]]:
    """Replay a folder's trails, or make runs (`made`), in a process of its own; return the digests and its version."""
    path = os.pathsep.join((str(ROOT), sysconfig.get_path("purelib")))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([python, __file__, what, str(folder)], env=environment, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    return said["digests"], tuple(said["version"])


if __name__ == "__main__":
    if sys.argv[1:] == ["pin"]:
        pinned = json.dumps(replayed("plain", ROOT / "tests" / "trails"), indent=1)
        (ROOT / "tests" / "data" / "digests.json").write_text(pinned + "\n", encoding="utf-8")
        sys.exit()
    what, trails = sys.argv[1], Path(sys.argv[2])
    digests = made() if what == "made" else replayed(what, trails)
    print(json.dumps({"version": sys.version_info[:2], "digests": digests}))
