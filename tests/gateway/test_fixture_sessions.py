"""The fixture `kafka_cluster` leaves the session of each test that fails, by whatever is raised, and of no other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from harness.record import read_trail
from harness.simulate.trails.replay import replay_plain

CONFTEST = '''
import signal

import pytest

from kafka_proto.gateway.client import Client
from kafka_proto.gateway.offer import METADATA


def ask(cluster):
    """Ask as a client: it is in the session."""
    host, port = cluster.bootstrap_servers.split(":")
    with Client(host, int(port)) as client:
        client.ask(METADATA, 9, {"topics": None})


@pytest.fixture
def asked(kafka_cluster):
    ask(kafka_cluster)
    return kafka_cluster


@pytest.fixture
def times_out():
    """As pytest-timeout does by signal."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("Timeout (>0.1s) from pytest-timeout."))
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.1)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def fails_in_setup(asked):
    raise RuntimeError("no consumer")


@pytest.fixture
def fails_in_teardown(asked):
    yield
    raise RuntimeError("the consumer does not close")
'''
BODIES = {
    "by_an_assertion": ("asked", "assert False", "call"),
    "by_pytest_fail": ("asked", "pytest.fail('not what was ordered')", "call"),
    "by_a_time_out": ("asked, times_out", "times_out(), threading.Event().wait(100)", "call"),
    "by_asyncio_cancellation": ("asked", "asyncio.run(cancelled())", "call"),
    "by_trio_cancellation": ("asked", "trio.run(failing_in_a_nursery)", "call"),
    "by_exit": ("asked", "raise SystemExit(3)", "call"),
    "in_setup": ("fails_in_setup", "pass", "setup"),
    "in_teardown": ("fails_in_teardown", "pass", "teardown"),
    "in_teardown_after_the_cluster": ("late_teardown, kafka_cluster", "ask(kafka_cluster)", "teardown"),
}
"""By how a test fails: the fixtures that it asks for, what it does, and when it fails."""
TESTS = '''
import asyncio
import threading

import pytest
import trio
from conftest import ask


@pytest.fixture
def late_teardown():
    yield
    raise RuntimeError("after the cluster")


async def cancelled():
    raise asyncio.CancelledError


async def failing_in_a_nursery():
    async def fail():
        pytest.fail("in a task")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        nursery.start_soon(fail)


''' + "\n\n".join(f"def test_fails_{name}({needs}):\n    {body}\n" for name, (needs, body, _) in BODIES.items())


def run(folder: Path, file: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run a file of tests in a folder, with trails below it."""
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / file).write_text(text, encoding="utf-8")
    words = ("-p", "no:cacheprovider", "-p", "no:xdist", "--harness-out", "left", file)
    return subprocess.run([sys.executable, "-m", "pytest", *words], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300, check=False)


def trail_of(folder: Path, file: str, test: str) -> Path:
    """Return the path that a test's session has."""
    return folder / "left" / f"{file}-{test}.trail.jsonl"


@pytest.fixture(name="failing", scope="module")
def _failing(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of all tests that fail, and what one run of pytest said of them."""
    folder = tmp_path_factory.mktemp("failing")
    return folder, run(folder, "test_failing.py", TESTS).stdout


@pytest.mark.parametrize("name", BODIES)
def test_a_test_that_fails_leaves_its_session(name: str, failing: tuple[Path, str]) -> None:
    """The trail has what the client asked, and replays; the report has the end of it, and the commands, once each."""
    folder, said = failing
    when = BODIES[name][2]
    path = trail_of(folder, "test_failing.py", f"test_fails_{name}")
    parts = re.split(r"^_+ (?:ERROR at \w+ of )?test_fails_(\w+) _+$", said, flags=re.MULTILINE)
    (report,) = [text for title, text in zip(parts[1::2], parts[2::2], strict=True) if title == name]
    command = f"kafka-proto replay left/{path.name}"
    (section,) = re.findall(rf"-+ Captured kafka_cluster {when} -+\n(.*?\n{command})\n", report, flags=re.DOTALL)
    assert section.startswith("the end of the session:\n") and re.search(r"\n +2 +\.\.\. \d steps: .*Metadata", section)
    assert f"kafka-proto demo left/{path.name}\nkafka-proto show left/{path.name}\n" in section
    assert said.count(command) == 1
    session = replay_plain(read_trail(path))
    assert session.verdict.ok and any("Metadata" in chosen.label for chosen in session.trail.choices)


def test_each_of_them_fails_once(failing: tuple[Path, str]) -> None:
    """A test whose teardown fails has passed."""
    folder, said = failing
    calls = [when for *_, when in BODIES.values()]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", said.splitlines()[-1])}
    assert {word: counts[word] for word in ("failed", "passed", "errors")} == {
        "failed": calls.count("call"), "passed": calls.count("teardown"), "errors": len(calls) - calls.count("call"),
    }
    assert len(list((folder / "left").iterdir())) == len(BODIES)


def test_a_test_that_is_interrupted_leaves_its_session(tmp_path: Path) -> None:
    """There is no report of it, so that the summary has the command."""
    done = run(tmp_path, "test_interrupted.py", '''
def test_interrupted(asked):
    raise KeyboardInterrupt
''')
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    path = trail_of(tmp_path, "test_interrupted.py", "test_interrupted")
    assert re.search(rf"=+ kafka_cluster: interrupted =+\n+kafka-proto replay left/{path.name}\n", done.stdout)
    assert replay_plain(read_trail(path)).verdict.ok


def test_tests_that_do_not_fail_leave_nothing(tmp_path: Path) -> None:
    """One that passes, and one that is skipped in its middle."""
    done = run(tmp_path, "test_silent.py", '''
import pytest


def test_passes(asked):
    pass


def test_is_skipped(asked):
    pytest.skip("not today")
''')
    assert "1 passed, 1 skipped" in done.stdout
    assert not (tmp_path / "left").exists()


def test_a_cluster_that_breaks_leaves_its_session(tmp_path: Path) -> None:
    """What ends the brokers' thread fails the test, and the session up to there is left."""
    done = run(tmp_path, "test_broken.py", '''
def test_breaks(asked):
    async def breaks():
        raise RuntimeError("the server breaks")

    asked.on_server(lambda server: asked._tasks.start_soon(breaks))
    asked._thread.join(20)
''')
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert len(read_trail(trail_of(tmp_path, "test_broken.py", "test_breaks")).choices) > 1
