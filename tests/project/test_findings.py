"""What the trial of the versions found: stored trails are true, mends end them, and the page says what is stored."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import attrs
import pytest
from support.paths import ROOT

from harness.record import Recorder, Trail
from harness.simulate.runs.run import Run
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import replay_plain, try_choices
from harness.simulate.trails.shrink import perturbing_part
from kafka_proto.broker import versions

sys.path.insert(0, str(ROOT / "benchmarks"))
from findings_page import PAGE, FindingStore, client_of

STORE = FindingStore()
KNOWN = STORE.figures()["trails"]
FINDINGS = STORE.decided()


def as_far_as_it_fits(trail: Trail) -> Run:
    """Replay the choices of a trail, skipping those that are not possible, to the first violation."""
    return try_choices(Tables(trail.build()), attrs.evolve(trail, fair_from=None, back_to=None), perturbing_part(trail))


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_trail_of_a_finding_replays(name: str) -> None:
    """The same digest, and the violation that it is stored for."""
    trail = STORE.trail(name)
    run = replay_plain(trail, Recorder(keep=False))
    assert (run.digest, run.verdict.violated) == (KNOWN[name]["digest"], trail.violates)
    assert len(perturbing_part(trail)) == KNOWN[name]["steps"]
    assert name.startswith(f"{trail.model.partition('/')[2]}-{client_of(trail)}-{trail.violates}")


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.title)
def test_schedule_of_a_finding_is_harmless_once_it_is_mended(finding) -> None:  # type: ignore[no-untyped-def]
    """The same choices, as far as they fit, violate as the release is, and do not with the mend."""
    assert finding.trails
    for trail in map(STORE.trail, finding.trails):
        assert as_far_as_it_fits(trail).verdict.violated == trail.violates
        if not finding.mended:
            continue
        repaired = finding.repaired(trail)
        assert (repaired.model, repaired.settings) != (trail.model, trail.settings)
        assert as_far_as_it_fits(repaired).verdict.ok


def test_each_trail_is_of_one_finding() -> None:
    """Nothing is left undecided, and no file is without figures."""
    decided = Counter(name for finding in FINDINGS for name in finding.trails)
    assert dict(decided) == dict.fromkeys(KNOWN, 1)
    assert sorted(path.name for path in STORE.folder.glob("*.jsonl")) == sorted(f"{name}.trail.jsonl" for name in KNOWN)


def test_page_of_findings_says_what_is_stored() -> None:
    """`python benchmarks/trial.py` would write it as it is."""
    assert PAGE.read_text(encoding="utf-8") == STORE.page()


def test_releases_left_out_of_the_trial_are_others() -> None:
    """3.8 is 3.9 and 4.3 is 4.4, as the page says."""
    assert versions.RELEASES["3.8.1"][-1] is versions.RELEASES["3.9.2"][-1]
    assert versions.RELEASES["4.3.1"][-1] == versions.RELEASES["4.4.0"][-1]


def trial(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(ROOT / "benchmarks" / "trial.py"), *map(str, arguments)],
                          capture_output=True, text=True, timeout=600)


def test_trial_finds_keeps_and_tells(tmp_path: Path) -> None:
    """Runs on Spark and a search of one row: what they violate is stored, shrunk, and on the page."""
    folder, page = tmp_path / "found", tmp_path / "page.md"
    done = trial("4.0 rdkafka at-once", "--runs", 80, "--seconds", 600, "--bounds", 1, "--master", "local[1]",
                 "--store", folder, "--page", page, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = FindingStore(folder).figures()
    (row,) = found["rows"].values()
    assert row["runs"] == 80 and row["errors"] == 0
    (searched,) = row["searches"].values()
    assert searched["states"] > 5_000 and searched["shortest"]["FencedForAReason"] == 9
    assert found["trails"]["4.0-rdkafka-FencedForAReason-INVALID_TXN_STATE"]["proved"]
    for name in found["trails"]:
        assert replay_plain(FindingStore(folder).trail(name)).verdict.violated in name
        assert f"- `{name}`" in page.read_text(encoding="utf-8")
    again = trial("4.0 rdkafka at-once", "--store", folder, "--page", page)
    assert again.returncode == 0 and FindingStore(folder).figures() == json.loads(json.dumps(found))


def test_trial_refuses_rows_that_there_are_not() -> None:
    """One sentence that names what there is."""
    done = trial("no-such-thing")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "no-such-thing" in done.stderr and "3.5 java35 at-once" in done.stderr
