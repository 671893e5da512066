"""What the logs of a broker say about transactions of which only the application's calls are known.

Pure: the batches of each partition, and the calls, which are all that a stranger can see. A record's text names its
transaction, as `c1.2#1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from kafka_proto.broker.ghosts import transaction_of
from kafka_proto.reproduce.schedule import Call

JUDGED = ("MarkerAttribution", "AcknowledgedOutcome", "Atomicity", "NoHangingTransaction")
"""P1, P3, P2 and P5, as far as they can be seen from outside."""


@attrs.frozen
class Batch:
    """A batch as a reader of all records gets it: what is written in it, or of which type its marker is."""

    offset: int
    producer_id: int
    is_control: bool
    texts: tuple[str, ...]


@attrs.frozen
class Log:
    """A partition's batches, and its ends."""

    batches: tuple[Batch, ...]
    high_watermark: int
    last_stable_offset: int


@attrs.frozen
class Ended:
    """Records of a transaction, and the marker that ends them in a partition."""

    transaction: str
    partition: str
    first: str
    offset: int
    marker: str


@attrs.frozen
class Ledger:
    """What an application did and heard."""

    calls: tuple[Call, ...]
    """Those that it made."""
    answered: Mapping[str, str]
    """The outcome of each transaction that it was told."""
    tids: Mapping[str, str]
    """The transactional id of each producer."""

    @property
    def begun(self) -> frozenset[str]:
        return frozenset(named(call) for call in self.calls if call.action == "BeginTransaction")

    @property
    def ended(self) -> frozenset[str]:
        """The transactions that it ended, or whose producer it replaced."""
        asked = {named(call) for call in self.calls if call.ends}
        inits = [call.producer for call in self.calls if call.action == "InitTransactions"]
        replaced = {old for n, old in enumerate(inits) for new in inits[n + 1 :]
                    if old != new and self.tids[old] == self.tids[new]}
        return frozenset(asked | {named(call) for call in self.calls if call.producer in replaced})


def named(call: Call) -> str:
    """Return the name of a call's transaction, which is in the texts of its records."""
    return f"{call.producer}.{call.transaction}"


def violations(logs: Mapping[str, Log], ledger: Ledger) -> dict[str, str]:
    """Return which properties are violated and why, the first reason of each."""
    found: dict[str, str] = {}
    for name, why in (*_marked(logs, ledger), *_split(logs), *_hanging(logs, ledger)):
        found.setdefault(name, why)
    return found


def _ended(logs: Mapping[str, Log]) -> Iterator[Ended]:
    """Yield what markers end, in the order of logs."""
    for partition, log in sorted(logs.items()):
        open_: dict[int, list[str]] = {}
        for batch in log.batches:
            if not batch.is_control:
                open_.setdefault(batch.producer_id, []).extend(batch.texts)
                continue
            ended: dict[str, str] = {}
            for text in open_.pop(batch.producer_id, []):
                ended.setdefault(transaction_of(text), text)
            for transaction, first in ended.items():
                yield Ended(transaction, partition, first, batch.offset, batch.texts[0])


def _marked(logs: Mapping[str, Log], ledger: Ledger) -> Iterator[tuple[str, str]]:
    for end in _ended(logs):
        marker = f"the {end.marker} of {end.partition} at offset {end.offset} ends {end.first}"
        if end.transaction not in ledger.ended:
            yield "MarkerAttribution", f"{marker}, of a transaction that the application has not ended"
        acknowledged = ledger.answered.get(end.transaction)
        if acknowledged not in (None, end.marker.lower()):
            yield "AcknowledgedOutcome", f"{marker}, of a transaction whose {acknowledged} was acknowledged"


def _split(logs: Mapping[str, Log]) -> Iterator[tuple[str, str]]:
    first: dict[str, Ended] = {}
    for end in _ended(logs):
        other = first.setdefault(end.transaction, end)
        if other.marker != end.marker:
            yield "Atomicity", (f"{other.first} is ended by the {other.marker} of {other.partition} at offset "
                                f"{other.offset}, {end.first} by the {end.marker} of {end.partition} at offset "
                                f"{end.offset}")


def _hanging(logs: Mapping[str, Log], ledger: Ledger) -> Iterator[tuple[str, str]]:
    if ledger.begun - ledger.ended:
        return  # what is under way may be open
    for partition, log in sorted(logs.items()):
        if log.last_stable_offset < log.high_watermark:
            yield "NoHangingTransaction", (f"{partition} is open from offset {log.last_stable_offset} on, and every "
                                           "transaction was ended")


def shown(logs: Mapping[str, Log]) -> Iterator[str]:
    """Yield a line for each partition: its batches in order."""
    for partition, log in sorted(logs.items()):
        batches = ", ".join(f"{batch.offset} {' '.join(batch.texts)}" for batch in log.batches)
        yield f"{partition}: {batches or 'nothing'} (stable up to {log.last_stable_offset} of {log.high_watermark})"
