"""Application code over the async producer: what it calls, what it is told, and runs that replay without it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

import harness
from harness.model import Faults
from harness.record import Recorder, read_trail
from harness.simulate.runs.plan import resolve
from harness.simulate.runtimes.trio_runtime import Cluster, replay_on_trio, run_application
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.trails.replay import replay_plain
from kafka_proto.clients.producer import IllegalState, KafkaError, ProducerFenced


@harness.simulated("exactly-once-commits", seeds=10, steps=500)
async def test_transactions_commit_and_abort(cluster: Cluster) -> None:
    """As many as the application likes, whatever sizes the model has for its own choices."""
    producer = cluster.client("c1")
    await producer.init_transactions()
    for number in range(4):
        await producer.begin_transaction()
        await producer.send("T-0", f"order {number}")
        await producer.send("T-1", f"payment {number}")
        await producer.send_offsets_to_transaction()
        await (producer.commit_transaction() if number % 2 else producer.abort_transaction())


@harness.simulated("exactly-once-zombie", seeds=20, steps=300)
async def test_a_zombie_is_fenced(cluster: Cluster) -> None:
    """The older of two producers with one transactional id is told so, whatever it calls then.

    Where its batch was refused, the transaction can be aborted, as far as it knows: the abort is told.
    """
    old, new = cluster.client("c1"), cluster.client("c2")
    await old.init_transactions()
    await old.begin_transaction()
    await old.send("T-0")
    await new.init_transactions()
    with pytest.raises(KafkaError) as failed:
        await old.commit_transaction()
    if not isinstance(failed.value, ProducerFenced):
        with pytest.raises(ProducerFenced):
            await old.abort_transaction()
    for call in (old.begin_transaction, old.abort_transaction, old.commit_transaction, old.init_transactions):
        with pytest.raises(ProducerFenced, match="another producer with the same transactional id was started"):
            await call()
    await new.begin_transaction()
    await new.send("T-0")
    await new.commit_transaction()


@harness.simulated("exactly-once-commits", seeds=5, steps=300)
async def test_calls_that_make_no_sense_are_refused(cluster: Cluster) -> None:
    """As Java's client refuses them, with a sentence; the producer goes on."""
    producer = cluster.client("c1")
    await refused(producer.begin_transaction, "called after init_transactions")
    await producer.init_transactions()
    await refused(producer.init_transactions, "called once")
    for call in (producer.send_offsets_to_transaction, producer.commit_transaction, producer.abort_transaction):
        await refused(call, "called after begin_transaction")
    await refused(lambda: producer.send("T-0"), "send is called after begin_transaction")
    await producer.begin_transaction()
    await refused(producer.begin_transaction, "the end of the last transaction")
    await refused(lambda: producer.send("T-7"), "there is no partition 'T-7'; T-0, T-1 are there")
    await producer.send("T-0")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(producer.commit_transaction)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(RuntimeError, match="c1 has an operation under way"):
            await producer.begin_transaction()


async def refused(call: Callable[[], Awaitable[None]], sentence: str) -> None:
    with pytest.raises(IllegalState, match=sentence):
        await call()


@harness.simulated("exactly-once-commits", seeds=10, steps=300, injected=Faults(crash=1, targets=("b1", "b2")))
async def test_a_crash_goes_unnoticed(cluster: Cluster) -> None:
    """What was asked is asked again of the broker that comes back."""
    producer = cluster.client("c1")
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send("T-0")
    await cluster.inject("Crash", "b1")
    await cluster.inject("Restart", "b1")
    await producer.commit_transaction()


@harness.simulated("exactly-once-time-outs", seeds=30, steps=300)
async def test_a_transaction_that_timed_out_is_not_committed(cluster: Cluster) -> None:
    """The coordinator may abort at any time; whoever is told so goes on with a new producer."""
    producer = cluster.client("c1")
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send("T-0")
    try:
        await producer.commit_transaction()
    except KafkaError:
        pass
    else:
        await producer.begin_transaction()


async def pays(cluster: Cluster) -> None:
    """Write to both partitions, commit, abort."""
    producer = cluster.client("c1")
    await producer.init_transactions()
    for end in (producer.commit_transaction, producer.abort_transaction):
        await producer.begin_transaction()
        await producer.send("T-0", "a")
        await producer.send("T-1", "b")
        await end()


def test_a_run_replays_without_its_application(tmp_path: Path) -> None:
    """On both runtimes, with the same digest: what the application called is in the trail."""
    model, plan = resolve("exactly-once-commits")
    for seed in range(5):
        recorder, strategy = Recorder(), Strategies("random").run(seed)
        assert strategy is not None
        run, error = run_application(Tables(model), plan, strategy, pays, recorder)
        assert error is None and run.verdict.ok
        path = tmp_path / f"{seed}.trail.jsonl"
        run.trail.write(path)
        trail = read_trail(path)
        assert sum(chosen.input is not None for chosen in trail.choices) == 9
        for again in (replay_plain, replay_on_trio):
            repeated = Recorder()
            assert again(trail, repeated).verdict.ok
            assert repeated.digest() == recorder.digest()
