"""P1 to P11 on what happened behind the wire; each answers with who and where, or nothing.

Brokers are at rest between inputs, so all of them are invariants. P4, P7 and P9 are about answers: `answers` notes
what they violate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from harness.model import FrozenMap, Property, Reason, View, always
from kafka_proto.broker.coordinator.transaction import PREPARED, TransactionMetadata, TxnState
from kafka_proto.broker.group.offsets import Committed, Key, load
from kafka_proto.gateway.observed import Closed, Observed
from kafka_proto.log import PartitionLog
from kafka_proto.requests import OFFSETS_PARTITION


@attrs.frozen
class Brokers:
    """What properties are about besides what was observed."""

    logs: FrozenMap[str, PartitionLog] = FrozenMap()
    """Of each partition that is served, as its leader has it."""
    entries: FrozenMap[str, TransactionMetadata] = FrozenMap()
    """What coordinators have of each transactional id."""
    waiting: frozenset[str] = frozenset()
    """Transactional ids whose markers are on their way."""
    offsets: FrozenMap[Key, Committed] = FrozenMap()
    """What the coordinator of groups has committed."""


Check = Callable[[Observed, Brokers], Reason]


def _ended(seen: Observed) -> Iterator[tuple[str, Closed]]:
    for name, ledger in seen.ledgers.items():
        for ended in ledger.ended:
            yield name, ended


def _end(ended: Closed) -> str:
    return "commit" if ended.committed else "abort"


def marker_attribution(seen: Observed, brokers: Brokers) -> Reason:
    """P1: a marker closes only what is of the transaction whose end, or time-out, caused it."""
    for name, ended in _ended(seen):
        for noted in ended.batches:
            if ended.cause and noted.transaction != ended.cause:
                return (f"the {_end(ended)} marker of {name} at offset {ended.marker_at} was caused by {ended.cause}, "
                        f"but ends offset {noted.offset} of {noted.transaction}")
    return None


def atomicity(seen: Observed, brokers: Brokers) -> Reason:
    """P2: of a transaction's acknowledged batches all are committed or none."""
    acknowledged = {(each.partition, each.offset) for each in seen.acknowledged}
    ends: dict[str, dict[str, str]] = {}
    for name, ended in _ended(seen):
        for noted in ended.batches:
            if (name, noted.offset) in acknowledged:
                ends.setdefault(noted.transaction, {})[_end(ended)] = f"offset {noted.offset} of {name}"
    for transaction, found in sorted(ends.items()):
        if len(found) > 1:
            return f"of {transaction}, {found['commit']} is committed, but {found['abort']} is aborted"
    return None


def outcome(seen: Observed, brokers: Brokers) -> Reason:
    """P3: what a client heard is committed is not aborted, and what it heard is aborted is never committed."""
    heard = {each.transaction: each.committed for each in seen.heard}
    acknowledged = {(each.partition, each.offset) for each in seen.acknowledged}
    for name, ended in _ended(seen):
        for noted in ended.batches:
            if heard.get(noted.transaction, ended.committed) == ended.committed:
                continue
            if ended.committed:
                return (f"{noted.transaction} was aborted, and its producer heard so, but offset {noted.offset} of "
                        f"{name} is committed")
            if (name, noted.offset) in acknowledged:
                return (f"{noted.transaction} was committed, and its producer heard so, but offset {noted.offset} of "
                        f"{name} is aborted")
    return None


def hanging(seen: Observed, brokers: Brokers) -> Reason:
    """P5: a transaction that is open in a partition is under way at its coordinator, which lists the partition."""
    entries = brokers.entries.values()
    for name, log in brokers.logs.items():
        for open_ in log.open:
            epoch = log.producer(open_.producer_id).producer_epoch
            if not any(entry.producer_id == open_.producer_id and name in entry.partitions and (
                    entry.producer_epoch == epoch if entry.state is TxnState.ONGOING else entry.state in PREPARED)
                    for entry in entries):
                return (f"a transaction of producer id {open_.producer_id}, epoch {epoch}, is open in {name} from "
                        f"offset {open_.first_offset} on, but no coordinator has it under way")
    return None


def once(seen: Observed, brokers: Brokers) -> Reason:
    """P6: what an idempotent producer wrote is in its partition once, and what was acknowledged is there."""
    for name, log in brokers.logs.items():
        at: dict[tuple[int, int, int], int] = {}
        for batch in log.batches:
            key = batch.producer_id, batch.producer_epoch, batch.base_sequence
            if batch.marker is not None or batch.producer_id < 0 or batch.base_sequence < 0:
                continue
            if key in at:
                return (f"the batch with sequence {batch.base_sequence} of producer id {batch.producer_id}, epoch "
                        f"{batch.producer_epoch}, is in {name} twice, at the offsets {at[key]} and {batch.base_offset}")
            at[key] = batch.base_offset
    for heard in seen.acknowledged:
        if heard.partition in brokers.logs and heard.offset >= brokers.logs[heard.partition].log_end_offset:
            return f"offset {heard.offset} of {heard.partition} was acknowledged, but is not there"
    return None


def completed(seen: Observed, brokers: Brokers) -> Reason:
    """P8 at rest: what is prepared is completed, unless markers of its own are held."""
    for tid, entry in brokers.entries.items():
        if entry.state in PREPARED and tid not in brokers.waiting:
            return f"{tid} stays in {entry.state}"
    return None


def offsets(seen: Observed, brokers: Brokers) -> Reason:
    """P10: the offsets of groups are those that their log gives when it is read again."""
    if OFFSETS_PARTITION not in brokers.logs:
        return None
    again = load(brokers.logs[OFFSETS_PARTITION].batches)
    for key, known in brokers.offsets.items():
        if again.committed.get(key) != known:
            return f"group {key[0]} has offset {known.offset} of {key[1]}, but its log says another one"
    return None


def grows(seen: Observed, brokers: Brokers) -> Reason:
    """P11: what a partition knows of a producer's epoch, and of its coordinator's, never becomes older."""
    return next((why for name, log in brokers.logs.items() if (why := _older(name, log))), None)


def _older(name: str, log: PartitionLog) -> Reason:
    epochs: dict[int, int] = {}
    coordinators: dict[int, int] = {}
    for batch in log.batches:
        producer_id = batch.producer_id
        if producer_id < 0:
            continue
        if batch.producer_epoch < epochs.get(producer_id, -1):
            return (f"{name} has epoch {batch.producer_epoch} of producer id {producer_id} at offset "
                    f"{batch.base_offset}, after epoch {epochs[producer_id]}")
        epochs[producer_id] = batch.producer_epoch
        if batch.marker is not None:
            if batch.coordinator_epoch < coordinators.get(producer_id, -1):
                return f"{name} has the marker of an older coordinator at offset {batch.base_offset}"
            coordinators[producer_id] = batch.coordinator_epoch
    return None


CHECKS: Mapping[str, tuple[str, Check]] = {
    "MarkerAttribution": ("P1", marker_attribution), "Atomicity": ("P2", atomicity),
    "AcknowledgedOutcome": ("P3", outcome), "NoHangingTransaction": ("P5", hanging), "AcknowledgedOnce": ("P6", once),
    "PreparedIsCompleted": ("P8", completed), "OffsetsOfTheLog": ("P10", offsets),
    "ProducerStateGrows": ("P11", grows),
}
OF_ANSWERS = {"NoIntermediateRead": "P4", "FencedForAReason": "P7", "ReadBound": "P9"}
"""Properties that an answer violates, and that stay violated then."""
NAMES = tuple(sorted((*CHECKS, *OF_ANSWERS)))


def problems(seen: Observed, brokers: Brokers) -> dict[str, str]:
    """Return the properties that fail, with reasons, P1 first."""
    found = {number: (name, why) for name, (number, check) in CHECKS.items()
             if (why := check(seen, brokers)) is not None}
    found |= {OF_ANSWERS[name]: (name, why) for name, why in seen.broken.items()}
    return dict(found[number] for number in sorted(found, key=lambda number: int(number[1:])))


def properties(look: Callable[[View], tuple[Observed, Brokers]]) -> tuple[Property, ...]:
    """Return them as properties of a state that is looked at so."""

    def of_state(check: Check) -> Callable[[View], Reason]:
        return lambda view: check(*look(view))

    def of_answers(name: str) -> Callable[[View], Reason]:
        return lambda view: look(view)[0].broken.get(name)

    return (
        *(always(name, of_state(check), source=f"ours: {number}") for name, (number, check) in CHECKS.items()),
        *(always(name, of_answers(name), source=f"ours: {number}") for name, number in OF_ANSWERS.items()),
    )
