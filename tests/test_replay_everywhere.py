"""One trail, one digest: in both runtimes, in other processes, under other hash seeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.model import model_of, scenarios
from harness.record import Recorder, read_trail
from harness.simulate.session import plan_of, run_plain
from harness.simulate.strategies import NAMES, Strategies
from harness.simulate.tables import Tables

TRAILS = 200
REPLAY_ALL = """
import json, sys
from pathlib import Path
from harness.record import Recorder, read_trail
from harness.simulate.on_trio import replay_on_trio
from harness.simulate.replay import replay_plain
from harness.simulate.tables import Tables

replay = replay_on_trio if sys.argv[1] == "trio" else replay_plain
tables, found = {}, {}
for path in sorted(Path(sys.argv[2]).glob("*.trail.jsonl")):
    trail = read_trail(path)
    if trail.scenario not in tables:
        tables[trail.scenario] = Tables(trail.build())
    run = replay(trail, Recorder(), tables[trail.scenario])
    found[path.name] = [run.digest, run.verdict.violated]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def trails(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str | None]]]:
    """Make trails of every scenario with every strategy, and the digests they had when they were made."""
    folder = tmp_path_factory.mktemp("trails")
    rows = tuple(scenarios())
    digests: dict[str, list[str | None]] = {}
    each = -(-TRAILS // len(rows))
    for row in rows:
        tables, plan = Tables(model_of(row)), plan_of(row)
        for seed in range(each):
            if len(digests) == TRAILS:
                break
            strategy = Strategies(NAMES[seed % 2]).run(seed)
            assert strategy is not None
            run = run_plain(tables, plan, strategy, Recorder())
            name = f"{row.name}-{seed}.trail.jsonl"
            run.trail.write(folder / name)
            digests[name] = [run.digest, run.verdict.violated]
    assert len(digests) == TRAILS
    return folder, digests


@pytest.mark.parametrize("runtime", ["plain", "trio"])
@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_replay_gives_one_digest_per_trail(
    runtime: str, hash_seed: str, trails: tuple[Path, dict[str, list[str | None]]]
) -> None:
    """A process of its own replays all 200 trails to the digests and verdicts they were made with."""
    folder, digests = trails
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", REPLAY_ALL, runtime, str(folder)],
        env=environment, capture_output=True, text=True, check=True,
    )
    assert json.loads(done.stdout) == digests


COMMITTED = sorted((Path(__file__).parent / "trails").glob("*.trail.jsonl"))


def test_trails_hold_one_per_flaw() -> None:
    """The folder has a shrunk trail of each of S1 to S6, and of the producer fenced by its own duplicate."""
    names = {path.name.split("-")[0] for path in COMMITTED}
    assert names == {"fenced", "s1", "s2", "s3", "s4", "s5", "s6"}


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name.removesuffix(".trail.jsonl"))
def test_committed_trail_violates_the_same_in_both_runtimes(path: Path) -> None:
    """A committed trail still violates its property, with one digest in both runtimes."""
    from harness.simulate.on_trio import replay_on_trio
    from harness.simulate.replay import replay_plain

    trail = read_trail(path)
    plain, on_trio = replay_plain(trail, Recorder()), replay_on_trio(trail, Recorder())
    assert trail.violates is not None
    assert trail.violates in {verdict.violated for verdict in plain.violations}
    assert plain.digest == on_trio.digest
    assert plain.violations == on_trio.violations


@pytest.mark.parametrize(
    "path", [path for path in COMMITTED if path.name.startswith("s")],
    ids=lambda path: path.name.removesuffix(".trail.jsonl"),
)
def test_committed_trail_is_harmless_when_repaired(path: Path) -> None:
    """The same choices, as far as they fit, violate nothing when the flaw is repaired."""
    import attrs

    from harness.simulate.replay import try_choices
    from harness.simulate.shrink import perturbing_part

    trail = read_trail(path)
    repaired = attrs.evolve(trail, settings={**trail.settings, "repair": path.name.split("-")[0].upper()})
    assert try_choices(Tables(repaired.build()), repaired, perturbing_part(trail)).verdict.ok
