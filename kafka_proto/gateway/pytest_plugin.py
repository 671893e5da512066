"""The pytest fixture `kafka_cluster`: a running cluster for a test, and P1 to P11 checked on what happened in it.

Every pytest run loads it, by the entry point `pytest11`. The mark takes what `KafkaCluster` takes, as in
`@pytest.mark.kafka_cluster({"orders": 2}, brokers=3)`, and `seeds`: the test is run so often, each time with the faults
of another seed, until one fails. A test that fails for what happened, or for anything else, in
its setup, its call or its teardown, leaves its session as a trail; the report has its last steps and the commands that
open it and replay it. One that is interrupted has no report: then the command stands in the summary.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.model import Refusal, unknown

if TYPE_CHECKING:
    from kafka_proto.gateway.cluster import KafkaCluster

FIXTURE = "kafka_cluster"
CLUSTER: pytest.StashKey[KafkaCluster] = pytest.StashKey()
"""The cluster of a test, from its setup to its teardown."""
SEEDS, STRICT = "seeds", "--kafka-strict"
MOST_SEEDS = 10_000
FAILED: pytest.StashKey[dict[str, str]] = pytest.StashKey()
"""By test: the first of its seeds that failed."""
LEFT: pytest.StashKey[list[str]] = pytest.StashKey()
"""The commands that replay sessions of tests that were interrupted."""


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", f"{FIXTURE}(topics=..., release=..., brokers=..., num_partitions=..., "
                            "replication_factor=..., min_insync_replicas=..., config=..., faults=..., seed=..., "
                            "seeds=..., exactly_once=..., allow=...): the cluster that the test gets")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let known bugs of clients fail tests, too."""
    parser.getgroup("harness").addoption(STRICT, action="store_true", help=(
        "known bugs of clients that a mark kafka_cluster allows fail its test"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each seed."""
    mark = metafunc.definition.get_closest_marker(FIXTURE)
    count = mark.kwargs.get(SEEDS) if mark else None
    if mark is None or FIXTURE not in metafunc.fixturenames or count is None:
        return
    if type(count) is not int or not 1 <= count <= MOST_SEEDS or not mark.kwargs.get("faults"):
        pytest.fail(f"{metafunc.function.__name__}: seeds should be a number from 1 to {MOST_SEEDS}, beside faults by "
                    f"chance, as faults='delay=2,crash=1', not {count!r}", pytrace=False)
    metafunc.parametrize(FIXTURE, range(count), indirect=True, ids=[f"seed-{seed}" for seed in range(count)])


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """A running cluster; in an async test, too: it has a thread of its own, and its verbs return at once."""
    pytest.importorskip("kio", reason="needs the extra `gateway`")
    failed = request.config.stash.setdefault(FAILED, {}).get(_without_seed(request.node))
    if failed is not None:
        pytest.skip(f"{failed} has failed")
    with _asked(request.node, getattr(request, "param", None)) as cluster:
        request.node.stash[CLUSTER] = cluster
        yield cluster


def _without_seed(item: pytest.Item) -> str:
    """Return what the tests of all seeds have in common."""
    return f"{item.nodeid.partition('[')[0]} {item.location[0]}"


def _asked(item: pytest.Item, seed: int | None = None) -> KafkaCluster:
    """Return the cluster that a test's mark asks for; a test with an impossible mark fails in one sentence."""
    from kafka_proto.gateway.cluster import KafkaCluster

    mark = item.get_closest_marker(FIXTURE)
    words, named = (mark.args, dict(mark.kwargs)) if mark else ((), {})
    takes = {**inspect.signature(KafkaCluster).parameters, SEEDS: None}
    if seed is not None:
        named["seed"] = seed
    try:
        for name in named:
            if name not in takes:
                raise Refusal(unknown(f"there is no {name!r}", name, takes, "it takes"))
        named.pop(SEEDS, None)
        cluster = KafkaCluster(*words, **named)
        if item.config.getoption(STRICT):
            cluster.allow = ()
        return cluster
    except (Refusal, TypeError, ValueError) as error:
        pytest.fail(f"{item.name} has a mark {FIXTURE} that cannot be: {error}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Keep the session of a test whose other fixtures fail."""
    with _keeping(item, "setup"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """After the test's own code, judge the session; keep the session of a test that fails."""
    cluster = item.stash.get(CLUSTER, None)
    with _keeping(item, "call"):
        result = yield
        wrong = None if cluster is None else cluster.verdict()
    if cluster is not None:
        for name, issue in cluster.explained().items():
            item.user_properties.append((name, issue))
            item.add_report_section("call", FIXTURE, f"{name} is violated, which {issue} explains and the test allows")
    if cluster is not None and wrong is not None:
        pytest.fail(f"{wrong}\n{_kept(item, cluster)}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Keep the session of a test whose teardown fails, even after the cluster's end."""
    with _keeping(item, "teardown"):
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how the sessions of tests that were interrupted are replayed."""
    if left := config.stash.get(LEFT, []):
        terminalreporter.section(f"{FIXTURE}: interrupted")
        for command in left:
            terminalreporter.write_line(command)


@contextmanager
def _keeping(item: pytest.Item, when: str) -> Iterator[None]:
    """Write the trail of a test's session if the block fails: by whatever is raised, but not to skip the test.

    `pytest.fail`, time-outs, cancellation and interrupts raise what is no `Exception`.
    """
    try:
        yield
    except pytest.skip.Exception:
        raise
    except BaseException as error:
        cluster = item.stash.get(CLUSTER, None)
        if cluster is not None:
            is_interrupted = isinstance(error, KeyboardInterrupt | pytest.exit.Exception)
            said = _kept(item, cluster, in_short=is_interrupted)
            item.add_report_section(when, FIXTURE, said)
            if is_interrupted:
                item.config.stash.setdefault(LEFT, []).append(said)
        raise


def _kept(item: pytest.Item, cluster: KafkaCluster, in_short: bool = False) -> str:
    """Write a session's trail, and return what to say of it; no other seed of the test is run.

    `in_short` it is the command that replays it, else its end and a shorter trail, too.
    """
    mark = item.get_closest_marker(FIXTURE)
    if mark is not None and SEEDS in mark.kwargs:
        item.config.stash.setdefault(FAILED, {}).setdefault(_without_seed(item), item.name)
    folder = Path(item.config.getoption("--harness-out", "out"))
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", item.nodeid.replace("/", "-")).strip("-")
    path = folder / f"{name}.trail.jsonl"
    return cluster.write_trail(path) if in_short else cluster.report(path)
