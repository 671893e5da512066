"""What an interrupted campaign says and leaves, whoever is interrupted and whenever."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.commands.command_line import ended, started, wait_until
from support.spark.held_workers import second_block_after
from support.spark.spark_session import need_java, spark

from harness.campaign import spark_campaign as campaigns
from harness.campaign.cells import cells
from harness.campaign.store import MARKERS, PARTS, CampaignStore, CommittedBlock, Manifest
from harness.campaign.tables import CampaignTables

FLAWED = "s4-copied-tail"


def stored(out: Path) -> int:
    """Return how many runs the tables have."""
    return int(CampaignTables(spark(), CampaignStore(out)).frame("runs").count())


def test_no_worker_commits_anything_after_an_interrupted_campaign_has_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that is ready while the counts are taken is not committed: what is said is what is there."""
    folder = tmp_path / "campaign"
    heard = threading.Event()

    def progress(done: int, planned: int, message: str) -> None:
        if going.store.committed() and not heard.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    def counted(self: CampaignStore, known: Mapping[str, CommittedBlock] | None = None) -> dict[str, CommittedBlock]:
        found = committed(self, known)
        if heard.is_set():
            time.sleep(1)  # for the worker that waits for this moment
        return found

    committed = CampaignStore.committed
    monkeypatch.setattr(campaigns, "make_blocks", second_block_after(folder / PARTS))
    monkeypatch.setattr(CampaignStore, "committed", counted)
    going = campaigns.SparkCampaign(folder, Manifest(cells(["fencing-battle"]), "failing", 0.0, 4), 60, progress,
                                    heard.set)
    outcome = going.run(spark(), "2026-01-02")
    monkeypatch.undo()
    assert outcome.interrupted and 0 < outcome.runs == stored(folder)


def children_of(number: int) -> list[str]:
    """Return the processes that a process has started from its main thread."""
    return Path(f"/proc/{number}/task/{number}/children").read_text(encoding="utf-8").split()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see that nothing is left")
@pytest.mark.parametrize("when", ["Java starts", "blocks are committed"])
def test_sigterm_to_the_whole_process_group_ends_a_campaign_in_one_sentence(when: str, tmp_path: Path) -> None:
    """As a service manager ends it: what is committed is kept and counted, and neither Java nor a worker stays."""
    need_java()
    out = tmp_path / "campaign"
    with started("campaign", FLAWED, "--runs", 1_000_000, "--block", 500, "--keep", "failing", "--coverage", 0,
                 "--out", out) as process:
        wait_until(lambda: bool(children_of(process.pid)))
        if when == "blocks are committed":
            wait_until(lambda: any((out / MARKERS).glob("*.json")))
        children = children_of(process.pid)
        os.killpg(process.pid, signal.SIGTERM)
        outcome = ended(process)
        wait_until(lambda: not any(Path("/proc", number).exists() for number in children))
    assert outcome.code == 130 and children
    if when == "blocks are committed":
        kept = stored(out)
        assert outcome.sentence == (f"interrupted; {kept:,} of 1,000,000 runs are kept in {out}, and the same command "
                                    "goes on from there")
        assert outcome.out.startswith(f"{kept:,} runs of {FLAWED}, ")
    else:
        assert outcome.sentence == "interrupted; nothing was written"
