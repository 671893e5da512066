"""The transaction log partition of the actor composition: one actor that orders and commits entries atomically.

It stands for the replicated log: an entry counts as replicated to every broker in the step that commits it, and brokers
hear of it over reliable links. It commits when every broker has joined the leader's epoch, as the specs do.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Message, Turn, ordered
from kafka_proto.transactions.decisions.completion import next_to_commit
from kafka_proto.transactions.messages import ServiceMessage
from kafka_proto.transactions.records import Entry


@attrs.frozen
class AppendEntry(ServiceMessage):
    """A leader appends an entry at an offset of its log, under its epoch."""

    leader_epoch: int
    offset: int
    entry: Entry


@attrs.frozen
class JoinEpoch(ServiceMessage):
    """A broker joins an epoch, as leader or follower, and asks for the committed prefix."""

    leader_epoch: int
    leads: bool
    broker_epoch: int = attrs.field(metadata=ordered("broker_epoch", "source"))


@attrs.frozen
class Joined(ServiceMessage):
    """The committed prefix of a partition, for the incarnation of a broker that joined an epoch."""

    partition: str
    leader_epoch: int
    committed: tuple[Entry, ...]
    broker_epoch: int = attrs.field(metadata=ordered("broker_epoch", "dest"))


@attrs.frozen
class Committed(ServiceMessage):
    """An entry is committed at an offset, on every broker."""

    partition: str
    offset: int
    entry: Entry


@attrs.frozen
class LogPartition:
    """The local state of a partition: its leader and epoch, what is committed, what waits, who joined which epoch."""

    leader: str
    leader_epoch: int
    committed: tuple[Entry, ...] = ()
    waiting: tuple[Entry, ...] = ()
    joined: FrozenMap[str, int] = FrozenMap()


class TransactionLog(Actor[LogPartition]):
    """The actor of one transaction log partition."""

    def __init__(self, partition: str, leader: str, brokers: tuple[str, ...]) -> None:
        self.partition = partition
        self.name = log_name(partition)
        self.brokers = brokers
        self.initial = LogPartition(leader, 1, joined=FrozenMap({b: 1 for b in brokers}))

    def step(self, local: LogPartition) -> Iterable[Turn[LogPartition]]:
        """ACTION CommitTxnLogAppend(b, p): the next entry is on every broker; all of them are notified."""
        entry = next_to_commit(local.waiting, 0, (epoch == local.leader_epoch for epoch in local.joined.values()))
        if entry is None:
            return
        sent = tuple(
            Committed(self.partition, len(local.committed), entry, source=self.name, dest=b) for b in self.brokers
        )
        after = attrs.evolve(local, committed=(*local.committed, entry), waiting=local.waiting[1:])
        yield Turn("CommitTxnLogAppend", (local.leader, self.partition), after, sent, detail=entry.transactional_id)

    def on_message(self, local: LogPartition, message: Message) -> Iterable[Turn[LogPartition]]:
        match message:
            case AppendEntry():
                after = self.append(local, message)
                detail = f"offset {message.offset}" + ("" if after is not local else ", fenced off")
                yield Turn("AppendTxnLogEntry", (message.source, self.partition), after, detail=detail)
            case JoinEpoch():
                yield self.join(local, message)

    def append(self, local: LogPartition, request: AppendEntry) -> LogPartition:
        """Take an entry from the leader of the current epoch; one from a deposed leader is fenced off."""
        if request.leader_epoch != local.leader_epoch or request.source != local.leader:
            return local
        if request.offset != len(local.committed) + len(local.waiting):
            return local
        return attrs.evolve(local, waiting=(*local.waiting, request.entry))

    def join(self, local: LogPartition, request: JoinEpoch) -> Turn[LogPartition]:
        """Let a broker join an epoch. A newer epoch, or a leader that starts over, gives up what was not committed."""
        broker, epoch = request.source, request.leader_epoch
        after = attrs.evolve(local, joined=local.joined.set(broker, max(epoch, local.joined[broker])))
        if epoch > local.leader_epoch or (request.leads and epoch == local.leader_epoch):
            after = attrs.evolve(
                after, leader_epoch=epoch, leader=broker if request.leads else local.leader, waiting=()
            )
        answer = Joined(
            self.partition, epoch, after.committed, request.broker_epoch, source=self.name, dest=broker
        )
        return Turn("JoinEpoch", (broker, self.partition), after, (answer,), detail=f"epoch {epoch}")


def log_name(partition: str) -> str:
    """Return the name of a partition's actor."""
    return f"log-{partition}"


TYPES: tuple[type, ...] = (Entry, AppendEntry, JoinEpoch, Joined, Committed, LogPartition)
