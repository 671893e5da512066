"""The pytest fixture `kafka_cluster`: a running cluster for a test, and P1 to P11 checked on what happened in it.

A conftest says `pytest_plugins = ["kafka_proto.gateway.pytest_plugin"]`. What the mark takes, as
`@pytest.mark.kafka_cluster({"orders": 2}, brokers=3)`, is what `KafkaCluster` takes. A test that fails for what
happened, or for anything else, leaves its session as a trail, and the report has the command that replays it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.model import Refusal, unknown

if TYPE_CHECKING:
    from kafka_proto.gateway.cluster import KafkaCluster

FIXTURE = "kafka_cluster"


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", f"{FIXTURE}(topics=..., release=..., brokers=..., num_partitions=..., "
                            "faults=..., seed=...): the cluster that the test gets")


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """A running cluster; in an async test, too: it has a thread of its own, and its verbs return at once."""
    pytest.importorskip("kio", reason="needs the extra `gateway`")
    with _asked(request.node) as cluster:
        yield cluster


def _asked(item: pytest.Item) -> KafkaCluster:
    """Return the cluster that a test's mark asks for; a test whose mark cannot be fails in one sentence."""
    from kafka_proto.gateway.cluster import KafkaCluster

    mark = item.get_closest_marker(FIXTURE)
    words, named = (mark.args, mark.kwargs) if mark else ((), {})
    takes = inspect.signature(KafkaCluster).parameters
    try:
        for name in named:
            if name not in takes:
                raise Refusal(unknown(f"there is no {name!r}", name, takes, "it takes"))
        return KafkaCluster(*words, **named)
    except (Refusal, TypeError, ValueError) as error:
        pytest.fail(f"{item.name} has a mark {FIXTURE} that cannot be: {error}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """After the test's own code, judge what happened; keep the session of a test that fails."""
    cluster: KafkaCluster | None = getattr(item, "funcargs", {}).get(FIXTURE)
    try:
        result = yield
    except Exception:
        if cluster is not None:
            item.add_report_section("call", FIXTURE, _kept(item, cluster))
        raise
    if cluster is not None and (wrong := cluster.verdict()) is not None:
        pytest.fail(f"{wrong}\n{_kept(item, cluster)}", pytrace=False)
    return result


def _kept(item: pytest.Item, cluster: KafkaCluster) -> str:
    """Write a session's trail, and return the command that replays it."""
    folder = Path(item.config.getoption("--harness-out", "out"))
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", item.nodeid.replace("/", "-")).strip("-")
    return cluster.write_trail(folder / f"{name}.trail.jsonl")
