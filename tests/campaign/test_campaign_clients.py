"""What clients saw, in a campaign: judged in every run, counted on Spark, told on the page, judged again."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.commands.command_line import call
from support.paths import DATA
from support.spark import campaigns_made
from support.spark.spark_session import spark

from harness.campaign import store
from harness.campaign.cells import Cell, cells
from harness.campaign.client_checks import anomaly_tallies, clients_tallies
from harness.campaign.judging import judge_block
from harness.campaign.schemas import SCHEMAS
from harness.campaign.store import CampaignStore, CommittedBlock, Manifest
from harness.campaign.tables import CampaignTables
from harness.campaign.worker import BlockTask, Worker
from harness.record import header_of
from harness.record.history import EventRecorder
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.verify.isolation.clients import judged

FLAWED, REPAIRED, WITHOUT_CLIENTS = "late-marker", "late-marker-repaired", "s4-copied-tail"
RUNS = 100


@cache
def block(what: str, runs: int = RUNS) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of a block as rows."""
    made = Worker().make(BlockTask(cells([what])[0], 0, runs, "failing", False))
    return {name: table.to_pylist() for name, table in made.tables().items()}


def test_each_run_has_what_its_history_shows() -> None:
    """Names, first steps and reasons are those that the history's events alone give, whatever the run violates."""
    cell, strategies, said = cells([FLAWED])[0], Strategies("random"), block(FLAWED)
    tables = Tables(cell.build())
    for run in said["runs"]:
        recorder, trail = EventRecorder(), cell.trail(run["seed"])
        strategy = strategies.run(run["seed"])
        assert strategy is not None
        verdict = run_plain(tables, cell.plan, strategy, recorder).verdict
        history = recorder.history(header_of(trail, tables.model, "plain"), verdict.to_json(), tables.model)
        found = judged(tables.model, history.events)
        assert run["anomalies"] == sorted({one.anomaly for one in found})
        rows = [row for row in said["anomalies"] if row["seed"] == run["seed"]]
        assert [row["anomaly"] for row in rows] == run["anomalies"]
        assert {(row["step"], row["reason"], *row["proof"]) for row in rows} <= {
            (one.step, one.reason, *map(str, one.proof)) for one in found}
        assert sum(row["cases"] for row in rows) == len(found)
    assert {"G1a", "unseen"} <= {row["anomaly"] for row in said["anomalies"]}


def test_a_repaired_twin_has_none_and_transactions_are_counted_as_they_ended() -> None:
    """A transaction is `txn ok`, `txn fail` or `txn info`, and each that was begun is one of these."""
    twin = block(REPAIRED)
    assert not twin["anomalies"] and {tuple(run["anomalies"]) for run in twin["runs"]} == {()}
    ended = [dict(run["ended"]) for run in twin["runs"]]
    assert {name for one in ended for name in one} == {"txn ok", "txn fail", "txn info"}
    taken = {row["name"]: row["count"] for row in twin["coverage"] if row["kind"] == "action"}
    assert sum(sum(one.values()) for one in ended) == taken["BeginTransaction"] > RUNS


def test_a_model_without_a_view_of_clients_says_nothing() -> None:
    """Null is not empty: nobody looked."""
    assert {run["anomalies"] for run in block(WITHOUT_CLIENTS, 5)["runs"]} == {None}
    assert {run["ended"] for run in block(WITHOUT_CLIENTS, 5)["runs"]} == {None}


def committed(folder: Path, cell: Cell) -> tuple[CampaignStore, CommittedBlock]:
    """Make a campaign's folder with one block of which all events are kept."""
    place = CampaignStore(folder)
    place.begin(Manifest((cell,), "all", 0.0, RUNS))
    rows = Worker().make(BlockTask(cell, 0, RUNS, "all", False))
    return place, place.commit(cell, 0, RUNS, "2026-01-02", rows.tables(), rows.counts)


@pytest.mark.parametrize("said", [[], ["G1a", "lost-write"]])
def test_a_row_that_says_something_else_of_its_clients_is_found_when_it_is_judged_again(
    tmp_path: Path, said: list[str]
) -> None:
    """What clients saw is judged again from stored events: a row that left an anomaly out, or has one more, differs."""
    cell = cells([FLAWED])[0]
    place, one = committed(tmp_path, cell)
    found = judge_block(tmp_path, one, cell)
    path = place.files("runs", [one])[0]
    rows = [row for batch in store.read(path, "runs") for row in batch.to_pylist()]
    anomalous = [row for row in rows if row["anomalies"]]
    assert found.ok and found.kinds["isolation"] == len(anomalous) > 1
    edited = next(row for row in anomalous if row["anomalies"] == ["G1a"])
    edited["anomalies"] = said
    store.write(path, pa.Table.from_pylist(rows, SCHEMAS["runs"]))
    again = judge_block(tmp_path, one, cell)
    assert not again.ok and [wrong.seed for wrong in again.findings] == [edited["seed"]]
    assert again.findings[0].sentence == f"clients saw G1a; the run's row says {', '.join(said) or 'nothing'}"


def test_a_report_counts_what_clients_saw_by_fault_mix(tmp_path: Path) -> None:
    """The tables on Spark, the page, the terminal and the JSON object have what the blocks have."""
    out = tmp_path / "campaign"
    campaigns_made.made(out, FLAWED, REPAIRED, WITHOUT_CLIENTS, runs=RUNS, block=50)
    tables = CampaignTables(spark(), CampaignStore(out))
    flawed, repaired = clients_tallies(tables)
    assert (flawed.what, flawed.runs, repaired.what, repaired.anomalous) == (FLAWED, RUNS, REPAIRED, 0)
    ended: Counter[str] = Counter()
    for run in block(FLAWED)["runs"]:
        ended.update(dict(run["ended"]))
    assert flawed.ended == ended and flawed.anomalous == sum(bool(run["anomalies"]) for run in block(FLAWED)["runs"])
    mixes = Counter((row["anomaly"], " + ".join(row["faults"]) or "no fault") for row in block(FLAWED)["anomalies"])
    found = anomaly_tallies(tables)
    assert {(one.anomaly, one.faults): one.runs for one in found} == mixes
    outcomes = {run["seed"]: run["outcome"] for run in block(FLAWED)["runs"]}
    assert sum(one.silent for one in found) == sum(
        outcomes[row["seed"]] == "ok" for row in block(FLAWED)["anomalies"])
    done = call("report", out, "--json")
    assert [one["anomaly"] for one in done.json["anomalies"]] == [one.anomaly for one in found]
    assert [one["ended"] for one in done.json["clients"]] == [flawed.ended, repaired.ended]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert 'id="clients"' in page and "c1.2#1 was sent to log T-0" in page
    said = " ".join(call("report", out, "--no-rejudge").out.split())
    assert "AcknowledgedOutcome in" in said and f"ok {FLAWED} " in said, "the step that breaks both is no other flaw"
    assert f"anomalies in {flawed.anomalous} runs" in said and f"{FLAWED}: G1a (NoAbortedRead) in" in said


def test_imported_histories_of_logs_have_theirs(tmp_path: Path) -> None:
    """The rows of an imported history name the anomaly, its property and its proof; the repaired one has none."""
    out = tmp_path / "queue"
    names = ("lost-write", "kept-writes")
    files = [DATA / "jepsen" / f"{name}.edn" for name in names]
    assert call("import", *files, "--as", "jepsen", "--out", out).code == 0
    rows = campaigns_made.rows_by_table(out, "runs", "anomalies")
    assert [run["anomalies"] for run in rows["runs"]] == [["lost-write"], []]
    assert dict(rows["runs"][0]["ended"]) == {"poll ok": 1, "send ok": 3}
    row, = rows["anomalies"]
    assert (row["anomaly"], row["property"], row["step"], row["cases"]) == ("lost-write", "AckDurability", 11, 1)
    assert row["proof"][0] == "operation 4 (send by 0) sends 12 and is told offset 1 of log 0"
