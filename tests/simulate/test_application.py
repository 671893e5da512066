"""Application code on trio: commands that decide what clients do, simulated tests, and the pytest plugin."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

import harness
from harness.model import Command, OperationFailed, Refusal, find_model
from harness.record import Recorder, Trail, read_trail
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run
from harness.simulate.runtimes.trio_runtime import Cluster, run_application
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from harness.simulate.testing import decorator
from harness.simulate.trails.replay import replay_plain
from kafka_proto.clients.application import TransactionalProducer
from kafka_proto.clients.producer import IllegalState, KafkaError, ProducerFenced

Application = Callable[[Cluster], Awaitable[None]]


def commands(trail: Trail) -> list[str]:
    asked = ("InitTransactions(", "BeginTransaction(", "Send(", "CommitTransaction(")
    return [chosen.label.partition(" ")[0] for chosen in trail.choices if chosen.label.startswith(asked)]


async def written(producer: Any) -> None:
    """Commit one record of a producer that is ready."""
    await producer.begin_transaction()
    await producer.send("T-0")
    await producer.commit_transaction()


class Plain:
    """A client whose application says itself which of the client's own steps it wants."""

    def __init__(self, command: Command) -> None:
        self.command = command


def assert_replays(run: Run | None) -> None:
    """Replay the trail of an application's run on the plain runtime, without the application."""
    assert run is not None and run.digest is not None
    again = replay_plain(run.trail, Recorder())
    assert (again.digest, again.verdict) == (run.digest, run.verdict)


@pytest.mark.trio
@pytest.mark.parametrize("strategy", ["random", "pct"])
@pytest.mark.parametrize("seed", range(3))
async def test_producer_commits_a_record(seed: int, strategy: str) -> None:
    """An application commits a record; its commands, and no others, are choices of the trail."""
    async with harness.open_cluster("happy-path", seed=seed, strategy=strategy, recorder=Recorder()) as cluster:
        producer = cluster.client("c1")
        await producer.init_transactions()
        before = cluster.step
        await written(producer)
        assert cluster.step > before
        assert cluster.result is None
    run = cluster.result
    assert run is not None and run.verdict.ok
    assert commands(run.trail) == [
        "InitTransactions(c1)", "BeginTransaction(c1)", "Send(c1,T-0)", "CommitTransaction(c1)",
    ]
    assert_replays(run)


@pytest.mark.trio
async def test_application_that_does_nothing_leaves_its_clients_idle() -> None:
    """Clients do what the application asks for and nothing else."""
    async with harness.open_cluster("leaders-move") as cluster:
        pass
    assert cluster.result is not None and cluster.result.verdict.ok
    assert commands(cluster.result.trail) == []
    assert {chosen.label.split("(")[0] for chosen in cluster.result.trail.choices} >= {"ElectLeader", "LoadTxnLog"}


@pytest.mark.trio
@pytest.mark.parametrize("seed", range(3))
async def test_fenced_producer_raises(seed: int) -> None:
    """A producer whose id was taken by another one fails definitely, and is not able to go on."""
    async with harness.open_cluster("exactly-once-zombie", seed=seed, recorder=Recorder()) as cluster:
        first, second = cluster.client("c1"), cluster.client("c2")
        await first.init_transactions()
        await second.init_transactions()
        with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH; call abort_transaction"):
            await written(first)
        with pytest.raises(ProducerFenced):
            await first.abort_transaction()
        await written(second)
        with pytest.raises(ProducerFenced):
            await first.init_transactions()
    assert_replays(cluster.result)


@pytest.mark.trio
@pytest.mark.parametrize("scenario", ["fencing-battle", "skewed-clocks", "cut-off-coordinator"])
async def test_application_lives_with_faults(scenario: str) -> None:
    """Two producers at once, whatever goes wrong: each operation ends, and the trail replays without them."""

    async def produce(name: str) -> None:
        producer = cluster.client(name)
        try:
            await producer.init_transactions()
            await written(producer)
            ended.append("ok")
        except (KafkaError, ProducerFenced, OperationFailed) as failed:
            ended.append(type(failed).__name__)

    for seed in range(4):
        ended: list[str] = []
        async with harness.open_cluster(scenario, seed=seed, recorder=Recorder()) as cluster:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(produce, "c1")
                nursery.start_soon(produce, "c2")
        assert len(ended) == 2
        assert cluster.result is not None and cluster.result.verdict.ok
        assert_replays(cluster.result)


@pytest.mark.trio
async def test_two_commands_of_one_client_at_once_are_refused() -> None:
    """A client has one operation at a time; a second one beside it is an error of the application."""
    async with harness.open_cluster("happy-path") as cluster:
        producer = cluster.client("c1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(producer.init_transactions)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(RuntimeError, match="c1 has an operation under way; await it before the next one"):
                await producer.begin_transaction()
    assert cluster.result is not None
    assert commands(cluster.result.trail) == ["InitTransactions(c1)"]


@pytest.mark.trio
@pytest.mark.parametrize("seed", range(4))
async def test_abandoned_operation_does_not_answer_for_the_next(seed: int) -> None:
    """A command given up while its operation is under way ends by itself; the client's next one has its own outcome."""
    async with harness.open_cluster("exactly-once-zombie", seed=seed, recorder=Recorder()) as cluster:
        first, second = cluster.client("c1"), cluster.client("c2")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.init_transactions)
            await trio.testing.wait_all_tasks_blocked()
            await second.init_transactions()
            nursery.cancel_scope.cancel()
        with contextlib.suppress(KafkaError, ProducerFenced, IllegalState, OperationFailed):
            await first.begin_transaction()
            assert cluster.step > 0
    run = cluster.result
    assert run is not None
    assert {"InitTransactions(c1)", "InitTransactions(c2)"} <= set(commands(run.trail))
    assert_replays(run)


@pytest.mark.trio
async def test_error_of_the_application_comes_out_as_it_is() -> None:
    """What the block raises is raised, in no group, after the run has ended in order."""
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        async with harness.open_cluster("happy-path", recorder=Recorder()) as cluster:
            await cluster.client("c1").init_transactions()
            raise ZeroDivisionError("on purpose")
    assert_replays(cluster.result)


@pytest.mark.trio
async def test_cluster_knows_its_clients() -> None:
    """A client that does not exist is refused with the names of those that do; a model without clients says so."""
    async with harness.open_cluster("happy-path") as cluster:
        with pytest.raises(KeyError, match="there is no client 'c7'; the actors are c1, b1, b2"):
            cluster.client("c7")
    async with harness.open_cluster("s3-wiped-metadata") as cluster:
        with pytest.raises(KeyError, match="there is no client 'c1'"):
            cluster.client("c1")
    with pytest.raises(Refusal, match="there is no model 'nowhere'"):
        async with harness.open_cluster("nowhere"):
            raise AssertionError("not reached")


def run_for(
    steps: int, application: Application, seed: int = 0, client: type[Any] = TransactionalProducer
) -> tuple[Run, Exception | None]:
    """Run an application on two clients for a number of steps."""
    model = find_model("kafka/4.0").make({"producers": 2})
    tables = Tables(attrs.evolve(model, application=client))
    return run_application(tables, Plan((), steps=steps), RandomStrategy(seed), application, Recorder())


def test_operation_that_cannot_end_is_unknown() -> None:
    """When the run ends in the middle of an operation its outcome is `info`: nobody knows whether it happened."""
    failed: list[OperationFailed] = []

    async def application(cluster: Cluster) -> None:
        for _ in range(2):
            try:
                await cluster.client("c1").command("InitTransactions")
            except OperationFailed as error:
                failed.append(error)

    run, error = run_for(2, application, client=Plain)
    assert error is None
    assert [str(one) for one in failed] == [
        "info: InitTransactions(c1) was not over when the run ended",
        "fail: InitTransactions(c1) is not possible for c1 now",
    ]
    assert len(run.trail.choices) == 2
    assert_replays(run)


def test_application_runs_the_same_for_the_same_seed() -> None:
    """Application, seed and scenario make one run; another seed makes another one."""

    async def application(cluster: Cluster) -> None:
        async def produce(name: str) -> None:
            await cluster.client(name).command("InitTransactions")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce, "c1")
            nursery.start_soon(produce, "c2")

    digests = [run_for(200, application, seed, Plain)[0].digest for seed in (0, 1, 2, 0, 1, 2)]
    assert digests[:3] == digests[3:] and len(set(digests)) == 3


def replay_command(said: str) -> list[str]:
    """Return the words of the command that a report gives."""
    return shlex.split(said.split("replay: ")[1].splitlines()[0])


def test_simulated_application_passes_over_its_seeds(out: Path) -> None:
    """An `async def` runs once per seed, on trio, with a cluster; nothing is written when nothing fails."""
    steps: list[int] = []

    @harness.simulated("exactly-once-crashes", seeds=6)
    async def test_produces(cluster: Cluster) -> None:
        """Its docstring."""
        producer = cluster.client("c1")
        await producer.init_transactions()
        await written(producer)
        steps.append(cluster.step)

    test_produces()
    assert len(steps) == 6
    assert (test_produces.__name__, test_produces.__doc__) == ("test_produces", "Its docstring.")
    assert list(out.iterdir()) == []


def test_simulated_application_that_fails_leaves_its_trail(out: Path) -> None:
    """What an application raises becomes a failure that names the seed, the error, and the command to replay it."""

    @harness.simulated("exactly-once-zombie", seeds=[7])
    async def test_greedy(cluster: Cluster) -> None:
        for name in ("c1", "c2", "c1"):
            producer = cluster.client(name)
            await (written(producer) if name in ready else producer.init_transactions())
            ready.append(name)

    ready: list[str] = []
    with pytest.raises(decorator.SimulationFailed, match="seed 7: the test raised KafkaError: the transac") as caught:
        test_greedy()
    assert isinstance(caught.value.__cause__, KafkaError)
    path = out / "test_greedy.trail.jsonl"
    assert replay_command(str(caught.value)) == ["kafka-proto", "replay", str(path)]
    assert commands(read_trail(path)) == [
        "InitTransactions(c1)", "InitTransactions(c2)", "BeginTransaction(c1)", "Send(c1,T-0)",
    ]
    assert replay_plain(read_trail(path)).witnessed >= {"ProducerIsFenced"}


def test_simulated_test_gets_each_run(out: Path) -> None:
    """A plain function is called with the finished run of each seed; systematic runs stop when there are no more."""
    runs: list[Run] = []
    harness.simulated("happy-path", seeds=[3, 5])(runs.append)()
    assert [run.trail.seed for run in runs] == [3, 5]
    assert all(run.verdict.ok and run.digest for run in runs)
    runs.clear()
    harness.simulated("happy-path", seeds=400, strategy="systematic", claims=["Atomicity"])(runs.append)()
    assert {(run.trail.strategy, run.trail.claims) for run in runs} == {("systematic", ("Atomicity",))}
    assert 1 < len(runs) < 400
    decorator.SETTINGS.seeds = 4
    runs.clear()
    harness.simulated("happy-path", seeds=2)(runs.append)()
    assert [run.trail.seed for run in runs] == [0, 1, 2, 3]


def test_simulated_test_on_a_flawed_scenario_says_what_is_violated(out: Path) -> None:
    """A violated claim fails the test with the seed, the reason, the steps before and after, and a short trail."""

    @harness.simulated("s4-copied-tail", seeds=100)
    def test_flawed(run: Run) -> None:
        """Nothing to add to the claims."""

    with pytest.raises(decorator.SimulationFailed, match=r"^LogsAgreeUpToHwm is violated: .* \(seed \d+, \d+ -> \d"):
        test_flawed()
    trail = read_trail(out / "test_flawed.trail.jsonl")
    assert len(trail.choices) <= 10
    assert replay_plain(trail).verdict.violated == "LogsAgreeUpToHwm" == trail.violates


def test_simulated_application_on_a_flawed_model_says_what_is_violated(out: Path) -> None:
    """An invariant that is violated under an application fails its test, too; liveness is not claimed of clients."""

    @harness.simulated("late-end", seeds=400)
    async def test_flawed(cluster: Cluster) -> None:
        producer = cluster.client("c1")
        with contextlib.suppress(KafkaError, ProducerFenced, OperationFailed):
            await producer.init_transactions()
            for _ in range(2):
                await producer.begin_transaction()
                await producer.send("T-0")
                await producer.abort_transaction()

    with pytest.raises(decorator.SimulationFailed, match=r"^MarkerAttribution is violated: the ABORT of T-0"):
        test_flawed()
    assert replay_plain(read_trail(out / "test_flawed.trail.jsonl")).verdict.violated == "MarkerAttribution"


def test_simulated_refuses_what_does_not_exist(out: Path) -> None:
    """An unknown scenario is refused when the test runs."""

    @harness.simulated("no-such-scenario")
    def test_nothing(run: Any) -> None:
        raise AssertionError("not reached")

    with pytest.raises(Refusal, match="there is no model 'no-such-scenario'"):
        test_nothing()
