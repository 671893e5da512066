"""The pytest plugin: its options, what a failing simulated test shows, and silence otherwise."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping

import pytest
from support.runs.named_runs import run_of

from harness.record import read_trail
from harness.simulate.trails.replay import replay_plain

pytest_plugins = ["pytester"]
SUITE = '''
import harness


@harness.simulated("exactly-once-zombie", seeds=50)
def test_never_fenced(run):
    """Fails with some seed."""
    assert "ProducerIsFenced" not in run.witnessed, "somebody was fenced"


@harness.simulated("exactly-once-zombie", seeds=50)
async def test_inits(cluster):
    """Passes with every seed."""
    seen.append(cluster)
    await cluster.client("c1").init_transactions()


seen = []


def test_seeds():
    """Sees how many seeds there were."""
    print("seeds:", len(seen))
'''


def test_plugin_options_set_folder_and_seeds(pytester: pytest.Pytester) -> None:
    """`--harness-out` says where trails go, `--harness-seeds` how many seeds are tried; the report lists the trails.

    A trail is shrunk while the test still raises the same.
    """
    pytester.makepyfile(SUITE)
    done = pytester.runpytest_subprocess("--harness-out", "trails", "--harness-seeds", "3", "-s")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines([
        "*seeds: 3*",
        "*SimulationFailed: seed 0: the test raised AssertionError: somebody was fenced*",
        "*failed simulations*",
        "test_never_fenced: seed 0: the test raised AssertionError*",
        "  replay: kafka-proto replay trails/test_never_fenced.trail.jsonl",
    ])
    short = read_trail(pytester.path / "trails" / "test_never_fenced.trail.jsonl")
    assert replay_plain(short).witnessed >= {"ProducerIsFenced"}
    assert len(short.choices) < len(run_of("exactly-once-zombie").trail.choices)


FAILING = '''
import harness
import trio


@harness.simulated("s4-copied-tail", seeds=100)
def test_flawed(run):
    """Violates a claim."""


@harness.simulated("exactly-once-zombie", seeds=1)
def test_of_a_run(run):
    assert run.trail.choices == (), "it has steps"


@harness.simulated("exactly-once-zombie", seeds=1)
async def test_in_a_nursery(cluster):
    async def use():
        await cluster.client("c1").init_transactions()
        raise ValueError("after init")

    async with trio.open_nursery() as nursery, trio.open_nursery() as inner:
        inner.start_soon(use)


@harness.simulated("exactly-once-zombie", seeds=1)
async def test_twice_in_a_nursery(cluster):
    async def use():
        raise ValueError("one of two")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use)
        nursery.start_soon(use)


@harness.simulated("exactly-once-zombie", seeds=1)
async def test_of_a_command(cluster):
    await cluster.client("c1").commit_transaction()


@harness.simulated("exactly-once-zombie", seeds=1)
async def test_of_nobody(cluster):
    cluster.client("b")
'''


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What one run of pytest shows of each of these tests, by the test's name."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / "test_failing.py").write_text(FAILING, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", folder / "test_failing.py"],
                          cwd=folder, capture_output=True, text=True, check=False)
    text = done.stdout.partition("= FAILURES =")[2].partition("= failed simulations =")[0]
    _, *parts = re.split(r"^_+ test_(\w+) _+$", text, flags=re.MULTILINE)
    shown = dict(zip(parts[::2], parts[1::2], strict=True))
    assert f"{len(shown)} failed in " in done.stdout and len(shown) == FAILING.count("simulated(")
    return shown


@pytest.mark.parametrize(("name", "lines"), [
    ("flawed", ["E * harness.SimulationFailed: LogsAgreeUpToHwm is violated: *", "*replay: kafka-proto replay out/*"]),
    ("of_a_run", ["E * AssertionError: it has steps", "E * harness.SimulationFailed: seed 0: the test raised A*"]),
    ("in_a_nursery", ["E * ValueError: after init", "E * harness.SimulationFailed: seed 0: * ValueError: after init"]),
    ("twice_in_a_nursery", ["E * seed 0: the test raised ExceptionGroup: *2 sub-exc*", "*ValueError: one of two"]),
    ("of_a_command", [">*commit_transaction()", "E * seed 0: the test raised IllegalState: *"]),
    ("of_nobody", [">*cluster.client(\"b\")", "E *there is no client 'b'; *"]),
])
def test_failure_shows_what_is_wrong_and_nothing_of_the_harness(
    name: str, lines: list[str], failures: Mapping[str, str]
) -> None:
    """The violated property or the test's own error comes first; no frame is of the harness or of trio."""
    text = failures[name]
    pytest.LineMatcher(text.splitlines()).fnmatch_lines(lines)
    frame = re.compile(r"(simulate|trio|outcome)/\w+\.py|File .*/harness/")
    assert [line for line in text.splitlines() if frame.search(line)] == []
    if name != "twice_in_a_nursery":
        assert "ExceptionGroup" not in text
    first = next(line for line in text.splitlines() if line.startswith("E "))
    assert first.split()[1].rstrip(":") in ("harness.SimulationFailed", "AssertionError", "ValueError", "KeyError",
                                            "kafka_proto.clients.producer.IllegalState")


def test_plugin_is_silent_without_failures(pytester: pytest.Pytester) -> None:
    """Without options each test has its own seeds; without failures there is no section, and no folder."""
    pytester.makepyfile(SUITE)
    done = pytester.runpytest_subprocess("-s", "-k", "inits or seeds")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*seeds: 50*"])
    done.stdout.no_fnmatch_line("*failed simulations*")
    assert not (pytester.path / "out").exists()


IN_TRIO = '''
import contextlib

import pytest


@pytest.mark.trio
@pytest.mark.simulated_cluster("exactly-once-commits", seed=3)
async def test_commits(simulated_cluster):
    producer = simulated_cluster.client("c1")
    await producer.init_transactions()
    assert simulated_cluster.step > 0


@pytest.mark.trio
@pytest.mark.simulated_cluster("late-end")
@pytest.mark.parametrize("topic", ["a/b"])
async def test_flawed(simulated_cluster, topic):
    """Aborts twice, and does not look."""
    producer = simulated_cluster.client("c1")
    with contextlib.suppress(Exception):
        await producer.init_transactions()
        for _ in range(2):
            await producer.begin_transaction()
            await producer.send("T-0")
            await producer.abort_transaction()


@pytest.mark.trio
async def test_of_nothing(simulated_cluster):
    """Has no mark."""
'''


def test_a_cluster_is_a_fixture_of_pytest_trio(pytester: pytest.Pytester) -> None:
    """The mark says which; invariants are judged after the test, and a violation leaves a trail that replays."""
    pytester.makepyfile(IN_TRIO)
    done = pytester.runpytest_subprocess("-p", "trio", "--strict-markers")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines_random([
        "*SimulationFailed: MarkerAttribution is violated: *(seed 0, *",
        "*simulated_cluster needs a mark with a scenario, as @pytest.mark.simulated_cluster(*",
        "  replay: kafka-proto replay out/test_flawed-a-b.trail.jsonl",
    ])
    trail = read_trail(pytester.path / "out" / "test_flawed-a-b.trail.jsonl")
    assert not replay_plain(trail).verdict.ok
