"""Records runs of campaigns with whatever protocol packages are found first: the process in which a mutant lives.

    python record_runs.py OUT SEEDS CAMPAIGN...

Writes OUT/CAMPAIGN/SEED.history.jsonl, up to the first run that violates a claim, and prints one JSON object: where the
packages come from, which claims that run violates (`lasting`: by how it ends), which witnesses
were reached, and what the protocol's code raised.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import compaction
import kafka_proto
from harness.memo.interning import long_lived
from harness.model import Scenario, model_of
from harness.record import Recorder, header_of, write_history
from harness.simulate.runs.plan import plan_of
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a program, too

from support.mutants.campaigns import CAMPAIGNS, STRATEGIES


def record(campaign: Scenario, seeds: int, folder: Path) -> dict[str, Any]:
    """Make runs of a campaign and write each; one that violates a claim, or in which code fails, is the last."""
    folder.mkdir(parents=True)
    model = model_of(campaign)
    tables, plan, source = Tables(model), plan_of(campaign), Strategies(STRATEGIES[campaign.name])
    violated: dict[str, str] = {}
    witnessed: set[str] = set()
    for seed in range(seeds):
        chosen, recorder = source.run(seed), Recorder()
        assert chosen is not None
        run = run_plain(tables, plan, chosen, recorder)
        if (error := run.error) is not None:
            where = traceback.extract_tb(error.__traceback__)[-1]
            raised = f"{type(error).__name__}: {error} ({Path(where.filename).name}, {where.name})"
            return {"runs": seed, "violated": {}, "lasting": [], "witnessed": sorted(witnessed), "raised": raised}
        header = header_of(run.trail, model, "plain")
        write_history(folder / f"{seed:04}.history.jsonl", header, recorder, run.verdict.to_json())
        witnessed |= run.witnessed
        violated = {verdict.violated: verdict.reason or "" for verdict in run.violations if verdict.violated}
        if violated:
            break
    lasting = [name for name in violated if model.property(name).is_temporal]
    return {
        "runs": seed + 1, "violated": violated, "lasting": lasting, "witnessed": sorted(witnessed), "raised": None,
    }


def main(out: str, seeds: str, *names: str) -> None:
    """Record the campaigns that are named."""
    with long_lived():
        seen = {name: record(CAMPAIGNS[name], int(seeds), Path(out) / name) for name in names}
    sources = [str(Path(file).parent.parent) for file in (kafka_proto.__file__, compaction.__file__) if file]
    print(json.dumps({"sources": sources, "campaigns": seen}))


if __name__ == "__main__":
    main(*sys.argv[1:])
