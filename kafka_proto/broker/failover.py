"""The controller of brokers whose failures are noticed: who leaves the ISR and office, and who is elected then.

`ReplicationControlManager` and `PartitionChangeBuilder` of Kafka's controller. A driver says when a broker is fenced,
because its heartbeats are missing, and when it is there again. Where eligible leaders are kept (KIP-966) the ISR may
become empty; where they are not, its last member stays in it, and nobody leads without that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import FrozenMap, Local, Message, Part, Turn
from kafka_proto.broker.controller import PARTITION, ClusterController, Partition
from kafka_proto.errors import Error
from kafka_proto.log.segments import LogConfig
from kafka_proto.replication import messages, quorum
from kafka_proto.replication.quorum import Quorum
from kafka_proto.replication.records import NIL, Isr

Changes = tuple[Local, tuple[Message, ...]]


@attrs.frozen
class PartitionRules:
    """The settings of a topic that elections and logs depend on, by Kafka's names."""

    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    log: LogConfig = LogConfig()


@attrs.frozen
class Registrations:
    """The brokers that are fenced, and those of them that have shut down cleanly."""

    fenced: frozenset[str] = frozenset()
    clean: frozenset[str] = frozenset()


REGISTRATIONS = Part("registrations", Registrations())


class FailoverController(ClusterController):
    """The controller, told of failures."""

    def __init__(
        self, hosts: Mapping[str, tuple[str, ...]], brokers: tuple[str, ...], election: str,
        rules: Mapping[str, PartitionRules], broker_epochs: Mapping[str, int] = FrozenMap(),
    ) -> None:
        super().__init__(hosts, brokers, 0, election, 1, broker_epochs)
        first = Local.first(self.name, *self.initial, REGISTRATIONS)
        for part in self.initial:
            first = first.put(part, self.initial[part])
        self.initial = first
        self.hosts = hosts
        """By partition: its replicas, the preferred leader first."""
        self.rules = rules

    def least(self, p: str) -> int:
        return self.rules[p].min_insync_replicas

    def on_message(self, local: Local, message: Message) -> Iterable[Turn[Local]]:
        """Take a message as ever, but that a broker which is fenced, or shuts down, is let into no ISR (KIP-841)."""
        if isinstance(message, messages.AlterPartitionRequest) and message.partition is not None:
            q = local[PARTITION[message.partition]].quorum
            if not (message.new_isr - q.isr).isdisjoint(local[REGISTRATIONS].fenced):
                answer = messages.AlterPartitionResponse(
                    Error.INELIGIBLE_REPLICA, q.leader_epoch, q.isr, q.partition_epoch, message.partition_epoch,
                    message.broker_epochs, source=self.name, dest=message.source, partition=message.partition)
                yield Turn("ReceiveAlterPartitionRequest", (message.source,), local, (answer,))
                return
        yield from super().on_message(local, message)

    def fenced(
        self, local: Local, b: str, partitions: Iterable[str] | None = None, is_clean: bool = False
    ) -> Turn[Local]:
        """A broker is not heard, or shuts down: it leaves each ISR and office.

        `partitions` are those that were made while it is fenced already.
        """
        known = local[REGISTRATIONS]
        clean = known.clean | {b} if is_clean else known.clean
        local, sent = local.put(REGISTRATIONS, Registrations(known.fenced | {b}, clean)), tuple[Message, ...]()
        for p in self.partitions if partitions is None else partitions:
            q = local[PARTITION[p]].quorum
            if b in q.isr or q.leader == b:
                local, more = self.changed(local, p, q.isr - {b})
                sent += more
        return Turn("FenceBroker", (b,), local, sent)

    def unfenced(self, local: Local, b: str) -> Turn[Local]:
        """A broker is heard again: it leads where nobody does and it may."""
        local, sent = self.there_again(local, b)
        return Turn("UnfenceBroker", (b,), local, sent)

    def elected(self, local: Local, p: str, b: str) -> Turn[Local]:
        """Let a member of the ISR lead a partition, in a new epoch where it does so already."""
        before = local[PARTITION[p]].quorum
        return self.announced("ElectLeader", (b, p), local, p, quorum.changed(before, b, before.isr))

    def reassigned(self, local: Local, p: str) -> Turn[Local]:
        """A partition has lost replicas: these leave ISR and office, in a new epoch (`PartitionChangeBuilder`)."""
        replicas, before = frozenset(self.hosts[p]), local[PARTITION[p]]
        after = self.elected_of(local, p, before.quorum.isr & replicas, frozenset())
        q = after.quorum
        if q.leader_epoch == before.quorum.leader_epoch:
            q = quorum.changed(before.quorum, q.leader, q.isr)
        after = attrs.evolve(after, quorum=q, eligible=after.eligible & replicas)
        sent = tuple(self.tell(p, q, b) for b in self.brokers)
        return Turn("CompleteReassignment", (p,), local.put(PARTITION[p], after), sent)

    def joined(self, local: Local, p: str, brokers: Iterable[str]) -> Turn[Local]:
        """Brokers have a replica of a partition that they did not have: they hear who leads."""
        q = local[PARTITION[p]].quorum
        return Turn("BeginReassignment", (p,), local, tuple(self.tell(p, q, b) for b in brokers))

    def elected_uncleanly(self, local: Local, p: str, b: str) -> Turn[Local]:
        """Let any replica lead a partition, whatever it lacks."""
        q = local[PARTITION[p]].quorum
        forgets = local.put(PARTITION[p], Partition(q))
        return self.announced("ElectUncleanLeader", (b, p), forgets, p, quorum.changed(q, b, frozenset((b,))))

    def register(self, local: Local, message: messages.BrokerRegistrationRequest) -> Turn[Local]:
        """A broker was started again. If it had not shut down, its log may lack committed records.

        It leaves each ISR then, unless nobody else may lead, and may not be elected for what it once had.
        """
        b, known = message.source, local[REGISTRATIONS]
        failed = frozenset((b,)) - known.clean
        local = local.put(REGISTRATIONS, attrs.evolve(known, fenced=known.fenced | {b}, clean=known.clean - {b}))
        sent = tuple[Message, ...]()
        for p in self.partitions:
            before = local[PARTITION[p]]
            q = before.quorum
            if message.broker_epoch <= q.broker_epochs[b]:
                continue
            q = attrs.evolve(q, broker_epochs=q.broker_epochs.set(b, message.broker_epoch), heard=q.heard.set(b, NIL))
            local = local.put(PARTITION[p], attrs.evolve(before, quorum=q, eligible=before.eligible - failed))
            local, more = self.changed(local, p, q.isr - failed, failed)
            sent += more
            after = local[PARTITION[p]]
            if b in after.quorum.isr:  # as its last member, which it is as what it is now
                local = local.put(PARTITION[p], attrs.evolve(after, quorum=let_in(after.quorum, (b,))))
        local, more = self.there_again(local, b)
        told = tuple(self.tell(p, local[PARTITION[p]].quorum, b) for p in self.partitions)
        return Turn("ReceiveBrokerRegistrationRequest", (b,), local, (*sent, *more, *told))

    def there_again(self, local: Local, b: str) -> Changes:
        known, sent = local[REGISTRATIONS], tuple[Message, ...]()
        local = local.put(REGISTRATIONS, attrs.evolve(known, fenced=known.fenced - {b}))
        for p, replicas in self.hosts.items():
            q = local[PARTITION[p]].quorum
            if q.leader is None and b in replicas:
                local, more = self.changed(local, p, q.isr)
                sent += more
        return local, sent

    def changed(self, local: Local, p: str, isr: Isr, failed: Isr = frozenset()) -> Changes:
        """Let a partition have this ISR, and a leader if there may be one; `failed` have lost what they had."""
        before = local[PARTITION[p]]
        q = before.quorum
        keeps_last = not isr and self.election != "elr"
        after = self.elected_of(local, p, q.isr if keeps_last else isr, failed)
        local = local.put(PARTITION[p], after)
        if after.quorum.leader_epoch != q.leader_epoch:
            return local, tuple(self.tell(p, after.quorum, b) for b in self.brokers)
        if after.quorum.isr != q.isr and q.leader is not None:
            return local, (messages.AlterPartitionResponse(
                Error.NONE, q.leader_epoch, after.quorum.isr, after.quorum.partition_epoch, NIL, None,
                source=self.name, dest=q.leader, partition=p),)
        return local, ()

    def elected_of(self, local: Local, p: str, isr: Isr, failed: Isr) -> Partition:
        """Return a partition with this ISR, and its leader: the present one, or the first replica that may lead.

        Those are, in this order, members of the ISR; without an ISR, eligible leaders; without these, the last that
        led; and where unclean elections are allowed, any replica.
        """
        before, fenced = local[PARTITION[p]], local[REGISTRATIONS].fenced
        q = before.quorum
        keeps_eligible = self.election == "elr" and len(isr) < self.least(p)
        eligible = (before.eligible | q.isr) - isr - failed if keeps_eligible else frozenset[str]()
        last = before.last_known if q.leader is None else q.leader
        leader = q.leader if q.leader in isr - fenced - failed else None
        if leader is None:
            there = [b for b in self.hosts[p] if b not in fenced]
            leader = next((b for b in there if b in isr), None)
            if leader is None and not isr:
                leader = next((b for b in there if b in eligible), None)
                if leader is None and not eligible and self.election == "elr" and last in there:
                    leader = last
            if leader is None and self.rules[p].unclean_leader_election_enable:
                leader, eligible = next(iter(there), None), eligible if not there else frozenset()
        if leader is not None and leader not in isr:
            isr = frozenset((leader,))
            eligible = eligible - isr if len(isr) < self.least(p) else frozenset()
        last_known = last if leader is None and not isr else None
        return Partition(altered(q, leader, isr), eligible, last_known)


def altered(q: Quorum, leader: str | None, isr: Isr) -> Quorum:
    """Return the state with a leader and an ISR: in a new leader epoch if the leader is another one (KAFKA-15021)."""
    q = let_in(q, isr - q.isr)
    if leader != q.leader:
        return quorum.changed(q, leader, isr)
    if isr == q.isr:
        return q
    return attrs.evolve(q, isr=isr, partition_epoch=q.partition_epoch + 1,
                        last_isr=q.last_isr.set(str(q.leader_epoch), isr))


def let_in(q: Quorum, brokers: Iterable[str]) -> Quorum:
    """Note that the controller itself lets brokers be in the ISR, as what they are now."""
    return attrs.evolve(q, entered=q.entered.update({b: q.broker_epochs[b] for b in sorted(brokers)}))
