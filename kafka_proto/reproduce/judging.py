"""What the logs of a broker say about transactions, knowing only the application's calls.

Pure: the batches of each partition, and the calls, which are all that a stranger can see. A record's text names its
transaction, as `c1.2#1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from kafka_proto.broker.ghosts import spans_of
from kafka_proto.cluster import guarantees
from kafka_proto.log import RecordBatch
from kafka_proto.reproduce.schedule import ScheduledCall

JUDGED = ("MarkerAttribution", "AcknowledgedOutcome", "Atomicity", "NoHangingTransaction")
"""P1, P3, P2 and P5, as far as they can be seen from outside."""


@attrs.frozen
class ObservedLog:
    """A partition's batches as a reader of all records gets them, and its ends."""

    batches: tuple[RecordBatch, ...]
    """The cause of a marker is not known."""
    high_watermark: int
    last_stable_offset: int


@attrs.frozen
class ApplicationLedger:
    """What an application did and heard."""

    calls: tuple[ScheduledCall, ...]
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


def named(call: ScheduledCall) -> str:
    """Return the name of a call's transaction, which is in the texts of its records."""
    return f"{call.producer}.{call.transaction}"


def violations(logs: Mapping[str, ObservedLog], ledger: ApplicationLedger) -> dict[str, str]:
    """Return which properties are violated and why, the first reason of each. All that is in a log counts as written.
    """
    spans = {partition: spans_of(log.batches) for partition, log in sorted(logs.items())}
    ends = [(partition, span) for partition, there in spans.items() for span in there]
    is_over = not ledger.begun - ledger.ended
    found = dict(zip(JUDGED, (
        guarantees.first(guarantees.marker_attribution(partition, there, ledger.ended)
                         for partition, there in spans.items()),
        guarantees.acknowledged_outcome("the application", ends, ledger.answered, lambda *_: True),
        guarantees.atomicity(ends, lambda *_: True),
        guarantees.first(guarantees.nothing_stays_open(
            partition, log.last_stable_offset, log.high_watermark,
            (span for span in spans[partition] if span.marker is None))
                         for partition, log in sorted(logs.items()) if is_over),
    ), strict=True))
    return {name: why for name, why in found.items() if why is not None}


def shown(logs: Mapping[str, ObservedLog]) -> Iterator[str]:
    """Yield a line for each partition: its batches in order."""
    for partition, log in sorted(logs.items()):
        batches = ", ".join(f"{batch.base_offset} {' '.join(map(str, batch.records))}" for batch in log.batches)
        yield f"{partition}: {batches or 'nothing'} (stable up to {log.last_stable_offset} of {log.high_watermark})"
