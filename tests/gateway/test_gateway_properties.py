"""Each property behind the wire fails on a bad history, with who and where, and holds in its repaired twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.brokers.leader import replicated

from harness.model import FrozenMap
from kafka_proto.broker.coordinator.transaction import TransactionMetadata, TxnState
from kafka_proto.broker.ghosts import Cause, SentRecords
from kafka_proto.broker.group.coordinator import OffsetRecord, Offsets, load
from kafka_proto.cluster import served_replicas
from kafka_proto.errors import BY_NAME
from kafka_proto.gateway import offer
from kafka_proto.gateway.answers import answered
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.observed import AcknowledgedBatch, Heard, Observed, logged, without
from kafka_proto.gateway.properties import NAMES, Brokers, problems
from kafka_proto.gateway.records import WireRecord, write_batch
from kafka_proto.log import EMPTY_LOG, Marker, PartitionLog, RecordBatch, append, marker_batch, with_high_watermark
from kafka_proto.log.chunks import chunks
from kafka_proto.requests import OFFSETS_PARTITION

COMMIT, ABORT = Marker.COMMIT, Marker.ABORT
History = tuple[Observed, Brokers]


SENT = write_batch([WireRecord(None, b"a")], producer_id=7, producer_epoch=0, is_transactional=True)


def data(transaction: str, sequence: int = 0, epoch: int = 0) -> RecordBatch:
    return RecordBatch((SentRecords(SENT, transaction),), 7, epoch, sequence, is_transactional=True)


def marker(kind: Marker, cause: str, epoch: int = 0, coordinator_epoch: int = 0) -> RecordBatch:
    return attrs.evolve(marker_batch(7, epoch, kind, coordinator_epoch), records=(Cause(kind, cause),))


def history(
    logs: Mapping[str, PartitionLog], *,
    acknowledged: tuple[AcknowledgedBatch, ...] = (), heard: tuple[Heard, ...] = (),
    entry: TransactionMetadata | None = None, waiting: tuple[str, ...] = (), live: Offsets | None = None,
) -> History:
    """Return what was observed of some logs, and the brokers that have them."""
    seen = Observed(acknowledged=chunks(acknowledged), heard=chunks(heard))
    for name, made in logs.items():
        seen = logged(seen, name, made)
    entries = FrozenMap[str, TransactionMetadata]({} if entry is None else {"app": entry})
    return seen, Brokers(FrozenMap(logs), entries, frozenset(waiting), live or Offsets())


def entry(state: TxnState, epoch: int = 0) -> TransactionMetadata:
    return TransactionMetadata(7, state, epoch, partitions=("t-0",))


def fenced(epoch: int, claimed: int = 0) -> History:
    """Return a history in which a producer of an epoch is fenced, with the epoch that its coordinator has."""
    message = {"transactional_id": "app", "producer_id": 7, "producer_epoch": claimed, "committed": True}
    known = entry(TxnState.ONGOING, epoch)
    seen = answered(Observed(), WireRequest(0, offer.END_TXN, 1, 1, None, message), "app#1",
                    {"error_code": BY_NAME["PRODUCER_FENCED"].number}, {"app": known}.get)
    return seen, Brokers(entries=FrozenMap({"app": known}))


def fetched(made: PartitionLog, stable: int, *aborted: int) -> History:
    """Return a history in which a reader of committed records is sent a log's first batch."""
    seen = logged(Observed(), "t-0", made)
    partition = {
        "partition_index": 0, "last_stable_offset": stable,
        "records": SENT,
        "aborted_transactions": [{"producer_id": 7, "first_offset": first} for first in aborted],
    }
    seen = answered(seen, WireRequest(0, offer.FETCH, 12, 1, None, {"isolation_level": 1}), "",
                    {"responses": [{"topic": "t", "partitions": [partition]}]}, {}.get)
    known = entry(TxnState.ONGOING)
    return seen, Brokers(FrozenMap({"t-0": made}), FrozenMap({"app": known}))


def committed(*offsets: int) -> PartitionLog:
    """Return the log of offsets that a group commits without transactions."""
    return replicated(*(RecordBatch((OffsetRecord("g", "t-0", offset),)) for offset in offsets))


ENDED = replicated(data("app#1"), marker(COMMIT, "app#1"))
ABORTED = replicated(data("app#1"), marker(ABORT, "app#1"))
BOTH = (AcknowledgedBatch("t-0", 0, "app#1"), AcknowledgedBatch("t-1", 0, "app#1"))
CASES: Mapping[str, tuple[History, History, str]] = {
    "MarkerAttribution": (
        history({"t-0": replicated(data("app#2"), marker(COMMIT, "app#1"))}),
        history({"t-0": replicated(data("app#2"), marker(COMMIT, "app#2"))}),
        "the COMMIT of t-0 at offset 1 was caused by app#1, but ends offset 0 of app#2",
    ),
    "Atomicity": (
        history({"t-0": ENDED, "t-1": ABORTED}, acknowledged=BOTH),
        history({"t-0": ENDED, "t-1": ENDED}, acknowledged=BOTH),
        "of app#1, offset 0 of t-0 is committed at offset 1, but offset 0 of t-1 is aborted at offset 1",
    ),
    "AcknowledgedOutcome": (
        history({"t-0": ENDED}, heard=(Heard("app#1", committed=False),)),
        history({"t-0": ABORTED}, heard=(Heard("app#1", committed=False),)),
        "the producer was told that app#1 is aborted, but offset 0 of t-0 is committed at offset 1",
    ),
    "NoIntermediateRead": (
        fetched(replicated(data("app#1")), 1), fetched(ENDED, 2),
        "a reader of committed records got offset 0 of t-0, but no commit of app#1 was decided",
    ),
    "NoHangingTransaction": (
        history({"t-0": replicated(data("app#1"))}, entry=entry(TxnState.COMPLETE_ABORT)),
        history({"t-0": replicated(data("app#1"))}, entry=entry(TxnState.ONGOING)),
        "offset 0 of t-0 is in a transaction of producer id 7, epoch 0, that is open there, but no coordinator has it "
        "under way",
    ),
    "AcknowledgedOnce": (
        history({"t-0": replicated(data("app#1"), data("app#1"), marker(COMMIT, "app#1"))}),
        history({"t-0": replicated(data("app#1"), data("app#1", 1), marker(COMMIT, "app#1"))}),
        "the batch with sequence 0 of producer id 7, epoch 0, is in t-0 twice, at the offsets 0 and 1",
    ),
    "FencedForAReason": (
        fenced(0), fenced(1), "app failed by PRODUCER_FENCED with producer id 7, epoch 0, but nobody has fenced it",
    ),
    "PreparedIsCompleted": (
        history({}, entry=entry(TxnState.PREPARE_ABORT)), history({}, entry=entry(TxnState.COMPLETE_ABORT)),
        "app stays in PrepareAbort with producer id 7, epoch 0: no marker is acknowledged of t-0",
    ),
    "ReadBound": (
        fetched(ABORTED, 2), fetched(ABORTED, 2, 0),
        "a reader of committed records of t-0 is sent offset 0 of t-0 without being told that it is aborted",
    ),
    "OffsetsOfTheLog": (
        history({OFFSETS_PARTITION: committed(5, 6)}, live=load(committed(5).batches)),
        history({OFFSETS_PARTITION: committed(5, 6)}, live=load(committed(5, 6).batches)),
        "the offset of g in t-0 is 5, the last committed one is 6",
    ),
    "ProducerStateGrows": (
        history({"t-0": replicated(data("app#1", epoch=1), marker(ABORT, "app#1"))}),
        history({"t-0": replicated(data("app#1"), marker(ABORT, "app#1", epoch=1))}),
        "t-0 has epoch 0 of producer id 7 at offset 1, after epoch 1",
    ),
}
MORE: list[tuple[str, History, str]] = [
    ("AcknowledgedOutcome", history({"t-0": ABORTED}, acknowledged=BOTH, heard=(Heard("app#1", committed=True),)),
     "the producer was told that app#1 is committed, but offset 0 of t-0 is aborted at offset 1"),
    ("AcknowledgedOnce", history({"t-0": EMPTY_LOG}, acknowledged=BOTH),
     "offset 0 was acknowledged, but is not in t-0"),
    ("ReadBound", fetched(ENDED, 0),
     "a reader of committed records of t-0 is sent records up to offset 0, the last stable offset is 0"),
    ("OffsetsOfTheLog", history({OFFSETS_PARTITION: committed(5)}),
     "an offset of g in t-0 is committed, but nobody knows it"),
    ("ProducerStateGrows", history({"t-0": replicated(
        marker(ABORT, "app#1", coordinator_epoch=2), marker(ABORT, "app#1", coordinator_epoch=1))}),
     "t-0 has the marker of an older coordinator at offset 1"),
]


@pytest.mark.parametrize(("name", "bad", "repaired", "said"), [
    *((name, *case) for name, case in CASES.items()), *((name, bad, None, said) for name, bad, said in MORE)])
def test_property_fails_on_a_bad_history_and_holds_in_its_repaired_twin(
    name: str, bad: History, repaired: History | None, said: str
) -> None:
    """For each of its reasons, and says who, what and where; the twin violates nothing else either."""
    assert problems(*bad)[name] == said
    assert repaired is None or problems(*repaired) == {}


def test_every_property_has_its_bad_history() -> None:
    """None is left out: `test_applications` and `test_gateway_replicas` have the others."""
    assert {*CASES, "ExactlyOnce", "StableReads", *served_replicas.NAMES} == set(NAMES)


@pytest.mark.parametrize(("state", "epoch", "hangs"), [
    (TxnState.ONGOING, 0, False), (TxnState.ONGOING, 1, True),
    (TxnState.PREPARE_ABORT, 0, False), (TxnState.PREPARE_ABORT, 1, False), (TxnState.PREPARE_ABORT, -1, True),
])
def test_a_transaction_that_is_being_ended_may_have_a_newer_epoch(state: TxnState, epoch: int, hangs: bool) -> None:
    """A time-out raises it before the markers; an older one is that of another transaction."""
    found = problems(*history({"t-0": replicated(data("app#1"))}, entry=entry(state, epoch), waiting=("app",)))
    assert list(found) == ["NoHangingTransaction"] * hangs


def test_who_claims_an_epoch_that_nobody_was_given_is_fenced_for_a_reason() -> None:
    """Its coordinator has an older one."""
    assert problems(*fenced(0, claimed=5)) == {}


def test_markers_that_no_transaction_caused_are_an_operators() -> None:
    """It may end what hangs."""
    assert problems(*history({"t-0": replicated(data("app#1"), marker(ABORT, ""))})) == {}


def test_what_a_deleted_topic_had_is_forgotten() -> None:
    """Another one of its name begins anew."""
    seen, brokers = CASES["Atomicity"][0]
    assert problems(without(seen, {"t-1"}), attrs.evolve(brokers, logs=brokers.logs.without("t-1"))) == {}


@pytest.mark.parametrize(("others", "wrong"), [
    ((), None), ((AcknowledgedBatch("t-0", 0, "app#1", (7, 0, 0)),), None),
    ((AcknowledgedBatch("t-0", 0, "app#1", (7, 0, 5)),), "the batch with sequence 5 of producer id 7, epoch 0, was"),
    ((AcknowledgedBatch("t-0", 1, "app#1", (8, 0, 0)),), "the batch with sequence 0 of producer id 8, epoch 0, was"),
])
def test_another_batch_in_the_place_of_an_acknowledged_one_is_a_loss(
    others: tuple[AcknowledgedBatch, ...], wrong: str | None
) -> None:
    """Each one is looked up by its number: also one of two that were told the same offset."""
    made = replicated(data("app#1"), marker(COMMIT, "app#1"))
    mine = AcknowledgedBatch("t-0", 0, "app#1", (7, 0, 0))
    found = problems(*history({"t-0": made}, acknowledged=(mine, *others)))
    assert list(found) == ([] if wrong is None else ["AcknowledgedOnce"])
    assert wrong is None or found["AcknowledgedOnce"].startswith(wrong)
    deleted: Any = attrs.evolve(made, batches=chunks(()), log_start_offset=2)
    seen, brokers = history({"t-0": made}, acknowledged=(mine, *others))
    assert problems(seen, attrs.evolve(brokers, logs=FrozenMap({"t-0": deleted}))) == {}


@pytest.mark.parametrize(("shift", "lost"), [
    (0, None), (7, "the batch with sequence 1 of producer id 7, epoch 0, was acknowledged at offset 1")])
def test_an_earlier_acknowledged_batch_is_looked_up_again_when_the_log_changes(shift: int, lost: str | None) -> None:
    """A new leader has the last acknowledged batch, and another one in the place of an earlier one, or the same one."""
    batches = [data("app#1", sequence) for sequence in range(3)]
    acknowledged = tuple(AcknowledgedBatch("t-0", each, "app#1", (7, 0, each)) for each in range(3))
    before = history({"t-0": replicated(*batches)}, acknowledged=acknowledged, entry=entry(TxnState.ONGOING))
    assert problems(*before) == {}
    other = attrs.evolve(batches[1], base_sequence=1 + shift)
    changed = replicated(batches[0], other, batches[2], data("app#1", 3))
    later = attrs.evolve(before[0], acknowledged=before[0].acknowledged.add(AcknowledgedBatch("t-0", 3, "", (7, 0, 3))))
    found = problems(later, attrs.evolve(before[1], logs=FrozenMap({"t-0": changed})))
    assert found == ({} if lost is None else {"AcknowledgedOnce": f"{lost}, but is not in t-0"})
    assert problems(*before) == {}


def test_a_transaction_whose_first_batches_were_deleted_is_open_still() -> None:
    """Its producer's epoch says whose it is."""
    whole = replicated(data("app#1"))
    seen, brokers = history({"t-0": whole}, entry=entry(TxnState.ONGOING))
    deleted: Any = attrs.evolve(whole, batches=chunks(()), log_start_offset=1)
    assert problems(seen, attrs.evolve(brokers, logs=FrozenMap({"t-0": deleted}))) == {}
    gone = attrs.evolve(brokers, logs=FrozenMap({"t-0": deleted}), entries=FrozenMap())
    assert list(problems(seen, gone)) == ["NoHangingTransaction"]


@given(st.lists(st.tuples(
    st.sampled_from(["t-0", "t-1"]), st.sampled_from([None, COMMIT, ABORT, "acked", "heard", "cut"]),
    st.integers(1, 2), st.integers(0, 2)), max_size=30))
def test_a_session_that_goes_on_is_judged_as_each_of_its_states_alone(steps: list[tuple[str, Any, int, int]]) -> None:
    """Checks remember what they saw of what has only grown since: the other way round they have to begin anew."""
    logs = {"t-0": EMPTY_LOG, "t-1": EMPTY_LOG}
    seen, states = Observed(), []
    for name, what, number, epoch in steps:
        log, transaction = logs[name], f"app#{number}"
        if what == "acked":
            last = AcknowledgedBatch(name, max(0, log.log_end_offset - number), transaction, (7, 0, number))
            seen = attrs.evolve(seen, acknowledged=seen.acknowledged.add(last))
        elif what == "heard":
            seen = attrs.evolve(seen, heard=seen.heard.add(Heard(transaction, epoch > 0)))
        elif what == "cut":
            logs[name] = replicated(*(attrs.evolve(batch, base_offset=-1) for batch in [*log.batches][:-number]))
        else:
            batch = data(transaction, number, epoch) if what is None else marker(what, transaction, epoch)
            log = append(log, batch)
            logs[name] = with_high_watermark(log, log.log_end_offset)
            seen = logged(seen, name, logs[name])
        states.append((seen, Brokers(FrozenMap(logs))))
    forward = [problems(*state) for state in states]
    assert forward == [problems(*state) for state in reversed(states)][::-1]
