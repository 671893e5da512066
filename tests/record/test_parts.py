"""Hidden files of writers that were killed are swept by the next one in their folder, and never those of a live one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import call, holding, wait_until

from harness.record import parts
from harness.record.files import write_atomically, writing
from harness.record.parts import MARK, folder_of, sweep

WRITER = """
import sys, time
from pathlib import Path
from harness.record.files import writing
with writing(Path(sys.argv[1])) as file:
    file.write("half")
    file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""
MANY = """
import sys
from pathlib import Path
from harness.record.files import write_atomically
for n in range(100):
    write_atomically(Path(sys.argv[1]) / f"{sys.argv[2]}-{n % 7}", [str(n)] * 50)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def hidden(folder: Path) -> list[str]:
    return [name for name in names(folder) if name.endswith(MARK)]


def test_file_of_a_killed_writer_is_swept_by_the_next_one(tmp_path: Path) -> None:
    """Whatever the next one writes, as long as it is in the same folder."""
    with holding(WRITER, tmp_path / "first") as process:
        process.kill()
        process.wait()
        assert len(hidden(tmp_path)) == 1
    (tmp_path / "below").mkdir()
    write_atomically(tmp_path / "below" / "elsewhere", ["text"])
    assert len(hidden(tmp_path)) == 1
    write_atomically(tmp_path / "second", ["text"])
    assert names(tmp_path) == ["below", "second"]


def test_file_of_a_live_writer_is_left_alone(tmp_path: Path) -> None:
    """Beside a file that is left it stays, and comes to its place when it is complete."""
    with holding(WRITER, tmp_path / "killed") as process:
        process.kill()
    with holding(WRITER, tmp_path / "slow") as process, writing(tmp_path / "mine") as file:
        assert len(hidden(tmp_path)) == 2
        file.write("text")
        write_atomically(tmp_path / "other", ["text"])
        sweep(tmp_path)
        assert [name.split(".")[1] for name in hidden(tmp_path)] == ["mine", "slow"]
    assert (tmp_path / "mine").read_text(encoding="utf-8") == "text"
    sweep(tmp_path)
    assert names(tmp_path) == ["mine", "other"]


def test_run_that_is_killed_leaves_nothing_for_long(tmp_path: Path) -> None:
    """A command line that is killed leaves a hidden history; the next command that writes there removes it."""
    command = [sys.executable, "-c", "from harness.cli import main; main()", "simulate", "replication/kip-320/actors",
               "--steps", "100000000", "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: bool(tmp_path.exists() and hidden(tmp_path)))
        finally:
            process.send_signal(signal.SIGKILL)
    assert len(hidden(tmp_path)) == 1
    assert call("simulate", "exactly-once-zombie", "--out", tmp_path).code == 0
    assert names(tmp_path) == ["exactly-once-zombie-random-0.history.jsonl", "exactly-once-zombie-random-0.trail.jsonl"]


def test_folder_that_is_left_is_swept_and_one_in_use_is_not(tmp_path: Path) -> None:
    """An import fills a hidden folder, which goes the same way."""
    left = tmp_path / f".campaign.abcdefgh{MARK}"
    (left / "runs").mkdir(parents=True)
    (left / "runs" / "rows").write_text("text", encoding="utf-8")
    with folder_of(tmp_path / "campaign") as part:
        (part / "rows").write_text("text", encoding="utf-8")
        assert hidden(tmp_path) == [part.name]
        sweep(tmp_path)
        assert (part / "rows").exists()
        os.replace(part, tmp_path / "campaign")
    assert names(tmp_path) == ["campaign"]
    with pytest.raises(KeyError), folder_of(tmp_path / "another"):
        raise KeyError
    assert names(tmp_path) == ["campaign"]


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    """Neither other names, nor a link or a pipe of such a name, are ours to remove."""
    other = tmp_path / "other"
    other.write_text("precious", encoding="utf-8")
    (tmp_path / ".movie.part").write_text("precious", encoding="utf-8")
    (tmp_path / f"visible{MARK}").write_text("precious", encoding="utf-8")
    (tmp_path / f".link{MARK}").symlink_to(other)
    os.mkfifo(tmp_path / f".pipe{MARK}")
    before = names(tmp_path)
    write_atomically(tmp_path / "target", ["text"])
    assert names(tmp_path) == sorted([*before, "target"])
    assert other.read_text(encoding="utf-8") == "precious"


def test_sweeper_between_making_and_locking_a_file_costs_the_writer_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer sees that its file is gone, and makes another one."""
    make, made = tempfile.mkstemp, list[str]()

    def swept(*args: Any, **fields: Any) -> tuple[int, str]:
        handle, name = make(*args, **fields)
        made.append(name)
        if len(made) < 3:
            sweep(tmp_path)
            assert not os.path.exists(name)
        return handle, name

    monkeypatch.setattr(parts.tempfile, "mkstemp", swept)
    write_atomically(tmp_path / "target", ["text"])
    assert len(made) == 3
    assert (names(tmp_path), (tmp_path / "target").read_text(encoding="utf-8")) == (["target"], "text\n")


def test_complete_file_is_locked_until_it_is_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between closing and renaming it a sweeper would take it away."""
    replace = os.replace

    def swept(*args: Any) -> None:
        sweep(tmp_path)
        replace(*args)

    monkeypatch.setattr(os, "replace", swept)
    write_atomically(tmp_path / "target", ["text"])
    assert names(tmp_path) == ["target"]


def test_commands_that_write_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Three processes write 100 files each into one folder, each sweeping before each file."""
    running = [subprocess.Popen([sys.executable, "-c", MANY, str(tmp_path), f"of-{n}"], stderr=subprocess.PIPE)
               for n in range(3)]
    assert [process.communicate()[1] for process in running] == [b""] * 3
    assert [process.returncode for process in running] == [0, 0, 0]
    assert names(tmp_path) == sorted(f"of-{n}-{k}" for n in range(3) for k in range(7))
    assert {len((tmp_path / name).read_text(encoding="utf-8").splitlines()) for name in names(tmp_path)} == {50}
