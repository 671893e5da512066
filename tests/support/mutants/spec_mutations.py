"""Wrong steps for specs: for each invariant one that violates it, and for each witness the step that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from harness.model import Message, Model, Process, Step, Value, View, find_model, parts, slot
from harness.model.spec import Change
from kafka_proto.replication.records import NIL
from kafka_proto.replication.specs import kafka_replication as base
from kafka_proto.replication.specs.names import ReplicationNames, isr_of
from kafka_proto.replication.versions import AS_WRITTEN
from kafka_proto.transactions.records import InitPidResponse, SpecError
from support.mutants import replication_mutants

DIARY_01 = "transactions/diary-01"
WITH_PARTITIONS = ("transactions/diary-02", "transactions/gist", "transactions/repaired")
ASYNC_ISR, KIP_320 = "replication/async-isr", "replication/kip-320"
TRUNCATE = "replication/truncate-to-high-watermark"
VERSIONS = (TRUNCATE, "replication/kip-101", "replication/kip-279", "replication/kip-320-first-try", KIP_320)
WITHOUT_KIP_320 = VERSIONS[:-1]
PULSAR = "compaction/pulsar"
SOUND: Mapping[str, Mapping[str, str]] = {
    DIARY_01: {"init": "choose"},
    "transactions/gist": {"repair": "S1,S3,S4,S5"},
    PULSAR: {"producer": "true", "repair": "S11,S12"},
    **{version: {"repair": "S8"} for version in VERSIONS},
}
"""Settings with which a model is sound at the sizes of this file and has one initial state, unless it is anyway."""
Mutate = Callable[[Model], Model]
KEEPS_FAILED = replication_mutants.keeps_failed_leader


def made(name: str, sizes: Mapping[str, int]) -> Model:
    """Build a model in its sound form."""
    return find_model(name).make(sizes, SOUND.get(name))


def keeps(model: Model) -> tuple[str, ...]:
    """Return the invariants that a sound model keeps. Before KIP-101 a second leader epoch loses records (RP-01)."""
    broken = {row.invariant for row in WRITTEN}
    if model.name == TRUNCATE and model.sizes["max-leader-epoch"] > 0:
        broken |= {"WeakIsr", "StrongIsr"}
    return tuple(prop.name for prop in model.properties if prop.is_safety and prop.name not in broken)


class Mutant(Process):
    """A process whose steps are changed, or left out."""

    def __init__(self, process: Process, change: Callable[[View, Step], Step | None]) -> None:
        self.name, self.has_inbox = process.name, process.has_inbox
        self._process, self._change = process, change

    def steps(self, view: View) -> Iterable[Step]:
        return self._changed(view, self._process.steps(view))

    def receive(self, view: View, message: Message) -> Iterable[Step]:
        return self._changed(view, self._process.receive(view, message))

    def _changed(self, view: View, steps: Iterable[Step]) -> list[Step]:
        return [step for one in steps if (step := self._change(view, one)) is not None]


def with_steps(model: Model, change: Callable[[View, Step], Step | None]) -> Model:
    """Return a model all of whose steps are changed."""
    return attrs.evolve(model, processes=tuple(Mutant(process, change) for process in model.processes))


def doing(change: Callable[[View, Step], Step | None], *actions: str) -> Mutate:
    """Change the steps of an action, by whichever of these names the model calls it."""
    return lambda model: with_steps(model, lambda view, step: change(view, step) if step.action in actions else step)


def instead(changes: Callable[..., Iterable[Change]], *actions: str) -> Mutate:
    """Put other steps in the place of a replication action, by whichever of these names the model calls it."""

    def mutate(model: Model) -> Model:
        (name,) = {process.name.partition("[")[0] for process in model.processes} & set(actions)
        return replication_mutants.mutated(model, name, changes)

    return mutate


def writes(wrong: Callable[[str, Any], Value], *actions: str) -> Mutate:
    """Have steps write something else; `wrong` gets the variable (`tc_log`) and what it was to be."""
    return doing(lambda view, step: attrs.evolve(
        step, writes=tuple((name, wrong(parts(name)[0], value)) for name, value in step.writes)), *actions)


def leaves(left_out: Callable[[str, Step], bool], *actions: str) -> Mutate:
    """Have steps leave some slots as they are."""
    return doing(lambda view, step: attrs.evolve(
        step, writes=tuple(one for one in step.writes if not left_out(one[0], step))), *actions)


def sends(wrong: Callable[[Any], Mapping[str, Value]], *actions: str) -> Mutate:
    """Have messages say something else in fields, where they have them."""

    def said(message: Message) -> Message:
        fields = {name: value for name, value in wrong(message).items() if hasattr(message, name)}
        return attrs.evolve(message, **fields)

    return doing(lambda view, step: attrs.evolve(step, sent=tuple(map(said, step.sent))), *actions)


def answers(code: SpecError, instead_of: SpecError) -> Mutate:
    """Have a broker answer InitPidRequest with another code."""
    return sends(lambda message: {"code": code} if message.code is instead_of else {}, "ReceiveInitPidRequest")


def unknown_partition(message: Any) -> Mapping[str, Value]:
    return {"partitions": frozenset({"tp9"})}


def epoch_0_again(message: Any) -> Mapping[str, Value]:
    """Whoever is granted a producer id gets epoch 0, also the second client with it."""
    return {"pepoch": 0} if isinstance(message, InitPidResponse) else {}


def is_log(name: str, step: Step) -> bool:
    """A deposed leader becomes a follower and does not truncate."""
    return parts(name)[0] == "tc_log"


def of_followers(name: str, step: Step) -> bool:
    """High watermarks rise everywhere, but only the leader has the entry."""
    return is_log(name, step) and parts(name)[1] != step.args[0]


def begins_at_the_start(view: View, step: Step) -> Step:
    """An elected leader takes nothing in its log for committed."""
    return attrs.evolve(step, writes=(*step.writes, (slot("tc_log_hwm", *step.args[:2]), 0)))


def is_leader(name: str, step: Step) -> bool:
    """A replica that is made leader notes the epoch, but not who leads."""
    return name.startswith("replicaState") and name.endswith("[leader]")


def skips_a_message(view: View, step: Step) -> Step:
    """The producer sends the second message instead of the first."""
    writes = ((name.replace("messages[1]", "messages[2]"), value) for name, value in step.writes)
    return attrs.evolve(step, writes=tuple(writes))


def nothing_loaded(variable: str, value: Any) -> Value:
    """An elected broker does not load the ids of the partition that it leads from now on."""
    return None if variable == "tc_tid_metadata" else value


def written_backwards(variable: str, value: Any) -> Value:
    """The compactor writes a ledger last message first; that is not wrong."""
    return value[::-1] if variable == "compactedLedgers" else value


def elected_in_the_same_epoch(variable: str, value: Any) -> Value:
    """The controller changes the leader and not the coordinator epoch."""
    if variable == "tc_log_metadata":
        return attrs.evolve(value, cepoch=value.cepoch - 1)
    return value - 1 if variable == "txn_log_epoch" else value


def every_entry_numbered(variable: str, value: Any) -> Value:
    """A coordinator gives an id that it knows another producer id: the length of the log."""
    if variable != "tc_log":
        return value
    *before, last = value
    return (*before, attrs.evolve(last, transition=attrs.evolve(last.transition, pid=len(value))))


def lets_anyone_in(k: ReplicationNames, view: View, leader: str, follower: str) -> Iterable[Change]:
    """A leader counts a follower as in sync that is not, and before the quorum does."""
    if base.is_true_leader(view, leader) and follower not in isr_of(view, leader):
        yield Change(((slot("replicaState", leader, "isr"), isr_of(view, leader) | {follower}),), follower)


def takes_the_last_member(k: ReplicationNames, view: View, replica: str) -> Iterable[Change]:
    """S8 put back: where nobody leads, the controller takes the last member out of the ISR."""
    return base.controller_shrink_isr.changes(attrs.evolve(k, version=AS_WRITTEN), view, replica)


@attrs.frozen
class Mutation:
    """A wrong step, and the invariant that it breaks."""

    invariant: str
    models: tuple[str, ...]
    mutate: Mutate
    sizes: Mapping[str, int]
    states: int
    """States of a shortest counterexample."""
    reason: str
    """How its sentence begins."""
    also: tuple[str, ...] = ()
    """Invariants that cannot hold where this one fails, or that fail later for that."""


COMMIT = ("CompleteInitPidRequest", "CommitTxnLogAppend")
ELECTION = ("ElectLeader", "BecomeLeader")
EXPAND = ("LeaderExpandIsr", "LeaderExpandIsrBetterFencing", "FencedLeaderExpandIsr")
SHRINK = ("LeaderShrinkIsr", "LeaderShrinkIsrBetterFencing", "FencedLeaderShrinkIsr")


def coordinators(clients: int, brokers: int, elections: int) -> Mapping[str, int]:
    return {"clients": clients, "brokers": brokers, "elections": elections}


def epochs(last: int) -> Mapping[str, int]:
    return {"max-leader-epoch": last}


OTHERS_CODE = answers(SpecError.NOT_COORDINATOR, instead_of=SpecError.NOT_COORDINATOR_FOR_TRANSACTIONAL_ID)
"""A broker that is asked about another one's id answers with the code of the next diary."""
CALLS_IT_ILLEGAL = answers(SpecError.ILLEGAL_STATE, instead_of=SpecError.CONCURRENT_TRANSACTIONS)
"""A coordinator that is busy with an id says IllegalState, as if that could not be."""
COMPACTION = {"messages": 2, "compactions": 2, "keys": 1, "values": 1}
MUTATIONS = (
    Mutation("TypeOK", (DIARY_01,), OTHERS_CODE,
             {"clients": 1}, 3, "no message of the protocol: InitPidResponse"),
    Mutation("TypeOK", (DIARY_01,), sends(lambda sent: {"pepoch": -2}, "CompleteInitPidRequest"),
             {"clients": 1, "brokers": 1}, 4, "no message of the protocol: InitPidResponse"),
    Mutation("TypeOK", (DIARY_01, *WITH_PARTITIONS), sends(lambda sent: {"dest": sent.source}, *COMMIT),
             {"clients": 1, "brokers": 1}, 4, "no message of the protocol: InitPidResponse b1->b1"),
    Mutation("TypeOK", (DIARY_01, *WITH_PARTITIONS), sends(lambda sent: {"source": sent.dest}, "SendInitPidRequest"),
             {"clients": 1, "brokers": 1}, 2, "no message of the protocol: InitPidRequest b1->b1"),
    Mutation("NoBadStateResponse", (DIARY_01,), CALLS_IT_ILLEGAL,
             {"brokers": 1}, 5, "an InitPidResponse carries IllegalState"),
    Mutation("TypeOK", WITH_PARTITIONS, sends(lambda sent: {"pid": -1}, "SendAddPartitionsToTxnRequest"),
             coordinators(1, 1, 0), 6, "no message of the protocol: AddPartitionsToTxnRequest"),
    Mutation("TypeOK", WITH_PARTITIONS, sends(unknown_partition, "SendAddPartitionsToTxnRequest"),
             coordinators(1, 1, 0), 6, "no message of the protocol: AddPartitionsToTxnRequest"),
    Mutation("TypeOK", WITH_PARTITIONS, sends(unknown_partition, "CommitTxnLogAppend"),
             coordinators(1, 1, 0), 8, "no message of the protocol: AddPartitionsToTxnResponse"),
    Mutation("NoBadStateResponse", WITH_PARTITIONS, CALLS_IT_ILLEGAL,
             coordinators(2, 1, 0), 5, "an InitPidResponse carries IllegalState", also=("TypeOK",)),
    Mutation("ClientsHaveDifferentProducerEpochs", WITH_PARTITIONS, sends(epoch_0_again, "CommitTxnLogAppend"),
             coordinators(2, 1, 0), 9, "c1 and c2 both hold producer id 1 with epoch 0"),
    Mutation("TCsHaveDifferentEpochs", WITH_PARTITIONS, writes(elected_in_the_same_epoch, *ELECTION),
             coordinators(1, 2, 1), 2, "b1 and b2 both believe to lead p1 in epoch 1"),
    Mutation("LogsAgreeUpToHwm", WITH_PARTITIONS, leaves(of_followers, "CommitTxnLogAppend"),
             coordinators(1, 2, 0), 4, "b1 and b2 hold different entries of p1 at offset 0"),
    Mutation("FollowersHoldNoUncommitted", WITH_PARTITIONS, leaves(is_log, "BecomeFollower"),
             coordinators(1, 2, 1), 5, "b1 follows p1 but holds 1 entry above its high watermark",
             also=("LogsAgreeUpToHwm", "OnePidPerTid")),
    Mutation("EffectiveHwmIsMonotonic", WITH_PARTITIONS, doing(begins_at_the_start, *ELECTION),
             coordinators(1, 2, 1), 5, "b2 leads p1 with high watermark 0, below b1's 1",
             also=("FollowersHoldNoUncommitted", "LogsAgreeUpToHwm")),
    Mutation("CommittedTidKnown", WITH_PARTITIONS, writes(nothing_loaded, *ELECTION),
             coordinators(1, 2, 1), 5, "b2 leads p1, whose log has tid1 with producer id 1, but has no metadata"),
    Mutation("OnePidPerTid", WITH_PARTITIONS, writes(every_entry_numbered, "ReceiveInitPidRequest"),
             coordinators(2, 1, 0), 6, "in b1's log of p1, tid1 has the producer ids 1 and 2"),
    Mutation("MCTypeOk", WITHOUT_KIP_320, instead(replication_mutants.forgets_end_offset, "LeaderWrite"),
             epochs(0), 4, "replicaLog[r1][records] holds (Record(id=0, epoch=0),), which is not of its type"),
    Mutation("WeakIsr", VERSIONS, instead(lets_anyone_in, *EXPAND),
             epochs(0), 7, "r2 is in r1's own ISR but does not hold r1's record at offset 0"),
    Mutation("StrongIsr", VERSIONS, leaves(lambda name, step: name == "quorumState[isr]", *SHRINK),
             epochs(0), 6, "r2 is in the quorum's ISR but does not hold r1's record at offset 0"),
    Mutation("LeaderInIsrOrNone", WITHOUT_KIP_320, instead(KEEPS_FAILED, "ControllerShrinkIsr"),
             epochs(1), 3, "r1 leads the quorum but its ISR is {r2}"),
    Mutation("IsrNonEmpty", VERSIONS, instead(takes_the_last_member, "ControllerShrinkIsr"),
             epochs(1), 3, "the quorum's ISR is empty in epoch 1"),
    Mutation("NoneRequestNeverApplied", VERSIONS, leaves(is_leader, "BecomeLeader"),
             epochs(0), 3, "r1 knows epoch 0 but no leader"),
    Mutation("TypeSafe", (PULSAR,), doing(skips_a_message, "Producer"),
             COMPACTION, 2, "message 2 is sent, but message 1 is not"),
)
COMPACTION_MUTATIONS: tuple[tuple[str, Mutate, int], ...] = (
    ("TypeSafe", writes(
        lambda name, value: 9 if name == "compactionHorizon" else value, "CompactorPhaseTwoUpdateHorizon"), 6),
    ("CompactionHorizonCorrectness", writes(
        lambda name, value: value[:-1] if name == "compactedLedgers" else value, "CompactorPhaseTwoWrite"), 6),
    ("CompactedLedgerLeak", leaves(
        lambda name, step: parts(name)[0] == "compactedLedgers", "CompactorPhaseTwoDeleteLedger"), 16),
    ("DuplicateNullKeyMessage", writes(
        lambda name, value: value - 1 if name == "compactionHorizon" else value, "CompactorPhaseTwoUpdateContext"), 5),
    ("ContextLedgerExists", writes(
        lambda name, value: 2 if name == "compactedTopicContext" else value, "CompactorPhaseTwoUpdateContext"), 5),
)
"""Wrong steps of the compaction spec at another size: the invariant that each breaks, and after how many states."""


@attrs.frozen
class Written:
    """An invariant that no model keeps as it is written, and the reading that can hold."""

    invariant: str
    models: tuple[str, ...]
    reading: str
    slot: str
    value: Value
    """In the sound model it fails exactly where the slot has this value, as it has in the beginning."""
    mutate: Mutate
    """Breaks both, also where the slot has another value."""
    sizes: Mapping[str, int]
    states: int


WRITTEN = (
    Written("LeaderInIsr", VERSIONS, "LeaderInIsrOrNone", "quorumState[leader]", None,
            instead(replication_mutants.keeps_failed_leader, "ControllerShrinkIsr"), epochs(1), 3),
    Written("TypeOk", (ASYNC_ISR,), "MCTypeOk", "leaderState[pendingVersion]", NIL,
            instead(replication_mutants.proposes_version_below_none, "LeaderRequestShrinkIsr"), {}, 2),
)


@attrs.frozen
class Witness:
    """A witness, an action without which it is not reached, and the witnesses that are still reached then."""

    name: str
    models: tuple[str, ...]
    without: tuple[str, ...]
    """The action, by whichever of these names the model calls it."""
    sizes: Mapping[str, int]
    rest: frozenset[str] = frozenset()
    answering: SpecError | None = None
    """The action is left out only where it answers this."""

    def leaves_out(self, step: Step) -> bool:
        if step.action not in self.without:
            return False
        return self.answering is None or any(message.code is self.answering for message in step.sent)


PROGRESS = ("LeaderIncHighWatermark", "ImprovedLeaderIncHighWatermark", "FencedLeaderIncHighWatermark")
TRUNCATION = (
    "BecomeFollowerTruncateToHighWatermark", "BecomeFollowerTruncateKip101", "BecomeFollowerTruncateKip279",
    "FollowerTruncate", "FencedBecomeFollowerAndTruncate",
)
WITNESSES = (
    Witness("NotCoordinatorRetrySucceeds", (DIARY_01,), ("ReceiveInitPidRequest",), {},
            frozenset({"ConcurrentTransactionsRetrySucceeds"}), SpecError.NOT_COORDINATOR_FOR_TRANSACTIONAL_ID),
    Witness("ConcurrentTransactionsRetrySucceeds", (DIARY_01,), ("ReceiveInitPidRequest",), {},
            frozenset({"NotCoordinatorRetrySucceeds"}), SpecError.CONCURRENT_TRANSACTIONS),
    Witness("ProducerFenced", WITH_PARTITIONS, ("ReceiveAddPartitionsToTxnResponse",), coordinators(2, 2, 1),
            frozenset({"PartialTxnCompleted", "NotCoordinatorRetrySucceeds"})),
    Witness("PartialTxnCompleted", WITH_PARTITIONS, ("CompletePartialTxn",), coordinators(2, 2, 1),
            frozenset({"ProducerFenced", "NotCoordinatorRetrySucceeds"})),
    Witness("NotCoordinatorRetrySucceeds", WITH_PARTITIONS, ELECTION, coordinators(2, 2, 1),
            frozenset({"ProducerFenced"})),
    Witness("HighWatermarkRises", VERSIONS, PROGRESS, epochs(1), frozenset({"RecordTruncated"})),
    Witness("RecordTruncated", VERSIONS, TRUNCATION, epochs(1), frozenset({"HighWatermarkRises"})),
    Witness("IsrExpands", (ASYNC_ISR,), ("LeaderRequestExpandIsr",), {}),
    Witness("MessageDropped", (PULSAR,), ("CompactorPhaseTwoUpdateContext",), COMPACTION),
    Witness("LedgerReplaced", (PULSAR,), ("CompactorPhaseTwoDeleteLedger",), COMPACTION,
            frozenset({"CursorRecovered", "MessageDropped"})),
    Witness("CursorRecovered", (PULSAR,), ("CompactorPhaseTwoPersistCusror",), COMPACTION,
            frozenset({"MessageDropped"})),
)
