"""The broker of the actor compositions: the topic, the cursor of `__compaction`, the readers' requests, the compactor.

Persisted: the topic, the cursor and the number of the incarnation. Volatile: what readers use (the context with the
ledger's contents, and the horizon) and how far the compactor is. A broker that restarts loads the ledger that the
cursor names, and answers readers and compacts when that is done. What is here is common to both compositions;
`CompactingBroker` makes the spec's compaction, effect by effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import attrs

from compaction import compactor, messages
from compaction.bookkeeper import BOOKKEEPER
from compaction.clients import BROKER
from compaction.compactor import TRANSITIONS, CompactorState, Position
from compaction.records import Cursor, PhaseOneResult, TopicEntry
from compaction.versions import CompactionVersion
from harness.model import Actor, Message, Turn, fresh, persisted, volatile


@attrs.frozen
class PulsarBroker:
    """The local state of the broker. Ledgers are those of the store, by id; 0 is none."""

    topic: tuple[TopicEntry, ...] = persisted(default=())
    end: int = persisted(default=0)
    """The id of the last entry of the topic."""
    cursor: Cursor | None = persisted(default=None)
    incarnation: int = persisted(default=0, metadata=fresh("incarnation"))
    loaded: bool = volatile(default=False)
    asked_to_load: bool = volatile(default=False)
    collecting: frozenset[int] = volatile(default=frozenset())
    """Ledgers that it found unreferenced, until they are deleted."""
    context: int = volatile(default=0)
    contents: tuple[TopicEntry, ...] | None = volatile(default=None)
    """The ledger of the context as it was opened; None without a context."""
    horizon: int = volatile(default=0)
    state: CompactorState = volatile(default=CompactorState.PHASE_ONE)
    phase_one_result: PhaseOneResult | None = volatile(default=None)
    new_ledger: int = volatile(default=0)
    """The ledger that phase two writes."""
    written: tuple[TopicEntry, ...] = volatile(default=())
    old_ledger: int = volatile(default=0)
    """The ledger that the new one replaces."""
    deleting: bool = volatile(default=False)


L = TypeVar("L", bound=PulsarBroker)


class TopicBroker(Actor[Any]):
    """What a broker does whatever its compactor does: it keeps the topic, loads its state, and answers readers."""

    name = BROKER
    may_crash = True

    def __init__(self, version: CompactionVersion, retain_null_key: bool, initial: PulsarBroker) -> None:
        self.version = version
        self.retain_null_key = retain_null_key
        self.initial = initial
        self.start = attrs.evolve(initial, loaded=True)

    def restarted(self, local: L) -> L:
        """Start a new incarnation; nothing is asked under its number before the number is flushed."""
        return attrs.evolve(local, incarnation=local.incarnation + 1)

    def step(self, local: Any) -> Iterable[Turn[Any]]:
        if local.loaded:
            yield from self.compact(local)
        elif not local.asked_to_load:
            context = compactor.recovered(local.cursor)[1]
            ask = messages.LoadLedger(local.incarnation, context, source=self.name, dest=BOOKKEEPER)
            yield self.turn("LoadCompactedTopic", attrs.evolve(local, asked_to_load=True), ask, flush=True)

    def compact(self, local: Any) -> Iterable[Turn[Any]]:
        """Yield the next turn of the compactor, if it waits for nothing."""
        raise NotImplementedError

    def on_message(self, local: Any, message: Message) -> Iterable[Turn[Any]]:
        match message:
            case messages.Send():
                yield self.append(local, message)
            case messages.ReadRequest():
                if local.loaded and (answer := self.answer(local, message)) is not None:
                    yield Turn("ServeRead", (self.name, message.source), local, (answer,))
            case messages.LedgerMessage() if message.incarnation != local.incarnation:
                yield self.turn("IgnoreAnswer", local)
            case messages.LedgerLoaded():
                yield self.load(local, message)
            case messages.LedgerDeleted() if not local.loaded:
                left = local.collecting - {message.ledger}
                yield self.turn("CollectLedger", attrs.evolve(local, collecting=left, loaded=not left))
            case messages.LedgerDeleted():
                yield self.turn("ReceiveLedgerDeleted", self.deleted(local))
            case messages.LedgerCreated():
                yield self.write(local, message.ledger)
            case messages.LedgerSealed():
                yield self.turn("ReceiveLedgerSealed", self.sealed(local))

    def append(self, local: L, request: messages.Send) -> Turn[L]:
        """Append an entry, once, and say so when it is durable."""
        receipt = messages.SendReceipt(request.entry.id, source=self.name, dest=request.source)
        if request.entry.id > local.end:
            local = attrs.evolve(local, topic=(*local.topic, request.entry), end=request.entry.id)
        return self.turn("AppendEntry", local, receipt, flush=True)

    def answer(self, local: Any, request: messages.ReadRequest) -> messages.ReadResponse | None:
        """Answer a reader, or None while there is nothing for it; a request from before a crash is turned away."""
        unknown = messages.ReadResponse(request.correlation, local.incarnation, source=self.name, dest=request.source)
        if request.session not in (None, local.incarnation):
            return unknown
        found = self.read(local, request)
        if found is None:
            return None
        entries, position, ledger = found
        return attrs.evolve(unknown, entries=entries, position=position, ledger=ledger)

    def read(self, local: Any, request: messages.ReadRequest) -> tuple[tuple[TopicEntry, ...], Position, int] | None:
        """Return the entries after a reader's position, the position after them, and the ledger they are from."""
        raise NotImplementedError

    def load(self, local: L, answer: messages.LedgerLoaded) -> Turn[L]:
        """Take over what the cursor says, and have the ledgers deleted that it does not name (S11: or leave them)."""
        horizon, context = compactor.recovered(local.cursor)
        gone = compactor.unreferenced(answer.existing, context) if self.version.collects else ()
        deletes = (messages.DeleteLedger(local.incarnation, n, source=self.name, dest=BOOKKEEPER) for n in gone)
        after = self.installed(local, context, answer.entries, horizon)
        after = attrs.evolve(after, collecting=frozenset(gone), loaded=not gone)
        return self.turn("ReceiveLedgerLoaded", after, *deletes)

    def installed(self, local: L, context: int, contents: tuple[TopicEntry, ...] | None, horizon: int) -> L:
        """Return the broker with what readers use set."""
        return attrs.evolve(local, context=context, contents=contents, horizon=horizon)

    def write(self, local: Any, ledger: int) -> Turn[Any]:
        """Begin to write the ledger that was created."""
        raise NotImplementedError

    def sealed(self, local: Any) -> Any:
        """Return the broker when the new ledger is sealed."""
        raise NotImplementedError

    def delete_old(self, local: L) -> Turn[L]:
        """ACTION CompactorPhaseTwoDeleteLedger: have the ledger deleted that was replaced, if there was one."""
        action = "CompactorPhaseTwoDeleteLedger"
        if not local.old_ledger:
            return self.turn(action, self.deleted(local))
        delete = messages.DeleteLedger(local.incarnation, local.old_ledger, source=self.name, dest=BOOKKEEPER)
        return self.turn(action, attrs.evolve(local, deleting=True), delete)

    def deleted(self, local: Any) -> Any:
        """Return the broker when the old ledger is gone, or there was none."""
        return self.finished(local)

    def finished(self, local: L) -> L:
        """Return the broker after a compaction."""
        return attrs.evolve(
            local, state=CompactorState.PHASE_ONE, phase_one_result=None, new_ledger=0, written=(), old_ledger=0,
            deleting=False,
        )

    def turn(self, action: str, after: L, *sent: Message, flush: bool = False, detail: str = "") -> Turn[L]:
        """Return a turn of the broker."""
        return Turn(action, (self.name,), after, sent, flush=flush, detail=detail)


class CompactingBroker(TopicBroker):
    """The spec's compaction: the six states, one effect each."""

    def __init__(self, version: CompactionVersion, retain_null_key: bool) -> None:
        super().__init__(version, retain_null_key, PulsarBroker())

    def compact(self, local: PulsarBroker) -> Iterable[Turn[PulsarBroker]]:
        match local.state:
            case CompactorState.PHASE_ONE if local.end > local.horizon:
                result = compactor.phase_one(keys_of(local.topic))
                create = messages.CreateLedger(local.incarnation, source=self.name, dest=BOOKKEEPER)
                yield self.effect("CompactorPhaseOne", local, create, phase_one_result=result)
            case CompactorState.UPDATE_CONTEXT:
                after = attrs.evolve(
                    local, context=local.new_ledger, contents=local.written, old_ledger=local.context
                )
                if self.version.horizon_with_context:
                    after = attrs.evolve(after, horizon=read_position(local))
                yield self.effect("CompactorPhaseTwoUpdateContext", after)
            case CompactorState.UPDATE_HORIZON:
                yield self.effect("CompactorPhaseTwoUpdateHorizon", local, horizon=read_position(local))
            case CompactorState.PERSIST_CURSOR:
                cursor = Cursor(local.horizon, local.context)
                yield self.effect("CompactorPhaseTwoPersistCusror", local, flush=True, cursor=cursor)
            case CompactorState.DELETE_LEDGER if not local.deleting:
                yield self.delete_old(local)

    def effect(
        self, action: str, local: PulsarBroker, *sent: Message, flush: bool = False, **changes: Any
    ) -> Turn[PulsarBroker]:
        """Return the turn of an action of the spec, which leads to the compactor's next state."""
        after = attrs.evolve(local, state=TRANSITIONS[local.state][action], **changes)
        return self.turn(action, after, *sent, flush=flush)

    def write(self, local: PulsarBroker, ledger: int) -> Turn[PulsarBroker]:
        """Write to the new ledger what phase one found to be the latest, and seal it."""
        assert local.phase_one_result is not None
        kept = compactor.compacted(keys_of(local.topic), local.phase_one_result, self.retain_null_key)
        written = tuple(entry for entry in local.topic if entry.id in kept)
        add = messages.AddEntries(ledger, written, source=self.name, dest=BOOKKEEPER)
        seal = messages.SealLedger(local.incarnation, ledger, source=self.name, dest=BOOKKEEPER)
        return self.turn("WriteLedger", attrs.evolve(local, new_ledger=ledger, written=written), add, seal)

    def sealed(self, local: PulsarBroker) -> PulsarBroker:
        return attrs.evolve(local, state=TRANSITIONS[local.state]["CompactorPhaseTwoWrite"])

    def read(
        self, local: PulsarBroker, request: messages.ReadRequest
    ) -> tuple[tuple[TopicEntry, ...], Position, int] | None:
        """Return the next entry, as the spec's comments and invariants have it, or skip what was not kept.

        Where the ledger has nothing left, a position below the horizon becomes the horizon.
        """
        ledger = None if local.contents is None else tuple(entry.id for entry in local.contents)
        found = compactor.next_message(request.position, ledger, local.horizon, local.end)
        if found is None:
            is_below = ledger is not None and request.position.last < local.horizon
            return ((), Position(local.horizon), local.context) if is_below else None
        held = (local.contents or ()) if found.in_ledger else local.topic
        entry = next(entry for entry in held if entry.id == found.last)
        return (entry,), found, local.context if found.in_ledger else 0


def keys_of(topic: tuple[TopicEntry, ...]) -> tuple[int, ...]:
    """Return the keys of all messages of a topic that is whole."""
    return tuple(message.key for entry in topic for message in entry.messages)


def read_position(local: PulsarBroker) -> int:
    """Return how far phase one read."""
    assert local.phase_one_result is not None
    return local.phase_one_result.read_position


TYPES: tuple[type, ...] = (PulsarBroker, Cursor, TopicEntry, PhaseOneResult)
