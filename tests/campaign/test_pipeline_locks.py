"""One driver has a folder: a second one is refused, a killed one is out of the way, and its workers commit nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import call, ended, files_below, holding, started, wait_until
from support.spark.held_workers import second_block_after
from support.spark.spark_session import need_java, spark

from harness.campaign import locks
from harness.campaign import spark_campaign as campaigns
from harness.campaign.cells import Cell, cells
from harness.campaign.missing_blocks import missing
from harness.campaign.store import MANIFEST, MARKERS, PARTS, CampaignStore, CommittedBlock, Manifest
from harness.campaign.tables import CampaignTables
from harness.campaign.worker import BlockTask, Worker
from harness.model import Refusal

FLAWED = "s4-copied-tail"
DAY = "2026-01-02"
HOLD = """
import sys, time
from pathlib import Path
from harness.campaign.locks import alone

with alone(Path(sys.argv[1]), "--out"):
    print("held", flush=True)
    time.sleep(600)
"""
"""Has a folder, until it is killed."""


@pytest.fixture(scope="module")
def cell() -> Cell:
    """What the runs are of."""
    return cells([FLAWED])[0]


@pytest.fixture
def manifest(cell: Cell) -> Manifest:
    """A campaign of blocks of ten runs."""
    return Manifest((cell,), "all", 0.0, 10)


def commit(store: CampaignStore, cell: Cell, first: int = 0) -> str:
    """Make and commit a block of ten runs; return its name."""
    rows = Worker().make(BlockTask(cell, first, first + 10, "all", False))
    return store.commit(cell, first, first + 10, DAY, rows.tables(), rows.counts).name


@pytest.mark.parametrize("arguments", [
    ("campaign", FLAWED, "--runs", 1, "--out"),
    ("check", "transactions/diary-01", "--engine", "spark", "--out", "here", "--checkpoint"),
], ids=lambda arguments: arguments[0])
def test_a_second_driver_is_refused_and_told_who_has_the_folder(
    arguments: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Campaigns and searches: one sentence with the other process, code 2, and nothing changes; a kill frees it."""
    need_java()
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    with holding(HOLD, folder) as process:
        before = files_below(folder)
        said = call(*arguments, folder).refusal
        assert said == (f"{folder} is in use by process {process.pid} on this machine; wait until that has ended, or "
                        f"give another folder with {arguments[-1]}")
        assert files_below(folder) == before
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert (folder / locks.DRIVER).stat().st_size > 0
        with locks.alone(folder, "--out") as token:
            assert token in (folder / locks.DRIVER).read_text(encoding="utf-8")


def test_a_killed_search_leaves_no_temporary_folder_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next search removes what a killed one had, and nothing that is in use, finished, or not a search's."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spark()
    killed, used, other = (tmp_path / f"kafka-proto-search-{name}" for name in ("killed", "used", "other"))
    other.mkdir()
    with holding(HOLD, used):
        with holding(HOLD, killed) as process:
            process.kill()
            process.wait()
        assert [locks.is_abandoned(folder) for folder in (killed, used, other)] == [True, False, False]
        outcome = call("check", "transactions/diary-01", "--size", "clients=1", "--engine", "spark", "--parts", 1,
                       "--out", tmp_path / "out")
        assert outcome.code == 0, outcome.err
        assert sorted(path.name for path in tmp_path.glob("kafka-proto-*")) == [other.name, used.name]


def test_a_folder_is_free_when_its_driver_is_done(tmp_path: Path, manifest: Manifest) -> None:
    """A driver may ask twice; another one in the same process may not, until the first is done, even by an error."""
    store = CampaignStore(tmp_path)
    with pytest.raises(ZeroDivisionError), store.alone(manifest):
        with store.alone(manifest), pytest.raises(Refusal, match=f"is in use by process {os.getpid()} on this mach"):
            CampaignStore(tmp_path).alone(manifest).__enter__()
        raise ZeroDivisionError
    with CampaignStore(tmp_path).alone(manifest):
        pass
    assert (tmp_path / locks.DRIVER).read_bytes() == b""


def test_a_driver_that_is_elsewhere_is_named_with_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a shared folder a process number alone says nothing; and a file that says nothing is no reason to fail."""
    with monkeypatch.context() as patch:
        patch.setattr("socket.gethostname", lambda: "elsewhere")
        holding = locks.alone(tmp_path, "--out")
        holding.__enter__()
    with pytest.raises(Refusal, match=f"is in use by process {os.getpid()} on elsewhere; wait"):
        locks.alone(tmp_path, "--out").__enter__()
    (tmp_path / locks.DRIVER).write_text("[]", encoding="utf-8")
    with pytest.raises(Refusal, match="is in use by another process; wait"):
        locks.alone(tmp_path, "--out").__enter__()
    holding.__exit__(None, None, None)


def test_a_worker_of_a_former_driver_commits_nothing(tmp_path: Path, manifest: Manifest, cell: Cell) -> None:
    """What it made is dropped without a trace, while that driver's own blocks stay and the new driver's come."""
    store = CampaignStore(tmp_path)
    with store.alone(manifest):
        late = CampaignStore(tmp_path, store.token)
        commit(late, cell)
    with store.alone(manifest):
        before = files_below(tmp_path)
        with pytest.raises(Refusal, match="is no longer worked on by the driver of this worker"):
            commit(late, cell, 10)
        code = {cell.package: cell.code}
        with pytest.raises(RuntimeError, match=r"the campaign cannot go on: .* is no longer worked on by"):
            list(campaigns.make_blocks([missing(manifest, 20, ())], str(tmp_path), DAY, code, late.token))
        assert files_below(tmp_path) == before
        assert list(campaigns.make_blocks([missing(manifest, 20, ())], str(tmp_path), DAY, code, store.token)
                    ) == [10]
    assert len(store.committed()) == 2


def test_a_block_that_was_made_twice_is_that_of_the_first(tmp_path: Path, manifest: Manifest, cell: Cell) -> None:
    """A task that runs twice at once, as after a lost connection, does not spoil what its twin has committed."""
    store = CampaignStore(tmp_path)
    with store.alone(manifest):
        commit(store, cell)
        before = files_below(tmp_path)
        commit(store, cell)
        assert files_below(tmp_path) == before
    store.verify(store.committed().values())


def test_what_killed_drivers_left_is_cleared_away(tmp_path: Path, manifest: Manifest, cell: Cell) -> None:
    """Hidden files, and tables of a block without its marker; neither what is committed nor files of somebody else."""
    store = CampaignStore(tmp_path)
    with store.alone(manifest):
        commit(store, cell)
        kept = files_below(tmp_path)
        name = commit(store, cell, 10)
    (tmp_path / MARKERS / f"{name}.json").unlink()
    (tmp_path / PARTS / ".half").write_bytes(b"PAR1")
    (foreign := next(tmp_path.glob("runs/*/*")) / "mine.parquet").write_bytes(b"of somebody else")
    assert len(list(tmp_path.glob(f"*/*/*/{name}.parquet"))) == 3
    with store.alone(manifest):
        pass
    left = files_below(tmp_path)
    assert left.pop(str(foreign.relative_to(tmp_path))) == b"of somebody else"
    assert left == {**kept, locks.DRIVER: b""}


def test_a_block_is_on_the_disk_before_its_marker_is(
    tmp_path: Path, manifest: Manifest, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is flushed under its hidden name; each folder after the renaming; the marker comes when all are."""
    store, done = CampaignStore(tmp_path), list[tuple[str, str]]()
    store.begin(manifest)
    fsync, replace = os.fsync, os.replace

    def flushed(handle: int) -> None:
        done.append(("flush", os.path.relpath(os.readlink(f"/proc/self/fd/{handle}"), tmp_path)))
        fsync(handle)

    def renamed(part: Any, path: Any) -> None:
        assert ("flush", os.path.relpath(part, tmp_path)) in done
        done.append(("rename", os.path.relpath(path, tmp_path)))
        replace(part, path)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    name = commit(store, cell)
    renames = [path for what, path in done if what == "rename"]
    files = [file["path"] for file in store.committed()[name].files.values()]
    assert sorted(renames[:-1]) == sorted(files) and renames[-1] == f"{MARKERS}/{name}.json"
    for path in renames:
        assert ("flush", str(Path(path).parent)) in done[done.index(("rename", path)) :]
    marker = done.index(("rename", renames[-1]))
    assert len(files) >= 2
    for table in (path.partition("/")[0] for path in files):
        assert {("flush", "."), ("flush", table), ("flush", f"{table}/what={FLAWED}")} <= set(done[:marker])


@pytest.mark.parametrize("name", ["notes.txt", "runs"])
def test_a_folder_with_other_things_in_it_is_refused(name: str, tmp_path: Path) -> None:
    """A campaign begins in a folder of its own: with other files, or with tables that nobody describes, it does not."""
    need_java()
    (tmp_path / name).mkdir()
    said = call("campaign", FLAWED, "--runs", 1, "--out", tmp_path).refusal
    assert said == f"{tmp_path} holds {name}, but no {MANIFEST}; give a new folder with --out"
    assert [path.name for path in tmp_path.iterdir()] == [name]


# What an interrupted campaign says and leaves.


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
        assert outcome.sentence == (f"interrupted; {kept:,} of 1,000,000 runs are kept in {out}, the same command "
                                    "resumes")
        assert outcome.out.startswith(f"{kept:,} runs of {FLAWED}, ")
    else:
        assert outcome.sentence == "interrupted; nothing was written"
