"""One driver has a folder: a second one is refused, a killed one is out of the way, and its workers commit nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import call, files_below
from support.spark.spark_session import need_java, spark

from harness.campaign import locks
from harness.campaign import spark_campaign as campaign
from harness.campaign.cells import Cell, cells
from harness.campaign.missing_blocks import missing
from harness.campaign.store import MANIFEST, MARKERS, PARTS, CampaignStore, Manifest
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


@contextmanager
def another(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Let another process have a folder, until it is killed."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


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
    with another(folder) as process:
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
    with another(used):
        with another(killed) as process:
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
            list(campaign.make_blocks([missing(manifest, 20, ())], str(tmp_path), DAY, code, late.token))
        assert files_below(tmp_path) == before
        assert list(campaign.make_blocks([missing(manifest, 20, ())], str(tmp_path), DAY, code, store.token)
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
