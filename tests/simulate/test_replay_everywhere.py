"""One trail, one digest: in both runtimes, in other processes, under other hash seeds, in other Pythons."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import attrs
import pytest
from support.commands.pythons import NAMED, Digests, made, others, replayed, run_in
from support.paths import DATA, TRAILS

from harness.record import Recorder, Trail, read_trail
from harness.simulate.runtimes.trio_runtime import replay_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import replay_plain, try_choices
from harness.simulate.trails.shrink import perturbing_part

PINNED = DATA / "digests.json"
EVERY = 8
"""In the suite, one of so many trails is replayed elsewhere."""


@pytest.fixture(scope="module")
def trails(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Digests]:
    """Make trails of every scenario with two strategies, and the digests they had when they were made."""
    folder = tmp_path_factory.mktemp("trails")
    return folder, made(folder)


def test_some_replay_to_one_digest_in_another_process_and_python(tmp_path: Path) -> None:
    """Trio under another hash seed, and the plain runtime in the newest other Python where there is one."""
    digests = made(tmp_path, EVERY)
    assert run_in(sys.executable, "trio", tmp_path, "1")[0] == digests
    assert run_in((others() or [sys.executable])[0], "plain", tmp_path)[0] == digests


@pytest.mark.large
@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
@pytest.mark.parametrize("runtime", ["plain", "trio"])
def test_replay_gives_one_digest_per_trail(runtime: str, hash_seed: str, trails: tuple[Path, Digests]) -> None:
    """A process of its own replays all 200 trails to the digests and verdicts they were made with."""
    folder, digests = trails
    assert run_in(sys.executable, runtime, folder, hash_seed)[0] == digests


@pytest.mark.large
@pytest.mark.parametrize("what", ["plain", "trio", "made"])
def test_another_python_gives_the_same_digests(what: str, trails: tuple[Path, Digests]) -> None:
    """The newest other Python of this machine replays all trails, and makes all runs, to the same digests.

    Where none is found it is this one in another process, and the test says so.
    """
    found = others()
    folder, digests = trails
    theirs, version = run_in(found[0] if found else sys.executable, what, folder)
    assert theirs == digests
    if not found:
        pytest.skip(f"no other Python from 3.11 on is on the PATH or of pyenv; {NAMED} may name one")
    assert version >= (3, 11) and version != sys.version_info[:2]


def test_digests_are_those_of_every_python() -> None:
    """The committed trails have the digests that were written down on Python 3.11, in both runtimes.

    A change of a protocol may change them: `python tests/support/commands/pythons.py pin` writes them anew.
    """
    pinned = json.loads(PINNED.read_text(encoding="utf-8"))
    assert len(pinned) >= 7
    for runtime in ("plain", "trio"):
        assert replayed(runtime, TRAILS) == pinned


COMMITTED = {path.name.removesuffix(".trail.jsonl"): read_trail(path) for path in sorted(TRAILS.glob("*.trail.jsonl"))}


def test_trails_hold_one_per_flaw() -> None:
    """The folder has a shrunk trail of each of S1 to S6, and of a record that is lost with the last replica."""
    assert {name.split("-")[0] for name in COMMITTED} == {"last", "s1", "s2", "s3", "s4", "s5", "s6"}


@pytest.mark.parametrize("trail", COMMITTED.values(), ids=COMMITTED)
def test_committed_trail_violates_the_same_in_both_runtimes(trail: Trail) -> None:
    """A committed trail still violates its property, with one digest in both runtimes."""
    plain, on_trio = replay_plain(trail, Recorder()), replay_on_trio(trail, Recorder())
    assert trail.violates is not None
    assert trail.violates in {verdict.violated for verdict in plain.violations}
    assert plain.digest == on_trio.digest
    assert plain.violations == on_trio.violations


@pytest.mark.parametrize("name", [name for name in COMMITTED if name.startswith("s")])
def test_committed_trail_is_harmless_when_repaired(name: str) -> None:
    """The same choices, as far as they fit, violate nothing when the flaw is repaired."""
    trail = COMMITTED[name]
    repaired = attrs.evolve(trail, settings={**trail.settings, "repair": name.split("-")[0].upper()})
    assert try_choices(Tables(repaired.build()), repaired, perturbing_part(trail)).verdict.ok
