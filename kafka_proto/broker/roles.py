"""What a broker is made of: roles, each pure functions of the broker's state with parts of their own, and a log.

The broker hands messages to its roles, asks what they do of their own accord, and carries outcomes out: it sends their
messages and appends their records to its log. A role to which a log partition belongs learns from the log what becomes
of it. See docs/inside/architecture.md, "A role of a broker".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from harness.model import Decided, Local, Message, Part, Turn, Value
from kafka_proto.broker.messages import Request, asker_of
from kafka_proto.errors import Error
from kafka_proto.log import PartitionLog, RecordBatch, beginning
from kafka_proto.log.chunks import Chunks, EpochStart, LogStart, chunks, gone, section
from kafka_proto.log.cleaning import Compaction

T = TypeVar("T")


@attrs.frozen
class Append:
    """A record for a log partition, and what its commit, or its failure, sets off."""

    partition: str
    record: Value
    callback: Value
    waits: bool = True
    """Whether the callback runs once the record is committed (`acks=all`), or at once."""
    timeout_ms: int | None = None
    """How long it waits, at a broker that has a clock."""


@attrs.frozen
class Await:
    """A batch that is in the log of a partition already, at an offset, and what its commit sets off once more."""

    partition: str
    offset: int
    callback: Value
    timeout_ms: int | None = None


@attrs.frozen
class Effect:
    """What follows at once from something: the broker's state afterwards, messages, and records for its log."""

    local: Local
    sent: tuple[Message, ...] = ()
    appends: tuple[Append, ...] = ()
    awaits: tuple[Await, ...] = ()
    flush: bool | tuple[Part[Any], ...] = False
    """Whether what changed must be durable before anything leaves, even if nothing is appended."""
    begins: tuple[tuple[str, Any], ...] = ()
    """Partitions whose logs begin later from now on, each with what is derived from its log."""

    def then(self, following: Effect) -> Effect:
        """Return two effects as one, which are to be carried out in order; `following` begins with this one's state."""
        return Effect(
            following.local, self.sent + following.sent, self.appends + following.appends,
            self.awaits + following.awaits, self.flush or following.flush, self.begins + following.begins,
        )


@attrs.frozen(kw_only=True)
class RoleStep(Effect, Decided):
    """An effect that is a step of its own."""

    action: str
    who: tuple[str, ...]


class Role:
    """A role of a broker; it may read every part of the state, and changes its own only.

    From `serves` on: what a role hears of log partitions that are its own.
    """

    name: str
    """Its broker's."""
    parts: tuple[Part[Any], ...]
    """What it keeps."""
    partitions: tuple[str, ...] = ()
    """The log partitions that are its own: no other role appends to them."""
    loads_at_once: bool = False
    """Whether it serves a partition with what is in its log when it is elected, committed or not.

    It hears then of what is committed already. Others serve once everything is.
    """

    def reply(self, local: Local, message: Request, response: Value) -> Effect:
        """Return the effect of answering a request, and nothing else."""
        return Effect(local, (asker_of(message).answered(self.name, response),))

    def outcome(self, effect: Effect, action: str, *about: str) -> RoleStep:
        """Return an effect as a step of the broker, all of it durable before anything leaves."""
        return RoleStep(
            effect.local, effect.sent, effect.appends, effect.awaits, flush=True, begins=effect.begins, action=action,
            who=(self.name, *about),
        )

    def started(self, local: Local) -> Local:
        """Return the state at the start, where everybody has heard of the first election."""
        return local

    def restarted(self, local: Local) -> Local:
        """Return the state in which it starts again with what is on disk."""
        return local

    def receive(self, local: Local, message: Message) -> RoleStep | None:
        """Take a message, or return None if it is not this role's."""
        return None

    def step(self, local: Local, may_append: Callable[[str], bool]) -> Iterable[RoleStep]:
        """Yield what it may do of its own accord; `may_append` says which log partitions take a record here."""
        return ()

    def timers(self, local: Local) -> Mapping[str, int | None]:
        """Return the timers that are armed, each one's first word its own, and when each fires, in milliseconds.

        None means that a timer has no time of its own.
        """
        return {}

    def timer_fired(self, local: Local, timer: str) -> Iterable[RoleStep]:
        """Yield what an armed timer makes it do; there is none if the timer is not its own."""
        return ()

    def serves(self, local: Local, p: str) -> bool:
        """Say whether it has loaded a partition that the broker leads."""
        return True

    def loaded(self, local: Local, p: str, records: Iterable[Any]) -> Local:
        """Return the state in which it serves a partition with these records."""
        return local

    def loaded_from(self, local: Local, p: str, start: Any, records: Iterable[Any]) -> Local:
        """Return the same where records are gone; `start` is what they had made."""
        return self.loaded(local, p, records)

    def resigned(self, local: Local, p: str) -> Local:
        """Return the state in which it serves a partition no longer, or not yet: a leader was elected."""
        return local

    def compacted(self, local: Local, p: str, log: Any) -> Local:
        """Return the state in which the log of a partition that it serves is compacted."""
        return local

    def appended(self, local: Local, p: str, record: Any) -> Local:
        """Return the state after a record of its own got into the leader's log."""
        return local

    def committed(self, local: Local, p: str, record: Any) -> Local:
        """Return the state after a record was committed on a partition that it serves."""
        return local

    def completed(self, local: Local, p: str, record: Any, callback: Any) -> Effect:
        """Return what the callback of a record does that is committed."""
        return Effect(local)

    def failed(self, local: Local, p: str, callback: Any, error: Error, record: Any = None) -> Effect:
        """Return what the callback of a record does that was refused, or is given up after it was appended.

        `error` is the log's, `record` is none where it was refused.
        """
        return Effect(local)


def owners(roles: Iterable[Role]) -> Mapping[str, Role]:
    """Return the role that each log partition belongs to."""
    return {p: role for role in roles for p in role.partitions}


def batch_at(record: Any, place: int) -> RecordBatch:
    """Return a record of a log as a batch: an entry of the transaction log is one, at the offset of its place."""
    if isinstance(record, RecordBatch):
        return record
    return RecordBatch((record,), base_offset=place, timestamp=record.timestamp)


def kept(items: Sequence[Any], value: Callable[[Any], Any]) -> tuple[list[tuple[Any, int]], Any]:
    """Return the records that a log has, each with its place, and what those made that it has forgotten."""
    start = items.start.log if isinstance(items, Chunks) and items.start is not None else None
    there = enumerate(section(items, gone(items), len(items)), gone(items))
    found = [(record, place) for place, item in there if (record := value(item)) is not None]
    if start is not None and found and batch_at(*found[-1]).last_offset + 1 < start.log_end_offset:
        start = PartitionLog(log_start_offset=start.log_start_offset, log_end_offset=start.log_start_offset)
    return found, start  # derived anew where an unclean election has cut the log before its start


def begun(items: T, log: PartitionLog, value: Callable[[Any], Any], instead: Callable[[Any], Any]) -> T | Chunks[Any]:
    """Return the items of a log without those before the start of what is derived from them.

    A log of a model keeps them: there only a checkpoint, which a crash may lose, says where it begins.
    """
    if not isinstance(items, Chunks):
        return items
    place = first = items.gone
    for item in items.between(first, len(items)):
        if (batch := value(item)) is not None and batch.last_offset >= log.log_start_offset:
            break
        place += 1
    before = None if items.start is None else items.start.log
    there = (batch for item in items.between(first, place) if (batch := value(item)) is not None)
    made = beginning(before, there, log.log_start_offset)
    clean, clean_to = (0, 0) if items.start is None else (items.start.clean, items.start.clean_to)
    return items.forget(LogStart(place, log.log_start_offset, made, clean, clean_to), instead)


def compacted(
    items: Chunks[Any], done: Compaction, value: Callable[[Any], Any],
    other: Callable[[Any, RecordBatch, RecordBatch | None], Any],
) -> Chunks[Any]:
    """Return the items of a log with their batches compacted.

    `other` makes an item in place of one with a batch, for another batch, or for none.
    """
    batches = {place: batch_at(record, place) for record, place in kept(items, value)[0]}
    before = PartitionLog() if items.start is None else items.start.log
    there = itertools.takewhile(lambda batch: batch.base_offset < done.end, batches.values())
    made = beginning(before, there, done.log.log_start_offset, done.end)
    index = chunks(txn for txn in done.log.aborted if txn.last_offset < done.end)
    clean = next((place for place, batch in batches.items() if batch.base_offset >= done.end), len(items))
    start = LogStart(items.gone, done.log.log_start_offset, attrs.evolve(made, aborted=index), clean, done.end)

    def after(item: Any, place: int) -> Any:
        batch = batches.get(place)
        return item if batch is None or batch.base_offset not in done.changed else other(
            item, batch, done.changed[batch.base_offset])

    return items.replaced(start, after)


def batch_of(record: Any) -> Any:
    """Return a record of a log, None if it is gone."""
    return None if isinstance(record, EpochStart) else record


class Log:
    """The log partitions of a broker: how records are replicated and committed, and how it hears of leaders."""

    parts: tuple[Part[Any], ...]
    named: tuple[str, ...]
    """The partition of each part."""
    numbered: tuple[Part[Any], ...] = ()
    """The parts whose incarnation must be durable before it is reported to the controller."""

    def __init__(self, name: str, roles: Iterable[Role]) -> None:
        self.name = name
        self.roles = owners(roles)

    def registration(self, local: Local) -> Message:
        """Return what tells the controller that the broker was started again."""
        raise NotImplementedError

    def restarted(self, local: Local) -> Local:
        """Return the state in which its partitions start again from what is on disk."""
        return local

    def may_append(self, local: Local, p: str) -> bool:
        """Say whether a partition takes a record here."""
        return True

    def append(self, local: Local, wanted: Append) -> Effect:
        """Append a record, and return all that follows from it at once."""
        raise NotImplementedError

    def wait(self, local: Local, wanted: Await) -> Effect:
        """Let a request wait for a record, and return all that follows from it at once."""
        raise NotImplementedError

    def begun(self, local: Local, p: str, log: Any) -> Effect:
        """Forget what is before the start of a log, as its leader has it now."""
        return Effect(local)

    def compacted(self, local: Local, p: str, done: Compaction) -> Local:
        """Return the state with the log of a partition compacted."""
        raise NotImplementedError

    def carried_out(self, effect: Effect) -> Effect:
        """Return an effect with its records appended, and all that follows from them at once."""
        done = Effect(effect.local, effect.sent, flush=effect.flush)
        for p, log in effect.begins:
            done = done.then(self.begun(done.local, p, log))
        for wanted in effect.appends:
            done = done.then(self.append(done.local, wanted))
        for awaited in effect.awaits:
            done = done.then(self.wait(done.local, awaited))
        return done

    def loaded(self, local: Local, p: str, items: Sequence[Any], committed: int) -> Local:
        """Return the state in which a role serves a partition that it loads at once."""
        role, local = self.roles[p], self.read(local, p, items)
        for record in map(self.value, section(items, gone(items), committed)):
            local = role.committed(local, p, record) if record is not None else local
        return local

    def read(self, local: Local, p: str, items: Sequence[Any]) -> Local:
        """Return the state in which a role has read what is in a log."""
        found, start = kept(items, self.value)
        role, records = self.roles[p], (record for record, _ in found)
        return role.loaded(local, p, records) if start is None else role.loaded_from(local, p, start, records)

    @staticmethod
    def value(item: Any) -> Any:
        """Return the record of an item of a log, None if it is gone."""
        return batch_of(item)

    def place(self, items: Sequence[Any], offset: int) -> int:
        """Return the place of the batch that begins at an offset, among the last ones."""
        return next(n for n in reversed(range(gone(items), len(items)))
                    if (batch := self.value(items[n])) is not None and batch.base_offset == offset)

    def step(self, local: Local, among: Collection[str] | None = None) -> Iterable[Turn[Local]]:
        """Yield what it does of its own accord, of some partitions or of all."""
        return ()

    def receive(self, local: Local, message: Message) -> Turn[Local] | None:
        """Take a message, or return None if it is not about the log."""
        return None

    def resend(self, local: Local) -> tuple[Message, ...]:
        """Return what was sent and not answered: it may have been lost."""
        return ()

    def timers(self, local: Local) -> Mapping[str, int | None]:
        """Return the timers that are armed, and when each fires; None if it has no time of its own."""
        return {timer: at for p in self.named for timer, at in self.armed(local, p).items()}

    def armed(self, local: Local, p: str) -> Mapping[str, int | None]:
        """Return the timers that a partition has armed."""
        return {}

    def timer_fired(self, local: Local, timer: str) -> Iterable[Turn[Local]]:
        return ()
