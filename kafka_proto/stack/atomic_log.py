"""The log of a broker of the transaction actors: copies of partitions that are each one atomic service, `log-p1`.

For small searches: brokers reach the log, which orders and commits, over reliable links. A broker that restarts joins
the epochs that it learns, and serves a partition again when it has the committed prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from harness.model import Local, Message, Parts, Turn, persisted, volatile
from kafka_proto.broker.roles import Append, Effect, Log, Role
from kafka_proto.broker.state import METADATA, known
from kafka_proto.replication.known import NOBODY, LeaderAndEpoch
from kafka_proto.replication.messages import Error
from kafka_proto.transactions.controller import CONTROLLER
from kafka_proto.transactions.log import AppendEntry, Committed, Joined, JoinEpoch, log_name
from kafka_proto.transactions.messages import BrokerRegistrationRequest, LeaderAndIsrRequest
from kafka_proto.transactions.records import Entry, TxnRecord


@attrs.frozen
class Copy:
    """A broker's copy of a partition."""

    log: tuple[Entry, ...] = persisted(default=())
    high_watermark: int = persisted(default=0)
    callbacks: frozenset[int] = volatile(default=frozenset())
    """Offsets of the entries whose commit is still to be answered."""


COPY = Parts("copy", Copy)
"""By partition: its copies."""


class AtomicLog(Log):
    """The copies of one broker."""

    def __init__(
        self, name: str, roles: Iterable[Role], must_follow: Callable[[str, str, int, str, int], bool]
    ) -> None:
        super().__init__(name, roles)
        self.must_follow = must_follow
        self.parts = tuple(COPY[p] for p in self.roles)
        self.disk = (METADATA, *self.parts)
        """What a flush makes durable, an incarnation that was not yet so included."""

    def registration(self, local: Local) -> Message:
        return BrokerRegistrationRequest(source=self.name, dest=CONTROLLER)

    def receive(self, local: Local, message: Message) -> Turn[Local] | None:
        match message:
            case LeaderAndIsrRequest():
                return self.receive_leader_and_isr(local, message)
            case Joined():
                return self.receive_joined(local, message)
            case Committed():
                return self.receive_committed(local, message)
        return None

    def append(self, local: Local, wanted: Append) -> Effect:
        """Append an entry to the copy and hand it to the log partition; its callback waits for the commit."""
        p = wanted.partition
        copy, entry = local[COPY[p]], Entry(wanted.record.transactional_id, wanted.record.transition, wanted.callback)
        offset = len(copy.log)
        waits = copy.callbacks if entry.callback.response is None else copy.callbacks | {offset}
        local = local.put(COPY[p], attrs.evolve(copy, log=(*copy.log, entry), callbacks=waits))
        request = AppendEntry(known(local, p).leader_epoch, offset, entry, source=self.name, dest=log_name(p))
        return Effect(self.roles[p].appended(local, p, wanted.record), (request,), flush=self.disk)

    def receive_leader_and_isr(self, local: Local, announced: LeaderAndIsrRequest) -> Turn[Local]:
        """Learn of a leader and epoch: become leader or follower, or (S2) not notice."""
        action, p, before = f"Receive{announced.type}", announced.partition, known(local, announced.partition)
        local = local.put(METADATA, attrs.evolve(local[METADATA], registering=False))
        if announced.leader_epoch <= before.leader_epoch:
            return Turn(action, (self.name, p), local, detail=f"epoch {announced.leader_epoch}, already known")
        if announced.leader == self.name:
            return self.joining("TakeOver", local, announced)
        if before == NOBODY or self.must_follow(
            self.name, before.leader, before.leader_epoch, announced.leader, announced.leader_epoch
        ):
            return self.joining("BecomeFollower", local, announced)
        return Turn(action, (self.name, p), local, detail=f"epoch {announced.leader_epoch}, not followed")

    def joining(self, action: str, local: Local, announced: LeaderAndIsrRequest) -> Turn[Local]:
        """Give up what is not committed, forget the ids of the partition, and join the epoch as leader or follower.

        A leader serves once the committed prefix is loaded. ACTION BecomeFollower(b, p): who waits for what was not
        committed is answered that it failed.
        """
        p, leads, role = announced.partition, announced.leader == self.name, self.roles[announced.partition]
        copy, sent = local[COPY[p]], tuple[Message, ...]()
        local = role.resigned(local.put(COPY[p], Copy(copy.log[: copy.high_watermark], copy.high_watermark)), p)
        for entry in () if leads else (copy.log[offset] for offset in sorted(copy.callbacks)):
            effect = role.failed(local, p, entry.callback, Error.REQUEST_TIMED_OUT)
            local, sent = effect.local, (*sent, *effect.sent)
        heard = local[METADATA].known.set(p, LeaderAndEpoch(announced.leader_epoch, announced.leader))
        local = local.put(METADATA, attrs.evolve(local[METADATA], known=heard))
        join = JoinEpoch(
            announced.leader_epoch, leads, local[METADATA].broker_epoch, source=self.name, dest=log_name(p)
        )
        sent, detail = (*dict.fromkeys(sent), join), f"epoch {announced.leader_epoch}"
        return Turn(action, (self.name, p), local, sent, flush=self.disk, detail=detail)

    def receive_joined(self, local: Local, joined: Joined) -> Turn[Local]:
        """Take over the committed prefix; a leader now knows its ids and serves (S3: and may forget the others)."""
        p = joined.partition
        action, who = "LoadTxnLog", (self.name, p)
        if joined.leader_epoch != known(local, p).leader_epoch:
            return Turn(action, who, local, detail=f"epoch {joined.leader_epoch} is over")
        if joined.broker_epoch != local[METADATA].broker_epoch:
            return Turn(action, who, local, detail=f"epoch {joined.leader_epoch}, joined before a crash")
        taken = attrs.evolve(local[COPY[p]], log=joined.committed, high_watermark=len(joined.committed))
        after = local.put(COPY[p], taken)
        if known(local, p).leader == self.name:
            after = self.roles[p].loaded(after, p, joined.committed)
        return Turn(action, who, after, flush=self.disk, detail=f"epoch {joined.leader_epoch}")

    def receive_committed(self, local: Local, committed: Committed) -> Turn[Local]:
        """An entry is committed: advance the high watermark; a leader learns the transition and runs the callback."""
        p, offset, entry = committed.partition, committed.offset, committed.entry
        action, who, role = "ReceiveCommitted", (self.name, p), self.roles[p]
        copy = local[COPY[p]]
        if offset != copy.high_watermark:
            return Turn(action, who, local, detail=f"offset {offset} is out of turn")
        rest = copy.log[offset + 1 :] if copy.log[offset : offset + 1] == (entry,) else ()
        copy = attrs.evolve(copy, log=(*copy.log[:offset], entry, *rest), high_watermark=offset + 1)
        turn = Turn(action, who, local.put(COPY[p], copy), flush=self.disk, detail=f"offset {offset}")
        if not role.serves(local, p):
            return turn
        record = TxnRecord(entry.transactional_id, entry.transition)
        local = role.committed(turn.local, p, record)
        if offset not in copy.callbacks:
            return attrs.evolve(turn, local=local)
        local = local.put(COPY[p], attrs.evolve(copy, callbacks=copy.callbacks - {offset}))
        effect = self.carried_out(role.completed(local, p, record, entry.callback))
        return attrs.evolve(turn, local=effect.local, sent=effect.sent)
