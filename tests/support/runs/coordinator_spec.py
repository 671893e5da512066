"""Whole transactions' coordinators held against diary 02: what each would decide on the same request in the same state.

The role of each broker of a model is watched. What it knew of a transactional id is abstracted to diary 02's metadata,
the spec decides, and what the role answers, appends and remembers is compared with that, field by field. Where a
version departs from diary 02 by design, a departure says under which condition, and what is expected instead; where the
spec has nothing to say, the step does not apply, and is counted by the reason. All else that differs is a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from harness.model import Local, Message, Model
from kafka_proto.broker.broker import Broker
from kafka_proto.broker.coordinator import transaction
from kafka_proto.broker.coordinator.add_partitions import wanted
from kafka_proto.broker.coordinator.coordinator import Coordinator, Logged, Markers
from kafka_proto.broker.coordinator.role import (
    LEADS_NO_LONGER,
    REQUESTS,
    EntryCallback,
    TransactionCoordinator,
)
from kafka_proto.broker.coordinator.transaction_log import TransactionRecord
from kafka_proto.broker.messages import Request, Response
from kafka_proto.broker.parts import COORDINATOR
from kafka_proto.broker.roles import Effect, Outcome
from kafka_proto.broker.state import known
from kafka_proto.errors import ErrorCode
from kafka_proto.requests import AddPartitionsToTxnResponse, EndTxnRequest, InitProducerIdRequest
from kafka_proto.requests.transaction_state import TxnState
from kafka_proto.transactions import messages as spec
from kafka_proto.transactions.decisions import completion, election
from kafka_proto.transactions.decisions.outcome import Outcome as SpecOutcome
from kafka_proto.transactions.records import PREPARED, Callback, Entry, TransactionMetadata, TxnRecord
from kafka_proto.transactions.versions.diary_02 import DIARY_02
from support.runs.coordinator_departures import (
    BY_VERSION,
    NOT_APPLIED,
    Decision,
    Said,
    Situation,
    in_short,
    name,
    shown,
    spelled,
)


def abstract(metadata: transaction.TransactionMetadata) -> TransactionMetadata:
    """Return what a coordinator knows of a transaction as diary 02's metadata."""
    return TransactionMetadata(
        metadata.producer_id, metadata.producer_epoch, metadata.last_producer_epoch, metadata.state,
        frozenset(metadata.partitions),
    )


def knows(cache: Coordinator, tid: str) -> tuple[TransactionMetadata | None, TransactionMetadata | None]:
    """Return a transactional id's metadata and pending transition in diary 02's terms.

    While markers are written, the completion is what is pending: diary 02 appends it when it has prepared.
    """
    cached = cache.transactions.get(tid)
    if cached is None:
        return None, None
    metadata = abstract(cached.metadata)
    waiting = cache.waiting.get(tid)
    if waiting is not None and waiting.outcome.entry is not None:
        return metadata, abstract(waiting.outcome.entry)
    if metadata.state in PREPARED and cached.pending_state is not None:
        done = completion.complete(tid, metadata)
        return metadata, done.transition if isinstance(done, Entry) else None
    return metadata, None


def pending_in(cache: Coordinator, tid: str) -> TxnState | None:
    cached = cache.transactions.get(tid)
    return cached.pending_state if cached is not None else None


def said_by_spec(response: spec.Response | None) -> Said | None:
    if response is None:
        return None
    if isinstance(response, spec.InitProducerIdResponse):
        return Said(name(response.error), response.producer_id, response.producer_epoch)
    return Said(name(response.error))


def said_by_role(sent: Iterable[Message]) -> Said | None:
    """Return what is answered to a client or a leader; None where nobody is."""
    found = [message.response for message in sent if isinstance(message, Response)]
    if not found:
        return None
    (response,) = found
    if isinstance(response, AddPartitionsToTxnResponse):
        codes = sorted({name(code) for code in response.errors.values()})
        return Said(" and ".join(codes))
    given = getattr(response, "producer_id", -1), getattr(response, "producer_epoch", -1)
    return Said(name(response.error), *given)


@attrs.define
class Oracle:
    """What comparing came to. `version` is the name of a version whose departures are expected."""

    version: str
    compared: Counter[str] = attrs.field(factory=Counter)
    """Distinct steps by kind: what happened, and the spec's answer to it."""
    departed: Counter[str] = attrs.field(factory=Counter)
    """How often each departure made a step differ from what diary 02 says."""
    not_applied: Counter[str] = attrs.field(factory=Counter)
    """Steps about which diary 02 says nothing, by reason."""
    differences: Counter[str] = attrs.field(factory=Counter)
    """Steps that differ, by what happened, which field differs, and how."""

    def watch(self, model: Model) -> None:
        """Hear of every step that a coordinator of a model takes or could take, once each time it is computed."""
        for broker in model.processes:
            for role in broker.roles if isinstance(broker, Broker) else ():
                if isinstance(role, TransactionCoordinator):
                    self.watch_role(role)

    def watch_role(self, role: TransactionCoordinator) -> None:
        """Hear of what one role does."""
        vars(role).update({
            "receive": self.received(role, role.receive), "decided": self.decided(role, role.decided),
            "completed": self.completed(role.completed), "failed": self.failed(role.failed),
            "loaded": self.loaded(role, role.loaded), "resigned": self.resigned(role.resigned),
            "timer_fired": self.timed_out(role.timer_fired),
        })

    def decided(self, role: TransactionCoordinator, decide: Callable[[Local, Request], Effect]) -> Any:
        """Compare what becomes of a request."""

        def compare(local: Local, message: Request) -> Effect:
            effect = decide(local, message)
            request = message.request
            kind = type(request).__name__.removesuffix("Request")
            tid = request.transactional_id
            why = self.unsaid(request)
            if why is not None:
                self.skip(why)
                return effect
            p = role.placement.transaction_partition(tid)
            before, after = local[COORDINATOR[p]].cache, effect.local[COORDINATOR[p]].cache
            leads = known(local, p).leader == role.name
            metadata, pending = knows(before, tid)
            serves = leads and not before.loading
            situation = Situation("request", request, before.transactions.get(tid), pending, serves)
            if situation.goes_on:
                self.skip("an InitProducerId with id and epoch")
                return effect
            found = found_in(effect, after, tid)
            new_id = found.entry.producer_id if found.entry is not None else -1
            if metadata is None and found.entry is not None:
                self.fresh(role, local, after, new_id)
            asked = {"leads": leads, "loading": before.loading, "metadata": metadata, "pending": pending}
            said = by_spec(request, message, asked, new_id)
            if situation.is_exhausted and said.entry is not None and said.entry.transition.state is TxnState.EMPTY:
                self.skip("the epochs of a producer id are used up")
                return effect
            expected = expected_of(said, metadata, pending)
            self.judge(f"{kind}: {in_short(expected)}", self.departed_from(situation, expected), found)
            return effect

        return compare

    def unsaid(self, request: Any) -> str | None:
        """Return why diary 02 says nothing of a request; None where it does."""
        if request.transactional_id is None:
            return "a producer without transactional id"
        if isinstance(request, EndTxnRequest):
            return "an EndTxn"
        if getattr(request, "verify_only", False):
            return "a verification"
        return None

    def fresh(self, role: TransactionCoordinator, local: Local, after: Coordinator, new_id: int) -> None:
        """A producer id for an id that nobody has seen is no other's, and is given once."""
        caches = [local[COORDINATOR[p]].cache for p in role.partitions]
        given = {cached.metadata.producer_id for cache in caches for cached in cache.transactions.values()}
        if new_id in given or after.ids.next_id == new_id:
            self.differences["InitProducerId: the producer id of a new transactional id is another's"] += 1

    def departed_from(self, situation: Situation, expected: Decision) -> Decision:
        """Return what the version is expected to do instead of what diary 02 does."""
        for departure in BY_VERSION[self.version]:
            instead = departure.instead(situation, expected)
            if instead != expected:
                self.departed[departure.name] += 1
                expected = instead
        return expected

    def completed(self, complete: Callable[..., Effect]) -> Any:
        """Compare what follows from the commit of an entry: the callback, and the completion of what is prepared."""

        def compare(local: Local, p: str, record: TransactionRecord, callback: EntryCallback) -> Effect:
            effect = complete(local, p, record, callback)
            tid = record.transactional_id
            if record.entry is None:
                self.skip("a tombstone")
                return effect
            waiting = local[COORDINATOR[p]].cache.waiting[tid]
            transition = abstract(record.entry)
            done = DIARY_02.entry_committed(Entry(tid, transition, Callback(record.entry.state.value)))
            owed = waiting.outcome.answer if waiting.request is not None else None
            then = done.entry.transition if done.entry is not None else None
            answered = None
            if owed is not None:
                gives = isinstance(waiting.request, InitProducerIdRequest | EndTxnRequest)
                answered = Said(name(owed.error), *((owed.producer_id, owed.producer_epoch) if gives else ()))
                if isinstance(waiting.request, EndTxnRequest) and waiting.request.version < 5:
                    answered = Said(answered.code)
            expected = Decision(answered, then, None, transition, then.state if then is not None else None)
            situation = Situation("commit", record.entry, local[COORDINATOR[p]].cache.transactions.get(tid))
            after = effect.local[COORDINATOR[p]].cache
            found = found_in(effect, after, tid)
            self.judge(f"commit of {transition.state}", self.departed_from(situation, expected), found)
            return effect

        return compare

    def received(self, role: TransactionCoordinator, receive: Callable[[Local, Message], Outcome | None]) -> Any:
        """Compare the entry that completes a transaction when its last marker is acknowledged."""

        def compare(local: Local, message: Message) -> Outcome | None:
            outcome = receive(local, message)
            if outcome is None or (isinstance(message, Request) and isinstance(message.request, REQUESTS)):
                return outcome
            asked = role.others.about(local, message, "coordinator")
            assert asked is not None
            tid = asked.transactional_id
            p = role.placement.transaction_partition(tid)
            if not outcome.appends:
                self.skip("an answer to a marker")
                return outcome
            cached = local[COORDINATOR[p]].cache.transactions[tid]
            done = completion.complete(tid, abstract(cached.metadata))
            assert isinstance(done, Entry), done
            situation = Situation("completion", cached.metadata, cached)
            after = outcome.local[COORDINATOR[p]].cache
            prepared = attrs.evolve(abstract(cached.metadata), partitions=frozenset())
            expected = Decision(None, done.transition, None, prepared, done.transition.state)
            self.judge(f"completion: {done.transition.state}", self.departed_from(situation, expected),
                       found_in(outcome, after, tid))
            return outcome

        return compare

    def failed(self, fail: Callable[..., Effect]) -> Any:
        """Compare what is answered where an entry is given up."""

        def compare(local: Local, p: str, callback: EntryCallback, error: ErrorCode) -> Effect:
            effect = fail(local, p, callback, error)
            if error not in LEADS_NO_LONGER and not local[COORDINATOR[p]].cache.loading:
                self.skip("an append that fails while its broker leads")
                return effect
            err = Said(name(spec.Error.NOT_COORDINATOR)) if callback.request is not None else None
            self.judge("given up", Decision(err), Decision(said_by_role(effect.sent)))
            return effect

        return compare

    def loaded(self, role: TransactionCoordinator, load: Callable[..., Local]) -> Any:
        """Compare what an elected coordinator knows of each id, and which transactions it completes."""

        def compare(local: Local, p: str, records: Iterable[TransactionRecord]) -> Local:
            records = tuple(records)
            after = load(local, p, records)
            mine = after[COORDINATOR[p]]
            entries = [TxnRecord(one.transactional_id, abstract(one.entry)) for one in records if one.entry is not None]
            raw = {one.transactional_id: one.entry for one in records}
            replayed = election.replay(entries)
            for tid in sorted({*replayed, *mine.cache.transactions}):
                own = replayed.get(tid)
                done = completion.complete_partial_txn(tid, leads=True, metadata=own, pending=None)
                entry = done.transition if done is not None else None
                expected = Decision(None, entry, None, own, entry.state if entry is not None else None)
                cached = mine.cache.transactions.get(tid)
                situation = Situation("reload", raw.get(tid), cached)
                logged = [one.entry for one in mine.unfinished if isinstance(one, Logged)
                          and one.transactional_id == tid]
                marks = [one for one in mine.unfinished if isinstance(one, Markers) and one.transactional_id == tid]
                found = Decision(None, abstract(logged[0]) if logged and logged[0] is not None else None, None,
                                 abstract(cached.metadata) if cached is not None else None,
                                 pending_in(mine.cache, tid) if logged or marks else None)
                self.judge(f"reload: {own.state if own is not None else 'nothing'}",
                           self.departed_from(situation, expected), found)
            return after

        return compare

    def resigned(self, resign: Callable[[Local, str], Local]) -> Any:
        """A coordinator that resigns forgets the ids of the partition, as a follower does in diary 02."""

        def compare(local: Local, p: str) -> Local:
            after = resign(local, p)
            cache = after[COORDINATOR[p]].cache
            if local[COORDINATOR[p]].cache.transactions:
                self.compared["resignation"] += 1
            if cache.transactions or cache.waiting:
                self.differences["resignation: it knows of ids of a partition that it does not lead"] += 1
            return after

        return compare

    def timed_out(self, fire: Callable[[Local, str], Iterable[Outcome]]) -> Any:
        def count(local: Local, timer: str) -> Iterable[Outcome]:
            for outcome in fire(local, timer):
                self.skip("the time-out of a transaction")
                yield outcome

        return count

    def skip(self, why: str) -> None:
        assert why in NOT_APPLIED, why
        self.not_applied[why] += 1

    def judge(self, kind: str, expected: Decision, found: Decision) -> None:
        """Count a step, and each field in which what was found is not what was expected."""
        self.compared[kind] += 1
        for field in ("answered", "then", "pending"):
            self.field(kind, field, getattr(expected, field), getattr(found, field))
        for part in ("entry", "known"):
            one, other = getattr(expected, part), getattr(found, part)
            if one is None or other is None:
                self.field(kind, part, one, other)
                continue
            for field in ("producer_id", "producer_epoch", "last_producer_epoch", "state", "partitions"):
                self.field(kind, f"{part}'s {field}", getattr(one, field), getattr(other, field))

    def field(self, kind: str, field: str, expected: object, found: object) -> None:
        if expected == found:
            return
        if isinstance(expected, int) and isinstance(found, int):
            off = f"{found - expected:+} from what is expected"
        elif isinstance(expected, Said) and isinstance(found, Said):
            off = f"{spelled(found)}, not {spelled(expected)}"
        else:
            off = f"{shown(found)}, not {shown(expected)}"
        self.differences[f"{kind}: {field} is {off}"] += 1


def found_in(effect: Effect, after: Coordinator, tid: str) -> Decision:
    """Return what a role has decided about an id."""
    entries = [one.record.entry for one in effect.appends]
    assert len(entries) <= 1, entries
    cached, waiting = after.transactions.get(tid), after.waiting.get(tid)
    entry = abstract(entries[0]) if entries and entries[0] is not None else None
    answer = waiting.outcome.answer if entry is not None and waiting is not None and waiting.request else None
    then = None
    if answer is not None:
        then = Said(name(answer.error), answer.producer_id, answer.producer_epoch)
    metadata = abstract(cached.metadata) if cached is not None else None
    return Decision(said_by_role(effect.sent), entry, then, metadata, pending_in(after, tid))


def by_spec(request: Any, message: Request, asked: dict[str, Any], new_id: int) -> SpecOutcome:
    """Let diary 02 decide on a request; AddOffsetsToTxn adds a partition as AddPartitionsToTxn does."""
    tid, between = request.transactional_id, {"source": message.source, "dest": message.dest}
    if isinstance(request, InitProducerIdRequest):
        return DIARY_02.init_producer_id(spec.InitProducerIdRequest(tid, **between), new_pid=new_id, **asked)
    return DIARY_02.add_partitions(spec.AddPartitionsToTxnRequest(
        tid, request.producer_id, request.producer_epoch, frozenset(wanted(request)), **between
    ), **asked)


def expected_of(
    said: SpecOutcome, before: TransactionMetadata | None, pending: TransactionMetadata | None
) -> Decision:
    """Return what diary 02 says, as a decision."""
    now = said.metadata if said.metadata is not None else before
    if now is not None:
        now = attrs.evolve(now, last_producer_id=None)
    if said.entry is None:
        (answer,) = said.answers
        return Decision(said_by_spec(answer), known=now, pending=pending.state if pending is not None else None)
    transition = attrs.evolve(said.entry.transition, last_producer_id=None)
    return Decision(None, transition, said_by_spec(said.entry.callback.response), now, transition.state)

