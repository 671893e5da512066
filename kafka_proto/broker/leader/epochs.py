"""Leader epochs of a replica's log: where each begins, what is of another one, where a reader's log diverges.

`LeaderEpochFileCache`, `Partition.checkCurrentLeaderEpoch` and `readRecords` of Kafka's broker (KIP-101, KIP-320,
KIP-595).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from harness.model import Local
from kafka_proto.broker.parts import RECORDS, REPLICA, known
from kafka_proto.broker.roles import batch_at, batch_of, kept
from kafka_proto.errors import Error
from kafka_proto.log import EMPTY_LOG, PartitionLog, read_on, with_high_watermark
from kafka_proto.log.chunks import EpochStart, gone
from kafka_proto.replication.records import ReplicaEntry
from kafka_proto.requests import EpochEndOffset


@attrs.frozen
class EpochCache:
    """The leader epochs of a log, the oldest first, each with the offset of its first record; and the end of the log.

    A leader's own epoch begins at the end of its log when it is elected, before it has a record.
    """

    starts: tuple[tuple[int, int], ...]
    log_end_offset: int

    @property
    def latest(self) -> int:
        """Return the newest epoch, -1 if there is none."""
        return self.starts[-1][0] if self.starts else -1

    def end_offset_for(self, epoch: int) -> EpochEndOffset:
        """Return the largest epoch up to this one and where it ends; nothing for an epoch that is not known yet."""
        if not 0 <= epoch <= self.latest:
            return EpochEndOffset()
        place = bisect_right(self.starts, epoch, key=lambda start: start[0])
        if place == len(self.starts):
            return EpochEndOffset(epoch, self.log_end_offset)
        return EpochEndOffset(self.starts[max(place - 1, 0)][0] if place else epoch, self.starts[place][1])

    def at(self, offset: int) -> int:
        """Return the epoch of the record at an offset, -1 if no epoch begins before it."""
        place = bisect_right(self.starts, offset, key=lambda start: start[1])
        return self.starts[place - 1][0] if place else -1


def epochs_of(local: Local, p: str, name: str, log: PartitionLog) -> EpochCache:
    """Return the leader epochs of a broker's replica of a partition, if it has one; `log` is derived from it."""
    if REPLICA[p] not in local and RECORDS[p] not in local:
        return EpochCache((), 0)
    if REPLICA[p] not in local:
        held = local[RECORDS[p]]
        known = held.epoch_starts or ((held.leader_epoch, 0),)
        begun = max(bisect_right(known, gone(held.committed), key=lambda start: start[1]) - 1, 0)
        return EpochCache(tuple(
            (epoch, log.log_end_offset if place >= len(held.committed) else _base_offset(
                held.committed[place], place, log)) for epoch, place in known[begun:]), log.log_end_offset)
    state = local[REPLICA[p]]
    starts = tuple(_starts(state.log, log))
    if state.leader == name and (not starts or starts[-1][0] < state.leader_epoch):
        starts = (*starts, (state.leader_epoch, log.log_end_offset))
    return EpochCache(starts, log.log_end_offset)


def _starts(entries: Sequence[ReplicaEntry], log: PartitionLog) -> Iterator[tuple[int, int]]:
    place = min(gone(entries), len(entries) - 1)
    while 0 <= place < len(entries):
        yield entries[place].epoch, _base_offset(entries[place].value, place, log)
        place = bisect_right(entries, entries[place].epoch, lo=place, key=lambda entry: entry.epoch)


def _base_offset(value: Any, place: int, log: PartitionLog) -> int:
    """Return where the batch at a place begins; what is gone has no offset below the start of the log."""
    if value is None:
        return log.log_start_offset
    begins = value if isinstance(value, EpochStart) else batch_at(value, place)
    return max(begins.base_offset, log.log_start_offset)


def check_epoch(local: Local, p: str, current: int | None) -> Error:
    """Refuse a request of an older leader epoch, or of one that this broker does not know yet (KIP-320)."""
    here = known(local, p).leader_epoch
    if current is None or current < 0 or current == here:
        return Error.NONE
    return Error.FENCED_LEADER_EPOCH if current < here else Error.UNKNOWN_LEADER_EPOCH


def followed_log(local: Local, p: str) -> PartitionLog | None:
    """Return the log of a replica that follows, as readers see it; None where the broker has none (KIP-392)."""
    return held_log(local, p) if REPLICA[p] in local else None


def held_log(local: Local, p: str) -> PartitionLog:
    """Return the log of a partition as readers of a broker see it, whether it leads or follows."""
    if REPLICA[p] in local:
        entries, committed = local[REPLICA[p]].log, local[REPLICA[p]].high_watermark
        found, start = kept(entries, lambda entry: batch_of(entry.value))
        last = batch_of(entries[committed - 1].value) if committed else None
    else:
        entries = local[RECORDS[p]].committed if RECORDS[p] in local else ()
        committed = len(entries)
        found, start = kept(entries, batch_of)
        last = batch_of(entries[-1]) if committed else None
    log = read_on(start or EMPTY_LOG, (batch_at(*each) for each in found))
    return log if last is None else with_high_watermark(log, batch_at(last, committed - 1).last_offset + 1)


def diverges(epochs: EpochCache, fetch_offset: int, last_fetched_epoch: int) -> EpochEndOffset | None:
    """Return where a log leaves that of a reader, if it does. Its epoch is -1 if this log has no epoch so old."""
    end = epochs.end_offset_for(last_fetched_epoch)
    if end.leader_epoch < 0 or end.leader_epoch < last_fetched_epoch or end.end_offset < fetch_offset:
        return end
    return None
