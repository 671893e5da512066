"""The log of a broker that leads its partitions for good: a record is committed at once, or in a turn of its own.

For models whose subject is not replication: no controller, no copies, one disk that a crash leaves as it is. A broker
that is started again leads what it led, in the next epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import attrs

from harness.model import FrozenMap, Local, Turn, Value
from kafka_proto.broker.parts import METADATA, RECORDS, LeaderAndEpoch, Records
from kafka_proto.broker.roles import Append, Await, Effect, Log, Role, batch_at, begun, compacted
from kafka_proto.log import PartitionLog, RecordBatch
from kafka_proto.log.chunks import Chunks, EpochStart, longer
from kafka_proto.log.cleaning import Compaction


class LocalLog(Log):
    """The logs of one broker; `leaders` are those of all partitions, `later` the partitions that commit in a turn."""

    def __init__(
        self, name: str, roles: Iterable[Role], leaders: Mapping[str, str], later: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(name, roles)
        self.leaders = leaders
        self.later = later
        self.led = tuple(p for p, leader in leaders.items() if leader == name)
        self.named = self.led
        self.parts = tuple(RECORDS[p] for p in self.led)
        self.moving = tuple(p for p in self.led if p in later or not self.roles[p].loads_at_once)
        """The partitions that may do something of their own accord."""

    def known(self, local: Local) -> FrozenMap[str, LeaderAndEpoch]:
        """Return leaders and epochs, as far as this broker knows: it hears nothing of others' starts."""
        return FrozenMap({
            p: LeaderAndEpoch(local[RECORDS[p]].leader_epoch if leader == self.name else 1, leader)
            for p, leader in self.leaders.items()
        })

    def restarted(self, local: Local) -> Local:
        for p in self.led:
            local = local.put(RECORDS[p], in_next_epoch(local[RECORDS[p]]))
        local = local.put(METADATA, attrs.evolve(local[METADATA], known=self.known(local)))
        for p in self.led:
            if self.roles[p].loads_at_once:
                items = local[RECORDS[p]].committed
                local = self.loaded(local, p, items, len(items))
        return local

    def elected(self, local: Local, p: str) -> Local:
        """Return the state in which a broker leads a partition in a new epoch: its role begins anew from the log."""
        log, metadata = in_next_epoch(local[RECORDS[p]]), local[METADATA]
        learned = metadata.known.set(p, LeaderAndEpoch(log.leader_epoch, self.name))
        local = self.roles[p].resigned(local, p).put(RECORDS[p], log)
        local = local.put(METADATA, attrs.evolve(metadata, known=learned))
        return self.loaded(local, p, log.committed, len(log.committed)) if self.roles[p].loads_at_once else local

    def step(self, local: Local, among: Collection[str] | None = None) -> Iterable[Turn[Local]]:
        """Load a log after a start, and commit the oldest record that is under way."""
        for p in self.moving:
            role, log = self.roles[p], local[RECORDS[p]]
            if not role.serves(local, p):
                after = self.read(local, p, log.committed)
                yield Turn("LoadTxnLog", (self.name, p), after, flush=(METADATA, RECORDS[p]))
            if log.under_way:
                record, callback = log.under_way[0]
                rest = attrs.evolve(log, under_way=log.under_way[1:])
                done = self.committed(local.put(RECORDS[p], rest), p, record, callback)
                yield Turn("CommitLogEntry", (self.name, p), done.local, done.sent, flush=True)

    def append(self, local: Local, wanted: Append) -> Effect:
        p = wanted.partition
        local = self.roles[p].appended(local, p, wanted.record)
        if p not in self.later:
            return Effect(local, flush=True).then(self.committed(local, p, wanted.record, wanted.callback))
        log = local[RECORDS[p]]
        waits = attrs.evolve(log, under_way=(*log.under_way, (wanted.record, wanted.callback)))
        return Effect(local.put(RECORDS[p], waits), flush=True)

    def committed(self, local: Local, p: str, record: Value, callback: Value) -> Effect:
        """Commit a record, and run its callback."""
        log = local[RECORDS[p]]
        local = local.put(RECORDS[p], attrs.evolve(log, committed=longer(log.committed, record)))
        return self.completed(self.roles[p].committed(local, p, record), p, record, callback)

    def wait(self, local: Local, wanted: Await) -> Effect:
        items = local[RECORDS[wanted.partition]].committed
        return self.completed(local, wanted.partition, items[self.place(items, wanted.offset)], wanted.callback)

    def begun(self, local: Local, p: str, log: PartitionLog) -> Effect:
        held = local[RECORDS[p]]
        shorter = begun(held.committed, log, self.value, lambda record: None)
        return Effect(local.put(RECORDS[p], attrs.evolve(held, committed=shorter)), flush=True)

    def completed(self, local: Local, p: str, record: Value, callback: Value) -> Effect:
        """Run the callback of a committed record."""
        return self.carried_out(self.roles[p].completed(local, p, record, callback))

    def compacted(self, local: Local, p: str, done: Compaction) -> Local:
        held = local[RECORDS[p]]
        assert isinstance(held.committed, Chunks)
        starts = (place for _, place in held.epoch_starts or () if place < len(held.committed))
        firsts = {batch_at(batch, place).base_offset for place in starts
                  if (batch := self.value(held.committed[place])) is not None}

        def other(record: Any, before: RecordBatch, batch: RecordBatch | None) -> Any:
            is_first = batch is None and before.base_offset in firsts
            return EpochStart(before.base_offset) if is_first else batch

        kept = compacted(held.committed, done, self.value, other)
        return self.roles[p].compacted(local.put(RECORDS[p], attrs.evolve(held, committed=kept)), p, done.log)


def in_next_epoch(log: Records) -> Records:
    """Return a log whose leader leads it in the next epoch; an epoch without records is forgotten then."""
    epoch, place, starts = log.leader_epoch + 1, len(log.committed), log.epoch_starts
    if starts is not None:
        starts = (*(start for start in starts if start[1] < place), (epoch, place))
    return attrs.evolve(log, leader_epoch=epoch, epoch_starts=starts)
