"""The broker where the topic is trimmed behind the mark-delete position of `__compaction`.

Its compactor reads the previous compacted ledger and the topic behind it, entry by entry through a raw reader that may
have to reconnect. When the new ledger is sealed, the effects of a version follow in their order, each a step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from compaction import trimming
from compaction.bookkeeper import BOOKKEEPER
from compaction.broker import PulsarBroker, TopicBroker
from compaction.compactor import CompactorState, Position
from compaction.messages import AddEntries, CreateLedger, ReadRequest, SealLedger
from compaction.records import Cursor, TopicEntry
from compaction.versions import AS_WRITTEN, DEPARTURES, SealEffect, Trimming
from harness.model import Kind, Message, Turn, departed, volatile


@attrs.frozen
class TrimmingState(PulsarBroker):
    """The local state of this broker. The compactor's state is phase one or writing; `effects` is what follows."""

    mark_delete: int = volatile(default=0)
    """Up to where the topic may be trimmed."""
    copied_to: int = volatile(default=0)
    """The id of the last entry that phase two read."""
    sealing: bool = volatile(default=False)
    effects: tuple[SealEffect, ...] = volatile(default=())
    """What is still to be done of a compaction after its ledger was sealed."""
    reconnects: int = volatile(default=0)


class TrimmingBroker(TopicBroker):
    """Compaction on a topic that is trimmed."""

    def __init__(self, retain_null_key: bool, trims: Trimming, reconnects: int) -> None:
        super().__init__(departed(AS_WRITTEN, DEPARTURES, "S11"), retain_null_key, TrimmingState())
        self.trims = trims
        self.reconnects = reconnects

    def compact(self, local: TrimmingState) -> Iterable[Turn[TrimmingState]]:
        if (left := trimming.behind(local.topic, local.mark_delete)) != local.topic:
            yield self.turn("TrimTopic", attrs.evolve(local, topic=left), flush=True)
        if local.effects:
            yield from self.effect(local)
        elif local.state is CompactorState.PHASE_ONE:
            if trimming.behind(local.topic, local.horizon):
                result = trimming.phase_one(trimming.to_compact(local.contents, local.horizon, local.topic))
                after = attrs.evolve(local, state=CompactorState.WRITE, phase_one_result=result)
                create = CreateLedger(local.incarnation, source=self.name, dest=BOOKKEEPER)
                yield self.turn("CompactorPhaseOne", after, create)
        elif local.new_ledger and not local.sealing:
            yield self.copy_or_seal(local)
            if local.copied_to and local.reconnects < self.reconnects:
                again = attrs.evolve(local, copied_to=0, reconnects=local.reconnects + 1)
                yield attrs.evolve(self.turn("RawReaderReconnects", again), kind=Kind.PERTURBATION)

    def write(self, local: TrimmingState, ledger: int) -> Turn[TrimmingState]:
        return self.turn("BeginPhaseTwo", attrs.evolve(local, new_ledger=ledger))

    def copy_or_seal(self, local: TrimmingState) -> Turn[TrimmingState]:
        """Phase two reads one entry and writes what is kept of it; at the end the ledger is sealed."""
        result = local.phase_one_result
        assert result is not None
        entries = trimming.to_compact(local.contents, local.horizon, local.topic)
        last = entries[-1].id if self.trims.copies_to_the_end else result.read_position
        entry = trimming.next_to_copy(entries, local.copied_to, last)
        if entry is None:
            seal = SealLedger(local.incarnation, local.new_ledger, source=self.name, dest=BOOKKEEPER)
            return self.turn("CompactorSealsLedger", attrs.evolve(local, sealing=True), seal)
        kept = trimming.copied(entry, result, self.retain_null_key)
        if trimming.is_replayed(entry, local.written) and not self.trims.copies_again:
            kept = None
        after = attrs.evolve(local, copied_to=entry.id)
        sent: tuple[Message, ...] = ()
        if kept is not None:
            after = attrs.evolve(after, written=(*local.written, kept))
            sent = (AddEntries(local.new_ledger, (kept,), source=self.name, dest=BOOKKEEPER),)
        return self.turn("CompactorPhaseTwoWrite", after, *sent, detail=f"entry {entry.id}")

    def sealed(self, local: TrimmingState) -> TrimmingState:
        return attrs.evolve(local, old_ledger=local.context, effects=self.trims.effects)

    def effect(self, local: TrimmingState) -> Iterable[Turn[TrimmingState]]:
        """Yield the next effect of a compaction whose ledger is sealed."""
        match local.effects[0]:
            case SealEffect.DELETE_LEDGER:
                if not local.deleting:
                    yield self.delete_old(local)
            case SealEffect.INSTALL:
                after = attrs.evolve(
                    local, context=local.new_ledger, contents=local.written, horizon=local.copied_to
                )
                yield self.done(after)
            case SealEffect.MARK_DELETE:
                yield self.done(attrs.evolve(local, mark_delete=local.copied_to))
            case persisting:
                ledger = local.old_ledger if persisting is SealEffect.PERSIST_POSITION else local.new_ledger
                yield self.done(attrs.evolve(local, cursor=Cursor(local.copied_to, ledger)), flush=True)

    def done(self, local: TrimmingState, flush: bool = False) -> Turn[TrimmingState]:
        """Return the turn of the effect that comes first, which has been carried out in the state given."""
        return self.turn(f"Compactor{local.effects[0]}", self.deleted(local), flush=flush)

    def deleted(self, local: Any) -> Any:
        """Return the broker with the first effect done; the last one ends the compaction."""
        rest = local.effects[1:]
        return attrs.evolve(local, effects=rest, deleting=False) if rest else self.finished(local)

    def finished(self, local: Any) -> Any:
        return attrs.evolve(super().finished(local), copied_to=0, sealing=False, effects=(), reconnects=0)

    def installed(self, local: Any, context: int, contents: tuple[TopicEntry, ...] | None, horizon: int) -> Any:
        return attrs.evolve(super().installed(local, context, contents, horizon), mark_delete=horizon)

    def read(self, local: TrimmingState, request: ReadRequest) -> tuple[tuple[TopicEntry, ...], Position, int] | None:
        skips_ledger = self.trims.reads_ledger_once and request.session is not None
        contents = None if skips_ledger else local.contents
        found = trimming.read(request.position, contents, local.horizon, local.topic)
        if found is None:
            return None
        entries, position, from_ledger = found
        return entries, position, local.context if from_ledger else 0


TYPES: tuple[type, ...] = (TrimmingState,)
