"""What coordinators do about requests for a producer id and for partitions: diary 02's, and what Kafka added."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import attrs

from harness.model import View
from harness.model.spec import Change, action, each
from kafka_proto.broker.coordinator.add_partitions import wanted
from kafka_proto.broker.coordinator.transaction import LAST_EPOCH
from kafka_proto.cluster.refinement.decided import (
    NONE,
    DecidedEntry,
    DecidedOn,
    KnownTransaction,
    RequestTaken,
    SaidCode,
    name,
    said_in_diary,
)
from kafka_proto.cluster.refinement.drafts import CoordinatorNames, at_rest, drafted, leads, serves, settled
from kafka_proto.requests import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, InitProducerIdRequest, TxnState
from kafka_proto.transactions import records
from kafka_proto.transactions.decisions.coordinator import DiaryOutcome
from kafka_proto.transactions.records import FINISHED, PREPARED
from kafka_proto.transactions.versions import REPAIRED


def request_of(view: View, b: str, *kinds: type) -> RequestTaken | None:
    """Return the request of one of some kinds that a broker has taken, if it has."""
    event = view["event"]
    mine = at_rest(view) and isinstance(event, RequestTaken) and event.broker == b
    return event if mine and isinstance(event.request, kinds) else None


def situation(view: View, b: str, tid: str, p: str, taken: RequestTaken) -> DecidedOn:
    return DecidedOn(
        "request", taken.request, view.at("tc_tid_metadata", b, tid), view.at("tc_tid_transition", b, tid) is not None,
        serves(view, b, p), view.at("failed_fence", b, tid), taken.offered,
    )


def decision(said: DiaryOutcome, before: KnownTransaction | None) -> DecidedEntry:
    """Return what diary 02 says of a request."""
    known = KnownTransaction.made(said.metadata) if said.metadata is not None else before
    if said.entry is None:
        (answer,) = said.answers
        return DecidedEntry(said_in_diary(answer), known=known)
    entry = KnownTransaction.made(said.entry.transition)
    return DecidedEntry(None, entry, said_in_diary(said.entry.callback.response), known)


def new_id(k: CoordinatorNames, view: View, b: str, p: str, producer_id: int) -> bool:
    """Say whether a producer id may be given: no client has it, and it will be given once."""
    if producer_id == NONE or view.at("pid_source", b, p) == producer_id:
        return False
    known = (view.at("tc_tid_metadata", other, tid) for other, tid in product(k.brokers, k.transactional_ids))
    return all(one is None or one.pid != producer_id for one in known)


def init_decided(view: View, b: str, tid: str, p: str, request: records.Request, offered: int) -> DiaryOutcome:
    """Return what diary 02 says to a client that asks for the producer id of an id."""
    return REPAIRED.init_producer_id(
        request, leads=leads(view, b, p), loading=not view.at("serving", b, p),
        metadata=view.at("tc_tid_metadata", b, tid), pending=view.at("tc_tid_transition", b, tid), new_pid=offered,
    )


def goes_on(view: View, b: str, p: str, request: InitProducerIdRequest) -> bool:
    """Say whether a producer that has an id asks, of a transactional id with nothing pending (KIP-360)."""
    tid = request.transactional_id or ""
    known, pending = view.at("tc_tid_metadata", b, tid), view.at("tc_tid_transition", b, tid)
    return request.producer_id != NONE and serves(view, b, p) and known is not None and pending is None


def is_valid(request: InitProducerIdRequest, known: KnownTransaction) -> bool:
    """Say whether the producer id that a producer goes on with is not fenced (KIP-360)."""
    if known.pepoch == NONE or request.producer_id == known.pid:
        return True
    return request.producer_id == known.previous_producer_id and request.producer_epoch >= LAST_EPOCH


def rotates(view: View, b: str, p: str, request: InitProducerIdRequest) -> bool:
    """Say whether the epochs of a producer id are used up, so that a producer begins with another one."""
    tid = request.transactional_id or ""
    known: KnownTransaction | None = view.at("tc_tid_metadata", b, tid)
    if not serves(view, b, p) or known is None or view.at("tc_tid_transition", b, tid) is not None:
        return False
    expected = request.producer_epoch in (NONE, known.pepoch)
    return known.state in FINISHED and known.is_epoch_exhausted and expected


@action("ReceiveInitPidRequest", each("brokers"))
def receive_init_pid_request(k: CoordinatorNames, view: View, b: str) -> Iterable[Change]:
    """Diary 02's: an id that is new, a new epoch, an abort of what is open, or a refusal."""
    taken = request_of(view, b, InitProducerIdRequest)
    if taken is None or taken.request.transactional_id is None:
        return
    tid = taken.request.transactional_id
    p, known = k.home[tid], view.at("tc_tid_metadata", b, tid)
    if goes_on(view, b, p, taken.request) and (known.state in FINISHED or not is_valid(taken.request, known)):
        return
    if rotates(view, b, p, taken.request):
        return
    asked = records.InitPidRequest(tid, source=taken.to, dest=b)
    said = init_decided(view, b, tid, p, asked, taken.offered)
    if said.metadata is not None and known is None and not new_id(k, view, b, p, said.metadata.pid):
        return
    yield from drafted(k, view, b, tid, situation(view, b, tid, p, taken), decision(said, known), taken.to)


@action("ContinueProducer", each("brokers"), reason="a producer goes on after an error with the id that it has "
        "(KIP-360); diary 02's has none to give")
def continue_producer(k: CoordinatorNames, view: View, b: str) -> Iterable[Change]:
    """The next epoch for the owner of the last one; the same one again if it asks again; a refusal for others."""
    taken = request_of(view, b, InitProducerIdRequest)
    if taken is None or taken.request.transactional_id is None:
        return
    request, tid = taken.request, taken.request.transactional_id
    p, known = k.home[tid], view.at("tc_tid_metadata", b, tid)
    if not goes_on(view, b, p, request) or rotates(view, b, p, request):
        return
    decided = DecidedEntry(SaidCode("PRODUCER_FENCED"), known=known)
    if is_valid(request, known):
        if known.state not in FINISHED:
            return
        if known.is_epoch_exhausted:
            decided = DecidedEntry(SaidCode("UNKNOWN_SERVER_ERROR"), known=known)
        elif known.pepoch in (NONE, request.producer_epoch):
            decided = begins(known, known.pid, known.pepoch + 1, known.pepoch)
        elif request.producer_epoch == known.last_pepoch:
            decided = begins(known, known.pid, known.pepoch, known.last_pepoch)
    yield from drafted(k, view, b, tid, situation(view, b, tid, p, taken), decided, taken.to)


@action("RotateProducerId", each("brokers"), reason="where the epochs of a producer id are used up another one follows "
        "(KIP-98, KAFKA-20090); diary 02's epochs have no end")
def rotate_producer_id(k: CoordinatorNames, view: View, b: str) -> Iterable[Change]:
    taken = request_of(view, b, InitProducerIdRequest)
    if taken is None or taken.request.transactional_id is None:
        return
    request, tid = taken.request, taken.request.transactional_id
    p, known = k.home[tid], view.at("tc_tid_metadata", b, tid)
    if not rotates(view, b, p, request) or not new_id(k, view, b, p, taken.offered):
        return
    if request.producer_id != NONE and not is_valid(request, known):
        return
    last = NONE if request.producer_epoch == NONE else known.pepoch
    decided = begins(known, taken.offered, 0, last)
    yield from drafted(k, view, b, tid, situation(view, b, tid, p, taken), decided, taken.to)


def begins(known: KnownTransaction, producer_id: int, epoch: int, last: int) -> DecidedEntry:
    """Return that a producer begins with an epoch, and is told when that is committed."""
    entry = attrs.evolve(
        known, pid=producer_id, pepoch=epoch, last_pepoch=last, state=TxnState.EMPTY,
        partitions=frozenset(),
    )
    return DecidedEntry(None, entry, SaidCode("NONE", producer_id, epoch), known)


@action("GiveIdempotentId", each("brokers"), reason="a producer without transactional id is given an id by any broker, "
        "and no coordinator knows of it (KIP-98); diary 02 has none")
def give_idempotent_id(k: CoordinatorNames, view: View, b: str) -> Iterable[Change]:
    taken = request_of(view, b, InitProducerIdRequest)
    if taken is None or taken.request.transactional_id is not None:
        return
    for to, said in view["owes"]:
        given = said.code == "NONE" and said.producer_epoch == 0 and said.producer_id >= 0
        if to == taken.to and given and all(new_id(k, view, b, p, said.producer_id) for p in k.txn_log_partitions):
            yield from settled(view, (to, said))


@action("ReceiveAddPartitionsToTxnRequest", each("brokers"))
def receive_add_partitions_request(k: CoordinatorNames, view: View, b: str) -> Iterable[Change]:
    """Diary 02's: partitions become part of a transaction, or not."""
    taken = request_of(view, b, AddPartitionsToTxnRequest, AddOffsetsToTxnRequest)
    if taken is None or getattr(taken.request, "verify_only", False):
        return
    tid = taken.request.transactional_id
    p, partitions = k.home[tid], frozenset(wanted(taken.request))
    asked = records.AddPartitionsToTxnRequest(
        tid, taken.request.producer_id, taken.request.producer_epoch, partitions, source=taken.to, dest=b
    )
    said = REPAIRED.add_partitions(
        asked, leads=leads(view, b, p),
        loading=not view.at("serving", b, p), metadata=view.at("tc_tid_metadata", b, tid),
        pending=view.at("tc_tid_transition", b, tid),
    )
    at = situation(view, b, tid, p, taken)
    yield from drafted(k, view, b, tid, at, decision(said, at.known), taken.to)


@action("VerifyPartitions", each("brokers"), reason="a leader asks whether partitions are part of a transaction, and "
        "nothing is changed (KIP-890 part 1)")
def verify_partitions(k: CoordinatorNames, view: View, b: str) -> Iterable[Change]:
    taken = request_of(view, b, AddPartitionsToTxnRequest)
    if taken is None or not taken.request.verify_only:
        return
    for code in verified(k, view, b, taken.request):
        yield from settled(view, (taken.to, SaidCode(code)))


def verified(k: CoordinatorNames, view: View, b: str, request: AddPartitionsToTxnRequest) -> tuple[str, ...]:
    """Return what may be said about partitions; for those that are no part, releases have two codes."""
    tid = request.transactional_id
    p, known = k.home[tid], view.at("tc_tid_metadata", b, tid)
    if not leads(view, b, p):
        return (name(records.SpecError.NOT_COORDINATOR),)
    if not serves(view, b, p):
        return (name(records.SpecError.COORDINATOR_LOAD_IN_PROGRESS),)
    if known is None or known.pid != request.producer_id:
        return (name(records.SpecError.INVALID_PRODUCER_ID_MAPPING),)
    if known.pepoch != request.producer_epoch:
        return (name(records.SpecError.PRODUCER_FENCED),)
    if known.state in PREPARED:
        return (name(records.SpecError.CONCURRENT_TRANSACTIONS),)
    there = {"NONE"} if known.partitions.intersection(request.partitions) else set()
    if known.partitions.issuperset(request.partitions):
        return ("NONE",)
    return tuple(" and ".join(sorted({*there, code})) for code in ("INVALID_TXN_STATE", "TRANSACTION_ABORTABLE"))
