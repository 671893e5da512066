"""Each invariant of the actor models can fail: one wrong turn of one kind of actor breaks it in some seeded run.

A mutation is a function: what happens instead of an action. Its sound twin is the same model without it: there many
times as many runs, those with the same seeds included, are silent. Likewise no run reaches a witness without the action
that makes it. For the spec models see test_mutations; temporal properties are not this file's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.mutants.actor_mutants import STEPS, TIMES, WITHIN, Change, Sparing, found, is_aborting, knowing, mutated
from support.runs.actor_states import last_state

from harness.model import NO_FAULTS, Faults, FrozenMap, Message, Turn, View, find_model, model_specs
from harness.record import Recorder, read_trail
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import replay_plain, try_choices
from kafka_proto.broker.state import METADATA
from kafka_proto.replication.known import NOBODY, LeaderAndEpoch
from kafka_proto.stack.atomic_log import COPY
from kafka_proto.transactions import messages, properties
from kafka_proto.transactions.coordinator_role import COORDINATOR
from kafka_proto.transactions.log import AppendEntry, Committed, Joined, JoinEpoch
from kafka_proto.transactions.messages import Error, InitProducerIdRequest, InitProducerIdResponse, LeaderAndIsrRequest
from kafka_proto.transactions.properties import ACTOR_INVARIANTS

MODELS = ("transactions/diary-02/actors", "transactions/repaired/actors")
"""At the sizes of this file diary 02 is sound, too: its flaws need a third broker, or a second partition or id."""
Shape = tuple[int, Faults]
CALM, MOVES, CRASHES = (0, NO_FAULTS), (1, NO_FAULTS), (1, Faults(crash=1, targets=("b1",)))
"""Elections and faults. There are two clients with one id, two brokers, one partition of the log."""


MUTATIONS: list[Any] = []


def breaks(invariant: str, action: str, shape: Shape, reason: str, *also: str) -> Callable[[Change], Change]:
    """Put a mutation of an action into the table: what it breaks, with part of the reason, and what follows from it."""
    def put(change: Change) -> Change:
        MUTATIONS.append(pytest.param(change, action, shape, (invariant, *also), reason, id=change.__name__))
        return change
    return put


def sending(turn: Turn[Any], which: type[Message] | Error, **wrong: Any) -> Turn[Any]:
    """Return a turn whose messages of one kind, or with one code, say something else."""
    hits = [which in (type(message), getattr(message, "error", None)) for message in turn.sent]
    sent = (attrs.evolve(m, **wrong) if hit else m for m, hit in zip(turn.sent, hits, strict=True))
    return attrs.evolve(turn, sent=tuple(sent))


@breaks("TypeOK", "SendInitProducerIdRequest", CALM, "no message of the protocol: InitProducerIdRequest b1->c1")
def asks_the_wrong_way_round(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A request of a client says that b1 sends it, to c1. From b1 to itself there is no link that it could take."""
    return sending(turn, InitProducerIdRequest, source="b1", dest="c1")


@breaks("TypeOK", "ReceiveInitProducerIdRequest", MOVES, "error=ProducerFenced")
def fences_whoever_is_wrong_here(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A broker that does not coordinate an id tells its client that it was fenced."""
    return sending(turn, Error.NOT_COORDINATOR, error=Error.PRODUCER_FENCED)


@breaks("TypeOK", "SendAddPartitionsToTxnRequest", CALM, "no message of the protocol: AddPartitionsToTxnRequest")
def forgets_its_pid(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A client adds a partition without saying its producer id."""
    return sending(turn, messages.AddPartitionsToTxnRequest, producer_id=-1)


@breaks(
    "TypeOK", "ReceiveCommitted", CALM, "no message of the protocol: AddPartitionsToTxnResponse", "AckedIsLogged"
)
def adds_all_but_that(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A coordinator says that it added a partition that does not exist."""
    return sending(turn, messages.AddPartitionsToTxnResponse, partitions=frozenset({"tp9"}))


@breaks("NoBadStateResponse", "ReceiveInitProducerIdRequest", CALM, "carries IllegalState", "TypeOK")
def calls_it_illegal(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A coordinator that is busy with an id says IllegalState, as if that could not be."""
    return sending(turn, Error.CONCURRENT_TRANSACTIONS, error=Error.ILLEGAL_STATE)


@breaks("NoBadStateResponse", "ReceiveInitProducerIdRequest", MOVES, "carries InvalidTransition", "TypeOK")
def calls_being_wrong_here_invalid(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A broker that does not coordinate an id says InvalidTransition."""
    return sending(turn, Error.NOT_COORDINATOR, error=Error.INVALID_TRANSITION)


@breaks("ClientsHaveDifferentProducerEpochs", "ReceiveCommitted", CALM, "both hold producer id 1 with epoch 0")
def grants_epoch_0_again(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """Whoever is answered about a producer id gets epoch 0, also the second client with it."""
    return sending(turn, InitProducerIdResponse, producer_epoch=0)


@breaks("TCsHaveDifferentEpochs", "TakeOver", MOVES, "b1 and b2 both believe to lead p1 in epoch 1")
def leads_in_its_old_epoch(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A broker that is elected keeps the epoch that it knew."""
    old = LeaderAndEpoch(before[METADATA].known["p1"].leader_epoch, turn.args[0])
    return knowing(turn, METADATA, known=FrozenMap({"p1": old}))


@breaks("TCsHaveDifferentEpochs", "BecomeFollower", MOVES, "b1 and b2 both believe to lead p1 in epoch 2")
def learns_the_epoch_only(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A deposed leader notes the new epoch, but not who leads."""
    still = LeaderAndEpoch(turn.local[METADATA].known["p1"].leader_epoch, turn.args[0])
    return knowing(turn, METADATA, known=FrozenMap({"p1": still}))


@breaks("LogsAgreeUpToHwm", "ReceiveCommitted", CALM, "b1 and b2 hold different entries of p1 at offset 0")
def counts_what_it_does_not_hold(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A follower raises its high watermark and does not append the entry."""
    return turn if before[COORDINATOR].loaded else knowing(turn, COPY["p1"], log=before[COPY["p1"]].log)


@breaks("LogsAgreeUpToHwm", "JoinEpoch", MOVES, "b1 and b2 hold different entries of p1", "OnePidPerTid")
def hands_out_what_waits(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """The log gives a broker that joins an epoch also the entries that the epoch gives up."""
    return sending(turn, Joined, committed=turn.local.committed + before.waiting)


@breaks("FollowersHoldNoUncommitted", "BecomeFollower", MOVES, "b1 follows p1 but holds 1 ")
def keeps_its_tail(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A broker becomes a follower and does not truncate."""
    return knowing(turn, COPY["p1"], log=before[COPY["p1"]].log)


@breaks("FollowersHoldNoUncommitted", "BecomeFollower", CRASHES, "b1 follows p1 but holds 1 ")
def trusts_its_disk(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A broker that was started again becomes a follower and does not truncate: before, it neither led nor followed."""
    return knowing(turn, COPY["p1"], log=before[COPY["p1"]].log) if before[METADATA].known["p1"] == NOBODY else turn


@breaks("FollowersHoldNoUncommitted", "Restart", CRASHES, "b1 follows p1 but holds 1 ")
def guesses_who_leads(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A broker that is started again believes, before it learns more, that the other one leads."""
    return knowing(turn, METADATA, known=FrozenMap({"p1": LeaderAndEpoch(1, "b2")}))


@breaks("FollowersHoldNoUncommitted", "BecomeFollower", MOVES, "b1 follows p1 but holds 1 ")
def forgets_who_leads(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A deposed leader notes the epoch, but nobody as leader, and keeps its tail."""
    nobody = LeaderAndEpoch(turn.local[METADATA].known["p1"].leader_epoch, "")
    return knowing(keeps_its_tail(before, turn), METADATA, known=FrozenMap({"p1": nobody}))


@breaks("CommittedTidKnown", "LoadTxnLog", MOVES, "but has no metadata of tid1", "OnePidPerTid")
def loads_nothing(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A new leader serves without knowing the ids in its log."""
    return knowing(turn, COORDINATOR, metadata=FrozenMap())


@breaks("OnePidPerTid", "CommitTxnLogAppend", CALM, "tid1 has the producer ids 1 and 2")
def numbers_its_entries(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """The log gives each entry that it commits a producer id of its own."""
    first = turn.sent[0]
    transition = attrs.evolve(first.entry.transition, producer_id=first.offset + 1)
    return sending(turn, Committed, entry=attrs.evolve(first.entry, transition=transition))


@breaks("AckedIsLogged", "ReceiveInitProducerIdRequest", CALM, " holds producer id 1 with epoch ")
@breaks("AckedIsLogged", "ReceiveAddPartitionsToTxnRequest", CALM, " added tp1 in epoch ")
def answers_before_the_commit(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A coordinator appends an entry and answers at once."""
    early = [m.entry.callback.response for m in turn.sent if isinstance(m, AppendEntry)]
    return attrs.evolve(turn, sent=(*turn.sent, *(answer for answer in early if answer.error is Error.OK)))


@breaks("AckedIsLogged", "ReceiveCommitted", CALM, "c1 holds producer id 1 with epoch 2, which no committed entry")
def grants_the_next_epoch(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """Whoever is answered about a producer id gets the epoch after the one that was written."""
    epoch = before[COORDINATOR].metadata["tid1"].producer_epoch if turn.sent else 0
    return sending(turn, InitProducerIdResponse, producer_epoch=epoch + 2) if turn.sent else turn


@breaks("AckedIsLogged", "ReceiveCommitted", CALM, "c1 holds producer id 2 with epoch 1, which no committed entry")
def grants_another_producer_id(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """Whoever is answered about a producer id gets another one than was written."""
    return sending(turn, InitProducerIdResponse, producer_id=2)


@breaks("ServiceTypeOK", "ReceiveInitProducerIdRequest", CALM, "between brokers and services: AppendEntry b1->log-p1")
def counts_from_below(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A leader appends at an offset that no log has."""
    return sending(turn, AppendEntry, offset=-1)


@breaks("ServiceTypeOK", "TakeOver", MOVES, "no message between brokers and services: JoinEpoch b2->log-p1")
def joins_as_nobody(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """A broker joins an epoch and does not say which incarnation it is."""
    return sending(turn, JoinEpoch, broker_epoch=-1)


@breaks(
    "ServiceTypeOK", "ElectLeader", MOVES, "no message between brokers and services: LeaderAndIsrRequest controller->b1"
)
def elects_a_client(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """The controller tells the brokers, in an epoch that is over, that a client leads."""
    return sending(turn, LeaderAndIsrRequest, leader="c1", leader_epoch=1)


@cache
def sound(name: str, shape: Shape) -> Tables:
    return Tables(find_model(name).make({"elections": shape[0]}, faults=shape[1]))


@cache
def is_silent(name: str, shape: Shape, seed: int) -> bool:
    return run_plain(sound(name, shape), Plan(ACTOR_INVARIANTS, steps=STEPS), Sparing(seed)).verdict.ok


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("change", "action", "shape", "broken", "reason"), MUTATIONS)
def test_invariant_is_violated_by_a_wrong_turn_and_no_other_is(
    name: str, change: Change, action: str, shape: Shape, broken: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    """A seeded run breaks it, its trail again with the same sentence; the sound twin is silent, many times as long."""
    twin = sound(name, shape)
    wrong = mutated(twin.model, action, change)
    tables = Tables(wrong)
    run = found(tables, broken[0])
    assert run.verdict.violated == broken[0] and reason in str(run.verdict.reason)
    run.trail.write(tmp_path / "wrong.trail.jsonl")
    again = replay_plain(read_trail(tmp_path / "wrong.trail.jsonl"), Recorder(), Tables(wrong))
    assert (again.digest, again.verdict) == (run.digest, run.verdict)
    assert try_choices(twin, run.trail, run.trail.choices).verdict.ok
    assert all(is_silent(name, shape, seed) for seed in range((run.trail.seed + 1) * TIMES))
    plan, violated = Plan(ACTOR_INVARIANTS, steps=STEPS, stop_at_violation=False), set()
    for seed in range(WITHIN):
        failed = {verdict.violated: verdict.step for verdict in run_plain(tables, plan, Sparing(seed)).violations}
        assert not failed or failed[broken[0]] == min(failed.values())
        violated |= set(failed)
    assert violated == set(broken)


@pytest.mark.parametrize("name", MODELS)
def test_restarted_broker_is_excepted_while_it_knows_no_leader(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the exception a sound model fails; when it ends is what the mutations under CRASHES show."""
    twin = sound(name, CRASHES)
    monkeypatch.setattr(properties, "NOBODY", "nobody")
    run = found(Tables(twin.model), "FollowersHoldNoUncommitted")
    assert str(run.verdict.reason).startswith("b1 follows p1 but holds 1 ")
    monkeypatch.undo()
    assert replay_plain(run.trail).verdict.ok
    view = View(last_state(run))
    copy = COPY["p1"].of(view, "b1")
    assert METADATA.of(view, "b1").known["p1"] == NOBODY and len(copy.log) == copy.high_watermark + 1
    assert all(is_silent(name, CRASHES, seed) for seed in range((run.trail.seed + 1) * TIMES))


WITNESSED = {
    "PartialTxnCompleted": ("CompletePartialTxn", {"ProducerFenced"}),
    "ProducerFenced": ("ReceiveAddPartitionsToTxnResponse", {"PartialTxnCompleted", "NotCoordinatorRetrySucceeds"}),
    "NotCoordinatorRetrySucceeds": ("ElectLeader", {"ProducerFenced"}),
}
"""Each witness, an action without which it is not reached, and the witnesses that are still reached then."""


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("witness", WITNESSED)
def test_witness_is_reached_by_sound_actors_and_not_without_its_action(witness: str, name: str) -> None:
    """With one action left out many times as many runs do not reach it, and do reach the rest."""
    without, rest = WITNESSED[witness]
    plan, twin = Plan((), steps=STEPS), sound(name, MOVES)
    runs = (run_plain(twin, plan, Sparing(seed, is_aborting)) for seed in range(WITHIN))
    first = next(run for run in runs if witness in run.witnessed)
    idle = Tables(mutated(twin.model, without, lambda before, turn: None))
    seeds = range((first.trail.seed + 1) * TIMES)
    assert {w for seed in seeds for w in run_plain(idle, plan, Sparing(seed, is_aborting)).witnessed} == rest


def test_every_safety_property_and_witness_of_every_actor_model_is_in_a_table() -> None:
    """And none is in a table that no actor model of the transaction protocol has."""
    specs = [spec for spec in model_specs() if spec.name.startswith("transactions/")]
    actors = [model for spec in specs if (model := spec.make()).actors]
    assert tuple(sorted(model.name for model in actors)) == MODELS
    broken = {row.values[3][0] for row in MUTATIONS}
    for model in actors:
        assert {prop.name for prop in model.properties if prop.is_safety} == broken
        assert {prop.name for prop in model.properties if prop.form == "sometimes"} == set(WITNESSED)
