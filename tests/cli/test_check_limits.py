"""`kafka-proto check` cut short by interrupts, crashes, limits, missing parts: what it says and what it keeps."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from support.commands import command_line
from support.commands.command_line import Outcome, call, ended, files_below, started, wait_until

from harness.cli import check
from harness.explore.checkpoint import Checkpoint
from harness.explore.packed import kernel, kernel_loop, layout, python_loop, search
from harness.model import Model, Process, Step, View, always

needs_kernel = pytest.mark.skipif(not kernel.is_available(), reason="the kernel cannot be compiled here")
ENGINES = ["python", pytest.param("kernel", marks=needs_kernel)]
DIARY = ("transactions/diary-01", "--size", "transactional-ids=2")
GIST = ("transactions/gist", "--size", "clients=1", "--no-stop")
LARGE = ("transactions/diary-01", *(f"--size={name}" for name in (
    "clients=3", "brokers=3", "txn-log-partitions=2", "transactional-ids=2")))
"""69 million states: it does not end before it is ended."""
HASTY = "import harness.cli.check as c; c.SAVED_EVERY = 0; from harness.cli import main; main()"
"""The command line, with a checkpoint after every level."""


@contextmanager
def broken_off(after: int, chunk: int = 40, times: int = 1) -> Iterator[None]:
    """Press Ctrl-C, once or more often, after some chunks of states (never: 0), of so many states each."""
    done = count(1)

    def breaking(expand: Callable[..., Iterator[int]]) -> Callable[..., Iterator[int]]:
        def expanded(self: Any, answered: Any) -> Iterator[int]:
            scouting = not isinstance(answered, partial)
            for position in expand(self, answered):
                if not scouting and next(done) == after:
                    for _ in range(times):
                        signal.raise_signal(signal.SIGINT)
                yield position
        return expanded

    with (
        patch.object(python_loop, "CHUNK", chunk), patch.object(kernel_loop, "SLICE", chunk),
        patch.object(python_loop.PythonLoop, "expand", breaking(python_loop.PythonLoop.expand)),
        patch.object(kernel_loop.KernelLoop, "expand", breaking(kernel_loop.KernelLoop.expand)),
    ):
        yield


def found(done: Outcome) -> dict[str, Any]:
    """Return what a search found, as far as it does not depend on the order of the search."""
    summary = done.json
    same = ("initial", "distinct", "generated", "depth", "verdict", "complete", "actions", "engine", "properties")
    assert done.code == (1 if summary["violated"] else 0)
    assert sum(summary["actions"].values()) + summary["initial"] == summary["generated"]
    return {
        **{name: summary[name] for name in same},
        "violated": sorted((entry["property"], entry["kind"], entry["length"]) for entry in summary["violated"]),
        "witnesses": {name: entry and entry["length"] for name, entry in summary["witnesses"].items()},
    }


def assert_goes_on(folder: Path, arguments: tuple[object, ...], breaks: tuple[int, ...], chunk: int = 40) -> None:
    """Assert that a search broken off, and again three chunks on, and again, ends as one that was left in peace."""
    command = ("check", *arguments, "--json", "--out", folder / "out")
    with broken_off(0, chunk):
        whole = found(call(*command))
    for after in breaks:
        checkpoint = folder / f"checkpoint-{after}"
        with broken_off(after, chunk):
            part = call(*command, "--checkpoint", checkpoint)
        assert (part.code, part.json["verdict"], part.json["complete"]) == (130, "interrupted", False)
        assert part.json["distinct"] <= whole["distinct"]
        assert part.sentence.endswith(f"the checkpoint is in {checkpoint}, the same command resumes")
        for again in (3, 3, 0):
            with broken_off(again, chunk):
                done = call(*command, "--checkpoint", checkpoint)
            if done.code != 130:
                break
        assert found(done) == whole
        assert found(call(*command, "--checkpoint", checkpoint)) == whole, "a complete search goes on as itself"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("arguments", "breaks", "chunk"), [*((arguments, (1, 8), 40) for arguments in (
    DIARY, (*DIARY, "--symmetry"), (*DIARY, "--fingerprints"), (*DIARY, "--symmetry", "--fingerprints"),
    (*DIARY, "--deadlock"), (*GIST, "--deadlock"), ("transactions/diary-01", "--view"),
    (*DIARY, "--view", "--symmetry"), ("replication/async-isr",), ("replication/kip-101", "--no-stop"),
    ("transactions/repaired", "--size", "clients=1", "--property", "EventuallyOneClientAddsAllPartitions"),
)), ((*DIARY, "--size", "brokers=3", "--size", "txn-log-partitions=2", "--symmetry"), (40,), 100)],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "")
def test_interrupted_search_goes_on_to_the_same_end(
    arguments: tuple[str, ...], breaks: tuple[int, ...], chunk: int, engine: str, tmp_path: Path
) -> None:
    """Counts, per-action counts, violations and witnesses are those of a search that nobody interrupted.

    The last one: the order in which orbits are compared was decided with fewer values; after a break it is the same.
    """
    assert_goes_on(tmp_path, (*arguments, "--engine", engine), breaks, chunk)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("symmetry", [(), ("--symmetry",)], ids=["plain", "symmetry"])
def test_search_whose_fields_were_widened_goes_on(
    symmetry: tuple[str, ...], engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Widths that were chosen after one state do not do: states are packed anew before and after the breaks."""
    monkeypatch.setattr(search, "SCOUTED", 1)
    monkeypatch.setattr(layout, "ROOM", 1)
    monkeypatch.setattr(layout, "EACH", 1)
    assert_goes_on(tmp_path, (*DIARY, *symmetry, "--engine", engine), (1, 2, 3, 9))


@needs_kernel
def test_search_whose_variables_share_fields_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where states would be too wide for the kernel, variables share fields; the checkpoint says which."""
    monkeypatch.setattr(kernel_loop, "BITS", {2: 62})
    assert_goes_on(tmp_path, (*DIARY, "--engine", "kernel"), (3,))
    manifest = json.loads((tmp_path / "checkpoint-3" / "checkpoint.json").read_text(encoding="utf-8"))
    assert (manifest["engine"], bool(manifest["together"])) == ("kernel", True)


class Walker(Process):
    """Goes from 0 by two ways to the bound, the first of them shorter."""

    name = "walker"

    def steps(self, view: View) -> Iterator[Step]:
        for n, (source, target) in enumerate([(0, 1), (0, 2), (1, 9), (2, 3), (3, 4)]):
            if view["at"] == source:
                yield Step("Go", (), (("at", target),), detail=f"{n}")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("after", range(1, 5))
def test_violation_out_of_bounds_is_not_lost_by_a_break(after: int, engine: str, tmp_path: Path) -> None:
    """States out of bounds are looked at, though not searched from: also those met before a break in their level."""
    small = always("Small", lambda view: None if view["at"] != 9 else "it is 9")
    model = Model("walk", (Walker(),), ({"at": 0},), properties=(small,), constraint=lambda view: view["at"] != 9)

    def run(at: int) -> search.Result:
        one = search.Search(model, ("Small",), engine=engine, stop=False, checkpoint=Checkpoint(tmp_path))
        pieces = count(1)
        one.progress = lambda *summary: setattr(one, "wants_stop", next(pieces) == at or one.wants_stop)
        return one.run()

    with broken_off(0, 1):
        assert not run(after).complete
        (violation,) = run(0).violations
    assert (violation.name, violation.length) == ("Small", 3)


@pytest.mark.parametrize("engine", ENGINES)
def test_partial_report_is_text_and_says_that_it_is_partial(engine: str, tmp_path: Path) -> None:
    """Without a checkpoint nothing is kept, and the sentence does not say so; what was found so far is shown."""
    with broken_off(6):
        none = call("check", *DIARY, "--engine", engine, "--out", tmp_path)
    with broken_off(9):
        some = call("check", *GIST, "--engine", engine, "--out", tmp_path)
    assert none.code == some.code == 130
    assert re.match(r"transactions/diary-01: searched in part, no violation so far in [0-9,]+ distinct ", none.out)
    assert "never reached" not in none.out
    assert "FollowersHoldNoUncommitted is violated after 4 steps" in some.out
    assert none.sentence == some.sentence == "interrupted; the counts above are of a part of the states"


def test_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    """Nothing is reported, and the checkpoint is the one before."""
    command = ("check", *DIARY, "--out", tmp_path / "out", "--json")
    with broken_off(5):
        assert call(*command, "--checkpoint", tmp_path / "kept").code == 130
    before = files_below(tmp_path / "kept")
    for times in (2, 3):
        with broken_off(5, times=times):
            done = call(*command, "--checkpoint", tmp_path / "kept")
        assert (done.code, done.out) == (130, "")
        assert done.sentence == "interrupted; the search since the last checkpoint is lost"
        assert files_below(tmp_path / "kept") == before
    with broken_off(5, times=2):
        assert call(*command).sentence == "interrupted; nothing was written"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_signal_ends_the_process_in_order(
    number: signal.Signals, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that would search for minutes ends soon, says what it found, and leaves a checkpoint."""
    monkeypatch.setattr(command_line, "COMMAND", (sys.executable, "-c", HASTY))
    folder = tmp_path / "kept"
    with started("check", *LARGE, "--engine", engine, "--checkpoint", folder, "--json", "--out", tmp_path) as process:
        wait_until((folder / "checkpoint.json").exists)
        process.send_signal(number)
        done = ended(process)
    assert (done.code, done.json["verdict"], done.json["complete"]) == (130, "interrupted", False)
    assert str(folder) in done.sentence
    saved = json.loads((folder / "checkpoint.json").read_text(encoding="utf-8"))
    assert sum(level["states"] for level in saved["levels"]) == done.json["distinct"]


def test_killed_process_leaves_a_whole_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed again and again while it writes a checkpoint after every level, a search gets to the right end."""
    monkeypatch.setattr(command_line, "COMMAND", (sys.executable, "-c", HASTY))
    command = ("check", *DIARY, "--size=brokers=3", "--engine=python", "--json", "--out", tmp_path / "out")
    folder = tmp_path / "kept"
    for n in range(6):
        with started(*command, "--checkpoint", folder) as process:
            wait_until((folder / "checkpoint.json").exists)
            time.sleep(0.03 + 0.05 * n)
            process.kill()
            process.wait()
    assert found(call(*command, "--checkpoint", folder)) == found(call(*command))
    assert not list(folder.glob(".*"))


class Killed(BaseException):
    """The process ends here."""


def test_crash_at_any_moment_of_saving_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each renaming and removal of a file the process may end: what is there then can be gone on from."""
    monkeypatch.setattr(check, "SAVED_EVERY", 0)
    command = ("check", *GIST, "--engine", "python", "--json", "--out", tmp_path / "out")
    whole, folder = found(call(*command)), tmp_path / "kept"
    places = [(Path, "replace"), (os, "replace"), (Path, "unlink")]
    for moment in count(1, 3):
        left = count(1)

        def crashing(real: Callable[..., Any]) -> Callable[..., Any]:
            def called(*given: Any, **named: Any) -> Any:
                if next(left) == moment:  # noqa: B023  (used in this turn only)
                    raise Killed
                return real(*given, **named)
            return called

        shutil.rmtree(folder, ignore_errors=True)
        with pytest.MonkeyPatch.context() as crash:
            for owner, name in places:
                crash.setattr(owner, name, crashing(getattr(owner, name)))
            try:
                call(*command, "--checkpoint", folder)
            except Killed:
                pass
            else:
                assert moment > 30, "there was nothing to crash in"
                return
        assert found(call(*command, "--checkpoint", folder)) == whole
        assert not list(folder.glob(".*")), "what was half-written is removed"


@pytest.mark.parametrize("engine", ENGINES)
def test_memory_limit_keeps_what_is_done(engine: str, tmp_path: Path) -> None:
    """With more memory the search goes on to the same end; with as little as before it is refused again."""
    command = ("check", *DIARY, "--engine", engine, "--out", tmp_path / "out", "--json")
    folder = tmp_path / "kept"
    with broken_off(0):
        whole = found(call(*command))
        first = call(*command, "--memory", "0.00002").refusal
        for _ in range(2):
            said = call(*command, "--memory", "0.00002", "--checkpoint", folder).refusal
            assert re.match(r"the search needs more than 2e-05 GB of memory after [0-9,]+ states"
                            f"; the checkpoint is in {folder}; give more with --memory", said)
        assert "kept" not in first
        assert found(call(*command, "--memory", "1", "--checkpoint", folder)) == whole


@contextmanager
def without_kernel(folder: Path, compiler: str) -> Iterator[None]:
    """A machine on which nothing was compiled before, and the compiler is this one."""
    kernel.library.cache_clear()
    try:
        with pytest.MonkeyPatch.context() as machine:
            machine.setattr(kernel, "_folders", lambda: iter([folder]))
            machine.setenv("CC", compiler)
            yield
    finally:
        kernel.library.cache_clear()


@pytest.mark.parametrize(("compiler", "said"), [
    ("/nonexistent/cc -O2", "/nonexistent/cc cannot be run (No such file or directory); use --engine python"),
    ("false", "false could not compile the kernel (it said nothing); use --engine python"),
    ("true", "true could not compile the kernel (it said nothing); use --engine python"),
    ("'half a quotation", "cannot be run"),
])
def test_without_a_compiler_auto_is_python_and_kernel_is_refused(compiler: str, said: str, tmp_path: Path) -> None:
    """The sentence says what is wrong with the compiler; --engine auto does without, with the same counts."""
    command = ("check", *GIST, "--json", "--out", tmp_path / "out")
    whole = found(call(*command, "--engine", "python"))
    with without_kernel(tmp_path / "share", compiler):
        assert said in call(*command, "--engine", "kernel").refusal
        assert found(call(*command)) == whole


def test_properties_without_numpy_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is named, and how it is installed."""
    monkeypatch.setitem(sys.modules, "numpy", None)
    said = call("check", "transactions/repaired", "--size", "clients=1", "--out", tmp_path,
                "--property", "EventuallyOneClientAddsAllPartitions").refusal
    assert "numpy is missing here" in said
    assert "pip install 'kafka-proto[search]'" in said


SLOW = """
import functools, time, harness.explore.packed.python_loop as loop
expand = loop.PythonLoop.expand
def slow(self, answered):
    for done in expand(self, answered):
        time.sleep(0.06 if isinstance(answered, functools.partial) else 0)
        yield done
loop.PythonLoop.expand = slow
from rich.progress import Progress
update = Progress.update
def shown(self, *given, **named):
    update(self, *given, **named)
    self.refresh()
Progress.update = shown
from harness.cli import main
main()
"""


def on_a_terminal(*arguments: object) -> tuple[int, str]:
    """Run a slow search with stderr on a terminal of 120 columns; return its exit code and what was shown there.

    Each report is shown, not only what is up to date when the screen is drawn anew.
    """
    ours, theirs = pty.openpty()
    surroundings = {**os.environ, "COLUMNS": "120", "TERM": "xterm"}
    with subprocess.Popen([sys.executable, "-c", SLOW, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=theirs,
                          env=surroundings) as process:
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], command_line.PATIENCE_S)[0]:
            try:
                shown += os.read(ours, 65536)
            except OSError:  # how Linux says that nobody is at the other end any more
                break
    os.close(ours)
    return process.returncode, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())


def test_progress_on_a_terminal_shows_rate_depth_queue_and_what_remains(tmp_path: Path) -> None:
    """What remains is shown once the levels shrink, and not before; the rate is shown all the time."""
    command = ("check", "transactions/diary-01", "--engine", "python", "--out", tmp_path)
    code, shown = on_a_terminal(*command)
    lines = [line for line in re.split(r"[\r\n]+", shown) if "queued" in line]
    assert code == 0
    assert any(re.search(r"[0-9,]+ states +[0-9,]+/s +depth [0-9]+, [0-9,]+ queued", line) for line in lines)
    assert any(re.search(r"/s .* depth 1[2-7], [0-9,]+ queued, about 0:[0-9]{2} left", line) for line in lines)
    assert not any("left" in line for line in lines if re.search(r"depth [1-6],", line))
    assert on_a_terminal(*command, "--json") == (0, "")


@pytest.mark.parametrize(("queues", "left"), [
    ([], 0), ([5], 0), ([1, 9, 20], 0), ([9, 20, 19, 10], 0), ([80, 40, 20, 10], 20), ([80, 40, 20, 0], 0),
    ([20, 10, 20, 10, 4], 0), ([5, 90, 60, 40, 20], 60),
])
def test_remaining_states_are_told_when_the_queue_shrank_three_times(queues: list[int], left: int) -> None:
    """The estimate is a geometric series, and 0 stands for nobody knows."""
    assert check.remaining(queues) == left
