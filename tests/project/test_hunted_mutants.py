"""Wrong edits of actors that no property sees: a silent row of the hunt that is held against its spec turns red."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.mutants.source_mutants import mutated, python, sampled, table

from harness.simulate.hunting.tasks import REFINEMENT

HUNT = """
import json, sys
from pathlib import Path
import compaction, kafka_proto
from harness.verify.spec_holding import held
from harness.simulate.hunting.hunt import Hunt, chosen_scenarios
root, row, runs = sys.argv[1:]
assert all(package.__file__.startswith(root) for package in (compaction, kafka_proto)), root
rows = Hunt(chosen_scenarios([row]), Path("out"), int(runs), 0, hold=held).run()
print(json.dumps([row.to_json() for row in rows]))
"""
"""Hunts through a row with the packages below the folder that is its first argument."""
HUNTED = {name: row for name, row in table("source").items() if row.by == "hunted"}
SAMPLE = ("who-loads-is-no-coordinator", "diary-02s-last-epoch", "last-epoch-is-not-kept")


@pytest.mark.parametrize("name", sampled(HUNTED, SAMPLE))
def test_row_is_red_where_only_the_spec_sees_the_edit(name: str, tmp_path: Path) -> None:
    """The row is red, and nothing but the refinement says so; its trail is there."""
    mutant = HUNTED[name]
    root = mutated(mutant, tmp_path)
    row, = json.loads(python(root, "-c", HUNT, root, mutant.where, mutant.runs))
    assert (row["as_expected"], row["violated"]) == (False, REFINEMENT)
    assert "is no step of the spec" in row["reason"]
    assert (root / row["trail"]).is_file() and row["replay"].startswith("kafka-proto verify ")


def test_there_are_at_least_eight_of_them() -> None:
    """Of each protocol."""
    assert len(HUNTED) >= 8
    assert {part for mutant in HUNTED.values() for part in Path(mutant.file).parts if part in (
        "coordinator", "replication", "compaction")} == {"coordinator", "replication", "compaction"}
