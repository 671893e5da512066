"""Faults that a test injects itself happen when asked for, are choices of the trail, and nothing else goes wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

import harness
from harness.model import Faults, OperationFailed
from harness.record import Recorder, Trail, read_trail
from harness.simulate.runtimes.trio_runtime import Cluster, replay_on_trio
from harness.simulate.testing import decorator
from harness.simulate.trails.replay import replay_plain
from kafka_proto.clients.producer import KafkaError, ProducerFenced

BROKERS = ("b1", "b2")
ENVIRONMENT = ("Crash", "Restart", "Drop", "Duplicate", "Delay", "Release", "Partition", "Cut", "Heal", "ElectLeader")


pytestmark = pytest.mark.usefixtures("out")


def environment(trail: Trail) -> list[str]:
    """What the environment did in a run."""
    return [chosen.label for chosen in trail.choices if chosen.label.startswith(ENVIRONMENT)]


async def crashes(cluster: Cluster) -> None:
    """The coordinator crashes and restarts between two operations."""
    producer = cluster.client("c1")
    await producer.init_transactions()
    await producer.begin_transaction()
    assert await cluster.inject("Crash", "b1") == "Crash(b1)"
    assert await cluster.inject("Restart", "b1") == "Restart(b1)"
    with suppress(KafkaError, ProducerFenced, OperationFailed):
        await producer.send("T-0")
        await producer.commit_transaction()


async def drops(cluster: Cluster) -> None:
    """A response is dropped as soon as it is under way; the client times out, tries again, and gets its id."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cluster.client("c1").init_transactions)
        label = await cluster.inject("Drop", message="InitProducerIdResponse", dest="c1")
        assert label.startswith("Drop InitProducerIdResponse")


async def delays(cluster: Cluster) -> None:
    """A request that is held back stays so until the test releases it."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cluster.client("c1").init_transactions)
        await cluster.inject("Delay", message="InitProducerIdRequest")
        await cluster.inject("Release", message="InitProducerIdRequest", source="c1")


async def elects(cluster: Cluster) -> None:
    """With no budget at all the test can still have the controller elect somebody, which only it does."""
    await cluster.client("c1").init_transactions()
    assert (await cluster.inject("ElectLeader", "b2")).startswith("ElectLeader(b2")
    with suppress(KafkaError, ProducerFenced, OperationFailed):
        await cluster.client("c1").begin_transaction()
        await cluster.client("c1").send("T-0")
        await cluster.client("c1").commit_transaction()


@pytest.mark.parametrize(("what", "injected", "program", "happens", "then"), [
    *((what, Faults(crash=1, targets=BROKERS), crashes, ["Crash(b1)", "Restart(b1)"], "") for what in (
        "exactly-once-crashes", "fencing-battle", "leaders-crash", "kafka/3.5")),
    ("kafka/4.0", Faults(drop=1), drops, ["Drop"], "RequestTimeout(c1,b1)"),
    ("kafka/4.0", Faults(delay=1), delays, ["Delay", "Release"], ""),
    ("leaders-move", Faults(), elects, ["ElectLeader(b2"], ""),
])
def test_injected_faults_are_all_that_happens(
    what: str, injected: Faults, program: Callable[[Cluster], Awaitable[None]], happens: list[str], then: str, out: Path
) -> None:
    """No other fault and no election is in the trail, which replays alike in both runtimes. The application is made to
    fail at its end, so that each trail is written."""
    for seed in range(5):
        async def fails_at_the_end(cluster: Cluster) -> None:
            await program(cluster)
            raise KeyError("over")

        with pytest.raises(decorator.SimulationFailed, match="KeyError"):
            harness.simulated(what, [seed], injected=injected)(fails_at_the_end)()
        trail = read_trail(out / "fails_at_the_end.trail.jsonl")
        assert all(label.startswith(one) for label, one in zip(environment(trail), happens, strict=True))
        assert any(chosen.label.startswith(then) for chosen in trail.choices)
        plain, on_trio = replay_plain(trail, Recorder()), replay_on_trio(trail, Recorder())
        assert plain.digest == on_trio.digest is not None
        assert plain.verdict.ok


@pytest.mark.parametrize(("injected", "action", "why"), [
    (None, "Crash", "give the budget with injected=Faults"),
    (Faults(drop=1), "Crash", r"Crash\(b1\) was not possible before the run ended"),
    (Faults(crash=1, targets=("b2",)), "Crash", r"Crash\(b1\) was not possible"),
    (Faults(crash=1, targets=("b1",)), "Explode", r"Explode\(b1\) was not possible"),
])
def test_injected_fault_that_cannot_happen_is_an_operation_that_failed(
    injected: Faults | None, action: str, why: str
) -> None:
    """Without a budget, for somebody whom it does not reach, or where there is no such step."""
    async def asks(cluster: Cluster) -> None:
        await cluster.inject(action, "b1")

    with pytest.raises(decorator.SimulationFailed, match=why) as error:
        harness.simulated("exactly-once-zombie", [0], injected=injected)(asks)()
    assert isinstance(error.value.__cause__, OperationFailed)


def test_injected_crash_for_good_leaves_an_outcome_unknown() -> None:
    """A broker that is down and not restarted answers nobody: the operation ends with the run, its outcome unknown."""
    outcomes: list[str] = []

    async def waits(cluster: Cluster) -> None:
        await cluster.inject("Crash", "b1")
        with pytest.raises(OperationFailed) as error:
            await cluster.client("c1").init_transactions()
        outcomes.append(error.value.outcome)

    harness.simulated("exactly-once-crashes", 3, injected=Faults(crash=1, targets=("b1",)))(waits)()
    assert outcomes == ["info"] * 3


async def open_and_crash() -> Any:
    async with harness.open_cluster(
        "exactly-once-crashes", injected=Faults(crash=1, targets=("b1",)), recorder=Recorder()
    ) as cluster:
        await cluster.client("c1").init_transactions()
        await cluster.inject("Crash", "b1")
    assert cluster.result is not None
    return cluster.result


def test_injected_faults_in_an_open_cluster() -> None:
    """A trio program injects likewise; what it leaves broken is mended when it is over."""
    run = trio.run(open_and_crash)
    assert environment(run.trail)[:1] == ["Crash(b1)"]
    assert "ElectLeader" not in " ".join(environment(run.trail))


def test_injected_faults_need_an_application() -> None:
    """A plain function gets finished runs, in which it cannot inject anything."""
    with pytest.raises(TypeError, match="make it an async def"):
        harness.simulated("exactly-once-zombie", injected=Faults(drop=1))(lambda run: None)
