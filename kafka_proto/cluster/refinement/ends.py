"""How transactions end at their coordinator: EndTxn, time-outs and markers, which diary 02 does not model."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import View, slot
from harness.model.spec import Change, action, each
from kafka_proto.broker.coordinator.transaction import LAST_EPOCH
from kafka_proto.cluster.refinement.decided import (
    COMPLETED,
    NOBODY,
    NONE,
    DecidedEntry,
    DecidedOn,
    KnownTransaction,
    MarkersTaken,
    RequestTaken,
    SaidCode,
    TimeOutTaken,
)
from kafka_proto.cluster.refinement.drafts import CoordinatorNames, at_rest, drafted, leads, serves, settled
from kafka_proto.cluster.refinement.requests import decision, init_decided, new_id, request_of, situation
from kafka_proto.log import MAX_EPOCH
from kafka_proto.requests import EndTxnRequest, TxnState
from kafka_proto.transactions import records
from kafka_proto.transactions.decisions import completion
from kafka_proto.transactions.records import FINISHED, PREPARED, Entry

REFUSALS = ("INVALID_PRODUCER_ID_MAPPING", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "CONCURRENT_TRANSACTIONS",
            "INVALID_TXN_STATE")
"""What an EndTxn may be refused with by a coordinator that serves."""


@action("EndTxn", each("brokers"), reason="a producer commits or aborts (KIP-98), and from version 5 has the next epoch"
        " then (KIP-890); who uses diary 02's coordinator never commits")
def end_txn(k: CoordinatorNames, view: View, b: str) -> Iterable[Change]:
    """Append Prepare*, and answer when it is committed."""
    taken = request_of(view, b, EndTxnRequest)
    if taken is None:
        return
    tid = taken.request.transactional_id
    entry = ended(k, view, b, taken)
    if entry is None:
        return
    next_id, then = entry.next_producer_id, SaidCode("NONE")
    if next_id != NONE and not new_id(k, view, b, k.home[tid], next_id):
        return
    if taken.request.version >= 5:
        then = SaidCode("NONE", *((next_id, 0) if next_id != NONE else (entry.pid, entry.pepoch)))
    at = situation(view, b, tid, k.home[tid], taken)
    yield from drafted(k, view, b, tid, at, DecidedEntry(None, entry, then, at.known), taken.to)


def ended(k: CoordinatorNames, view: View, b: str, taken: RequestTaken) -> KnownTransaction | None:
    """Return the Prepare* that an EndTxn appends, or None if it is for another transaction, or none."""
    request, tid = taken.request, taken.request.transactional_id
    known: KnownTransaction | None = view.at("tc_tid_metadata", b, tid)
    if not serves(view, b, k.home[tid]) or known is None or view.at("tc_tid_transition", b, tid) is not None:
        return None
    if (request.producer_id, request.producer_epoch) != (known.pid, known.pepoch):
        return None
    bumps = request.version >= 5
    if known.state is not TxnState.ONGOING and not (bumps and known.state in FINISHED and not request.committed):
        return None
    state = TxnState.PREPARE_COMMIT if request.committed else TxnState.PREPARE_ABORT
    if not bumps:
        return attrs.evolve(known, state=state)
    epoch = known.pepoch + 1
    if epoch > MAX_EPOCH and "AbortNamesAnotherId" in k.departures and not request.committed:
        epoch = MAX_EPOCH
    if epoch > MAX_EPOCH:
        return None
    next_id = taken.offered if known.is_epoch_exhausted else NONE
    return attrs.evolve(
        known, state=state, pepoch=epoch, last_pepoch=known.pepoch, next_producer_id=next_id,
    )


@action("AnswerEndTxn", each("brokers"), reason="an EndTxn that comes again, or has nothing to end, is answered and "
        "changes nothing (KIP-98, KIP-890)")
def answer_end_txn(k: CoordinatorNames, view: View, b: str) -> Iterable[Change]:
    taken = request_of(view, b, EndTxnRequest)
    if taken is None or ended(k, view, b, taken) is not None:
        return
    tid = taken.request.transactional_id
    at = situation(view, b, tid, k.home[tid], taken)
    for said in answers_to_end(k, view, b, taken.request):
        yield from drafted(k, view, b, tid, at, DecidedEntry(said, known=at.known), taken.to)


def answers_to_end(k: CoordinatorNames, view: View, b: str, request: EndTxnRequest) -> Iterable[SaidCode]:
    """Yield what may be answered to an EndTxn that ends nothing now: it has been done where Complete* says so."""
    tid = request.transactional_id
    p, known = k.home[tid], view.at("tc_tid_metadata", b, tid)
    if not leads(view, b, p):
        yield SaidCode("NOT_COORDINATOR")
        return
    if not serves(view, b, p):
        yield SaidCode("COORDINATOR_LOAD_IN_PROGRESS")
        return
    yield from map(SaidCode, REFUSALS)
    if known is None:
        return
    if known.pepoch == MAX_EPOCH:
        yield SaidCode("UNKNOWN_SERVER_ERROR")
    prepared = TxnState.PREPARE_COMMIT if request.committed else TxnState.PREPARE_ABORT
    if known.state is not COMPLETED[prepared] or view.at("tc_tid_transition", b, tid) is not None:
        return
    same = request.producer_id == known.pid
    if request.version < 5 and same and request.producer_epoch == known.pepoch:
        yield SaidCode("NONE")
    given = request.producer_id, request.producer_epoch
    again = given == (known.pid, known.pepoch - 1)
    over = given == (known.previous_producer_id, LAST_EPOCH) and known.pepoch == 0
    if request.version >= 5 and (again or over):
        yield SaidCode("NONE", known.pid, known.pepoch)


@action("TimeOutTransaction", each("brokers", "transactional_ids"), reason="a coordinator aborts what is open for too "
        "long (KIP-98, transaction.timeout.ms); diary 02 has no time")
def time_out_transaction(k: CoordinatorNames, view: View, b: str, tid: str) -> Iterable[Change]:
    """As for a client that asks for the producer id, but no client is told."""
    event, p = view["event"], k.home[tid]
    if not at_rest(view) or not isinstance(event, TimeOutTaken) or event.broker != b or not serves(view, b, p):
        return
    known: KnownTransaction | None = view.at("tc_tid_metadata", b, tid)
    if known is None or known.state is not TxnState.ONGOING or view.at("tc_tid_transition", b, tid) is not None:
        return
    asked = records.InitPidRequest(tid, source=NOBODY, dest=b)
    said = decision(init_decided(view, b, tid, p, asked, NONE), known)
    at = DecidedOn("time-out", None, known, False, True, view.at("failed_fence", b, tid), event.offered[p])
    yield from drafted(k, view, b, tid, at, DecidedEntry(None, said.entry, None, known))


@action("TakeMarkerAnswer", each("brokers"), reason="the partitions of a prepared transaction say one by one that they "
        "have their marker, and then it is completed (KIP-98); diary 02 has no markers")
def take_marker_answer(k: CoordinatorNames, view: View, b: str) -> Iterable[Change]:
    event = view["event"]
    if not at_rest(view) or not isinstance(event, MarkersTaken) or event.broker != b:
        return
    tid = event.transactional_id
    known: KnownTransaction | None = view.at("tc_tid_metadata", b, tid)
    pending = view.at("tc_tid_transition", b, tid)
    if known is None or not is_awaited(k, view, b, event, known):
        yield from settled(view)
        return
    left = attrs.evolve(known, partitions=known.partitions - event.done)
    if left.partitions or event.gives_up:
        waits = attrs.evolve(pending, partitions=left.partitions)
        yield from settled(view, writes=((slot("tc_tid_metadata", b, tid), left),
                                         (slot("tc_tid_transition", b, tid), waits)))
        return
    done = completion.complete(tid, known)
    assert isinstance(done, Entry), done
    then = attrs.evolve(KnownTransaction.made(done.transition), next_producer_id=NONE)
    at = DecidedOn("completion", known, known)
    yield from drafted(k, view, b, tid, at, DecidedEntry(None, then, None, left, then.state), failed_fence=False)


def is_awaited(k: CoordinatorNames, view: View, b: str, event: MarkersTaken, known: KnownTransaction) -> bool:
    """Say whether a coordinator still waits for the answer to these markers."""
    tid = event.transactional_id
    epochs = known.pepoch, view.at("tc_log_metadata", b, k.home[tid]).leader_epoch
    if epochs != (event.producer_epoch, event.coordinator_epoch):
        return False
    return known.state in PREPARED and view.at("append", b, tid) is None
